from __future__ import annotations

import hashlib
import io
import socket
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from pipeline.fetch import FetchedModel, PinnedFile, fetch_model
from pipeline.site import SiteError
from pipeline.sources import Source, find_pip
from tests.fakes.loopback import LoopbackHandler, LoopbackServer, answering

WEIGHTS = b"the weights" * 1000
TOKENIZER = b'{"a": "tokenizer"}'
NO_HUB = "http://hub.invalid"

HUB_SOURCE = Source("huggingface", "owner/tiny@abc123", "onnx/model.onnx", "tokenizer.json")
MAVEN_SOURCE = Source("maven", "org.example:tiny:1.0", "tiny.onnx", "tiny-tokenizer.json")
WHEEL_SOURCE = Source(
    "pypi", "tiny-model==1.0", "tiny_model/model.zip!/model.onnx", "tiny_model/tokenizer.json"
)


class StandIn:
    """A hub on loopback: serves files by path, notes what was asked."""

    def __init__(self, files: dict[str, bytes]) -> None:
        self.files = files
        self.asked: list[str] = []
        stand_in = self

        class Handler(LoopbackHandler):
            def do_GET(self) -> None:
                stand_in.asked.append(self.path)
                body = stand_in.files.get(self.path)
                self.reply(404 if body is None else 200, body or b"")

        self.server = LoopbackServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[StandIn]:
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    stand_in = StandIn(
        {
            "/owner/tiny/resolve/abc123/onnx/model.onnx": WEIGHTS,
            "/owner/tiny/resolve/abc123/tokenizer.json": TOKENIZER,
        }
    )
    with stand_in.server, answering(stand_in.server):
        yield stand_in


def fetch(cache: Path, *sources: Source, hub: str = NO_HUB) -> FetchedModel:
    return fetch_model(
        "tiny",
        PinnedFile("model.onnx", hashlib.sha256(WEIGHTS).hexdigest()),
        PinnedFile("tokenizer.json", hashlib.sha256(TOKENIZER).hexdigest()),
        sources,
        cache,
        hub,
    )


def put_into(folder: Path, weights: bytes = WEIGHTS, tokenizer: bytes = TOKENIZER) -> None:
    folder.mkdir(parents=True)
    (folder / "model.onnx").write_bytes(weights)
    (folder / "tokenizer.json").write_bytes(tokenizer)


def assert_whole(fetched: FetchedModel, cache: Path) -> None:
    assert fetched.weights.read_bytes() == WEIGHTS
    assert fetched.tokenizer.read_bytes() == TOKENIZER
    assert sorted(path.name for path in (cache / "tiny").iterdir()) == ["model.onnx", "tokenizer.json"]


