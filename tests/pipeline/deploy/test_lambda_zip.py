from __future__ import annotations

import json
import platform
import shutil
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from pipeline.deploy.lambda_wheels import PLATFORMS, drop_unused, install_step, is_dropped, pip_index
from pipeline.deploy.lambda_zip import (
    PYTHON,
    Contents,
    build_zip,
    compile_step,
    contents,
    find_python,
    write_zip,
)
from pipeline.deploy.step import DeployError, run
from pipeline.package import REQUIREMENTS, package
from pipeline.settings import ROOT
from tests.fakes.anthropic_api import Block, Refusal, anthropic_api, stream
from tests.fakes.lambda_machine import BUFFERED, RUNTIME, STREAMED, Machine, machine, pinned
from tests.fakes.runtime_api import RuntimeApi, function_url_event, runtime_api
from tests.fakes.secrets_manager import secrets_manager

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
def python() -> tuple[str, str]:
    """An interpreter and its version: the one that Lambda runs where there is one, else the one at hand."""
    try:
        return find_python(PYTHON), PYTHON
    except DeployError:
        return sys.executable, VERSION


@pytest.fixture(scope="module")
def function(tmp_path_factory: pytest.TempPathFactory, packaged: Path, python: tuple[str, str]) -> Machine:
    """A machine that has nothing but the zip."""
    folder = tmp_path_factory.mktemp("function")
    compiler, version = python
    found = build_zip(packaged, folder / "ralph.zip", HERE, version, compiler)
    print(found)
    assert found == contents(folder / "ralph.zip")
    # Of Lambda's 250 MB; the default model's bundle has 37 MB more than the one of the tests.
    assert found.unpacked_bytes < 145e6
    function = machine(folder, folder / "ralph.zip", compiler, HERE)
    if not function.is_possible:
        pytest.skip("needs bwrap (Debian: bubblewrap), and that it may make namespaces")
    return function


@needs_uv
@linux
def test_the_zip_streams_alone_on_a_machine_that_cannot_be_written_to(
    function: Machine, api: RuntimeApi
) -> None:
    with function.running(STREAMED, api.environ):
        post = api.invoke(ASK)
        others = {
            path: api.invoke(function_url_event("GET", path, query=query))
            for path, query in (
                ("/healthz", ""),
                ("/api/search", "q=tomatoes"),
                ("/openapi.json", ""),
                ("/ask/widget.js", ""),
                ("/nowhere", ""),
            )
        }
        refused = api.invoke(function_url_event(body={"no": "question"}))
    assert post.headers["lambda-runtime-function-response-mode"] == "streaming"
    assert post.prelude["statusCode"] == 200
    assert b"event: done" in post.body
    assert json.loads(others["/healthz"].body)["status"] == "ok"
    statuses = [other.prelude["statusCode"] for other in (*others.values(), refused)]
    assert statuses == [200, 200, 200, 200, 404, 422]


@needs_uv
@linux
def test_the_zip_writes_answers_after_a_restore_with_the_key_of_a_secret(
    function: Machine, api: RuntimeApi
) -> None:
    with anthropic_api() as claude, secrets_manager() as secret:
        snapshot = {"AWS_LAMBDA_INITIALIZATION_TYPE": "snap-start", "ANTHROPIC_BASE_URL": claude.url}
        claude.replies.append(stream(Block(["Sun."])))
        claude.replies.append(Refusal(529, "overloaded_error", headers={"x-should-retry": "false"}))
        with function.running(STREAMED, {**api.environ, **secret, **snapshot}):
            written = api.invoke(ASK)
            failed = api.invoke(ASK)
    assert api.n_restored == 1
    assert b'"text":"Sun."' in written.body
    assert b'"generator":"claude"' in written.body
    assert b"overloaded" in failed.body


@needs_uv
@linux
def test_the_zip_answers_under_lambdas_own_client(function: Machine, api: RuntimeApi) -> None:
    with function.running(BUFFERED, {**api.environ, "PYTHONPATH": RUNTIME}):
        post = api.invoke(ASK)
    assert "event: done" in post.json["body"]


@needs_uv
@linux
def test_every_module_of_the_zip_is_compiled_and_says_where_it_stands(
    function: Machine, python: tuple[str, str]
) -> None:
    sources = function.task.rglob("*.py")
    tag = f"cpython-{python[1].replace('.', '')}"
    missing = [p for p in sources if not (p.parent / "__pycache__" / f"{p.stem}.{tag}.pyc").is_file()]
    assert missing == []
    code = (function.task / "handler" / "__pycache__" / f"answer.{tag}.pyc").read_bytes()
    assert b"/var/task/handler/answer.py" in code
    assert str(function.task.parent).encode() not in code


