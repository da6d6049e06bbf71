"""The task graph as a map: tasks, the files they are made from and make, and what is stale.

The map is a spec of plugins/diagram, a JSON object; nothing here knows how it is drawn.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from doit.dependency import Dependency
from doit.loader import load_tasks
from doit.task import Task

# What each task or source needs, by its name.
Needs = Mapping[str, frozenset[str]]

# Every stage depends on the program's own files; an arrow from there to each of them would say nothing.
_PROGRAM = frozenset({"benchmarks", "handler", "pipeline", "plugins", "requirements"})
_NOTES = (
    "Orange: would run now, or waits for one that would.",
    "An ellipse makes no file: it runs whenever it is asked for.",
    "Ralph's own code, on which all depend, is not drawn, nor are arrows that follow from others.",
)


def load_task_list(namespace: Mapping[str, object]) -> list[Task]:
    """The tasks that a dodo file, given as its names, defines, in its order."""
    tasks: list[Task] = load_tasks(dict(namespace), allow_delayed=True)
    return tasks


def stale_tasks(tasks: Sequence[Task], state: Dependency) -> set[str]:
    """The names of the tasks whose files would be made anew, by what doit knows of their last runs."""
    by_name = {task.name: task for task in tasks}
    return {
        task.name for task in tasks if task.targets and state.get_status(task, by_name).status != "up-to-date"
    }


def task_map(tasks: Sequence[Task], stale: Collection[str], root: Path, build: Path) -> dict[str, Any]:
    """The map of all tasks that need another one or are needed, as a spec.

    Files that tasks make are called by their way from `build`, others by that from `root`.
    """
    tasks = [task for task in tasks if task.actions]
    made = {target for task in tasks for target in task.targets}
    sources = {task.name: source_folders(task.file_dep - made, root) for task in tasks}
    n_files = {folder: n for found in sources.values() for folder, n in found.items()}
    before = needed_tasks(tasks)
    needed = frozenset[str]().union(*before.values())
    tasks = [task for task in tasks if before[task.name] or task.name in needed]
    needs: Needs = {folder: frozenset() for folder in n_files} | {
        task.name: before[task.name].union(sources[task.name]) for task in tasks
    }
    waiting = with_followers(stale, needs)
    arrows = without_shortcuts(needs)
    drawn = frozenset[str]().union(*arrows.values())
    return {
        "title": "What doit makes from what",
        "direction": "down",
        "nodes": [
            *(_source_node(folder, n) for folder, n in n_files.items() if folder in drawn),
            *(_task_node(task, task.name in waiting, build) for task in tasks),
        ],
        "edges": [{"from": name, "to": task.name} for task in tasks for name in sorted(arrows[task.name])],
        "notes": list(_NOTES),
    }


def needed_tasks(tasks: Sequence[Task]) -> Needs:
    """The tasks whose files each task reads, or that it names."""
    makers = {target: task.name for task in tasks for target in task.targets}
    names = {task.name for task in tasks}
    return {
        task.name: frozenset(
            [*names.intersection(task.task_dep), *(makers[file] for file in task.file_dep if file in makers)]
        )
        for task in tasks
    }


def without_shortcuts(needs: Needs) -> Needs:
    """The same order in fewer words: what a needed one needs anyway is not said again."""
    return {
        name: before - {far for near in before for far in _all_before(near, needs)}
        for name, before in needs.items()
    }


def with_followers(names: Collection[str], needs: Needs) -> set[str]:
    """The named ones, and those that need one of them, directly or by way of others."""
    return {name for name in needs if name in names or not _all_before(name, needs).isdisjoint(names)}


def source_folders(files: Iterable[str], root: Path) -> dict[str, int]:
    """The folders with what a task reads and no task makes, each with its number of files.

    A single file stands for itself. The program's own files are not among them.
    """
    folders: dict[str, list[str]] = {}
    for file in sorted(files):
        parts = Path(os.path.relpath(file, root)).parts
        if parts[0] not in _PROGRAM:
            # Files elsewhere are those of one site: its own folder is what they have in common.
            folders.setdefault("" if parts[0] == ".." else "/".join(parts[:2]), []).append(file)
    return {
        os.path.relpath(found[0] if len(found) == 1 else os.path.commonpath(found), root): len(found)
        for found in folders.values()
    }


def _all_before(name: str, needs: Needs) -> set[str]:
    found: set[str] = set()
    waiting = [name]
    while waiting:
        new = set(needs[waiting.pop()]) - found
        found |= new
        waiting += new
    return found


def _source_node(folder: str, n_files: int) -> dict[str, Any]:
    return {"id": folder, "label": folder if n_files == 1 else f"{folder}\n{n_files} files", "shape": "text"}


def _task_node(task: Task, stale: bool, build: Path) -> dict[str, Any]:
    made = [os.path.relpath(target, build) for target in task.targets]
    node: dict[str, Any] = {"id": task.name, "label": "\n".join([task.name, *made])}
    if not made:
        node["shape"] = "ellipse"
    if stale:
        node["color"] = "orange"
    return node
