"""Files into the local index: which, as what, and the command that does it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from threading import Event

import pytest

from handler.bundle.encoder import Encoder, Vector
from handler.local.library import Library
from handler.local.settings import read_local_settings
from pipeline import ingest as ingest_module
from pipeline.ingest import Outcome, SourceFile, ingest
from pipeline.ingest_command import find_sources, main
from pipeline.local_index import open_local_index
from pipeline.settings import read_ingest_settings
from pipeline.site import SiteError

ROOT = Path(__file__).resolve().parents[2]
Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def notes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder in which the command is run."""
    folder = tmp_path / "my notes"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


@pytest.fixture
def environ(tmp_path: Path, sample_bundle: Path, monkeypatch: pytest.MonkeyPatch) -> Mapping[str, str]:
    """The settings of a bundle, two collections, and an index that is not there yet."""
    sites = tmp_path / "sites"
    sites.mkdir()
    (sites / "collections.toml").write_text("[notes]\npublic = true\n[diary]\npublic = false\n")
    variables = {
        "RALPH_SITES": str(sites),
        "RALPH_BUNDLE": str(sample_bundle),
        "RAG_DB_PATH": str(tmp_path / "index" / "rag.db"),
    }
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    return variables


@pytest.fixture
def run(environ: Mapping[str, str], capsys: pytest.CaptureFixture[str]) -> Run:
    """Runs the command; its exit code, and what it printed."""

    def run_command(*argv: str) -> tuple[int, str, str]:
        code = main(argv)
        return (code, *capsys.readouterr())

    return run_command


def write(folder: Path, files: Mapping[str, str]) -> None:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def source(name: str, text: str) -> SourceFile:
    return SourceFile(f"/notes/{name}", name, text.encode)


def test_what_was_ingested_is_asked_in_the_local_chat_at_once(
    run: Run, notes: Path, environ: Mapping[str, str]
) -> None:
    write(notes, {"boat.md": "# Boat\n\nThe boat has a red sail.\n"})
    code, out, _ = run("boat.md", "--collection", "diary")
    assert (code, out.splitlines()[:2]) == (0, ["boat.md: new, 1 chunk", "diary: 1 new; 1 chunk"])
    library = Library.open(read_local_settings(environ))
    (best, *_) = library.search()("red sail").hits
    assert (best.chunk.url, best.chunk.collection) == ((notes / "boat.md").as_uri(), "diary")


def test_a_folder_is_listed_and_deleted_even_when_it_is_gone(run: Run, notes: Path) -> None:
    write(notes, {"a/one.md": "One.", "a/two.txt": "Two.", "b/three.mdx": "Three."})
    run(".", "--collection", "notes")
    listed = run("--list")[1].splitlines()
    assert [line.split("  ")[1] for line in listed] == [
        str(notes / name) for name in ("a/one.md", "a/two.txt", "b/three.mdx")
    ]
    for name in ("one.md", "two.txt"):
        (notes / "a" / name).unlink()
    assert run("--delete", "a")[1].count("1 chunk taken out") == 2
    assert len(run("--list")[1].splitlines()) == 1
    code, _, err = run("--delete", "a")
    assert (code, "has nothing of it" in err) == (2, True)


def test_what_a_folder_has_no_longer_is_taken_out_and_what_lies_elsewhere_stays(
    run: Run, notes: Path
) -> None:
    for folder in ("a", "a b", "b"):
        write(
            notes, {f"{folder}/stays.md": f"Stays in {folder}.", f"{folder}/goes.md": f"Goes from {folder}."}
        )
        write(notes, {f"{folder}/.hidden.md": f"Named in {folder}."})
    run("a", "a b", "b/stays.md", "b/goes.md", "a/.hidden.md", "--collection", "notes")
    for folder in ("a", "a b", "b"):
        (notes / folder / "goes.md").unlink()
    dry = run("a", "--collection", "diary", "--dry-run")[1].splitlines()
    assert dry[0] == "a/goes.md: gone"
    assert "a/goes.md" in run("--list")[1]
    # Another collection than it was in: gone is gone.
    assert run("a", "--collection", "diary")[1].splitlines()[0] == "a/goes.md: gone"
    listed = run("--list")[1]
    for name in ("a/stays.md", "a/.hidden.md", "a b/stays.md", "a b/goes.md", "b/stays.md", "b/goes.md"):
        assert f"  {notes / name}  " in listed
    assert "a/goes.md" not in listed


