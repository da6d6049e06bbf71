from __future__ import annotations

import ast
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from datetime import date
from pathlib import Path

import pytest

from handler.bundle.sums import file_sha256
from handler.bundle.types import BundleError
from pipeline.export.exporters import export
from pipeline.export.pages import read_pages, write_export
from pipeline.package import package, package_version, requirements_version
from pipeline.site import Site

ROOT = Path(__file__).resolve().parent.parent.parent
LISTING = ROOT / "tests" / "data" / "package.txt"
PUBLIC = {"notes/garden.md": "Garden\n\nTomatoes want sun and water.\n"}

MakeBundle = Callable[..., Path]


@pytest.fixture
def bundle(make_bundle: MakeBundle) -> Path:
    return make_bundle(PUBLIC)


@pytest.fixture
def packaged(bundle: Path, tmp_path: Path) -> Path:
    package(bundle, tmp_path / "package")
    return tmp_path / "package"


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """A copy of what the package is made of, for a test that puts something beside it."""
    for folder in ("handler", "requirements"):
        shutil.copytree(ROOT / folder, tmp_path / "clone" / folder)
    for name in ("LICENSE", "NOTICE.md"):
        shutil.copy(ROOT / name, tmp_path / "clone")
    return tmp_path / "clone"


def files(folder: Path) -> list[str]:
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())


def traces(folder: Path) -> list[str]:
    """The files with a word of what is not to ship."""
    return [name for name in files(folder) if b"sk-ant-" in (folder / name).read_bytes()]


