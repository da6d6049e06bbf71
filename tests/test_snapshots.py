"""What is no website, by real doit: made by name, asked in the local chat, and in nothing that ships."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from handler.local.library import Library
from handler.local.settings import read_local_settings
from tests.fakes.last_fm_api import KEY, LastFmApi, artist

ROOT = Path(__file__).resolve().parent.parent
# Stands in the reminders alone.
SECRET = "xylophone"
COLLECTIONS = '[notes]\npublic = true\n\n[todo]\ntitle = "To do"\npublic = false\n'
SITES = {
    "garden": 'kind = "markdown"\nsource = "pages"\nbase_url = "https://a.example/"\ncollection = "notes"\n',
    "tasks": 'kind = "reminders"\nsource = "Lists"\ncollection = "todo"\n',
    "music": 'kind = "last-fm"\nsource = "https://www.last.fm/user/ada"\n',
}
REMINDERS = (
    "BEGIN:VCALENDAR\nX-WR-CALNAME:Music room\n"
    f"BEGIN:VTODO\nSUMMARY:Tune the {SECRET} in the studio\nDUE:20261201T090000\nEND:VTODO\nEND:VCALENDAR\n"
)


class Workshop:
    """Sites of three kinds, and doit to work on them."""

    def __init__(self, folder: Path, api: str) -> None:
        self.build = folder / "build"
        for name, toml in SITES.items():
            (folder / "sites" / name).mkdir(parents=True)
            (folder / "sites" / name / "site.toml").write_text(toml)
        (folder / "sites" / "collections.toml").write_text(COLLECTIONS)
        for file, text in (
            ("garden/pages/pond.md", "# Pond\n\nAlgae grow.\n"),
            ("tasks/Lists/a.ics", REMINDERS),
        ):
            (folder / "sites" / file).parent.mkdir()
            (folder / "sites" / file).write_text(text)
        self.environ = {
            **os.environ,
            "RALPH_SITES": str(folder / "sites"),
            "RALPH_BUILD": str(self.build),
            "RALPH_BUNDLE": str(self.build / "current"),
            "RALPH_TODAY": "2026-11-30",
            "LASTFM_API_KEY": KEY,
            "LASTFM_BASE_URL": api,
            # What accepts private pages accepts none that are for the local chat alone.
            "RALPH_ACCEPT_PRIVATE": "todo",
        }

    def run(self, *argv: str, **environ: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", *argv],
            cwd=ROOT,
            env={**self.environ, **environ},
            capture_output=True,
            text=True,
        )

    def doit(self, *tasks: str, **environ: str) -> subprocess.CompletedProcess[str]:
        return self.run("doit", "-f", str(ROOT / "dodo.py"), *tasks, **environ)

    def traces(self) -> set[str]:
        """What of the build folder holds a word of the reminders, by its first name."""
        files = (path for path in self.build.rglob("*") if path.is_file())
        found = {path for path in files if re.search(rb"xylophon|Music room|Beck", path.read_bytes())}
        return {path.relative_to(self.build).parts[0] for path in found}


@pytest.fixture(scope="module")
def api() -> Iterator[LastFmApi]:
    with LastFmApi(artists=[artist("Beck")]) as api:
        yield api


@pytest.fixture(scope="module")
def packed(api: LastFmApi, tmp_path_factory: pytest.TempPathFactory) -> Workshop:
    """Both snapshots are made, and a package of all that ships."""
    workshop = Workshop(tmp_path_factory.mktemp("snapshots"), api.url)
    done = workshop.doit("export:tasks", "export:music", "package")
    assert done.returncode == 0, done.stdout + done.stderr
    return workshop


def test_a_snapshot_is_in_nothing_that_is_built_or_ships(packed: Workshop) -> None:
    assert {path.name for path in packed.build.iterdir()} > {"snapshots", "current", "package", "chunks"}
    assert packed.traces() == {"snapshots"}


def test_the_listing_says_what_is_left_out_and_asks_nobody(packed: Workshop, api: LastFmApi) -> None:
    before = len(api.queries)
    listing = packed.doit("export").stdout
    assert "garden: 1 of 1 page exported" in listing
    assert "tasks: a snapshot, left out of the index; `doit export:tasks` makes it" in listing
    assert "music: a snapshot, left out of the index; `doit export:music` makes it" in listing
    assert len(api.queries) == before


def test_the_local_chat_finds_the_reminders_once_they_are_ingested(packed: Workshop) -> None:
    folder, database = packed.build / "snapshots" / "tasks", str(packed.build / "local.db")
    done = packed.run("handler", "ingest", str(folder), "--collection", "todo", RAG_DB_PATH=database)
    assert done.returncode == 0, done.stderr
    library = Library.open(read_local_settings({**packed.environ, "RAG_DB_PATH": database}))
    found = library.search()(f"When do I tune the {SECRET}?")
    assert found.hits[0].chunk.collection == "todo"
    assert f"Tune the {SECRET}" in found.hits[0].chunk.text
    assert found.hits[0].chunk.heading == ("Due Tuesday, 2026-12-01",)


def test_a_snapshot_is_made_anew_each_time_and_says_what_to_do_with_it(
    packed: Workshop, api: LastFmApi
) -> None:
    before = len(api.queries)
    done = packed.doit("export:music", "export:tasks")
    assert len(api.queries) == before + 3
    assert "1 artist, 0 albums, 0 tracks. Put listening.md into your site" in done.stdout
    command = f"ralph ingest {packed.build}/snapshots/tasks --collection todo"
    assert f"RAG_DB_PATH={packed.build}/local.db {command}" in done.stdout
    assert KEY not in done.stdout + done.stderr


def test_a_wrong_key_is_one_sentence_without_it(packed: Workshop) -> None:
    done = packed.doit("export:music", LASTFM_API_KEY="feedface")
    assert done.returncode != 0
    assert "LASTFM_API_KEY is not a key that it knows" in done.stdout + done.stderr
    assert "feedface" not in done.stdout + done.stderr
    assert "Traceback" not in done.stdout + done.stderr


def test_a_snapshot_whose_site_is_gone_goes_with_the_next_build(packed: Workshop) -> None:
    (packed.build / "snapshots" / "old").mkdir()
    (packed.build / "snapshots" / "old" / "a.md").write_text(SECRET)
    sites = Path(packed.environ["RALPH_SITES"])
    (sites / "garden" / "pages" / "roses.md").write_text("# Roses\n\nRoses want sun.\n")
    done = packed.doit("build")
    assert done.returncode == 0, done.stdout
    assert "old: not in" in done.stdout
    assert {path.name for path in (packed.build / "snapshots").iterdir()} == {"tasks", "music"}