def zipped(members: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return buffer.getvalue()


def test_a_filled_folder_needs_no_source(tmp_path: Path) -> None:
    put_into(tmp_path / "tiny")
    fetched = fetch(tmp_path)
    assert_whole(fetched, tmp_path)
    assert "cache" in fetched.source


def test_a_read_only_folder_that_is_filled_serves(tmp_path: Path) -> None:
    put_into(tmp_path / "tiny")
    (tmp_path / "tiny").chmod(0o555)
    assert fetch(tmp_path).weights.read_bytes() == WEIGHTS


def test_the_hub_serves_the_pinned_revision_once(tmp_path: Path, hub: StandIn) -> None:
    fetched = fetch(tmp_path, HUB_SOURCE, hub=hub.url)
    assert_whole(fetched, tmp_path)
    assert fetched.source == "huggingface owner/tiny@abc123"
    assert sorted(hub.asked) == sorted(hub.files)
    fetch(tmp_path, HUB_SOURCE, hub=hub.url)
    assert len(hub.asked) == 2


def test_a_damaged_file_in_the_cache_is_fetched_again(tmp_path: Path, hub: StandIn) -> None:
    put_into(tmp_path / "tiny", weights=WEIGHTS[:-1] + b"?")
    assert_whole(fetch(tmp_path, HUB_SOURCE, hub=hub.url), tmp_path)


def test_bytes_that_are_not_the_pinned_ones_never_reach_the_cache(tmp_path: Path, hub: StandIn) -> None:
    hub.files["/owner/tiny/resolve/abc123/onnx/model.onnx"] = WEIGHTS[:100]
    with pytest.raises(SiteError, match=r"model\.onnx is not the pinned one"):
        fetch(tmp_path, HUB_SOURCE, hub=hub.url)
    assert list((tmp_path / "tiny").iterdir()) == []


def test_a_hub_without_the_file_is_named_with_its_answer(tmp_path: Path, hub: StandIn) -> None:
    hub.files.clear()
    with pytest.raises(SiteError, match="404"):
        fetch(tmp_path, HUB_SOURCE, hub=hub.url)


def test_a_hub_that_does_not_resolve_is_passed_over_without_noise(
    tmp_path: Path, hub: StandIn, capfd: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SiteError, match=r"huggingface owner/tiny@abc123: hub\.invalid is not reachable"):
        fetch(tmp_path, HUB_SOURCE)
    assert capfd.readouterr() == ("", "")


def test_a_hub_behind_a_proxy_needs_no_name_here(
    tmp_path: Path, hub: StandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A proxy is asked for whole addresses.
    hub.files = {f"{NO_HUB}{path}": data for path, data in hub.files.items()}
    monkeypatch.setenv("http_proxy", hub.url)
    monkeypatch.setenv("no_proxy", "")
    monkeypatch.setenv("NO_PROXY", "")
    assert_whole(fetch(tmp_path, HUB_SOURCE), tmp_path)


def test_a_port_where_nobody_listens_is_passed_over(tmp_path: Path) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        with pytest.raises(SiteError, match=r"127\.0\.0\.1 is not reachable"):
            fetch(tmp_path, HUB_SOURCE, hub=f"http://127.0.0.1:{unused.getsockname()[1]}")


@pytest.fixture
def maven(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A stand-in for mvn that copies a jar to where it is told; returns the jar's place."""
    folder = tmp_path / "bin"
    folder.mkdir()
    jar = tmp_path / "tiny.jar"
    program = folder / "mvn"
    program.write_text(
        "#!/bin/sh\n"
        f'echo "$@" > {tmp_path}/argv\n'
        'for argument in "$@"; do case "$argument" in\n'
        f'  -DoutputDirectory=*) cp {jar} "${{argument#*=}}/tiny-1.0.jar" && exit 0 ;;\n'
        "esac; done\n"
        "echo '[ERROR] no jar'\n"
        "exit 1\n"
    )
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")
    return jar


def test_maven_serves_members_of_its_jar(tmp_path: Path, maven: Path) -> None:
    maven.write_bytes(zipped({"tiny.onnx": WEIGHTS, "tiny-tokenizer.json": TOKENIZER, "META-INF/x": b""}))
    assert_whole(fetch(tmp_path / "cache", MAVEN_SOURCE), tmp_path / "cache")
    argv = (tmp_path / "argv").read_text().split()
    assert argv[:-1] == ["--batch-mode", "--quiet", "dependency:copy", "-Dartifact=org.example:tiny:1.0"]


def test_a_jar_without_the_member_is_no_source(tmp_path: Path, maven: Path) -> None:
    maven.write_bytes(zipped({"other.onnx": WEIGHTS}))
    with pytest.raises(SiteError, match=r"has no whole tiny\.onnx"):
        fetch(tmp_path / "cache", MAVEN_SOURCE)


def test_a_client_that_fails_is_quoted(tmp_path: Path, maven: Path) -> None:
    with pytest.raises(SiteError, match=r"maven org\.example:tiny:1\.0: mvn failed: \[ERROR\] no jar"):
        fetch(tmp_path / "cache", MAVEN_SOURCE)


@pytest.fixture
def wheels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only folder where pip looks."""
    if find_pip() is None:
        pytest.skip("neither pip nor uv is here")
    folder = tmp_path / "wheels"
    folder.mkdir()
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    return folder


def test_a_wheel_serves_members_even_of_an_archive_within(tmp_path: Path, wheels: Path) -> None:
    metadata = b"Metadata-Version: 2.1\nName: tiny-model\nVersion: 1.0\nRequires-Python: >=99\n"
    (wheels / "tiny_model-1.0-py3-none-any.whl").write_bytes(
        zipped(
            {
                "tiny_model/model.zip": zipped({"model.onnx": WEIGHTS}),
                "tiny_model/tokenizer.json": TOKENIZER,
                "tiny_model-1.0.dist-info/METADATA": metadata,
                "tiny_model-1.0.dist-info/WHEEL": b"Wheel-Version: 1.0\nTag: py3-none-any\n",
            }
        )
    )
    assert_whole(fetch(tmp_path / "cache", WHEEL_SOURCE), tmp_path / "cache")


def test_sources_are_tried_in_order_until_one_serves(tmp_path: Path, hub: StandIn, maven: Path) -> None:
    fetched = fetch(tmp_path / "cache", MAVEN_SOURCE, HUB_SOURCE, hub=hub.url)
    assert_whole(fetched, tmp_path / "cache")
    assert fetched.source.startswith("huggingface")


def test_when_all_fail_each_is_listed_with_its_reason_and_the_remedy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SiteError) as caught:
        fetch(tmp_path / "cache", HUB_SOURCE, MAVEN_SOURCE)
    lines = str(caught.value).splitlines()
    assert lines[0] == "the model tiny cannot be had:"
    assert [line.strip().split(": ")[-1] for line in lines[1:5]] == [
        "not there",
        "not there",
        "hub.invalid is not reachable",
        "mvn is not on the PATH",
    ]
    assert "RALPH_MODELS" in lines[5]


def test_a_cache_that_cannot_be_written_is_a_reason(tmp_path: Path, hub: StandIn) -> None:
    (tmp_path / "cache").write_text("a file where the folder should be")
    with pytest.raises(SiteError, match="huggingface owner/tiny@abc123: Not a directory"):
        fetch(tmp_path / "cache", HUB_SOURCE, hub=hub.url)