def imports(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module or ""
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def test_what_ships_is_what_is_listed(packaged: Path) -> None:
    assert files(packaged) == LISTING.read_text(encoding="utf-8").split()


LEFTOVERS = (
    *(".env", ".env.local", "id_ed25519", "server.pem", "server.key", "secrets.toml", "credentials.json"),
    *("app.py~", "app.py.bak", "app.py.orig", "#app.py#", ".app.py.swp", ".#app.py.md", "notes.txt"),
    *("widget/.env.js", ".idea/project.py", "widget/.ipynb_checkpoints/widget.js"),
)


def test_nothing_that_lies_about_ships(bundle: Path, clone: Path, tmp_path: Path) -> None:
    for folder in (clone, clone / "handler", clone / "handler" / "bundle", clone / "requirements", bundle):
        for name in LEFTOVERS:
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text("sk-ant-secret")
    package(bundle, tmp_path / "package", root=clone)
    assert files(tmp_path / "package") == LISTING.read_text(encoding="utf-8").split()
    assert traces(tmp_path / "package") == []


def test_a_site_gives_a_package_nothing_but_what_is_published(
    make_bundle: MakeBundle, tmp_path: Path
) -> None:
    source = tmp_path / "site"
    for name in ("draft.md", *LEFTOVERS, "garden.md~", "garden.md.bak", ".garden.md.swp", "#garden.md#"):
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        (source / name).write_text("---\ndraft: true\n---\n# Plans\n\nsk-ant-secret\n")
    (source / "garden.md").write_text(
        "---\ntitle: Garden\napi_key: sk-ant-secret\ntoken: sk-ant-secret\n---\nTomatoes want sun.\n"
    )
    site = Site("notes", "markdown", str(source), "https://example.org/", "notes", tmp_path)
    write_export(export(site, date(2026, 1, 1)), tmp_path / "pages")
    pages = read_pages(tmp_path / "pages", "notes")
    assert [page.path for page in pages] == ["garden.md"]
    bundle = make_bundle({f"notes/{page.path}": f"{page.title}\n{page.body}" for page in pages})
    package(bundle, tmp_path / "package")
    assert (tmp_path / "pages" / "notes.json").exists()
    assert traces(tmp_path / "package") == []


def test_the_persona_that_is_named_ships(bundle: Path, tmp_path: Path) -> None:
    (tmp_path / "ada.md").write_text("Ada\n\nYou are a gardener.\n")
    plain = package(bundle, tmp_path / "a")
    named = package(bundle, tmp_path / "b", persona=tmp_path / "ada.md")
    assert plain != named
    assert files(tmp_path / "a") == files(tmp_path / "b")
    assert (tmp_path / "b" / "handler" / "persona.md").read_text().startswith("Ada")


def test_pages_that_are_not_public_ship_only_when_told_by_name(
    make_bundle: MakeBundle, tmp_path: Path
) -> None:
    private = make_bundle({**PUBLIC, "diary/secret.md": "Diary\n\nA secret.\n"})
    with pytest.raises(BundleError, match="RALPH_ACCEPT_PRIVATE=diary"):
        package(private, tmp_path / "package")
    assert not (tmp_path / "package").exists()
    assert package(private, tmp_path / "package", frozenset({"diary"}))


def test_a_damaged_bundle_is_not_packaged(bundle: Path, tmp_path: Path) -> None:
    with (bundle / "rag.db").open("ab") as database:
        database.write(b"x")
    with pytest.raises(BundleError, match=r"rag\.db"):
        package(bundle, tmp_path / "package")


def test_two_packages_are_equal_to_the_byte_the_mode_and_the_second(bundle: Path, tmp_path: Path) -> None:
    before = os.umask(0o077)
    try:
        first = package(bundle, tmp_path / "first")
    finally:
        os.umask(before)
    os.utime(ROOT / "handler" / "app.py")
    assert package(bundle, tmp_path / "second") == first

    def facts(folder: Path) -> list[tuple[str, int, float, str]]:
        stats = [(path, path.stat()) for path in sorted([folder, *folder.rglob("*")])]
        return [
            (
                path.relative_to(folder).as_posix(),
                stat.st_mode,
                stat.st_mtime,
                file_sha256(path) if path.is_file() else "",
            )
            for path, stat in stats
        ]

    assert facts(tmp_path / "first") == facts(tmp_path / "second")


def test_a_package_has_another_version_when_anything_in_it_changed(
    bundle: Path, clone: Path, tmp_path: Path
) -> None:
    package(bundle, tmp_path / "a", root=clone)
    (clone / "handler" / "persona.md").write_text("Ada\n")
    package(bundle, tmp_path / "b", root=clone)
    assert package_version(tmp_path / "a") != package_version(tmp_path / "b")
    assert requirements_version(tmp_path / "a") == requirements_version(tmp_path / "b")
    (clone / "requirements" / "serve.txt").write_text("")
    package(bundle, tmp_path / "c", root=clone)
    assert requirements_version(tmp_path / "b") != requirements_version(tmp_path / "c")


def test_sha256sum_agrees_with_the_package(packaged: Path) -> None:
    subprocess.run(["sha256sum", "--quiet", "--strict", "-c", "SHA256SUMS"], cwd=packaged, check=True)
    listed = re.findall(r"^\w+  (.+)$", (packaged / "SHA256SUMS").read_text(), re.MULTILINE)
    assert sorted([*listed, "SHA256SUMS"]) == files(packaged)


def test_what_ships_imports_nothing_that_does_not(packaged: Path) -> None:
    modules = {".".join(path.relative_to(packaged).with_suffix("").parts) for path in packaged.rglob("*.py")}
    modules |= {name.removesuffix(".__init__") for name in modules}
    rooms = {path.stem for path in ROOT.iterdir() if path.is_dir()}
    wrong = {
        (path.relative_to(packaged).as_posix(), name)
        for path in packaged.rglob("*.py")
        for name in imports(path)
        if name.split(".")[0] in rooms and name not in modules and name.rpartition(".")[0] not in modules
    }
    # `ralph local` is offered where it is installed.
    assert {name for _, name in wrong} <= {"handler.local.serve", "handler.local.serve.serve"}
    assert {path for path, _ in wrong} <= {"handler/__main__.py"}


def test_the_package_answers_alone(packaged: Path, tmp_path: Path) -> None:
    """Every module of it is loaded with nothing else of Ralph to be found, and it answers a question."""
    program = (
        "import sys, importlib, pathlib, runpy\n"
        "sys.meta_path[:] = [f for f in sys.meta_path if 'editable' not in repr(f)]\n"
        f"sys.path[:] = [{str(packaged)!r}] + [p for p in sys.path if p and p != {str(ROOT)!r}]\n"
        "for path in sorted(pathlib.Path(sys.path[0], 'handler').rglob('*.py')):\n"
        "    name = '.'.join(path.relative_to(sys.path[0]).with_suffix('').parts)\n"
        "    if name != 'handler.__main__':\n"
        "        importlib.import_module(name)\n"
        "assert 'pipeline' not in sys.modules\n"
        "sys.argv[1:] = ['ask', 'Do tomatoes want sun?']\n"
        "runpy.run_module('handler', run_name='__main__')\n"
    )
    done = subprocess.run(
        [sys.executable, "-I", "-c", program],
        cwd=packaged,
        env={"PATH": os.environ["PATH"], "RALPH_BUNDLE": "bundle"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert "Tomatoes want sun and water." in done.stdout


def test_what_ships_offers_no_local_chat(packaged: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "handler", "local"], cwd=packaged, capture_output=True, text=True
    )
    assert done.returncode == 2
    assert "invalid choice: 'local'" in done.stderr
