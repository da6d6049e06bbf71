from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from pipeline.deploy.container_target import DOCKERFILE, container_steps, deploy, find_client
from pipeline.deploy.settings import ContainerSettings, read_container_settings
from pipeline.deploy.step import DeployError
from pipeline.package import package, package_version
from pipeline.site import SiteError

MakeBundle = Callable[..., Path]

PAGES = {"notes/a.md": "A\n\nTomatoes want sun."}
CLIENT = """#!{python}
import pathlib, shlex, sys
with pathlib.Path({calls!r}).open("a") as calls:
    calls.write(shlex.join(sys.argv[1:]) + "\\n")
if "push" in sys.argv and "refused" in sys.argv[-1]:
    sys.exit("denied")
"""


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only folder that programs are found in."""
    folder = tmp_path / "programs"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    return folder


def install(programs: Path, name: str) -> Path:
    """A stand-in that notes its arguments in the file that is returned."""
    calls = programs / f"{name}-calls"
    (programs / name).write_text(CLIENT.format(python=sys.executable, calls=str(calls)))
    (programs / name).chmod(0o755)
    return calls


def evaluation(hit_at_6: float) -> Mapping[str, object]:
    return {"modes": {"hybrid": {"hit_at_1": 0.5, "hit_at_6": hit_at_6, "mrr": 0.6}}, "kept": 0.9}


def settings(**environ: str) -> ContainerSettings:
    return read_container_settings(environ)


def test_an_image_without_a_registry_is_built_and_stays(
    programs: Path, make_bundle: MakeBundle, tmp_path: Path
) -> None:
    calls = install(programs, "podman")
    folder = tmp_path / "package"
    version = package(make_bundle(PAGES), folder)
    deploy(settings(), folder, tmp_path / "container", None, lambda _: None, dry_run=False)
    (line,) = calls.read_text().splitlines()
    assert line == (
        f"build --tag ralph:{version} --tag ralph:latest --format docker --file {DOCKERFILE} {folder}"
    )


def test_an_image_with_a_registry_is_pushed_under_both_tags(make_bundle: MakeBundle, tmp_path: Path) -> None:
    folder = tmp_path / "package"
    version = package(make_bundle(PAGES), folder)
    image = "registry.example:5000/me/ralph"
    steps = container_steps(settings(RALPH_IMAGE=image, RALPH_IMAGE_BASE="python:3.12"), "docker", folder)
    assert version == package_version(folder)
    assert steps.build.argv == (
        *("docker", "build", "--tag", f"{image}:{version}", "--tag", f"{image}:latest"),
        *("--build-arg", "BASE=python:3.12", "--file", str(DOCKERFILE), str(folder)),
    )
    assert [step.argv for step in steps.push] == [
        ("docker", "push", f"{image}:{version}"),
        ("docker", "push", f"{image}:latest"),
    ]


@pytest.mark.parametrize(
    ("image", "pushed"),
    [
        ("ralph", False),
        ("me/ralph", False),
        ("localhost/ralph", True),
        ("host:5000/ralph", True),
        ("registry.example/me/ralph", True),
        ("Registry.Example/me/ralph__bot.x-y", True),
    ],
)
def test_the_name_tells_whether_there_is_a_registry(image: str, pushed: bool) -> None:
    assert settings(RALPH_IMAGE=image).is_pushed is pushed


def test_the_first_program_that_is_there_builds_and_another_can_be_named(programs: Path) -> None:
    with pytest.raises(DeployError, match="buildah, podman, docker"):
        find_client(settings())
    for name in ("docker", "podman", "buildah"):
        install(programs, name)
        assert find_client(settings()) == name
    assert find_client(settings(RALPH_CONTAINER_CLIENT="docker")) == "docker"


def test_a_dry_run_shows_the_commands_and_runs_none(
    programs: Path, make_bundle: MakeBundle, tmp_path: Path
) -> None:
    calls = install(programs, "buildah")
    package(make_bundle(PAGES), tmp_path / "package")
    said: list[str] = []
    image = settings(RALPH_IMAGE="registry.example/ralph")
    deploy(image, tmp_path / "package", tmp_path / "container", None, said.append, dry_run=True)
    assert [line.split()[1] for line in said if line.startswith("buildah ")] == ["build", "push", "push"]
    assert not calls.exists()
    assert not (tmp_path / "container").exists()


def test_a_worse_bundle_is_refused_unless_it_is_named(
    programs: Path, make_bundle: MakeBundle, tmp_path: Path
) -> None:
    calls = install(programs, "buildah")
    package(make_bundle(PAGES, evaluation=evaluation(0.9)), tmp_path / "good")
    deploy(settings(), tmp_path / "good", tmp_path / "container", None, lambda _: None, dry_run=False)
    worse = make_bundle(PAGES, evaluation=evaluation(0.5))
    package(worse, tmp_path / "worse")
    with pytest.raises(DeployError, match="answers worse"):
        deploy(settings(), tmp_path / "worse", tmp_path / "container", None, lambda _: None, dry_run=False)
    assert len(calls.read_text().splitlines()) == 1
    deploy(settings(), tmp_path / "worse", tmp_path / "container", worse.name, lambda _: None, dry_run=False)
    assert len(calls.read_text().splitlines()) == 2


def test_what_was_not_pushed_does_not_count_as_deployed(
    programs: Path, make_bundle: MakeBundle, tmp_path: Path
) -> None:
    install(programs, "buildah")
    package(make_bundle(PAGES), tmp_path / "package")
    image = settings(RALPH_IMAGE="registry.example/refused")
    with pytest.raises(DeployError, match="denied"):
        deploy(image, tmp_path / "package", tmp_path / "container", None, lambda _: None, dry_run=False)
    assert not (tmp_path / "container").exists()


@pytest.mark.parametrize(
    "image",
    [
        *("Ralph", "ralph:v1", "registry.example/ralph:v1", "host:5000", "ralph@sha256:00"),
        *("ralph/", "/ralph", "a//b", "ralph.", "-ralph", "https://registry.example/ralph"),
    ],
)
def test_what_is_no_name_of_an_image_or_has_a_tag_is_refused(image: str) -> None:
    with pytest.raises(SiteError, match=r"^RALPH_IMAGE: "):
        settings(RALPH_IMAGE=image)
