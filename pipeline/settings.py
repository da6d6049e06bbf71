"""The build side's settings. The environment is read here and nowhere else in the pipeline."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime
from pathlib import Path

from handler.bundle.layout import local_index
from pipeline.site import SiteError, check_url

ROOT = Path(__file__).resolve().parent.parent

TARGETS = ("rsync", "lambda", "container")
# Characters that mean themselves to every shell on the way; a host's path and name need no others.
_PLAIN = re.compile(r"[\w@%+=:,./][\w@%+=:,./-]*", re.ASCII)
_RESTART = "sudo -n systemctl restart davo-bot"
_RELOAD = "sudo -n systemctl reload davo-bot"


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


@dataclass(frozen=True, slots=True)
class DeploySettings:
    """What ships, and the host that `doit deploy:rsync` brings it to.

    `host` is whatever `ssh` calls it, an alias of ~/.ssh/config above all, and `path` the folder there.
    `python` makes the virtual environments of the host. `restart` and `reload` are command lines that its
    shell runs. `accept_worse` names the bundle that may answer worse than the one that it replaces, and
    `accept_private` the collections that may ship although they are not public. `persona` is a file that
    ships in the place of handler/persona.md.
    """

    targets: tuple[str, ...]
    host: str
    path: str
    python: str
    ssh: tuple[str, ...]
    restart: str
    reload: str
    health_url: str
    health_timeout_s: int
    accept_worse: str | None
    accept_private: frozenset[str]
    persona: Path | None


@dataclass(frozen=True, slots=True)
class IngestSettings:
    """The local index, the bundle whose model it shares, and the folder that has collections.toml."""

    database: Path
    bundle: Path
    collections: Path


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
        accept_shrink=frozenset(_words(environ, "RALPH_ACCEPT_SHRINK")),
        environ=environ,
        today=_day(environ.get("RALPH_TODAY")),
    )


def read_ingest_settings(environ: Mapping[str, str]) -> IngestSettings:
    """The settings of ingesting, with their defaults. An empty variable counts as unset."""
    build = read_settings(environ)
    default = local_index(environ.get("XDG_DATA_HOME"), environ.get("HOME"))
    # An installed copy has the collections of the clone that it was made of beside it.
    packed = Path(__file__).with_name("collections.toml")
    is_packed = not environ.get("RALPH_SITES") and packed.is_file()
    return IngestSettings(
        # Links stay links: a server asks what `current` leads to now, and not when it was started.
        database=_spelled(environ.get("RAG_DB_PATH")) or default,
        bundle=_spelled(environ.get("RALPH_BUNDLE")) or build.build / "current",
        collections=packed.parent if is_packed else build.sites,
    )


def read_deploy_settings(environ: Mapping[str, str]) -> DeploySettings:
    """The settings of a deployment, with their defaults. An empty variable counts as unset.

    Raises SiteError at the first that makes no sense.
    """
    targets = tuple(dict.fromkeys(_words(environ, "RALPH_DEPLOY"))) or ("rsync",)
    for target in targets:
        if target not in TARGETS:
            raise SiteError(f"RALPH_DEPLOY: there is no target {target!r}; there are {', '.join(TARGETS)}")
    path = _plain(environ, "RALPH_HOST_PATH", "/var/www/apps/davo-bot").rstrip("/")
    if not path.startswith("/") or ".." in path.split("/"):
        raise SiteError(f"RALPH_HOST_PATH: {path!r} is no folder of its own; write it from / on")
    host = _plain(environ, "RALPH_HOST", "woozie")
    if ":" in host or "/" in host:  # with which rsync would go elsewhere
        raise SiteError(f"RALPH_HOST: {host!r} is no host; name a port or an IPv6 address in ~/.ssh/config")
    persona = _path(environ.get("DAVO_BOT_PROMPT"))
    if persona and not persona.is_file():
        raise SiteError(f"DAVO_BOT_PROMPT: there is no file {persona}; name another, or unset it")
    restart = environ.get("RALPH_RESTART_CMD") or _RESTART
    return DeploySettings(
        targets=targets,
        host=host,
        path=path,
        python=_plain(environ, "RALPH_HOST_PYTHON", "python3"),
        ssh=command(environ, "RALPH_SSH", "ssh"),
        restart=restart,
        # Whoever restarts something else would have the wrong service reloaded.
        reload=environ.get("RALPH_RELOAD_CMD") or (_RELOAD if restart == _RESTART else restart),
        health_url=check_url(
            "RALPH_HEALTH_URL", _plain(environ, "RALPH_HEALTH_URL", "http://127.0.0.1:3001/healthz")
        ),
        health_timeout_s=_seconds(environ, "RALPH_HEALTH_TIMEOUT_S", 30),
        accept_worse=environ.get("RALPH_ACCEPT_WORSE") or None,
        accept_private=frozenset(_words(environ, "RALPH_ACCEPT_PRIVATE")),
        persona=persona,
    )


def _words(environ: Mapping[str, str], name: str) -> tuple[str, ...]:
    return tuple(environ.get(name, "").replace(",", " ").split())


def _plain(environ: Mapping[str, str], name: str, default: str) -> str:
    text = environ.get(name) or default
    if not _PLAIN.fullmatch(text):
        raise SiteError(f"{name}: {text!r} means something else to a shell; write letters, digits, @:./-_")
    return text


def command(environ: Mapping[str, str], name: str, default: str) -> tuple[str, ...]:
    """The words of a command line. Raises SiteError when a quotation mark is left open."""
    try:
        return tuple(shlex.split(environ.get(name) or default))
    except ValueError as error:
        raise SiteError(f"{name}: {environ[name]!r} is no command line: {error}") from None


def _seconds(environ: Mapping[str, str], name: str, default: int) -> int:
    text = environ.get(name) or str(default)
    if not (text.isascii() and text.isdecimal()):
        raise SiteError(f"{name}: {text!r} is no number of whole seconds")
    return int(text)


def _day(text: str | None) -> date:
    if not text:
        return datetime.now().astimezone().date()
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise SiteError(f"RALPH_TODAY: {text!r} is no day; write it as YYYY-MM-DD, or unset it") from None


def _path(text: str | None) -> Path | None:
    return Path(text).expanduser().resolve() if text else None


def _spelled(text: str | None) -> Path | None:
    return Path(text).expanduser().absolute() if text else None
