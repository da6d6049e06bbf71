"""Where a package can be brought, and how each deployment is told to a person."""

from __future__ import annotations

from pathlib import Path

from pipeline.deploy import rsync
from pipeline.settings import DeploySettings


def deploy_rsync(settings: DeploySettings, package: Path, dry_run: bool) -> None:
    """build/package/ -> a release on a host with ssh."""
    rsync.deploy(settings, package, _say, dry_run)


def rollback_rsync(settings: DeploySettings, _package: Path, dry_run: bool) -> None:
    """The previous release of the host is the current one again."""
    rsync.rollback(settings, _say, dry_run)


def _say(line: str) -> None:
    print(f"  {line}", flush=True)
