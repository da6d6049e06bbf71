"""The serve side's settings. The environment is read here and nowhere else in the handler."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from handler.bundle.env_file import over_env_file
from handler.bundle.types import BundleError

_CLONE = Path(__file__).resolve().parent.parent

# The most that a setting can allow. Beyond the embedding model's limit, words change nothing.
MAX_QUESTION_CHARS = 4_000

_YES = ("1", "true", "yes", "on")
_NO = ("0", "false", "no", "off")


class SettingsError(Exception):
    """A setting is wrong. The message names the variable, its value and the remedy."""


@dataclass(frozen=True, slots=True)
class Settings:
    """What the handler was told.

    `bundle` is a sealed bundle's folder. `max_distance` is the L2 distance of the first gate; None, the
    usual case, leaves the decision to the gate that the bundle was calibrated with.
    """

    bundle: Path
    max_distance: float | None


@dataclass(frozen=True, slots=True)
class ServeSettings:
    """What `ralph serve` was told, beside the bundle.

    `allowed_origins` are origins as browsers send them, or the one word "*". `trusted_proxies` are addresses
    and networks whose X-Forwarded-For is believed. A `rate_limit_per_min` or `daily_tokens` of None is no
    limit. `starters` are questions to begin with, none where the server's own will do. Without an `api_key`
    answers are quotes, and nothing is sent anywhere.
    """

    host: str | None
    port: int
    dev: bool
    allowed_origins: tuple[str, ...]
    trusted_proxies: tuple[str, ...]
    rate_limit_per_min: int | None
    max_question_chars: int
    daily_tokens: int | None
    state_dir: Path
    log_questions: bool
    starters: tuple[str, ...]
    api_key: str | None = field(repr=False)
    base_url: str | None
    model: str
    max_tokens: int
    timeout_s: float
    persona: Path | None


def read_settings(environ: Mapping[str, str], bundle: Path | None = None) -> Settings:
    """The settings that the environment asks for; `bundle` overrides RALPH_BUNDLE.

    Raises BundleError when no bundle is named and this is not a clone, SettingsError when a number is none.
    """
    return Settings(
        bundle=bundle or _bundle(environ),
        max_distance=number(environ, "RAG_MAX_DISTANCE", 0, 2, "is the L2 distance of unit vectors"),
    )


def read_serve_settings(
    environ: Mapping[str, str], host: str | None = None, port: int | None = None
) -> ServeSettings:
    """The settings of the server; `host` and `port` override HOST and PORT.

    An empty variable counts as one that is not set. Raises SettingsError at the first wrong one.
    """
    return ServeSettings(
        host=host or environ.get("HOST") or None,
        port=whole_number(environ, "PORT", 3001, 0, 65_535) if port is None else port,
        dev=_flag(environ, "DEV"),
        allowed_origins=_origins(environ),
        trusted_proxies=_proxies(environ),
        rate_limit_per_min=whole_number(environ, "ASK_RATE_LIMIT_PER_MIN", 20, 0, 1_000_000) or None,
        max_question_chars=whole_number(environ, "ASK_MAX_QUESTION_CHARS", 1_000, 1, MAX_QUESTION_CHARS),
        daily_tokens=whole_number(environ, "ASK_DAILY_TOKENS", 0, 0, 10**12) or None,
        state_dir=state_dir(environ),
        log_questions=_flag(environ, "LOG_QUESTIONS"),
        starters=_starters(environ),
        api_key=environ.get("ANTHROPIC_API_KEY", "").strip() or None,
        base_url=_url(environ, "ANTHROPIC_BASE_URL"),
        model=environ.get("ASK_MODEL") or "claude-haiku-4-5",
        max_tokens=whole_number(environ, "ASK_MAX_TOKENS", 1_024, 1, 64_000),
        timeout_s=number(environ, "ASK_TIMEOUT_S", 1, 600, "is how long the model may be silent") or 30.0,
        persona=_file(environ, "DAVO_BOT_PROMPT"),
    )


def with_env_file(environ: Mapping[str, str], folder: Path) -> Mapping[str, str]:
    """The environment over what the folder's `.env` says, if it has one. Raises SettingsError."""
    try:
        return over_env_file(environ, folder)
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(f"{folder / '.env'} cannot be read: {error}") from None


