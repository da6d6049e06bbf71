from __future__ import annotations

import hashlib
import json
import platform
import shutil
import subprocess
import sys
import venv
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import files
from pathlib import Path

import pytest

from pipeline.deploy.lambda_zip import (
    PLATFORMS,
    PYTHON,
    Contents,
    build_zip,
    compile_step,
    contents,
    drop_unused,
    find_python,
    install_step,
    is_dropped,
    write_zip,
)
from pipeline.deploy.step import DeployError, run
from pipeline.package import REQUIREMENTS, package
from pipeline.settings import ROOT
from tests.fakes.runtime_api import RuntimeApi, function_url_event, runtime_api

VERSION = f"{sys.version_info.major}.{sys.version_info.minor}"
HERE = "arm64" if platform.machine() in ("aarch64", "arm64") else "x86_64"
SERVE = ROOT / "requirements" / "serve.txt"
ASK = function_url_event(body={"question": "When do tomatoes want sun?"})
# What ELF files say in their 18th byte of the processor that they are for (ELF specification, e_machine).
ELF_MACHINES = {"x86_64": 62, "arm64": 183}

needs_uv = pytest.mark.skipif(
    not (shutil.which("uv") or (ROOT / ".tools/bin/uv").is_file()), reason="needs uv: make .tools/bin/uv"
)
linux = pytest.mark.skipif(sys.platform != "linux", reason="runs wheels for Linux")


@pytest.fixture
def api() -> Iterator[RuntimeApi]:
    with runtime_api() as api:
        yield api


@pytest.fixture(scope="module")
def packaged(tmp_path_factory: pytest.TempPathFactory, sample_bundle: Path) -> Path:
    folder = tmp_path_factory.mktemp("package") / "package"
    package(sample_bundle, folder, frozenset({"diary"}))
    return folder


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory: pytest.TempPathFactory, packaged: Path) -> Path:
    """The zip for this machine, unpacked as Lambda does it."""
    folder = tmp_path_factory.mktemp("zip")
    found = build_zip(packaged, folder / "ralph.zip", HERE, VERSION)
    print(found)
    assert found == contents(folder / "ralph.zip")
    # Of Lambda's 250 MB; the default model's bundle has 37 MB more than the one of the tests.
    assert found.unpacked_bytes < 163e6
    task = folder / "task"
    with zipfile.ZipFile(folder / "ralph.zip") as archive:
        for info in archive.infolist():
            archive.extract(info, task)
            (task / info.filename).chmod(info.external_attr >> 16)
    return task


@pytest.fixture(scope="module")
def empty_python(tmp_path_factory: pytest.TempPathFactory) -> str:
    """An interpreter that has nothing but its standard library."""
    folder = tmp_path_factory.mktemp("empty")
    venv.create(folder, symlinks=True)
    return str(folder / "bin" / "python")


@contextmanager
def running(argv: list[str], api: RuntimeApi, task: Path, pythonpath: str = "") -> Iterator[None]:
    """A function in the environment that Lambda gives it, and no other."""
    environ = {
        **api.environ,
        "LAMBDA_TASK_ROOT": str(task),
        "RALPH_BUNDLE": str(task / "bundle"),
        "PATH": "/usr/bin:/bin",
        "PYTHONPATH": pythonpath,
    }
    with subprocess.Popen(argv, cwd=task, env=environ, stdout=subprocess.DEVNULL) as process:
        try:
            yield
        finally:
            process.kill()


@needs_uv
@linux
def test_the_unpacked_zip_streams_alone(unpacked: Path, empty_python: str, api: RuntimeApi) -> None:
    before = digests(unpacked)
    with running([str(unpacked / "stream.sh"), empty_python, "-m", "awslambdaric"], api, unpacked):
        post = api.invoke(ASK)
        health = api.invoke(function_url_event("GET", "/healthz"))
    assert post.headers["lambda-runtime-function-response-mode"] == "streaming"
    assert post.prelude["statusCode"] == 200
    assert b"event: done" in post.body
    assert json.loads(health.body)["status"] == "ok"
    assert digests(unpacked) == before  # where it stands, nothing can be written


@needs_uv
@linux
def test_the_unpacked_zip_answers_under_lambdas_own_client(
    unpacked: Path, empty_python: str, api: RuntimeApi, tmp_path: Path
) -> None:
    client = lambdas_client(tmp_path)
    handler = "handler.lambda_mangum.handler"
    with running([empty_python, "-m", "awslambdaric", handler], api, unpacked, str(client)):
        post = api.invoke(ASK)
    assert "event: done" in post.json["body"]


@needs_uv
@linux
def test_every_module_of_the_zip_is_compiled_and_says_where_it_stands(unpacked: Path) -> None:
    sources = unpacked.rglob("*.py")
    tag = sys.implementation.cache_tag
    missing = [p for p in sources if not (p.parent / "__pycache__" / f"{p.stem}.{tag}.pyc").is_file()]
    assert missing == []
    code = (unpacked / "handler" / "__pycache__" / f"answer.{tag}.pyc").read_bytes()
    assert b"/var/task/handler/answer.py" in code
    assert str(unpacked.parent).encode() not in code