def test_of_a_folder_in_which_nothing_is_left_all_stays_as_its_disk_may_be_missing(
    run: Run, notes: Path
) -> None:
    write(notes, {"disk/one.md": "One.", "disk/two.md": "Two.", "other.md": "Other."})
    run(".", "--collection", "notes")
    (notes / "disk" / "one.md").unlink()
    (notes / "disk" / "two.md").unlink()
    code, _, err = run("disk", "--collection", "notes")
    assert (code, "no .md, .mdx, .txt file in disk" in err, "--delete" in err) == (2, True, True)
    run("disk", "other.md", "--collection", "notes")
    assert len(run("--list")[1].splitlines()) == 3


def test_a_file_that_was_renamed_keeps_its_address(run: Run, notes: Path) -> None:
    write(notes, {"one.md": "---\nurl: https://example.org/one\n---\nOne."})
    run(".", "--collection", "notes")
    (notes / "one.md").rename(notes / "a name before.md")
    lines = run(".", "--collection", "notes")[1].splitlines()
    assert lines[:2] == ["one.md: gone", "a name before.md: new, 1 chunk"]


def test_what_names_would_do_to_a_terminal_is_escaped(run: Run, notes: Path) -> None:
    write(notes, {"a\x1b[31mb\n\u202ec.md": "One."})
    listed = "a\\x1b[31mb\\n\\u202ec.md"
    outs = [
        run(".", "--collection", "notes")[1],
        run("--list")[1],
        run("--delete", "a\x1b[31mb\n\u202ec.md")[1],
    ]
    assert all(listed in out and "\x1b" not in out and "\u202e" not in out for out in outs)
    err = run("no\x1b[31m.md", "--collection", "notes")[2]
    assert err == "ralph: no\\x1b[31m.md: is not there\n"


def test_a_dry_run_changes_nothing(run: Run, notes: Path, environ: Mapping[str, str]) -> None:
    write(notes, {"one.md": "One."})
    code, out, _ = run(".", "--collection", "notes", "--dry-run")
    assert (code, "one.md: new, 1 chunk" in out, "Nothing was changed." in out) == (0, True, True)
    assert not Path(environ["RAG_DB_PATH"]).exists()
    run(".", "--collection", "notes")
    write(notes, {"one.md": "Another.", "two.md": "---\ndraft: true\n---\nTwo."})
    assert "one.md: changed, 1 chunk" in run(".", "--collection", "notes", "--dry-run")[1]
    write(notes, {"one.md": "---\nprivate: true\n---\nAnother."})
    run(".", "--collection", "notes", "--dry-run")
    assert "one.md" in run("--list")[1]


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["."], "no collection: name one with --collection: notes, diary"),
        ([".", "--collection", "unknown"], "unknown: name one that there is"),
        (["missing", "--collection", "notes"], "missing: is not there"),
        (["picture.png", "--collection", "notes"], "only .md, .mdx, .txt files"),
        (["--collection", "notes"], "no .md, .mdx, .txt file in nothing"),
        (["--list"], "nothing was ingested yet"),
        (["--delete"], "name the files or folders to take out"),
        (["pipe.md", "--collection", "notes"], "pipe.md: is no regular file"),
        (["loop.md", "--collection", "notes"], "loop.md: cannot be read"),
        (["x" * 300 + ".md", "--collection", "notes"], "x.md: cannot be read"),
    ],
)
def test_what_cannot_be_done_is_said_in_one_sentence(
    run: Run, notes: Path, argv: list[str], message: str
) -> None:
    (notes / "picture.png").write_bytes(b"")
    (notes / "loop.md").symlink_to("loop.md")
    os.mkfifo(notes / "pipe.md")
    code, out, err = run(*argv)
    assert (code, out) == (2, "")
    assert message in err


