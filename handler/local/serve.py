"""`ralph local`: the local chat as a process of its own."""

from __future__ import annotations

import socket
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlsplit

import uvicorn

from handler.generate.ollama import OllamaGenerator
from handler.local.app import create_app
from handler.local.conversations import FILE, Conversations
from handler.local.library import Library
from handler.local.routes import Service
from handler.local.settings import read_local_settings
from handler.settings import SettingsError, with_env_file

# Loopback refuses at once what nobody listens for.
PROBE_TIMEOUT_S = 1
# Answers that stream when Ctrl-C is pressed are cut, and kept as far as they got.
SHUTDOWN_TIMEOUT_S = 1


def serve(
    environ: Mapping[str, str], bundle: Path | None = None, host: str | None = None, port: int | None = None
) -> int:
    """Answers until a signal ends it. Raises SettingsError or BundleError before anything listens."""
    settings = read_local_settings(with_env_file(environ, Path.cwd()), bundle, host, port)
    conversations = Conversations.open(settings.state_dir / FILE)
    app = create_app(Service(Library.open(settings), OllamaGenerator(settings.ollama), conversations))
    listener = listen(settings.host, settings.port)
    host = f"[{settings.host}]" if ":" in settings.host else settings.host
    print(
        f"Local chat with {settings.ollama.model}: http://{host}:{listener.getsockname()[1]}/\n"
        f"Conversations are kept in {settings.state_dir / FILE}. Ctrl-C ends.",
        flush=True,
    )
    if not is_listening(settings.ollama.url):
        print(
            f"Ollama is not running at {settings.ollama.url} yet: start it with `ollama serve`.", flush=True
        )
    config = uvicorn.Config(
        app,
        log_level="warning",
        access_log=False,  # addresses of conversations are nobody's business
        server_header=False,
        # What forwards requests is no part of this machine's own browser.
        proxy_headers=False,
        timeout_graceful_shutdown=SHUTDOWN_TIMEOUT_S,
    )
    uvicorn.Server(config).run(sockets=[listener])
    return 0


def listen(host: str, port: int) -> socket.socket:
    """A socket of this machine alone. Raises SettingsError when the port is taken."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # TCP by name: else asyncio leaves Nagle's algorithm on, and an event waits 40 ms for the one before it to
    # be acknowledged.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
        listener.listen()  # before its address is told: who asks at once waits, instead of being turned away
    except OSError as error:
        listener.close()
        raise SettingsError(
            f"LOCAL_PORT: {port} cannot be used ({error.strerror}); give --port another one"
        ) from None
    return listener


def is_listening(url: str) -> bool:
    """Whether anything on this machine takes connections at an address, which names its port."""
    address = urlsplit(url)
    try:
        socket.create_connection((address.hostname, address.port), PROBE_TIMEOUT_S).close()
    except OSError:
        return False
    return True
