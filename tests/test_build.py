"""The build as a person runs it: real doit, the real model, sites of a few pages."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from handler.bundle.layout import FILES, SUMS
from handler.bundle.manifest import read_manifest
from handler.bundle.sums import check_sums

ROOT = Path(__file__).resolve().parent.parent

COLLECTIONS = '[garden]\ntitle = "Garden"\npublic = true\n\n[sample]\npublic = true\nsample = true\n'
SITE = 'kind = "markdown"\nsource = "pages"\nbase_url = "https://example.org/{0}/"\ncollection = "{0}"\n'
PAGES = {
    "index.md": "# The garden\n\nA garden of vegetables, with a pond behind the house.\n",
    "tomatoes.md": "# Tomatoes\n\nPlant tomatoes after the last frost, in full sun.\n\nWater them daily.\n",
    "pond.md": "# The pond\n\nAlgae grow in warm water. Barley straw keeps them away.\n",
    "secret.md": "---\ndraft: true\n---\n# Plans\n\nThe xylophone is buried below the pear tree.\n",
}
QUESTIONS = [
    {
        "id": "plant",
        "text": "When should I plant tomatoes?",
        "expected": ["https://example.org/garden/tomatoes"],
    },
    {"id": "algae", "text": "how to get rid of algae", "expected": ["https://example.org/garden/pond"]},
    {"id": "capital", "text": "What is the capital of France?", "expected": []},
]


class Workshop:
    """A sites folder and a build folder, and doit to work on them."""

    def __init__(self, folder: Path) -> None:
        self.sites = folder / "sites"
        self.build = folder / "build"
        self.pages = self.sites / "garden" / "pages"
        self.pages.mkdir(parents=True)
        (self.sites / "collections.toml").write_text(COLLECTIONS)
        (self.sites / "garden" / "site.toml").write_text(SITE.format("garden"))
        (self.sites / "garden" / "questions.jsonl").write_text("\n".join(map(json.dumps, QUESTIONS)))
        for name, text in PAGES.items():
            (self.pages / name).write_text(text)

    @property
    def environ(self) -> dict[str, str]:
        return {**os.environ, "RALPH_SITES": str(self.sites), "RALPH_BUILD": str(self.build)}

    def argv(self, *task: str) -> list[str]:
        return [sys.executable, "-m", "doit", "-f", str(ROOT / "dodo.py"), *task]

    def doit(self, *task: str, **environ: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            self.argv(*task),
            cwd=ROOT,
            env={**self.environ, **environ},
            capture_output=True,
            text=True,
            check=False,
        )

    def run(self, *task: str, **environ: str) -> str:
        done = self.doit(*task, **environ)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def ask(self, *argv: str) -> dict[str, object]:
        command = [sys.executable, "-m", "handler", *argv, "--json"]
        done = subprocess.run(command, cwd=ROOT, env=self.environ, capture_output=True, text=True, check=True)
        found: dict[str, object] = json.loads(done.stdout)
        return found

    @property
    def bundle(self) -> dict[str, bytes]:
        return {name: (self.build / "current" / name).read_bytes() for name in (*FILES, SUMS)}


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Workshop:
    """Built once; the tests that use it leave the sites as they found them."""
    workshop = Workshop(tmp_path_factory.mktemp("built"))
    workshop.run("build")
    return workshop


@pytest.fixture
def edited(built: Workshop) -> Iterator[Workshop]:
    """The same, for a test that edits pages: they are put back and built again afterwards."""
    yield built
    for name, text in PAGES.items():
        (built.pages / name).write_text(text)
    for path in built.pages.iterdir():
        if path.name not in PAGES:
            path.unlink()
    built.run("build", RALPH_ACCEPT_SHRINK="garden")


def test_a_question_gets_an_answer_with_the_address_of_its_page(built: Workshop) -> None:
    found = built.ask("ask", "When do tomatoes go into the ground?")
    citation = found["citations"][0]  # type: ignore[index]
    assert citation["url"] == "https://example.org/garden/tomatoes"
    assert citation["quote"] == "Plant tomatoes after the last frost, in full sun."


def test_nothing_to_do_is_said_in_one_line(built: Workshop) -> None:
    assert built.run("build") == "up to date\n"
    assert built.run() == "up to date\n"


def test_the_build_verifies(built: Workshop) -> None:
    assert "cosine of 1.0000" in built.run("verify")


def test_a_draft_is_in_no_file_and_its_exclusion_is_listed(built: Workshop) -> None:
    for folder, _, files in os.walk(built.build):
        for name in files:
            assert b"xylophone" not in (Path(folder) / name).read_bytes(), name
    listing = built.run("export")
    assert "garden: 3 of 4 pages exported" in listing
    assert "secret.md" in listing


def test_two_builds_in_two_folders_are_byte_equal(built: Workshop, tmp_path: Path) -> None:
    other = Workshop(tmp_path / "elsewhere")
    other.run("-n", "2", "build")
    assert other.bundle == built.bundle


def test_an_edit_embeds_only_what_changed_and_taken_back_it_embeds_nothing(edited: Workshop) -> None:
    before = edited.bundle
    (edited.pages / "pond.md").write_text(PAGES["pond.md"] + "\nFish eat mosquito larvae.\n")
    assert "1 of 3 chunks new" in edited.run("build")
    assert edited.bundle["rag.db"] != before["rag.db"]
    (edited.pages / "pond.md").write_text(PAGES["pond.md"])
    assert "0 of 3 chunks new" in edited.run("build")
    assert edited.bundle == before


def test_a_page_dated_ahead_comes_on_its_day_and_no_other_day_builds_anything(tmp_path: Path) -> None:
    workshop = Workshop(tmp_path)
    (workshop.sites / "garden" / "site.toml").write_text(SITE.format("garden").replace("markdown", "hugo"))
    (workshop.pages / "index.md").unlink()
    (workshop.pages / "ahead.md").write_text("---\ndate: 2026-03-01\n---\n# Beans\n\nSow beans in May.\n")
    listing = workshop.run("export", RALPH_TODAY="2026-01-01")
    assert "garden: 2 of 4 pages exported" in listing
    assert "left out, dated ahead: 2026-03-01: 1" in listing
    assert workshop.run("export:garden", RALPH_TODAY="2026-02-28") == "up to date\n"
    assert "garden: 3 pages" in workshop.run("export:garden", RALPH_TODAY="2026-03-01")
    assert workshop.run("export:garden", RALPH_TODAY="2027-03-01") == "up to date\n"
    assert "garden: 2 pages" in workshop.run("export:garden", RALPH_TODAY="2026-01-01")


def test_a_day_that_is_none_is_one_sentence(built: Workshop) -> None:
    done = built.doit("build", RALPH_TODAY="tomorrow")
    assert done.returncode != 0
    assert done.stderr == "RALPH_TODAY: 'tomorrow' is no day; write it as YYYY-MM-DD, or unset it\n"


def test_a_page_that_is_deleted_leaves_the_bundle(edited: Workshop) -> None:
    (edited.pages / "pond.md").unlink()
    edited.run("build")
    assert b"Barley straw" not in edited.bundle["rag.db"]
    assert read_manifest(edited.build / "current").collections["garden"].n_pages == 2


def test_a_page_that_becomes_a_draft_leaves_the_bundle(edited: Workshop) -> None:
    (edited.pages / "pond.md").write_text(f"---\ndraft: true\n---\n{PAGES['pond.md']}")
    edited.run("build")
    assert b"Barley straw" not in edited.bundle["rag.db"]


def test_a_site_that_is_taken_out_leaves_the_build_folder(edited: Workshop) -> None:
    site = edited.sites / "cellar"
    (site / "pages").mkdir(parents=True)
    (site / "site.toml").write_text(SITE.format("garden").replace("example.org/garden", "example.org/cellar"))
    (site / "pages" / "index.md").write_text("# The cellar\n\nWine is kept in the dark.\n")
    edited.run("build")
    assert {path.name for path in edited.build.glob("*/cellar*")} == {"cellar", "cellar.json", "cellar.jsonl"}
    shutil.rmtree(site)
    assert edited.doit("build").returncode != 0  # it is to be named first, and nothing is removed before
    assert list(edited.build.glob("*/cellar*"))
    assert "cellar: not in" in edited.run("build", RALPH_ACCEPT_SHRINK="cellar")
    assert list(edited.build.glob("*/cellar*")) == []


def test_a_site_that_lost_half_of_its_pages_stops_the_build_until_it_is_named(edited: Workshop) -> None:
    before = edited.bundle
    for name in ("pond.md", "tomatoes.md"):
        (edited.pages / name).unlink()
    done = edited.doit("build")
    assert done.returncode != 0
    assert "garden has 1 page and had 3 in the bundle before" in done.stdout
    assert "Traceback" not in done.stdout + done.stderr
    assert edited.bundle == before
    edited.run("build", RALPH_ACCEPT_SHRINK="garden")
    assert read_manifest(edited.build / "current").sites["garden"].n_pages == 1


def test_a_source_that_vanished_stops_the_build(edited: Workshop) -> None:
    moved = edited.pages.rename(edited.pages.with_name("moved"))
    try:
        done = edited.doit("build")
    finally:
        moved.rename(edited.pages)
    assert done.returncode != 0
    assert "garden: skipped, " in done.stdout
    assert "garden has 0 pages and had 3" in done.stdout


def test_an_interrupted_build_goes_on_and_current_is_whole_throughout(edited: Workshop) -> None:
    for number in range(40):
        text = "\n\n".join(f"Bed {number}, row {row}: beans and peas." for row in range(20))
        (edited.pages / f"bed-{number}.md").write_text(f"# Bed {number}\n\n{text}\n")
    process = subprocess.Popen(
        edited.argv("build"),
        cwd=ROOT,
        env=edited.environ,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert process.stdout is not None
    with process.stdout:
        next(line for line in process.stdout if "chunks new" in line)
        process.send_signal(signal.SIGKILL)
    process.wait()
    check_sums(edited.build / "current")
    edited.run("build")
    check_sums(edited.build / "current")
    assert read_manifest(edited.build / "current").sites["garden"].n_pages == 43


@pytest.mark.parametrize("options", [[], ["-n", "2"]])
def test_an_interrupt_from_the_keyboard_is_one_sentence(tmp_path: Path, options: list[str]) -> None:
    workshop = Workshop(tmp_path)
    process = subprocess.Popen(
        workshop.argv(*options, "build"),
        cwd=ROOT,
        env=workshop.environ,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert process.stdout is not None
    next(line for line in process.stdout if line.startswith("model"))
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does: to the children too
    _, errors = process.communicate()
    assert process.returncode != 0
    assert errors.strip() == "interrupted; the next build goes on from here"


@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize("task", ["list", "build", "-n2"])
def test_output_that_nobody_reads_ends_without_a_word(built: Workshop, task: str, unbuffered: str) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(
        built.argv(*([task, "build"] if task == "-n2" else [task])),
        cwd=ROOT,
        env={**built.environ, "PYTHONUNBUFFERED": unbuffered},
        stdout=writer,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
        timeout=60,
    )
    os.close(writer)
    assert done.stderr == ""


def test_a_list_whose_reader_has_enough_ends_without_a_word(built: Workshop) -> None:
    process = subprocess.Popen(
        built.argv("list"),
        cwd=ROOT,
        env=built.environ,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline()
    process.stdout.close()
    assert process.stderr is not None
    with process.stderr:
        assert process.stderr.read() == ""
    process.wait()


@pytest.mark.parametrize("name", ["rag.db", "tokenizer.json"])
def test_a_damaged_bundle_is_sealed_again(edited: Workshop, name: str) -> None:
    before = edited.bundle
    (edited.build / "current" / name).write_bytes(b"torn")
    assert edited.doit("verify").returncode == 0
    assert edited.bundle == before


def test_a_build_folder_that_cannot_be_is_one_sentence(built: Workshop, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    done = built.doit("build", RALPH_BUILD=str(tmp_path / "file"))
    assert done.returncode != 0
    assert done.stderr == f"{tmp_path / 'file'}: no folder to build in (File exists); set RALPH_BUILD\n"


def test_the_figures_of_the_questions_are_in_the_manifest_and_on_the_screen(built: Workshop) -> None:
    evaluation = read_manifest(built.build / "current").evaluation
    assert (evaluation["n_answerable"], evaluation["n_refusals"]) == (2, 1)
    assert evaluation["modes"]["hybrid"]["hit_at_1"] == 1.0
    assert "hybrid" in built.run("evaluate")


def test_a_question_that_expects_a_page_that_is_not_there_is_a_warning(edited: Workshop) -> None:
    path = edited.sites / "garden" / "questions.jsonl"
    text = path.read_text()
    expected = ["https://example.org/gone", "https://example.org/garden/pond/"]
    path.write_text(text + "\n" + json.dumps({"id": "moved", "text": "Where?", "expected": expected}))
    try:
        shown = edited.run("build")
    finally:
        path.write_text(text)
    assert f"warning: {path}:4: https://example.org/gone is expected, and is no page of this" in shown
    assert "no page of this bundle; https://example.org/garden/pond is\n" in shown


def test_a_wrong_site_toml_is_one_sentence_that_names_file_and_key(edited: Workshop) -> None:
    toml = edited.sites / "garden" / "site.toml"
    text = toml.read_text()
    toml.write_text(text.replace('collection = "garden"', 'collection = "cellar"'))
    try:
        done = edited.doit("build")
    finally:
        toml.write_text(text)
    assert done.returncode != 0
    assert f"{toml}: collection: 'cellar' is none of garden, sample" in done.stdout + done.stderr
    assert "Traceback" not in done.stdout + done.stderr


def test_a_bundle_is_sealed_again_when_the_code_that_writes_its_format_changed(built: Workshop) -> None:
    assert str(ROOT / "handler" / "bundle" / "layout.py") in built.run("info", "seal")


def test_every_task_has_a_line_in_the_manual(built: Workshop) -> None:
    lines = built.run("list").splitlines()
    assert len(lines) >= 12
    assert all(len(line.split(maxsplit=1)) == 2 for line in lines)


def test_clean_removes_everything_that_was_built(tmp_path: Path) -> None:
    workshop = Workshop(tmp_path)
    workshop.run("build")
    workshop.run("clean")
    left = [path for path in workshop.build.rglob("*") if path.is_file() or path.is_symlink()]
    assert [path.name for path in left] == [".doit.db"]


@pytest.mark.parametrize(
    ("target", "command"),
    [
        ("rsync", "rsync -rlpt"),
        ("lambda", "/nowhere/aws cloudformation deploy"),
        ("container", "/bin/false build --tag ralph:"),
    ],
)
def test_a_dry_run_of_a_deployment_shows_its_commands_and_runs_none(
    built: Workshop, target: str, command: str
) -> None:
    out = built.run(
        f"deploy:{target}",
        "--dry-run",
        RALPH_SSH="/nowhere/ssh",
        RALPH_AWS="/nowhere/aws",
        RALPH_LAMBDA_BUCKET="bucket",
        RALPH_CONTAINER_CLIENT="/bin/false",
    )
    assert any(line.strip().startswith(command) for line in out.splitlines()), out
    assert not (built.build / target).exists()