def _bundle(environ: Mapping[str, str]) -> Path:
    if named := environ.get("RALPH_BUNDLE"):
        return Path(named).expanduser()
    if build := environ.get("RALPH_BUILD"):
        return Path(build).expanduser() / "current"
    if (_CLONE / "dodo.py").is_file():
        return _CLONE / "build" / "current"
    raise BundleError("no bundle is named: set RALPH_BUNDLE to its folder, or give --bundle")


def state_dir(environ: Mapping[str, str]) -> Path:
    """The folder for what outlives a process; it need not exist yet."""
    if named := environ.get("STATE_DIR"):
        return Path(named).expanduser()
    return (
        Path(environ.get("XDG_STATE_HOME") or Path(environ.get("HOME") or "/", ".local", "state")) / "ralph"
    )


def number(environ: Mapping[str, str], name: str, least: float, most: float, what: str) -> float | None:
    """The number that a variable holds, None where it is not set. Raises SettingsError, saying what it is."""
    text = environ.get(name)
    if not text:
        return None
    try:
        value = float(text)
    except ValueError:
        raise SettingsError(f"{name}: {text!r} is not a number") from None
    if not least <= value <= most:
        raise SettingsError(f"{name}: {text!r} {what}; write a number from {least} to {most}")
    return value


def whole_number(environ: Mapping[str, str], name: str, default: int, least: int, most: int) -> int:
    """The whole number that a variable holds. Raises SettingsError when it is none, or out of bounds."""
    text = environ.get(name)
    if not text:
        return default
    if not (text.isascii() and text.isdecimal() and least <= int(text[:20]) <= most):
        raise SettingsError(f"{name}: {text[:50]!r} is not a whole number from {least} to {most}")
    return int(text)


def _flag(environ: Mapping[str, str], name: str) -> bool:
    text = environ.get(name, "").lower()
    if text and text not in _YES + _NO:
        raise SettingsError(f"{name}: {text!r} is neither yes nor no; write 1 or 0")
    return text in _YES


def _words(environ: Mapping[str, str], name: str) -> tuple[str, ...]:
    return tuple(environ.get(name, "").replace(",", " ").split())


def _starters(environ: Mapping[str, str]) -> tuple[str, ...]:
    starters = environ.get("ASK_STARTERS", "").split("|")
    return tuple(starter.strip() for starter in starters if starter.strip())


def _origins(environ: Mapping[str, str]) -> tuple[str, ...]:
    origins = _words(environ, "ALLOWED_ORIGINS")
    if origins == ("*",):
        return origins
    for origin in origins:
        sent = _as_sent(origin)
        if "*" in origin:
            remedy = "name each origin, or write * alone, for all there are"
        elif sent is None:
            remedy = "write https:// and a host, one in another script as xn--…"
        elif sent != origin:
            remedy = f"write {sent}"
        else:
            continue
        raise SettingsError(f"ALLOWED_ORIGINS: {origin!r} is not what a browser sends as an origin; {remedy}")
    return origins


def _as_sent(url: str) -> str | None:
    """The origin of an address as browsers send it (RFC 6454, section 6.2); None where it has none."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        return None
    if parts.scheme not in ("http", "https") or not parts.hostname or not url.isascii():
        return None
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    is_default = (parts.scheme, port) in (("http", 80), ("https", 443), (parts.scheme, None))
    return f"{parts.scheme}://{host}" + ("" if is_default else f":{port}")


def _proxies(environ: Mapping[str, str]) -> tuple[str, ...]:
    proxies = _words(environ, "TRUSTED_PROXIES")
    for proxy in proxies:
        try:
            ipaddress.ip_network(proxy)
        except ValueError as error:
            raise SettingsError(
                f"TRUSTED_PROXIES: {proxy!r}: {error}; write addresses or networks: 127.0.0.1 10.0.0.0/8"
            ) from None
    return proxies


def _url(environ: Mapping[str, str], name: str) -> str | None:
    text = environ.get(name)
    if text and not text.startswith(("https://", "http://")):
        raise SettingsError(
            f"{name}: {text!r} is no address; write one that begins with https://, or unset it"
        )
    return text or None


def _file(environ: Mapping[str, str], name: str) -> Path | None:
    text = environ.get(name)
    if not text:
        return None
    path = Path(text).expanduser()
    if not path.is_file():
        raise SettingsError(f"{name}: there is no file {text!r}; name one that can be read, or unset it")
    return path
