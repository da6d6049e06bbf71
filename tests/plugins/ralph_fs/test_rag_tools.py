"""The RAG tools as a client calls them: what is found, what goes in and out, and what does not."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import anyio
import apsw
import pytest
from mcp import Client

from handler.bundle.gate import N_EVIDENCE, Gate
from pipeline.settings import IngestSettings, read_ingest_settings
from ralph_fs.server import make_server
from ralph_fs.settings import Settings
from tests.conftest import MakeBundle
from tests.fakes.mcp_files import Answer, Ground, answer_of, with_client

ROOT = Path(__file__).resolve().parents[3]
RAG_TOOLS = [
    "rag_search",
    "rag_get_chunk",
    "rag_list_documents",
    "rag_ingest_file",
    "rag_ingest_directory",
    "rag_delete_document",
]
# JSON in UTF-8 by the token, at least.
BYTES_A_TOKEN = 3.5
MAX_TOKENS = 700

Call = Callable[..., Answer]
COLLECTIONS = '[notes]\ntitle = "Notes"\npublic = true\n\n[diary]\npublic = false\n'


@pytest.fixture
def settings(ground: Ground, sample_bundle: Path, tmp_path: Path) -> Settings:
    """A bundle of some pages, no local index yet, two collections."""
    (tmp_path / "collections.toml").write_text(COLLECTIONS)
    rag = IngestSettings(tmp_path / "index" / "rag.db", sample_bundle, tmp_path)
    return replace(ground.settings, rag=rag)


def caller(settings: Settings, mode: Literal["legacy", "auto"] = "auto") -> Call:
    server = make_server(settings)

    def call(tool: str, **arguments: Any) -> Answer:
        return with_client(server, lambda client: answer_of(client, tool, arguments), mode)

    return call


@pytest.fixture
def call(settings: Settings) -> Call:
    """Calls one tool of one server over the ground."""
    return caller(settings)


def write(ground: Ground, files: Mapping[str, str]) -> None:
    for name, text in files.items():
        path = ground.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def ids(answer: Answer) -> list[str]:
    return [part.split(")")[0] for part in answer.text.split(", id ")[1:]]


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_every_tool_works_in_both_eras_of_the_protocol(
    settings: Settings, mode: Literal["auto", "legacy"]
) -> None:
    call = caller(settings, mode)
    page = {"path": "docs/page.md", "collection": "notes"}
    assert call("rag_ingest_file", **page).text == "docs/page.md: new, 1 chunk"
    assert "1 unchanged" in call("rag_ingest_directory", path="docs", collection="notes").text
    found = call("rag_search", query="pond algae")
    assert "docs/page.md" in found.text
    assert all("[id " in call("rag_get_chunk", id=chunk_id).text for chunk_id in ids(found))
    assert "docs/page.md" in call("rag_list_documents").text
    assert not call("rag_delete_document", path="docs/page.md").is_error


def test_a_search_finds_pages_of_the_bundle_with_their_address(call: Call) -> None:
    text = call("rag_search", query="Who restarts the server?", collections=["notes"], top_k=1).text
    assert text.startswith("Server\nhttps://example.org/notes/server (notes, id ")
    assert "Restart the server with systemctl." in text


def test_what_was_ingested_is_found_beside_the_bundle_and_what_was_deleted_is_not(
    call: Call, ground: Ground
) -> None:
    write(ground, {"docs/boat.md": "# Boat\n\nThe boat has a red sail.\n"})
    assert (
        call("rag_ingest_file", path="docs/boat.md", collection="notes").text == "docs/boat.md: new, 1 chunk"
    )
    text = call("rag_search", query="red sail of the boat", top_k=3).text
    assert text.startswith("Boat\ndocs/boat.md (notes, id ")
    assert str(ground.root) not in text
    assert call("rag_delete_document", path="docs/boat.md").text == "docs/boat.md: 1 chunks taken out"
    assert "red sail" not in call("rag_search", query="red sail of the boat").text
    assert call("rag_delete_document", path="docs/boat.md").is_error


def test_a_changed_file_replaces_what_it_had_and_an_unchanged_one_is_passed_over(
    call: Call, ground: Ground
) -> None:
    file = {"path": "docs/page.md", "collection": "notes"}
    assert call("rag_ingest_file", **file).text == "docs/page.md: new, 1 chunk"
    assert call("rag_ingest_file", **file).text == "docs/page.md: unchanged"
    write(ground, {"docs/page.md": "# Page\n\nThe lake has fish.\n"})
    assert call("rag_ingest_file", **file).text == "docs/page.md: changed, 1 chunk"
    found = call("rag_search", query="page pond algae lake fish", top_k=20).text
    assert "The lake has fish." in found
    assert "# Page\n\nThe pond has algae." not in found
    assert call("rag_ingest_file", path="docs/page.md", collection="diary").text.startswith(
        "docs/page.md: changed"
    )


def test_a_folder_is_ingested_without_what_is_hidden_linked_or_of_another_kind(
    call: Call, ground: Ground
) -> None:
    write(
        ground,
        {
            "site/a.md": "The boat.\n",
            "site/deep/er/b.mdx": "import X from 'x'\n\nThe <X>sail</X>.\n",
            "site/c.TXT": "The mast.\n",
            "site/.git/d.md": "Git.\n",
            "site/.hidden.md": "Hidden.\n",
            "site/node_modules/e.md": "Module.\n",
            "site/f.py": "print()\n",
            "site/draft.md": "---\ndraft: true\n---\nThe draft.\n",
            "site/_partial.md": "Partial.\n",
        },
    )
    (ground.root / "site" / "out.md").symlink_to(ground.outside / "secret.txt")
    (ground.root / "site" / "outside").symlink_to(ground.outside)
    os.link(ground.outside / "secret.txt", ground.root / "site" / "hard.md")
    expected = [
        "3 new, 3 refused; 3 chunks",
        "site/_partial.md: refused, a partial",
        "site/draft.md: refused, draft",
        "site/hard.md: refused, has a second (hard) link, which may lie outside",
        "site/a.md: new, 1 chunk",
        "site/c.TXT: new, 1 chunk",
        "site/deep/er/b.mdx: new, 1 chunk",
        "[not entered: node_modules]",
    ]
    arguments = {"path": "site", "collection": "notes"}
    dry = call("rag_ingest_directory", **arguments, dry_run=True).text.splitlines()
    assert dry == [f"{expected[0]}; a dry run, nothing was changed", *expected[1:]]
    assert "site/a.md" not in call("rag_list_documents").text
    assert call("rag_ingest_directory", **arguments).text.splitlines() == expected
    again = call("rag_ingest_directory", **arguments).text.splitlines()
    assert again == ["3 refused, 3 unchanged; 0 chunks", *expected[1:4], expected[-1]]


def test_what_a_folder_has_no_longer_is_taken_out_and_what_lies_elsewhere_stays(
    call: Call, ground: Ground
) -> None:
    write(ground, {f"{folder}/{n}.md": f"Note {n} in {folder}.\n" for folder in ("a", "ab") for n in (1, 2)})
    for folder in ("a", "ab"):
        call("rag_ingest_directory", path=folder, collection="notes")
        (ground.root / folder / "2.md").unlink()
    arguments = {"path": "./a/", "collection": "diary"}
    dry = call("rag_ingest_directory", **arguments, dry_run=True).text.splitlines()
    assert dry == [
        "1 changed, 1 gone; 1 chunks; a dry run, nothing was changed",
        "./a/2.md: gone",
        "./a/1.md: changed, 1 chunk",
    ]
    assert "a/2.md" in call("rag_list_documents").text
    done = call("rag_ingest_directory", **arguments).text.splitlines()
    assert done == ["1 changed, 1 gone; 1 chunks", *dry[1:]]
    listed = call("rag_list_documents").text
    assert [f": {name}, " in listed for name in ("a/1.md", "a/2.md", "ab/1.md", "ab/2.md")] == [
        True,
        False,
        True,
        True,
    ]
    (ground.root / "ab" / "1.md").unlink()
    assert call("rag_ingest_directory", path="ab", collection="notes").text.startswith("no files")
    assert "ab/2.md" in call("rag_list_documents").text


def test_a_page_that_became_private_is_taken_out(call: Call, ground: Ground) -> None:
    write(ground, {"boat.md": "The boat.\n"})
    call("rag_ingest_file", path="boat.md", collection="notes")
    write(ground, {"boat.md": "---\nprivate: true\n---\nThe boat.\n"})
    answer = call("rag_ingest_file", path="boat.md", collection="diary")
    assert answer.is_error
    assert "refused, private; what the index had of it is taken out" in answer.text
    assert "The boat." not in call("rag_search", query="boat").text


@pytest.mark.parametrize("collection", ["", "unknown"])
@pytest.mark.parametrize("tool", ["rag_ingest_file", "rag_ingest_directory"])
def test_nothing_is_ingested_outside_of_the_closed_set(
    call: Call, settings: Settings, tool: str, collection: str
) -> None:
    path = "docs" if tool.endswith("directory") else "docs/page.md"
    for arguments in ({"path": path, "collection": collection}, {"path": path}):
        answer = call(tool, **arguments)
        assert answer.is_error
        assert "name one that there is: notes, diary" in answer.text
    assert not settings.rag.database.exists()


@pytest.mark.parametrize(
    "path",
    ["../outside/secret.txt", "/etc/hosts.md", "docs/../../root-evil/secret.txt", "link.txt", "fifo.md"],
)
def test_nothing_outside_of_the_allowed_folders_is_ingested(
    call: Call, settings: Settings, ground: Ground, path: str
) -> None:
    (ground.root / "link.txt").symlink_to(ground.outside / "secret.txt")
    os.mkfifo(ground.root / "fifo.md")
    answer = call("rag_ingest_file", path=path, collection="notes")
    assert answer.is_error
    assert str(ground.root.parent) not in answer.text
    assert "stands outside" not in call("rag_search", query="what stands outside", top_k=20).text


def test_documents_are_listed_by_collection_and_those_without_one_too(
    call: Call, settings: Settings, ground: Ground
) -> None:
    write(ground, {"a.md": "---\nurl: https://example.org/boat\n---\nThe boat.\n"})
    call("rag_ingest_file", path="a.md", collection="diary")
    call("rag_ingest_file", path="docs/page.md", collection="notes")
    connection = apsw.Connection(str(settings.rag.database))
    connection.execute("UPDATE page SET collection = '' WHERE path LIKE '%page.md'")
    lines = call("rag_list_documents").text.splitlines()
    assert [line.rpartition(", 2")[0] for line in lines[2:]] == [
        "(no collection): docs/page.md, 1 chunks",
        "diary: https://example.org/boat, 1 chunks",
    ]
    assert lines[0] == "diary: the bundle's 1 pages, 1 chunks"
    assert call("rag_list_documents", collection="(no collection)").text.startswith("(no collection): docs/")
    assert not call("rag_delete_document", path="https://example.org/boat").is_error


def test_a_chunk_is_read_with_its_neighbours_or_its_page(call: Call, ground: Ground) -> None:
    sections = "".join(f"## Part {n}\n\n{f'Word{n} ' * 60}\n\n" for n in range(5))
    write(ground, {"book.md": f"# Book\n\n{sections}"})
    call("rag_ingest_file", path="book.md", collection="notes")
    (first, *_) = ids(call("rag_search", query="word3", collections=["notes"], top_k=1))
    page = call("rag_get_chunk", id=first, whole_page=True).text
    assert all(f"Word{n}" in page for n in range(5))
    around = call("rag_get_chunk", id=first).text
    assert "Word3" in around
    assert "Word0" not in around
    alone = call("rag_get_chunk", id=first, around=0).text
    assert alone.count("[id ") == 1
    # An id of the bundle works alike, and stays what it is while the local index changes.
    (server,) = ids(call("rag_search", query="nginx server", top_k=1))
    call("rag_delete_document", path="book.md")
    assert "nginx" in call("rag_get_chunk", id=server).text
    page_id = server.partition(":")[0]
    for wrong in (first, "", "123", f"{server}9", "x:y", f"{page_id}:-1", f"{page_id}:{'9' * 5_000}"):
        answer = call("rag_get_chunk", id=wrong)
        assert answer.is_error
        assert "search" in answer.text


def test_an_edited_copy_of_a_published_page_stands_in_for_it(call: Call, ground: Ground) -> None:
    (server,) = ids(call("rag_search", query="nginx server", top_k=1))
    address = "https://example.org/notes/server"
    write(ground, {"server.md": f"---\nurl: {address}\n---\n# Server\n\nThe server runs Caddy now.\n"})
    call("rag_ingest_file", path="server.md", collection="notes")
    for text in (
        call("rag_search", query="server nginx Caddy", top_k=20).text,
        call("rag_get_chunk", id=server).text,
    ):
        assert "Caddy now" in text
        assert "runs nginx" not in text


@pytest.mark.parametrize("path", ["a\0b", "/no.md", "https://example.org/no"])
def test_what_was_not_ingested_is_not_deleted(call: Call, path: str) -> None:
    call("rag_ingest_file", path="docs/page.md", collection="notes")
    answer = call("rag_delete_document", path=path)
    assert (answer.is_error, "was not ingested" in answer.text) == (True, True)


def test_a_bundle_that_is_built_anew_is_asked_by_a_server_that_had_the_old_one_open(
    settings: Settings, sample_bundle: Path, make_bundle: MakeBundle, tmp_path: Path
) -> None:
    current = tmp_path / "current"
    current.symlink_to(sample_bundle)
    rag = replace(settings.rag, bundle=read_ingest_settings({"RALPH_BUNDLE": str(current)}).bundle)
    call = caller(replace(settings, rag=rag))
    call("rag_ingest_file", path="docs/page.md", collection="notes")
    assert "boat" not in call("rag_search", query="red boat").text
    current.unlink()
    current.symlink_to(make_bundle({"notes/boat.md": "# Boat\n\nThe red boat has a sail.\n"}))
    assert "The red boat has a sail" in call("rag_search", query="red boat").text


def test_an_index_that_was_made_anew_is_asked_by_a_server_that_had_the_old_one_open(
    call: Call, settings: Settings
) -> None:
    page = {"path": "docs/page.md", "collection": "notes"}
    call("rag_ingest_file", **page)
    assert "docs/page.md" in call("rag_search", query="pond algae").text
    settings.rag.database.unlink()
    assert "docs/page.md" not in call("rag_search", query="pond algae").text
    call("rag_ingest_file", **page)
    assert "docs/page.md" in call("rag_search", query="pond algae").text


def test_what_is_in_both_is_shown_once(call: Call, ground: Ground) -> None:
    write(
        ground,
        {"copy.md": "---\ntitle: Music\n---\nThe piano is in the studio. A song was recorded in July.\n"},
    )
    call("rag_ingest_file", path="copy.md", collection="notes")
    assert call("rag_search", query="piano in the studio", top_k=20).text.count("A song was recorded") == 1


def test_off_topic_finds_nothing_and_says_so(
    settings: Settings, make_bundle: MakeBundle, ground: Ground
) -> None:
    gate = Gate(threshold=1e6, weights=(1.0,) * N_EVIDENCE)
    call = caller(replace(settings, rag=replace(settings.rag, bundle=make_bundle(gate=gate))))
    call("rag_ingest_file", path="docs/page.md", collection="notes")
    answer = call("rag_search", query="pond")
    assert (answer.is_error, answer.text) == (False, "Nothing that is indexed answers this.")
    assert "below 1000000" in call("rag_search", query="pond", explain=True).text


def test_explain_tells_why_a_chunk_is_there(call: Call) -> None:
    text = call("rag_search", query="pond algae", top_k=1, explain=True).text
    assert "rank 1 by meaning, rank 1 by words; cosine " in text


def test_wrong_arguments_are_refused_in_words(call: Call) -> None:
    assert "there are diary, notes" in call("rag_search", query="pond", collections=["unknown"]).text
    for arguments in ({"top_k": 0}, {"top_k": 21}, {"collections": ["unknown"]}):
        assert call("rag_search", query="pond", **arguments).is_error
    assert "only .md, .mdx, .txt" in call("rag_ingest_file", path="docs", collection="notes").text


def test_without_a_bundle_the_answer_says_what_is_missing(ground: Ground, tmp_path: Path) -> None:
    (tmp_path / "collections.toml").write_text(COLLECTIONS)
    call = caller(ground.settings)
    for answer in (
        call("rag_search", query="pond"),
        call("rag_ingest_file", path="docs/page.md", collection="notes"),
    ):
        assert answer.is_error
        assert "RALPH_BUNDLE" in answer.text
        assert "doit build" in answer.text
        assert str(tmp_path) not in answer.text
    assert call("rag_list_documents").text == "Nothing is indexed."


def test_an_index_of_another_model_is_refused_by_the_settings_name(call: Call, settings: Settings) -> None:
    call("rag_ingest_file", path="docs/page.md", collection="notes")
    apsw.Connection(str(settings.rag.database)).execute("UPDATE meta SET value = 'another'")
    for tool, arguments in (
        ("rag_search", {"query": "pond"}),
        ("rag_ingest_file", {"path": "note.txt", "collection": "notes"}),
    ):
        answer = call(tool, **arguments)
        assert answer.is_error
        assert "different embedding models" in answer.text or "RAG_DB_PATH" in answer.text
        assert str(settings.rag.database) not in answer.text


def test_progress_is_reported_file_by_file(settings: Settings, ground: Ground) -> None:
    write(ground, {f"many/{n}.md": f"Note {n}.\n" for n in range(5)})
    reported: list[tuple[float, float | None]] = []

    async def report(progress: float, total: float | None, message: str | None) -> None:
        reported.append((progress, total))

    async def ingest(client: Client) -> None:
        arguments = {"path": "many", "collection": "notes"}
        await client.call_tool("rag_ingest_directory", arguments, progress_callback=report)

    with_client(make_server(settings), ingest)
    assert reported == [(n, 5) for n in range(1, 6)]


def test_an_ingest_that_is_cancelled_stops_and_what_is_in_stays(settings: Settings, ground: Ground) -> None:
    n_files = 400
    write(ground, {f"many/{n}.md": f"Note {n} of the pond.\n" for n in range(n_files)})

    async def cancel(client: Client) -> str:
        arguments = {"path": "many", "collection": "notes"}
        with anyio.CancelScope() as scope:

            async def report(progress: float, total: float | None, message: str | None) -> None:
                scope.cancel()

            await client.call_tool("rag_ingest_directory", arguments, progress_callback=report)
        assert scope.cancelled_caught
        return (await answer_of(client, "rag_list_documents", {})).text

    with_client(make_server(settings), cancel)
    listed = caller(settings)("rag_ingest_directory", path="many", collection="notes", dry_run=True).text
    counts = {kind: int(n) for n, kind in re.findall(r"(\d+) (new|unchanged)", listed.splitlines()[0])}
    assert 0 < counts["unchanged"] < n_files
    assert sum(counts.values()) == n_files


def test_an_ingest_that_is_cancelled_stops_within_a_file(settings: Settings, ground: Ground) -> None:
    book = "\n".join(f"## Part {n}\n\n{f'Word{n} ' * 80}\n" for n in range(4_000))
    write(ground, {"many/a.md": "A note of the pond.\n", "many/b.md": book})

    async def cancel(client: Client) -> None:
        with anyio.CancelScope() as scope:

            async def report(progress: float, total: float | None, message: str | None) -> None:
                scope.cancel()

            arguments = {"path": "many", "collection": "notes"}
            await client.call_tool("rag_ingest_directory", arguments, progress_callback=report)
        assert scope.cancelled_caught

    with_client(make_server(settings), cancel)
    listed = caller(settings)("rag_ingest_directory", path="many", collection="notes", dry_run=True).text
    assert listed.startswith("1 new, 1 unchanged;")


def test_the_schemas_are_short_and_tell_what_a_tool_changes(settings: Settings) -> None:
    async def tools(client: Client) -> list[dict[str, Any]]:
        listed = (await client.list_tools()).tools
        return [t.model_dump(mode="json", by_alias=True, exclude_none=True) for t in listed]

    rag = [tool for tool in with_client(make_server(settings), tools) if tool["name"].startswith("rag_")]
    assert [tool["name"] for tool in rag] == RAG_TOOLS
    n_bytes = sum(len(json.dumps(tool, separators=(",", ":"))) + 1 for tool in rag)
    assert n_bytes / BYTES_A_TOKEN <= MAX_TOKENS
    hints = {tool["name"]: tool["annotations"] for tool in rag}
    assert [name for name in RAG_TOOLS if hints[name]["readOnlyHint"]] == RAG_TOOLS[:3]
    assert [name for name in RAG_TOOLS if hints[name].get("destructiveHint")] == ["rag_delete_document"]


def test_what_is_slow_to_load_is_loaded_by_the_first_rag_tool_alone() -> None:
    slow = "{'numpy', 'onnxruntime', 'apsw', 'tokenizers', 'yaml', 'markdown_it'}"
    program = (
        "import os, sys; from pathlib import Path; from ralph_fs.server import make_server; "
        "from ralph_fs.settings import read_settings; make_server(read_settings(os.environ, Path.cwd())); "
        f"print(*sorted({slow} & set(sys.modules)))"
    )
    environ = {"PATH": os.environ["PATH"], "PYTHONPATH": f"{ROOT}:{ROOT / 'plugins' / 'ralph-fs'}"}
    done = subprocess.run(
        [sys.executable, "-c", program], env=environ, cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == []
