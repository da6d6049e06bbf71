"""Where a package can be brought, and how each deployment is told to a person."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pipeline.deploy import container_target, lambda_target, rsync
from pipeline.deploy.settings import read_container_settings, read_lambda_settings
from pipeline.deploy.step import DeployError
from pipeline.settings import DeploySettings
from pipeline.site import SiteError


def deploy_rsync(settings: DeploySettings, package: Path, dry_run: bool) -> None:
    """build/package/ -> a release on a host with ssh."""
    rsync.deploy(settings, package, _say, dry_run)


def rollback_rsync(settings: DeploySettings, _package: Path, dry_run: bool) -> None:
    """The previous release of the host is the current one again."""
    rsync.rollback(settings, _say, dry_run)


def deploy_lambda(settings: DeploySettings, package: Path, dry_run: bool) -> None:
    """build/package/ -> a version of a function of AWS Lambda."""
    with _wrong_settings_told():
        cloud = read_lambda_settings(os.environ)
    folder = package.parent / "lambda"
    lambda_target.deploy(cloud, package, folder, settings.accept_worse, _say, dry_run)


def deploy_container(settings: DeploySettings, package: Path, dry_run: bool) -> None:
    """build/package/ -> an image, pushed where its name says."""
    with _wrong_settings_told():
        container = read_container_settings(os.environ)
    folder = package.parent / "container"
    container_target.deploy(container, package, folder, settings.accept_worse, _say, dry_run)


@contextmanager
def _wrong_settings_told() -> Iterator[None]:
    """Whoever deploys elsewhere need not set these: what is wrong with them is told where they are used."""
    try:
        yield
    except SiteError as error:
        raise DeployError(str(error)) from None


def _say(line: str) -> None:
    print(f"  {line}", flush=True)
