"""The serve side's settings. The environment is read here and nowhere else in the handler."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from handler.bundle.types import BundleError

_CLONE = Path(__file__).resolve().parent.parent


@dataclass(frozen=True, slots=True)
class Settings:
    """What the handler was told.

    `bundle` is a sealed bundle's folder. `max_distance` is the L2 distance of the first gate; None, the
    usual case, leaves the decision to the gate that the bundle was calibrated with.
    """

    bundle: Path
    max_distance: float | None


def read_settings(environ: Mapping[str, str], bundle: Path | None = None) -> Settings:
    """The settings that the environment asks for; `bundle` overrides RALPH_BUNDLE.

    Raises BundleError when no bundle is named and this is not a clone, or a number is none.
    """
    return Settings(
        bundle=bundle or _bundle(environ),
        max_distance=_number(environ, "RAG_MAX_DISTANCE"),
    )


def _bundle(environ: Mapping[str, str]) -> Path:
    if named := environ.get("RALPH_BUNDLE"):
        return Path(named).expanduser()
    if build := environ.get("RALPH_BUILD"):
        return Path(build).expanduser() / "current"
    if (_CLONE / "dodo.py").is_file():
        return _CLONE / "build" / "current"
    raise BundleError("no bundle is named: set RALPH_BUNDLE to its folder, or give --bundle")


def _number(environ: Mapping[str, str], name: str) -> float | None:
    text = environ.get(name)
    if not text:
        return None
    try:
        value = float(text)
    except ValueError:
        raise BundleError(f"{name}: {text!r} is not a number") from None
    if not value >= 0:
        raise BundleError(f"{name}: {text!r} is not a distance; write a number from 0 to 2")
    return value
