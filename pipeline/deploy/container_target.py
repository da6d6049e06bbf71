"""`doit deploy:container`: a package becomes an image, and is pushed to the registry of its name."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from handler.bundle.layout import MANIFEST
from pipeline.deploy.gate import check_bundle, check_not_worse
from pipeline.deploy.settings import ContainerSettings
from pipeline.deploy.step import DeployError, Step, run
from pipeline.package import BUNDLE, package_version
from pipeline.settings import ROOT

DOCKERFILE = ROOT / "infra" / "container" / "Dockerfile"
# The first that is there; the ones that need no daemon and no root come first.
CLIENTS = ("buildah", "podman", "docker")


@dataclass(frozen=True, slots=True)
class ContainerSteps:
    """The steps of a deployment, in their order. `push` is empty for an image that stays here."""

    build: Step
    push: tuple[Step, ...]


def container_steps(settings: ContainerSettings, client: str, package: Path) -> ContainerSteps:
    """What deploying a package runs, to the argument. The image has the package's version, and `latest`."""
    tags = [f"{settings.image}:{tag}" for tag in (package_version(package), "latest")]
    options = [option for tag in tags for option in ("--tag", tag)]
    if Path(client).name != "docker":
        options += ["--format", "docker"]  # the other format has no health checks
    if settings.base:
        options += ["--build-arg", f"BASE={settings.base}"]
    return ContainerSteps(
        build=Step("build", (client, "build", *options, "--file", str(DOCKERFILE), str(package))),
        push=tuple(Step(f"push {tag}", (client, "push", tag)) for tag in tags if settings.is_pushed),
    )


def find_client(settings: ContainerSettings) -> str:
    """The program that builds images. Raises DeployError when there is none."""
    wanted = (settings.client,) if settings.client else CLIENTS
    found = next((client for client in wanted if shutil.which(client)), None)
    if found is None:
        raise DeployError(f"there is no program {', '.join(wanted)}; install one that builds images")
    return found


def deploy(
    settings: ContainerSettings,
    package: Path,
    folder: Path,
    accept_worse: str | None,
    say: Callable[[str], None],
    dry_run: bool,
) -> None:
    """Builds an image of a package and pushes it; with `dry_run` it only shows the commands.

    A registry does not say what it has: the manifest of what was last deployed from here lies in `folder`,
    and is what the package's bundle is compared with. Raises DeployError.
    """
    for line in check_bundle(package / BUNDLE):
        say(line)
    deployed = folder / f"{settings.image.replace('/', '_')}.json"
    if deployed.is_file():
        check_not_worse(deployed.read_text(encoding="utf-8"), package / BUNDLE, accept_worse)
    steps = container_steps(settings, find_client(settings), package)
    for step in (steps.build, *steps.push):
        say(str(step) if dry_run else step.doc)
        if not dry_run:
            run(step)
    if not dry_run:
        folder.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(package / BUNDLE / MANIFEST, deployed)