@needs_uv
@pytest.mark.parametrize("architecture", PLATFORMS)
def test_all_wheels_exist_for_a_processor(architecture: str, tmp_path: Path) -> None:
    run(install_step(SERVE, tmp_path, architecture, PYTHON))
    drop_unused(tmp_path)
    libraries = [path for path in tmp_path.rglob("*.so*") if path.read_bytes()[:4] == b"\x7fELF"]
    assert {path.read_bytes()[18] for path in libraries} == {ELF_MACHINES[architecture]}
    assert len(libraries) > 10
    assert sum(path.stat().st_size for path in tmp_path.rglob("*") if path.is_file()) < 115e6


@needs_uv
@linux
def test_two_zips_of_one_package_are_the_same_to_the_byte(packaged: Path, tmp_path: Path) -> None:
    small = tmp_path / "package"
    shutil.copytree(packaged, small)
    (small / REQUIREMENTS).write_text(pinned(SERVE, "h11", "starlette", "anyio", "uvicorn"))
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
    dropped = [
        *("bin/uvicorn", "numpy/_core/tests/test_array.py", "apsw/__init__.pyi", "hf_xet/hf_xet.abi3.so"),
        *("numpy/_core/_umath_tests.cpython-313-x86_64-linux-gnu.so", "apsw/fts5query.py"),
    ]
    kept = ["handler/app.py", "numpy-2.5.5.dist-info/licenses/LICENSE.txt", "numpy/testing/__init__.py"]
    assert [is_dropped(name) for name in dropped + kept] == [True] * 6 + [False] * 3


def test_a_zip_that_lambda_would_refuse_is_not_made(
    packaged: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pipeline.deploy.lambda_zip.MAX_BYTES", 1000)
    small = tmp_path / "package"
    shutil.copytree(packaged, small)
    (small / REQUIREMENTS).write_text(pinned(SERVE, "h11"))
    with pytest.raises(DeployError, match="Lambda takes"):
        build_zip(small, tmp_path / "out" / "ralph.zip", HERE, VERSION)
    assert list((tmp_path / "out").iterdir()) == []


def test_without_the_interpreter_of_the_runtime_there_is_no_bytecode_and_no_zip() -> None:
    assert find_python(VERSION) == sys.executable
    with pytest.raises(DeployError, match=r"no python3\.99"):
        find_python("3.99")


def test_the_commands_are_these() -> None:
    network = ("--default-index", "https://index.example/simple")
    install = install_step(Path("r.txt"), Path("out"), "arm64", "3.13", network).argv[1:]
    assert install == (
        *("pip", "install", "--quiet", "--python-platform", "aarch64-manylinux_2_28"),
        *("--python-version", "3.13", "--default-index", "https://index.example/simple"),
        *("--only-binary", ":all:", "--require-hashes", "--no-deps"),
        *("--link-mode", "copy", "--target", "out", "-r", "r.txt"),
    )
    assert compile_step("python3.13", Path("out")).argv == (
        *("python3.13", "-I", "-m", "compileall", "-q"),
        *("--invalidation-mode", "unchecked-hash", "-s", "out", "-p", "/var/task", "out"),
    )


@pytest.mark.parametrize(
    ("configuration", "index"),
    [
        ("", None),
        ("global.cert='/etc/ssl/x.crt'\nglobal.extra-index-url='https://extra.example'\n", None),
        ("global.index-url='https://a.example/simple'\n", "https://a.example/simple"),
        (":env:.index-url='https://b.example'\nglobal.index-url='https://a.example'\n", "https://b.example"),
    ],
)
def test_an_index_that_pip_has_is_ours_too(configuration: str, index: str | None) -> None:
    assert pip_index(configuration) == index


def test_a_version_managers_stand_in_is_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, script in (("shims", "exit 127"), ("bin", "exit 0")):
        python = tmp_path / name / "python3.99"
        python.parent.mkdir()
        python.write_text(f"#!/bin/sh\n{script}\n")
        python.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path / 'shims'}:{tmp_path / 'bin'}:/usr/bin:/bin")
    assert find_python("3.99") == str(tmp_path / "bin" / "python3.99")


def test_the_largest_parts_are_named_first() -> None:
    sizes = Contents(38_500_000, 119_000_000, {"numpy": 50_000_000, "onnxruntime": 69_000_000})
    assert str(sizes) == "38.5 MB, unpacked 119.0 MB: onnxruntime 69.0, numpy 50.0"