def test_without_a_bundle_the_command_names_the_task_that_makes_one(
    run: Run, notes: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(notes, {"one.md": "One."})
    monkeypatch.setenv("RALPH_BUNDLE", str(notes / "none"))
    code, _, err = run(".", "--collection", "notes")
    assert code == 2
    assert "`doit build` makes" in err
    assert "RALPH_BUNDLE" in err


def test_only_plain_files_that_are_in_sight_are_found(notes: Path, tmp_path: Path) -> None:
    write(
        notes,
        {".git/a.md": "", ".b.md": "", "c/.d/e.md": "", "node_modules/f.md": "", "g.py": "", "h/i.MD": ""},
    )
    (tmp_path / "out.md").write_text("Out.")
    (notes / "link.md").symlink_to(tmp_path / "out.md")
    (notes / "folder").symlink_to(tmp_path)
    os.mkfifo(notes / "pipe.md")
    found = find_sources([Path(), Path("h"), tmp_path / "out.md"], notes)
    assert [file.name for file in found] == ["h/i.MD", str(tmp_path / "out.md")]


def ingested(tmp_path: Path, encoder: Encoder, *files: SourceFile) -> list[Outcome]:
    with open_local_index(tmp_path / "rag.db", encoder.spec) as index:
        return list(ingest(files, "notes", index, encoder))


def documents(tmp_path: Path) -> dict[str, tuple[str, str]]:
    with open_local_index(tmp_path / "rag.db", None) as index:
        return {document.path: (document.url, document.title) for document in index.documents()}


def test_a_page_has_its_published_address_or_the_files_own(tmp_path: Path, tiny_encoder: Encoder) -> None:
    ingested(
        tmp_path,
        tiny_encoder,
        source("a b.md", "---\nurl: https://example.org/ä\n---\n# The title\n\nText."),
        source("c d/index.md", "Text."),
        source("e.md", "---\nurl: /below\ntitle: E\n---\nText."),
        source("f.txt", "import this\n\nText <!-- that stays -->."),
    )
    assert documents(tmp_path) == {
        "/notes/a b.md": ("https://example.org/ä", "The title"),
        "/notes/c d/index.md": ("file:///notes/c%20d/index.md", "c d"),
        "/notes/e.md": ("file:///notes/e.md", "E"),
        "/notes/f.txt": ("file:///notes/f.txt", "f"),
    }


def test_what_is_no_page_is_refused_with_the_reason(
    tmp_path: Path, tiny_encoder: Encoder, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unreadable() -> bytes:
        raise SiteError("permission denied")

    monkeypatch.setattr(ingest_module, "MAX_FILE_BYTES", 1 << 20)
    outcomes = ingested(
        tmp_path,
        tiny_encoder,
        source("draft.md", "---\ndraft: true\n---\nText."),
        source("unlisted.txt", "---\nunlisted: yes\n---\nText."),
        source("broken.md", "---\nprivate: [\n---\nText."),
        source("_partial.md", "Text."),
        source("_folder/a.md", "Text."),
        source("empty.md", "---\ntitle: Empty\n---\n"),
        source("large.md", "x" * ((1 << 20) + 1)),
        SourceFile("/notes/locked.md", "locked.md", unreadable),
        SourceFile("/notes/binary.md", "binary.md", lambda: b"\x89PNG\r\n\x00\x00\x00\rIHDR"),
        SourceFile("/notes/wide.md", "wide.md", lambda: "Wide.".encode("utf-16")),
        source("\udcff.md", "Text."),
        source("one.md", "---\nurl: https://example.org/\n---\nText."),
        source("two.md", "---\nurl: https://example.org/\n---\nOther text."),
    )
    assert [str(outcome) for outcome in outcomes] == [
        "draft.md: refused, draft",
        "unlisted.txt: refused, unlisted",
        "broken.md: refused, malformed front matter that speaks of drafts or visibility",
        "_partial.md: refused, a partial",
        "_folder/a.md: refused, a partial",
        "empty.md: refused, no text",
        "large.md: refused, it has more than 1 MB",
        "locked.md: refused, permission denied",
        "binary.md: refused, binary",
        "wide.md: new, 1 chunk",
        "\\udcff.md: refused, its name is not UTF-8",
        "one.md: new, 1 chunk",
        "two.md: refused, another file has the address https://example.org/ already",
    ]


@pytest.mark.parametrize("n_files", [2, 40])
def test_files_that_pass_their_addresses_on_are_all_changed(
    tmp_path: Path, tiny_encoder: Encoder, n_files: int
) -> None:
    def rotated(by: int) -> list[SourceFile]:
        pages = [(n, f"https://example.org/{(n + by) % n_files}") for n in range(n_files)]
        return [source(f"{n}.md", f"---\nurl: {url}\n---\nNote {n}.") for n, url in pages]

    ingested(tmp_path, tiny_encoder, *rotated(0))
    ingested(tmp_path, tiny_encoder, *rotated(1))
    assert documents(tmp_path) == {
        f"/notes/{n}.md": (f"https://example.org/{(n + 1) % n_files}", f"{n}") for n in range(n_files)
    }
    # A file that is not ingested with it keeps its address.
    (outcome,) = ingested(tmp_path, tiny_encoder, rotated(0)[0])
    assert str(outcome) == "0.md: refused, another file has the address https://example.org/0 already"


def test_of_a_changed_page_only_new_chunks_are_embedded(tmp_path: Path, tiny_encoder: Encoder) -> None:
    sections = [f"## Part {n}\n\n{f'Word{n} ' * 80}\n" for n in range(6)]
    ingested(tmp_path, tiny_encoder, source("a.md", "\n".join(sections)))
    sections[3] = f"## Part 3\n\n{'Else ' * 80}\n"
    embedded: list[str] = []

    class Counting(Encoder):
        def embed_passage(self, text: str) -> Vector:
            embedded.append(text)
            return super().embed_passage(text)

    counting = Counting(tiny_encoder._session, tiny_encoder._tokenizer, tiny_encoder.spec)
    (outcome,) = ingested(tmp_path, counting, source("a.md", "\n".join(sections)))
    assert outcome.kind == "changed"
    title, *embedded = embedded
    assert title == "a"
    assert 0 < len(embedded) < outcome.n_chunks
    assert all("Else" in text for text in embedded)


def test_who_is_interrupted_waits_for_a_chunk_and_not_for_its_file(
    tmp_path: Path, tiny_encoder: Encoder
) -> None:
    n_sections = 1_000
    book = "\n".join(f"## Part {n}\n\n{f'Word{n} ' * 80}\n" for n in range(n_sections))
    is_interrupted = Event()
    embedded: list[str] = []

    class Waiting(Encoder):
        def embed_passage(self, text: str) -> Vector:
            if "Part" in text:
                is_interrupted.wait()
                embedded.append(text)
            return super().embed_passage(text)

    waiting = Waiting(tiny_encoder._session, tiny_encoder._tokenizer, tiny_encoder.spec)
    files = [source("note.md", "A note."), source("book.md", book)]
    with open_local_index(tmp_path / "rag.db", tiny_encoder.spec) as index:
        outcomes = ingest(files, "notes", index, waiting, workers=1)
        assert str(next(outcomes)) == "note.md: new, 1 chunk"
        is_interrupted.set()
        outcomes.close()
    assert len(embedded) < n_sections
    assert [*documents(tmp_path)] == ["/notes/note.md"]


def test_what_stops_an_ingest_does_so_within_a_file(tmp_path: Path, tiny_encoder: Encoder) -> None:
    n_sections = 1_000
    book = "\n".join(f"## Part {n}\n\n{f'Word{n} ' * 80}\n" for n in range(n_sections))
    is_stopped = Event()
    embedded: list[str] = []

    class Waiting(Encoder):
        def embed_passage(self, text: str) -> Vector:
            if not embedded:
                is_stopped.wait(10)
            embedded.append(text)
            return super().embed_passage(text)

    def stop() -> None:
        is_stopped.set()
        raise InterruptedError

    waiting = Waiting(tiny_encoder._session, tiny_encoder._tokenizer, tiny_encoder.spec)
    files = [source("book.md", book), source("other.md", book)]
    with open_local_index(tmp_path / "rag.db", tiny_encoder.spec) as index, pytest.raises(InterruptedError):
        list(ingest(files, "notes", index, waiting, workers=1, check=stop))
    assert len(embedded) < n_sections
    assert documents(tmp_path) == {}


def test_the_settings_have_defaults_of_this_user_and_clone() -> None:
    settings = read_ingest_settings({"HOME": "/home/me"})
    assert settings.database == Path("/home/me/.local/share/ralph/rag.db")
    assert settings.bundle == ROOT / "build" / "current"
    assert settings.collections == ROOT / "sites"
    named = read_ingest_settings({"XDG_DATA_HOME": "/data", "RALPH_BUILD": "/b", "RALPH_SITES": "/s"})
    assert (named.database, named.bundle, named.collections) == (
        Path("/data/ralph/rag.db"),
        Path("/b/current"),
        Path("/s"),
    )


def test_two_commands_at_once_lose_nothing(notes: Path, environ: Mapping[str, str]) -> None:
    for name in ("a", "b"):
        write(notes, {f"{name}/{n}.md": f"Note {name} {n} of the garden.\n" for n in range(30)})
    commands = [
        subprocess.Popen(
            [sys.executable, "-m", "pipeline.ingest_command", str(notes / name), "--collection", "notes"],
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for name in ("a", "b")
    ]
    for command in commands:
        out, err = command.communicate(timeout=60)
        assert command.returncode == 0, err
        assert "notes: 30 new; 30 chunks" in out
    with open_local_index(Path(environ["RAG_DB_PATH"]), None) as index:
        assert len(index.documents("notes")) == 60
