"""The task graph as a map."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from doit.dependency import Dependency, SqliteDB
from doit.task import Task

from pipeline.task_map import load_task_list, source_folders, stale_tasks, task_map

ROOT = Path("/project")
BUILD = ROOT / "build"


def a_task(name: str, reads: Sequence[str] = (), makes: Sequence[str] = (), **more: object) -> Task:
    return Task(
        name,
        [lambda: None],
        file_dep=[str(ROOT / file) for file in reads],
        targets=[str(BUILD / file) for file in makes],
        **more,
    )


TASKS = [
    a_task("export", ["sites/garden/a.md", "sites/garden/b.md", "pipeline/export.py"], ["pages.json"]),
    a_task("chunk", ["build/pages.json", "pipeline/chunk.py"], ["chunks.jsonl"]),
    a_task("index", ["build/pages.json", "build/chunks.jsonl", "sites/collections.toml"], ["rag.db"]),
    a_task("verify", task_dep=["index"]),
    a_task("alone", ["README.md"], ["other"]),
    Task("all", None, task_dep=["index"]),
]


def drawn(stale: Sequence[str] = ()) -> dict[str, Any]:
    return task_map(TASKS, stale, ROOT, BUILD)


def test_an_arrow_leads_from_what_makes_a_file_to_what_reads_it() -> None:
    arrows = [(edge["from"], edge["to"]) for edge in drawn()["edges"]]
    assert arrows == [
        ("sites/garden", "export"),
        ("export", "chunk"),
        ("chunk", "index"),
        ("sites/collections.toml", "index"),
        ("index", "verify"),
    ]


def test_a_task_is_called_by_its_name_and_the_files_it_makes() -> None:
    nodes = {node["id"]: node for node in drawn()["nodes"]}
    assert nodes["index"] == {"id": "index", "label": "index\nrag.db"}
    assert nodes["verify"] == {"id": "verify", "label": "verify", "shape": "ellipse"}
    assert nodes["sites/garden"] == {"id": "sites/garden", "label": "sites/garden\n2 files", "shape": "text"}


def test_tasks_that_neither_need_nor_are_needed_are_left_out() -> None:
    assert {node["id"] for node in drawn()["nodes"]}.isdisjoint({"alone", "all", "README.md"})


def test_what_follows_from_a_stale_task_is_stale_too() -> None:
    colors = {node["id"]: node.get("color") for node in drawn(["chunk"])["nodes"]}
    assert [name for name, color in colors.items() if color == "orange"] == ["chunk", "index", "verify"]


def test_a_source_elsewhere_is_called_by_the_folder_that_its_files_share() -> None:
    files = ["/home/ada/notes/a.md", "/home/ada/notes/deep/b.md", "/project/handler/app.py"]
    assert source_folders(files, ROOT) == {"../home/ada/notes": 2}


def test_doit_says_what_is_stale(tmp_path: Path) -> None:
    page, made = tmp_path / "page.md", tmp_path / "made"
    page.write_text("text")
    task = Task("make", [lambda: None], file_dep=[str(page)], targets=[str(made)])
    state = Dependency(SqliteDB, str(tmp_path / "doit.db"))
    assert stale_tasks([task], state) == {"make"}
    made.write_text("text")
    state.save_success(task)
    assert stale_tasks([task], state) == set()
    page.write_text("another text")
    assert stale_tasks([task], state) == {"make"}
    state.close()


def test_a_dodo_file_gives_its_tasks_in_its_order() -> None:
    def task_first() -> dict[str, object]:
        return {"actions": ["true"]}

    def task_second() -> dict[str, object]:
        return {"actions": ["true"]}

    tasks = load_task_list({"task_second": task_second, "task_first": task_first, "other": pytest})
    assert [task.name for task in tasks] == ["first", "second"]
