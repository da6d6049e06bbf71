"""The plugin ralph-fs as it is after an installation: a copy of its folder, and uv."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from importlib.util import module_from_spec, spec_from_file_location
from io import BytesIO
from pathlib import Path
from types import ModuleType
from typing import Any
from zipfile import ZipFile

import anyio
import pytest
from mcp import Client, StdioServerParameters

from pipeline.plugins.checks import PLUGIN as MANIFEST
from pipeline.plugins.cost import list_tools
from pipeline.plugins.wheel import imported_files, make_wheel

ROOT = Path(__file__).resolve().parent.parent.parent
PLUGIN = ROOT / "plugins" / "ralph-fs"
UV = shutil.which("uv", path=os.pathsep.join([str(ROOT / ".tools" / "bin"), os.environ.get("PATH", "")]))

needs_uv = pytest.mark.skipif(not UV, reason="needs uv")


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of an installed copy, with a wheel of the tree as it is now, and without its sources."""
    folder = tmp_path_factory.mktemp("cache") / "ralph-fs"
    shutil.copytree(PLUGIN, folder, ignore=shutil.ignore_patterns("*.whl", "ralph_fs"))
    name, wheel = make_wheel(PLUGIN)
    (folder / name).write_bytes(wheel)
    return folder


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that the plugin may keep things in, shared by the tests that do not name another."""
    return tmp_path_factory.mktemp("data")


@pytest.fixture(autouse=True)
def project(tmp_path: Path, data: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The empty project that the server is started in."""
    folder = tmp_path / "project"
    folder.mkdir()
    monkeypatch.chdir(folder)
    monkeypatch.setenv("CLAUDE_PLUGIN_DATA", str(data))
    return folder


def command(installed: Path) -> list[str]:
    """What a client runs by the plugin's .mcp.json."""
    table = json.loads((installed / ".mcp.json").read_text(encoding="utf-8"))
    server = table["mcpServers"]["ralph-fs"]
    assert server["command"] == "uv"
    return [str(UV), *(word.replace("${CLAUDE_PLUGIN_ROOT}", str(installed)) for word in server["args"])]


def start(installed: Path) -> list[Any]:
    return list_tools(command(installed), installed)


def test_the_committed_wheel_is_what_the_tree_makes() -> None:
    name, data = make_wheel(PLUGIN)
    committed = {path.name: path.read_bytes() for path in PLUGIN.glob("*.whl")}
    if committed != {name: data}:
        changed = ", ".join(changed_members(committed.get(name), data))
        pytest.fail(
            f"changed since the wheel was made: {changed}. Run `.venv/bin/doit plugins`, commit the wheel"
        )


def changed_members(old: bytes | None, new: bytes) -> list[str]:
    """The modules and data that differ between two wheels; with no old one, the new one's name for itself."""
    if old is None:
        return ["its name"]
    before, after = (
        {info.filename: info.CRC for info in ZipFile(BytesIO(wheel)).infolist()} for wheel in (old, new)
    )
    return sorted(
        name for name in before | after if before.get(name) != after.get(name) and ".dist-info/" not in name
    )


def test_the_wheel_has_the_version_of_the_plugin() -> None:
    version = json.loads((PLUGIN / MANIFEST).read_text(encoding="utf-8"))["version"]
    assert make_wheel(PLUGIN)[0] == f"ralph_fs-{version}-py3-none-any.whl"


@pytest.mark.skipif(not (ROOT / ".venv").is_dir(), reason="needs the .venv of `make test`")
def test_the_clones_own_registration_starts_the_server_of_the_tree(monkeypatch: pytest.MonkeyPatch) -> None:
    table = json.loads((ROOT / ".mcp.json").read_text(encoding="utf-8"))
    server = table["mcpServers"]["ralph-fs"]
    assert not Path(server["command"]).is_absolute()
    monkeypatch.chdir(ROOT)
    assert list_tools([server["command"], *server["args"]], ROOT)


