"""The local chat's settings, read from the environment here and nowhere else."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from handler.bundle.layout import local_index
from handler.generate.ollama_request import OllamaSettings
from handler.settings import Settings, SettingsError, number, read_settings, state_dir, whole_number

PORT = 3002
# Six sources of 1,500 characters, what was said before and an answer: 8,192 tokens hold them, 4,096 barely.
NUM_CTX = 8_192
MIN_NUM_CTX = 4_096
# Ollama loads a model of 8 billion parameters from a slow disk in a minute.
TIMEOUT_S = 120.0

# Ollama's name for "not on this machine": `gpt-oss:120b-cloud`, `kimi-k2:cloud`.
_CLOUD = re.compile(r"[:-]cloud$", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class LocalSettings:
    """What `ralph local` was told.

    `base` names the bundle, whose model embeds questions. `database` is the local index, asked together with
    the bundle's own; one that was not named may be missing. `host` is a loopback address.
    """

    base: Settings
    database: Path
    is_database_named: bool
    ollama: OllamaSettings
    state_dir: Path
    host: str
    port: int


def read_local_settings(
    environ: Mapping[str, str],
    bundle: Path | None = None,
    host: str | None = None,
    port: int | None = None,
) -> LocalSettings:
    """The settings that the environment asks for; `bundle`, `host` and `port` override it.

    Raises SettingsError when something would leave this machine, or a value is none; BundleError as
    read_settings does.
    """
    database = environ.get("RAG_DB_PATH")
    default = local_index(environ.get("XDG_DATA_HOME"), environ.get("HOME"))
    return LocalSettings(
        base=read_settings(environ, bundle),
        database=Path(database).expanduser() if database else default,
        is_database_named=bool(database),
        ollama=OllamaSettings(
            url=_ollama_url(environ.get("OLLAMA_HOST") or "127.0.0.1"),
            model=_model(environ.get("OLLAMA_CHAT_MODEL") or "llama3.2"),
            num_ctx=whole_number(environ, "OLLAMA_NUM_CTX", NUM_CTX, MIN_NUM_CTX, 10_000_000),
            timeout_s=number(environ, "OLLAMA_TIMEOUT_S", 1, 3600, "is how long Ollama may be silent")
            or TIMEOUT_S,
        ),
        state_dir=state_dir(environ),
        host=_loopback(host or "127.0.0.1"),
        port=whole_number(environ, "LOCAL_PORT", PORT, 0, 65_535) if port is None else port,
    )


def _loopback(host: str) -> str:
    """The address to listen at."""
    address = "127.0.0.1" if host.lower() == "localhost" else host.strip("[]")
    if not _is_loopback(address):
        raise SettingsError(
            f"--host: {host!r} can be reached from other machines, and this chat shows everything: "
            "it listens at 127.0.0.1 or ::1 only"
        )
    return address


def _ollama_url(host: str) -> str:
    """The base URL of Ollama, in any of the forms that Ollama itself takes."""
    try:
        parts = urlsplit(host if "://" in host else f"http://{host}")
        name, port = parts.hostname or "", parts.port or 11434
    except ValueError:
        raise SettingsError(f"OLLAMA_HOST: {host!r} is no address; write http://127.0.0.1:11434") from None
    # Ollama's server reads the same variable, and these tell it to listen everywhere: here too, then.
    name = {"0.0.0.0": "127.0.0.1", "::": "::1", "localhost": "127.0.0.1"}.get(name, name)  # noqa: S104
    if not _is_loopback(name):
        raise SettingsError(
            f"OLLAMA_HOST: {host!r} is not this machine. The local chat shows your pages to a model at "
            "127.0.0.1 or ::1 and nowhere else: write one of them, or unset it"
        )
    if parts.scheme != "http" or parts.path not in ("", "/") or parts.query or parts.fragment:
        raise SettingsError(f"OLLAMA_HOST: {host!r} is no plain address; write http://127.0.0.1:{port}")
    return f"http://[{name}]:{port}" if ":" in name else f"http://{name}:{port}"


def _model(name: str) -> str:
    if _CLOUD.search(name):
        raise SettingsError(
            f"OLLAMA_CHAT_MODEL: {name!r} runs on other people's machines; name a model that runs here"
        )
    return name


def _is_loopback(name: str) -> bool:
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False