@needs_uv
@pytest.mark.parametrize("architecture", PLATFORMS)
def test_all_wheels_exist_for_a_processor(architecture: str, tmp_path: Path) -> None:
    run(install_step(SERVE, tmp_path, architecture, PYTHON))
    drop_unused(tmp_path)
    libraries = [path for path in tmp_path.rglob("*.so*") if path.read_bytes()[:4] == b"\x7fELF"]
    assert {path.read_bytes()[18] for path in libraries} == {ELF_MACHINES[architecture]}
    assert len(libraries) > 20
    assert sum(path.stat().st_size for path in tmp_path.rglob("*") if path.is_file()) < 130e6


@needs_uv
@linux
def test_two_zips_of_one_package_are_the_same_to_the_byte(packaged: Path, tmp_path: Path) -> None:
    small = tmp_path / "package"
    shutil.copytree(packaged, small)
    (small / REQUIREMENTS).write_text(pinned("h11", "starlette", "anyio", "uvicorn"))
    zips = [tmp_path / "a" / "ralph.zip", tmp_path / "another" / "folder" / "ralph.zip"]
    for path in zips:
        build_zip(small, path, HERE, VERSION)
    assert zips[0].read_bytes() == zips[1].read_bytes()


def test_a_zip_keeps_order_modes_and_no_time(tmp_path: Path) -> None:
    folder = tmp_path / "files"
    (folder / "b").mkdir(parents=True)
    for name in ("b/file.py", "a.py", "stream.sh"):
        (folder / name).write_text(name)
    (folder / "stream.sh").chmod(0o700)
    write_zip(folder, tmp_path / "z.zip")
    with zipfile.ZipFile(tmp_path / "z.zip") as archive:
        entries = [(i.filename, oct(i.external_attr >> 16), i.date_time[0]) for i in archive.infolist()]
    assert entries == [
        ("a.py", "0o100644", 1980),
        ("b/file.py", "0o100644", 1980),
        ("stream.sh", "0o100755", 1980),
    ]


def test_what_no_answer_loads_is_dropped_and_licences_stay() -> None:
    dropped = ["bin/uvicorn", "numpy/_core/tests/test_array.py", "apsw/__init__.pyi", "hf_xet/hf_xet.abi3.so"]
    kept = ["handler/app.py", "numpy-2.5.5.dist-info/licenses/LICENSE.txt", "numpy/testing/__init__.py"]
    assert [is_dropped(name) for name in dropped + kept] == [True] * 4 + [False] * 3


def test_a_zip_that_lambda_would_refuse_is_not_made(
    packaged: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pipeline.deploy.lambda_zip.MAX_BYTES", 1000)
    small = tmp_path / "package"
    shutil.copytree(packaged, small)
    (small / REQUIREMENTS).write_text(pinned("h11"))
    with pytest.raises(DeployError, match="Lambda takes"):
        build_zip(small, tmp_path / "out" / "ralph.zip", HERE, VERSION)
    assert list((tmp_path / "out").iterdir()) == []


def test_without_the_interpreter_of_the_runtime_there_is_no_bytecode_and_no_zip() -> None:
    assert find_python(VERSION) == sys.executable
    with pytest.raises(DeployError, match=r"no python3\.99"):
        find_python("3.99")


def test_the_commands_are_these() -> None:
    install = install_step(Path("r.txt"), Path("out"), "arm64", "3.13").argv[1:]
    assert install == (
        *("pip", "install", "--quiet", "--python-platform", "aarch64-manylinux_2_28"),
        *("--python-version", "3.13", "--only-binary", ":all:", "--require-hashes", "--no-deps"),
        *("--link-mode", "copy", "--target", "out", "-r", "r.txt"),
    )
    assert compile_step("python3.13", Path("out")).argv == (
        *("python3.13", "-I", "-m", "compileall", "-q"),
        *("--invalidation-mode", "unchecked-hash", "-s", "out", "-p", "/var/task", "out"),
    )


def test_the_largest_parts_are_named_first() -> None:
    sizes = Contents(38_500_000, 119_000_000, {"numpy": 50_000_000, "onnxruntime": 69_000_000})
    assert str(sizes) == "38.5 MB, unpacked 119.0 MB: onnxruntime 69.0, numpy 50.0"


def pinned(*names: str) -> str:
    """The lines of requirements/serve.txt for some packages."""
    blocks = SERVE.read_text().replace("\\\n", "").splitlines()
    return "\n".join(line for line in blocks if line.partition("==")[0] in names) + "\n"


def digests(folder: Path) -> dict[str, str]:
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in folder.rglob("*")
        if path.is_file()
    }


def lambdas_client(folder: Path) -> Path:
    """A folder with Lambda's own runtime client, as the managed runtime brings it along, and nothing else."""
    for name in ("awslambdaric", "snapshot-restore-py", "simplejson"):
        for file in files(name) or ():
            top = Path(str(file.locate())).parents[len(file.parts) - 1] / file.parts[0]
            if file.parts[0] != ".." and not (folder / top.name).exists():
                (folder / top.name).symlink_to(top)
    return folder