@needs_uv
def test_the_environment_is_made_once_and_has_every_module_of_the_server(installed: Path, data: Path) -> None:
    start(installed)
    (environment,) = data.iterdir()
    made = (environment / "pyvenv.cfg").stat()
    start(installed)
    assert list(data.iterdir()) == [environment]
    assert (environment / "pyvenv.cfg").stat() == made
    sources = imported_files("ralph_fs", (PLUGIN, ROOT))
    modules = [
        name.removesuffix(".py").replace("/", ".")
        for name in sources
        if name.endswith(".py") and not name.endswith("__.py")
    ]
    program = "import sys, importlib\nfor n in sys.argv[1:]: print(importlib.import_module(n).__file__)"
    loaded = subprocess.run(
        [environment / "bin" / "python", "-I", "-c", program, *modules],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split()
    assert len(loaded) == len(modules)
    assert all(Path(path).is_relative_to(environment) for path in loaded)


@needs_uv
def test_the_server_has_the_tools_of_the_clone_and_takes_no_module_of_the_project_that_is_worked_on(
    installed: Path, project: Path
) -> None:
    expected = list_tools([sys.executable, "-m", "ralph_fs"], PLUGIN)
    for name in ("mcp.py", "hashlib.py", "ralph_fs.py", "sitecustomize.py"):
        (project / name).write_text(f"raise SystemExit('{name} of the project')\n")
    (project / "pyproject.toml").write_text("this is no TOML")
    (project / "uv.toml").write_text("neither is this")
    assert start(installed) == expected


@needs_uv
def test_an_installed_copy_searches_a_bundle_and_ingests_into_the_clones_collections(
    installed: Path, project: Path, sample_bundle: Path
) -> None:
    (project / "note.md").write_text(
        "# Kettle\n\nThe kettle whistles when the water boils.\n", encoding="utf-8"
    )
    server = StdioServerParameters(
        command=command(installed)[0],
        args=command(installed)[1:],
        env={
            **os.environ,
            "RALPH_BUNDLE": str(sample_bundle),
            "RAG_DB_PATH": str(project / "rag.db"),
        },
    )

    async def session() -> tuple[str, str, str]:
        async with Client(server) as client:
            found = await client.call_tool("rag_search", {"query": "tomatoes want sun"})
            added = await client.call_tool("rag_ingest_file", {"path": "note.md", "collection": "ralph"})
            again = await client.call_tool("rag_search", {"query": "kettle whistles"})
        return str(found), str(added), str(again)

    found, added, again = anyio.run(session)
    assert "Tomatoes want sun" in found
    assert "is_error=True" not in added
    assert "The kettle whistles" in again


@needs_uv
def test_two_sessions_that_start_at_once_share_one_environment(
    installed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CLAUDE_PLUGIN_DATA", str(tmp_path / "data"))
    with ThreadPoolExecutor(2) as pool:
        first, second = pool.map(start, [installed, installed])
    assert first == second
    assert len(list((tmp_path / "data").iterdir())) == 1


@needs_uv
def test_a_package_with_another_digest_is_not_installed(
    installed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CLAUDE_PLUGIN_DATA", str(tmp_path / "data"))
    changed = tmp_path / "changed"
    shutil.copytree(installed, changed)
    requirements = changed / "requirements.txt"
    lines = requirements.read_text(encoding="utf-8").splitlines()
    at = next(number for number, line in enumerate(lines) if line.startswith("idna=="))
    lines[at + 1 :] = [f"    --hash=sha256:{'0' * 64}", *_without_hashes(lines[at + 1 :])]
    requirements.write_text("\n".join(lines), encoding="utf-8")
    done = subprocess.run(command(changed), input="", capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (1, "")
    assert "Hash mismatch for `idna==" in done.stderr
    assert "ralph-fs: its packages could not be installed" in done.stderr
    assert list((tmp_path / "data").iterdir()) == []


def _without_hashes(lines: list[str]) -> list[str]:
    return lines[next(number for number, line in enumerate(lines) if "--hash" not in line) :]


@needs_uv
def test_an_environment_without_its_python_is_made_again(
    installed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CLAUDE_PLUGIN_DATA", str(tmp_path / "data"))
    start(installed)
    (environment,) = (tmp_path / "data").iterdir()
    (environment / "bin" / "python").unlink()
    (environment / "bin" / "python").symlink_to(tmp_path / "a-python-that-was-removed")
    assert start(installed)
    assert list((tmp_path / "data").iterdir()) == [environment]


@needs_uv
def test_a_folder_that_cannot_be_made_is_said(
    installed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("CLAUDE_PLUGIN_DATA", str(tmp_path / "file" / "data"))
    done = subprocess.run(command(installed), input="", capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("ralph-fs: no environment can be made: ")
    assert done.stderr.endswith("; CLAUDE_PLUGIN_DATA names a folder for it\n")


def start_module() -> ModuleType:
    spec = spec_from_file_location("start", PLUGIN / "start.py")
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_what_starts_that_were_killed_have_left_goes_with_the_next(tmp_path: Path) -> None:
    data = tmp_path / "data"
    for name in ("new-left", "new-under-way"):
        (data / name).mkdir(parents=True)
    os.utime(data / "new-left", (1_000_000_000, 1_000_000_000))
    start_module().drop_old(data)
    assert [path.name for path in data.iterdir()] == ["new-under-way"]


def test_environments_of_older_versions_go_but_the_one_that_may_still_run(tmp_path: Path) -> None:
    for age, name in enumerate(["env-now", "env-before", "env-older", "env-oldest"]):
        (tmp_path / name).mkdir()
        os.utime(tmp_path / name, (1_000_000_000 - age, 1_000_000_000 - age))
    start_module().drop_old(tmp_path)
    assert {path.name for path in tmp_path.glob("env-*")} == {"env-now", "env-before"}
