"""The build side's settings. The environment is read here and nowhere else in the pipeline."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime
from pathlib import Path

from pipeline.site import SiteError

ROOT = Path(__file__).resolve().parent.parent


@dataclass(frozen=True, slots=True)
class BuildSettings:
    """Where a build reads and writes, and what it was told by name.

    `accept_shrink` names the sites that may lose half of their pages or more in this build.
    `environ` fills the ${VARIABLES} of site.toml. `today` is the day that dates of pages are compared with.
    """

    sites: Path
    build: Path
    model: str | None
    query_instruction: str | None
    models_cache: Path | None
    hub: str | None
    accept_shrink: frozenset[str]
    environ: Mapping[str, str]
    today: date


def read_settings(environ: Mapping[str, str]) -> BuildSettings:
    """The settings that the environment asks for, with their defaults. An empty variable counts as unset.

    Raises SiteError when RALPH_TODAY is no day.
    """
    return BuildSettings(
        sites=_path(environ.get("RALPH_SITES")) or ROOT / "sites",
        build=_path(environ.get("RALPH_BUILD")) or ROOT / "build",
        model=environ.get("EMBED_MODEL") or None,
        query_instruction=environ.get("EMBED_QUERY_INSTRUCTION"),
        models_cache=_path(environ.get("RALPH_MODELS")),
        hub=environ.get("HF_ENDPOINT") or None,
        accept_shrink=frozenset(environ.get("RALPH_ACCEPT_SHRINK", "").replace(",", " ").split()),
        environ=environ,
        today=_day(environ.get("RALPH_TODAY")),
    )


def _day(text: str | None) -> date:
    if not text:
        return datetime.now().astimezone().date()
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise SiteError(f"RALPH_TODAY: {text!r} is no day; write it as YYYY-MM-DD, or unset it") from None


def _path(text: str | None) -> Path | None:
    return Path(text).expanduser().resolve() if text else None
