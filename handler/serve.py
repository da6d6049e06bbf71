"""`ralph serve`: quickly up, on to a new bundle, and down again, without cutting streams."""

from __future__ import annotations

import errno
import gc
import queue
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from handler.bundle.types import BundleError
from handler.settings import (
    ServeSettings,
    Settings,
    SettingsError,
    read_serve_settings,
    read_settings,
    with_env_file,
)

if TYPE_CHECKING:  # each loads something slow, which `serve` loads side by side
    from aws_lambda_powertools.logging import Logger

    from handler.bundle.bundle import Bundle
    from handler.current import Current, Serving
    from handler.generate.types import Generator

# Most answers end within it. systemd waits 90 s before it kills, Docker 10 s.
GRACE_S = 8
BACKLOG = 2_048
# A word that stands nowhere makes this search also load what knows which word was meant.
WARM_UP = "what is this site abuot"


def serve(
    environ: Mapping[str, str], bundle: Path | None = None, host: str | None = None, port: int | None = None
) -> int:
    """Serves until SIGTERM or SIGINT; on SIGHUP it goes on with the bundle that the same name then means.

    Raises SettingsError or BundleError when it cannot begin.
    """
    # An exception, so that answers which are cut off at the end can still say so.
    signal.signal(signal.SIGTERM, lambda _number, _frame: sys.exit())
    if hasattr(signal, "SIGHUP"):
        signal.signal(signal.SIGHUP, signal.SIG_IGN)  # it would end what has nothing to reload yet
    gc.disable()  # what is loaded here stays: looking through it again and again takes a tenth of the start
    environ = with_env_file(environ, Path.cwd())
    settings, source = read_serve_settings(environ, host, port), read_settings(environ, bundle)
    with ExitStack() as stack:
        # Who asks while the bundle is being loaded waits, instead of being turned away.
        sockets = [stack.enter_context(each) for each in listen(settings)]
        with ThreadPoolExecutor(1) as pool:
            opening = pool.submit(open_bundle, source)
            import fastapi  # noqa: F401 - as slow as the bundle, whose digests and model need no interpreter

            opened = opening.result()
        gc.freeze()
        gc.enable()
        _run(settings, source, opened, sockets)
    return 0


def open_bundle(source: Settings) -> Bundle:
    """The bundle, every byte verified, and warm."""
    from handler.bundle.bundle import Bundle

    # The folder that `current` stands for now: each thread opens the database for itself, maybe much later.
    opened = Bundle.open(source.bundle.resolve()).with_max_distance(source.max_distance)
    opened.search(WARM_UP)
    return opened


def listen(settings: ServeSettings) -> list[socket.socket]:
    """The sockets to serve on, listening: loopback, in DEV that of IPv6 too, or what HOST names.

    Raises SettingsError when a port is in use, or the host is none of this machine.
    """
    hosts = [settings.host] if settings.host else ["127.0.0.1", "::1"] if settings.dev else ["127.0.0.1"]
    sockets: list[socket.socket] = []
    port = settings.port
    for host in hosts:
        try:
            opened = _listen(host, port)
        except OSError as error:
            if host == "::1" and error.errno != errno.EADDRINUSE and sockets:
                continue  # a machine without IPv6
            for each in sockets:
                each.close()
            raise SettingsError(_explained(host, port, error)) from None
        sockets.append(opened)
        port = opened.getsockname()[1]  # where 0 was asked for, both get the same
    return sockets


def _listen(host: str, port: int) -> socket.socket:
    family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    opened = socket.socket(family, kind, protocol)
    try:
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            opened.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        opened.bind(address)
        opened.listen(BACKLOG)
    except OSError:
        opened.close()
        raise
    return opened


def _explained(host: str, port: int, error: OSError) -> str:
    if error.errno == errno.EADDRINUSE:
        return f"PORT: {port} is in use on {host}; end what listens there, or choose another with --port"
    if error.errno == errno.EACCES:
        return f"PORT: {port} is for the system's own services; choose one from 1024 on"
    return f"HOST: {host!r} is no address of this machine ({error.strerror or error}); 127.0.0.1 always is"


def _run(settings: ServeSettings, source: Settings, opened: Bundle, sockets: list[socket.socket]) -> None:
    import uvicorn

    from handler.app import create_app
    from handler.assets import Assets
    from handler.budget import Budget
    from handler.current import Current, Serving
    from handler.generate.persona import PERSONA, persona_reader
    from handler.log import open_log

    logger = open_log()
    persona = persona_reader(settings.persona or PERSONA, fresh=settings.dev)
    make_generator = generators(settings, lambda: persona().text)
    current = Current(Serving(opened, make_generator(opened)))
    budget = None
    if settings.daily_tokens is not None:
        budget = Budget(settings.daily_tokens, settings.state_dir, time.time)
        if not budget.shared:
            logger.warning(
                "this process counts its tokens for itself",
                extra={"STATE_DIR": str(settings.state_dir), "reason": "nothing can be written there"},
            )
    app = create_app(
        current, settings, logger, persona=persona, budget=budget, assets=Assets(fresh=settings.dev)
    )
    _reload_on_hangup(current, lambda: _serving(source, make_generator), logger)
    config = uvicorn.Config(
        app,
        lifespan="off",
        proxy_headers=False,  # the app does it, for the proxies that the settings name
        server_header=False,
        access_log=False,
        log_config=None,
        timeout_graceful_shutdown=GRACE_S,
    )
    for each in sockets:
        name, port = each.getsockname()[:2]
        print(f"http://{f'[{name}]' if ':' in name else name}:{port}/ask/demo", flush=True)
    uvicorn.Server(config).run(sockets)


def _serving(source: Settings, make_generator: Callable[[Bundle], Generator]) -> Serving:
    from handler.current import Serving

    opened = open_bundle(source)
    return Serving(opened, make_generator(opened))


def generators(settings: ServeSettings, persona: Callable[[], str]) -> Callable[[Bundle], Generator]:
    """Makes the generator for a bundle: Claude with a key, which is one for all bundles, else quotes."""
    from handler.generate.extractive import ExtractiveGenerator

    if settings.api_key is None:
        return lambda bundle: ExtractiveGenerator(bundle.encoder)
    from handler.generate.claude import ClaudeGenerator, ClaudeSettings

    claude = ClaudeGenerator(
        ClaudeSettings(
            api_key=settings.api_key,
            base_url=settings.base_url,
            model=settings.model,
            max_tokens=settings.max_tokens,
            timeout_s=settings.timeout_s,
        ),
        persona,
    )
    threading.Thread(target=claude.warm_up, name="warm-up", daemon=True).start()
    return lambda _bundle: claude


def _reload_on_hangup(current: Current, load: Callable[[], Serving], logger: Logger) -> None:
    """Puts what `load` gives into `current` at each SIGHUP, in a thread, so that streams go on meanwhile."""
    if not hasattr(signal, "SIGHUP"):
        return  # Windows: start a new process instead
    # Unlike an Event, it may be put to by a signal handler that interrupts another one.
    signals: queue.SimpleQueue[int] = queue.SimpleQueue()

    def reload() -> None:
        while True:
            signals.get()
            try:
                current.serving = load()
            except BundleError as error:
                logger.error("the bundle stays as it is", extra={"reason": str(error)})
            except Exception:
                logger.exception("the bundle stays as it is")
            else:
                logger.info("another bundle", extra={"bundle": current.serving.bundle.manifest.version})

    threading.Thread(target=reload, name="reload", daemon=True).start()
    signal.signal(signal.SIGHUP, lambda number, _frame: signals.put(number))
