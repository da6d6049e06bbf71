"""The local chat on a free port, and Ollama's stand-in behind it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest
import uvicorn
from fastapi import FastAPI

from handler.generate.ollama import OllamaGenerator
from handler.local.app import create_app
from handler.local.conversations import FILE, Conversations
from handler.local.library import Library
from handler.local.routes import Service
from handler.local.serve import listen
from handler.local.settings import read_local_settings
from tests.conftest import MakeBundle
from tests.fakes.ollama_api import OllamaApi, ollama_api


@dataclass(frozen=True)
class Chat:
    """A running chat: its address, a client for it, and what is behind it."""

    url: str
    client: httpx.Client
    api: OllamaApi
    conversations: Conversations


StartChat = Callable[..., Chat]


@pytest.fixture
def api() -> Iterator[OllamaApi]:
    """Ollama's stand-in."""
    with ollama_api() as stand_in:
        yield stand_in


@pytest.fixture
def start_chat(api: OllamaApi, make_bundle: MakeBundle, tmp_path: Path) -> Iterator[StartChat]:
    """Starts the chat with further variables of the environment."""
    with ExitStack() as stack:

        def start(environ: Mapping[str, str] | None = None) -> Chat:
            settings = read_local_settings(
                {
                    "OLLAMA_HOST": api.url,
                    "STATE_DIR": str(tmp_path / "state"),
                    "XDG_DATA_HOME": str(tmp_path / "data"),
                    "RALPH_BUNDLE": str(make_bundle()),
                    **(environ or {}),
                }
            )
            conversations = Conversations.open(settings.state_dir / FILE)
            service = Service(Library.open(settings), OllamaGenerator(settings.ollama), conversations)
            url = stack.enter_context(running(create_app(service)))
            client = stack.enter_context(httpx.Client(base_url=url, timeout=10, trust_env=False))
            return Chat(url, client, api, conversations)

        yield start


@pytest.fixture
def chat(start_chat: StartChat) -> Chat:
    """The chat with the pages of PAGES."""
    return start_chat()


@contextmanager
def running(app: FastAPI) -> Iterator[str]:
    """The address at which an application answers while the context lasts."""
    listener = listen("127.0.0.1", 0)
    server = uvicorn.Server(uvicorn.Config(app, log_level="warning", timeout_graceful_shutdown=1))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
    thread.start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join()
        listener.close()
