"""The local chat's settings: nothing that leaves this machine can be set."""

from __future__ import annotations

from pathlib import Path

import pytest

from handler.local.settings import LocalSettings, read_local_settings
from handler.settings import SettingsError
from pipeline.settings import read_ingest_settings


def read(host: str | None = None, port: int | None = None, **environ: str) -> LocalSettings:
    return read_local_settings({"RALPH_BUNDLE": "/bundle", "HOME": "/home/me", **environ}, None, host, port)


def test_all_settings_are_optional() -> None:
    settings = read()
    assert (settings.host, settings.port) == ("127.0.0.1", 3002)
    assert (settings.database, settings.is_database_named) == (
        Path("/home/me/.local/share/ralph/rag.db"),
        False,
    )
    assert settings.ollama.url == "http://127.0.0.1:11434"
    assert (settings.ollama.model, settings.ollama.num_ctx, settings.ollama.timeout_s) == (
        "llama3.2",
        8192,
        120,
    )
    assert settings.state_dir == Path("/home/me/.local/state/ralph")
    assert read(OLLAMA_HOST="", RAG_DB_PATH="", LOCAL_PORT="", OLLAMA_CHAT_MODEL="") == settings


@pytest.mark.parametrize(
    "environ", [{}, {"XDG_DATA_HOME": "/data"}, {"RAG_DB_PATH": "/rag.db"}, {"HOME": ""}]
)
def test_the_local_index_is_where_ingest_puts_it(environ: dict[str, str]) -> None:
    environ = {"HOME": "/home/me", **environ}
    settings = read_local_settings({"RALPH_BUNDLE": "/bundle", **environ})
    assert settings.database == read_ingest_settings(environ).database


def test_every_setting_is_read() -> None:
    settings = read(
        OLLAMA_CHAT_MODEL="qwen3:8b",
        OLLAMA_NUM_CTX="16384",
        OLLAMA_TIMEOUT_S="7.5",
        RAG_DB_PATH="/rag.db",
        STATE_DIR="/state",
        LOCAL_PORT="4000",
    )
    assert (settings.ollama.model, settings.ollama.num_ctx) == ("qwen3:8b", 16384)
    assert (settings.ollama.timeout_s, settings.database) == (7.5, Path("/rag.db"))
    assert settings.is_database_named
    assert (settings.state_dir, settings.port) == (Path("/state"), 4000)
    assert read(port=0, LOCAL_PORT="4000").port == 0


@pytest.mark.parametrize(
    ("host", "url"),
    [
        ("localhost", "http://127.0.0.1:11434"),
        ("LOCALHOST:1", "http://127.0.0.1:1"),
        ("127.0.0.2:80", "http://127.0.0.2:80"),
        ("http://127.0.0.1:11434/", "http://127.0.0.1:11434"),
        ("[::1]:9", "http://[::1]:9"),
        ("0.0.0.0", "http://127.0.0.1:11434"),
        ("[::]", "http://[::1]:11434"),
    ],
)
def test_ollama_is_found_by_what_its_own_variable_says(host: str, url: str) -> None:
    assert read(OLLAMA_HOST=host).ollama.url == url


@pytest.mark.parametrize(
    "host",
    [
        "192.168.1.2",
        "example.org:11434",
        "https://ollama.com",
        "http://127.0.0.1@example.org",
        "127.0.0.1.example.org",
        "localhost.example.org",
        "http://127.0.0.1:11434/v1",
        "https://127.0.0.1",
        "file:///etc/passwd",
        "http://127.0.0.1:port",
        "http://[::1",
        "2130706433",
    ],
)
def test_ollama_on_another_machine_is_refused(host: str) -> None:
    with pytest.raises(SettingsError, match="OLLAMA_HOST"):
        read(OLLAMA_HOST=host)


@pytest.mark.parametrize("model", ["gpt-oss:120b-cloud", "kimi-k2:cloud", "x:1T-CLOUD"])
def test_models_in_the_cloud_are_refused(model: str) -> None:
    with pytest.raises(SettingsError, match="OLLAMA_CHAT_MODEL"):
        read(OLLAMA_CHAT_MODEL=model)
    assert read(OLLAMA_CHAT_MODEL="cloudy:7b").ollama.model == "cloudy:7b"


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.2", "example.org", "127.0.0.1.example.org"])
def test_other_machines_cannot_be_listened_to(host: str) -> None:
    with pytest.raises(SettingsError, match="--host"):
        read(host=host)


@pytest.mark.parametrize(
    ("host", "address"), [("localhost", "127.0.0.1"), ("[::1]", "::1"), ("127.0.0.9",) * 2]
)
def test_any_loopback_address_can_be(host: str, address: str) -> None:
    assert read(host=host).host == address


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("OLLAMA_NUM_CTX", "2048"),
        ("OLLAMA_NUM_CTX", "much"),
        ("OLLAMA_TIMEOUT_S", "0"),
        ("LOCAL_PORT", "70000"),
    ],
)
def test_a_number_that_makes_no_sense_is_refused_by_name(name: str, value: str) -> None:
    with pytest.raises(SettingsError, match=name):
        read_local_settings({"RALPH_BUNDLE": "/bundle", name: value})
