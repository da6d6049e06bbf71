from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from handler.settings import SettingsError, read_serve_settings, read_settings, with_env_file


def test_without_any_variable_the_defaults_hold() -> None:
    settings = read_serve_settings({"HOME": "/home/a"})
    assert (settings.host, settings.port, settings.dev) == (None, 3001, False)
    assert (settings.allowed_origins, settings.trusted_proxies) == ((), ())
    assert (settings.rate_limit_per_min, settings.daily_tokens) == (20, None)
    assert (settings.api_key, settings.model) == (None, "claude-haiku-4-5")
    assert settings.state_dir == Path("/home/a/.local/state/ralph")
    assert not settings.log_questions


def test_an_empty_variable_counts_as_one_that_is_not_set() -> None:
    names = ["HOST", "PORT", "DEV", "ALLOWED_ORIGINS", "ASK_TIMEOUT_S", "STATE_DIR", "ANTHROPIC_API_KEY"]
    assert read_serve_settings(dict.fromkeys(names, "")) == read_serve_settings({})


def test_what_is_typed_wins_over_what_is_set() -> None:
    settings = read_serve_settings({"HOST": "10.0.0.1", "PORT": "80"}, host="127.0.0.2", port=0)
    assert (settings.host, settings.port) == ("127.0.0.2", 0)


def test_every_variable_is_read() -> None:
    environ = {
        "DEV": "yes",
        "ALLOWED_ORIGINS": "https://a.example, http://localhost:3000",
        "TRUSTED_PROXIES": "127.0.0.1 10.0.0.0/8 ::1",
        "ASK_RATE_LIMIT_PER_MIN": "0",
        "ASK_MAX_QUESTION_CHARS": "300",
        "ASK_DAILY_TOKENS": "1000000",
        "ASK_STARTERS": "Who? | What is | ",
        "STATE_DIR": "/var/lib/ralph",
        "LOG_QUESTIONS": "1",
        "ANTHROPIC_API_KEY": " key\n",
        "ANTHROPIC_BASE_URL": "http://127.0.0.1:9",
        "ASK_MODEL": "claude-x",
        "ASK_MAX_TOKENS": "99",
        "ASK_TIMEOUT_S": "2.5",
        "DAVO_BOT_PROMPT": __file__,
    }
    settings = read_serve_settings(environ)
    assert settings.dev
    assert settings.allowed_origins == ("https://a.example", "http://localhost:3000")
    assert settings.trusted_proxies == ("127.0.0.1", "10.0.0.0/8", "::1")
    assert settings.rate_limit_per_min is None
    assert settings.max_question_chars == 300
    assert settings.daily_tokens == 1_000_000
    assert settings.starters == ("Who?", "What is")
    assert settings.state_dir == Path("/var/lib/ralph")
    assert settings.log_questions
    assert (settings.api_key, settings.base_url) == ("key", "http://127.0.0.1:9")
    assert (settings.model, settings.max_tokens, settings.timeout_s) == ("claude-x", 99, 2.5)
    assert settings.persona == Path(__file__)


def test_the_key_is_not_shown_with_the_settings() -> None:
    assert "sk-secret" not in repr(read_serve_settings({"ANTHROPIC_API_KEY": "sk-secret"}))


@pytest.mark.parametrize(
    ("environ", "remedy"),
    [
        ({"PORT": "http"}, "from 0 to 65535"),
        ({"PORT": "65536"}, "from 0 to 65535"),
        ({"PORT": "٣"}, "from 0 to 65535"),
        ({"PORT": "9" * 5000}, "from 0 to 65535"),
        ({"DEV": "maybe"}, "write 1 or 0"),
        ({"ASK_RATE_LIMIT_PER_MIN": "-1"}, "from 0"),
        ({"ASK_MAX_QUESTION_CHARS": "0"}, "from 1 to 4000"),
        ({"ASK_DAILY_TOKENS": "1e6"}, "whole number"),
        ({"ASK_TIMEOUT_S": "nan"}, "from 1 to 600"),
        ({"ASK_TIMEOUT_S": "soon"}, "not a number"),
        ({"ALLOWED_ORIGINS": "https://a.example/"}, "write https://a.example"),
        ({"ALLOWED_ORIGINS": "https://a.example/page"}, "write https://a.example"),
        ({"ALLOWED_ORIGINS": "https://a.example:443"}, "write https://a.example"),
        ({"ALLOWED_ORIGINS": "https://A.example"}, "write https://a.example"),
        ({"ALLOWED_ORIGINS": "a.example"}, "write https://"),
        ({"ALLOWED_ORIGINS": "null"}, "write https://"),
        ({"ALLOWED_ORIGINS": "https://bücher.example"}, "xn--"),
        ({"ALLOWED_ORIGINS": "https://a.example:port"}, "write https://"),
        ({"ALLOWED_ORIGINS": "https://*.example"}, "alone"),
        ({"ALLOWED_ORIGINS": "https://a.example *"}, "alone"),
        ({"TRUSTED_PROXIES": "proxy"}, "127.0.0.1"),
        ({"TRUSTED_PROXIES": "10.0.0.1/8"}, "10.0.0.0/8"),
        ({"ANTHROPIC_BASE_URL": "localhost:1"}, "https://"),
        ({"DAVO_BOT_PROMPT": "/nowhere.md"}, "unset it"),
        ({"RAG_MAX_DISTANCE": "-0.5"}, "from 0 to 2"),
    ],
)
def test_a_wrong_value_is_named_with_its_remedy(environ: Mapping[str, str], remedy: str) -> None:
    ((name, value),) = environ.items()
    with pytest.raises(SettingsError) as error:
        read_serve_settings(environ)
        read_settings({"RALPH_BUNDLE": "x", **environ})
    assert str(error.value).startswith(f"{name}: ")
    assert value[:50] in str(error.value) or value.split()[-1] in str(error.value)
    assert remedy in str(error.value)
    assert len(str(error.value)) < 300


def test_any_origin_is_allowed_by_that_word_alone() -> None:
    assert read_serve_settings({"ALLOWED_ORIGINS": "*"}).allowed_origins == ("*",)


def test_an_address_of_ipv6_can_be_an_origin() -> None:
    assert read_serve_settings({"ALLOWED_ORIGINS": "http://[::1]:3000"}).allowed_origins


def test_the_environment_wins_over_the_file_even_where_it_is_empty(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text(
        '# a comment\nPORT=4000\nexport HOST="10.0.0.1"\nASK_MODEL=a$PORT\nANTHROPIC_API_KEY=key\nDEV\n'
    )
    environ = with_env_file({"HOST": "127.0.0.1", "ANTHROPIC_API_KEY": ""}, tmp_path)
    settings = read_serve_settings(environ)
    assert (settings.port, settings.host) == (4000, "127.0.0.1")
    assert settings.model == "a$PORT"
    assert settings.api_key is None
    assert not settings.dev


def test_a_file_that_is_no_text_is_named(tmp_path: Path) -> None:
    (tmp_path / ".env").write_bytes(b"PORT=\xff\xfe")
    with pytest.raises(SettingsError, match=r"\.env cannot be read"):
        with_env_file({}, tmp_path)
