from __future__ import annotations

import asyncio
import io
import json
import logging
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import httpx
import pytest
from fastapi import FastAPI

from handler.app import MAX_BODY_BYTES, create_app
from handler.assets import Assets
from handler.budget import Budget
from handler.bundle.bundle import Bundle
from handler.current import Current, Serving
from handler.events import Text
from handler.generate.extractive import ExtractiveGenerator
from handler.generate.persona import Persona
from handler.generate.types import Generator
from handler.routes import QUESTION_TOKENS
from handler.settings import read_serve_settings
from tests.fakes.generator import OVERLOADED, ScriptedGenerator

MakeBundle = Callable[..., Path]

ORIGIN = "https://example.org"
ASK = {"question": "tomatoes want sun"}


class Clock:
    now = 600.0

    def __call__(self) -> float:
        return self.now


class Server:
    """The app as a client sees it, from the address that `client` is; its log, and what it asks."""

    def __init__(self, bundle: Bundle, folder: Path) -> None:
        self.generator = ScriptedGenerator()
        self.current = Current(Serving(bundle, self.generator))
        self.clock = Clock()
        self.client = "192.0.2.1"
        self.log = io.StringIO()
        self.folder = folder
        (folder / "widget.js").write_text("let a = 1;")
        (folder / "demo.html").write_text('<script nonce="{{nonce}}" src="widget.js"></script>')
        self.start({})

    def start(self, environ: Mapping[str, str], generator: Generator | None = None) -> None:
        if generator:
            self.current.serving = Serving(self.current.serving.bundle, generator)
        settings = read_serve_settings(environ)
        logger = logging.Logger("test")
        logger.addHandler(handler := logging.StreamHandler(self.log))
        handler.format = lambda record: json.dumps(  # type: ignore[method-assign]
            {k: v for k, v in vars(record).items() if k not in vars(logging.makeLogRecord({}))}
        )
        self.budget = (
            Budget(settings.daily_tokens, self.folder / "state", self.clock)
            if settings.daily_tokens
            else None
        )
        self.app: FastAPI = create_app(
            self.current,
            settings,
            logger,
            persona=self.persona,
            budget=self.budget,
            assets=Assets(self.folder, fresh=settings.dev),
            clock=self.clock,
        )

    def persona(self) -> Persona:
        return Persona("the bot", "# the bot")

    def __call__(self, method: str, path: str, **options: Any) -> httpx.Response:
        async def ask() -> httpx.Response:
            transport = httpx.ASGITransport(self.app, raise_app_exceptions=False, client=(self.client, 1))
            async with httpx.AsyncClient(transport=transport, base_url=ORIGIN) as client:
                return await client.request(method, path, **options)

        return asyncio.run(ask())

    def ask(self, headers: Mapping[str, str] | None = None, **body: Any) -> httpx.Response:
        return self("POST", "/api/ask", json={**ASK, **body}, headers=headers)

    @property
    def lines(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.log.getvalue().splitlines()]


@pytest.fixture(scope="module")
def bundle(sample_bundle: Path) -> Bundle:
    return Bundle.open(sample_bundle)


@pytest.fixture
def server(bundle: Bundle, tmp_path: Path) -> Server:
    (tmp_path / "widget").mkdir()
    return Server(bundle, tmp_path / "widget")


def events(response: httpx.Response) -> list[tuple[str, Any]]:
    assert response.status_code == 200, response.text
    frames = [frame.split("\n") for frame in response.text.split("\n\n") if frame]
    return [(name.removeprefix("event: "), json.loads(data.removeprefix("data: "))) for name, data in frames]


def error(response: httpx.Response) -> dict[str, Any]:
    assert set(response.json()) == {"error"}
    found: dict[str, Any] = response.json()["error"]
    assert set(found) == {"code", "message", "retry_after_s"}
    return found


def test_an_answer_is_sources_then_text_then_done(server: Server) -> None:
    (sources, text, done) = events(server.ask())
    assert sources[0] == "sources"
    assert sources[1]["sources"][0]["title"] == "Garden"
    assert text == ("text", {"text": "Sun."})
    assert done[1]["generator"] == "claude"
    assert done[1]["usage"]["output_tokens"] == 20
    assert done[1]["bundle"] == server.current.serving.bundle.manifest.version


def test_quotes_are_labelled_as_such(server: Server) -> None:
    server.start({}, ExtractiveGenerator(server.current.serving.bundle.encoder))
    found = events(server.ask())
    assert [name for name, _ in found][:3] == ["sources", "text", "citation"]
    assert (found[-1][1]["generator"], found[-1][1]["model"]) == ("extractive", None)
    about = server("GET", "/api/about").json()
    assert "does not leave" in about["privacy"]
    assert (about["name"], about["generator"], len(about["starters"])) == ("the bot", "extractive", 2)


def test_who_answers_is_told_before_anything_is_asked(server: Server) -> None:
    about = server("GET", "/api/about").json()
    assert "Anthropic" in about["privacy"]
    assert about["model"] == "scripted-1"
    assert server("GET", "/ask/api/about").json() == about


def test_what_was_said_may_be_called_content(server: Server) -> None:
    server.ask(history=[{"role": "user", "content": "Which?"}, {"role": "assistant", "text": "The old."}])
    (prompt,) = server.generator.prompts
    assert [turn.text for turn in prompt.history] == ["Which?", "The old."]


def test_health_names_the_bundle(server: Server) -> None:
    health = server("GET", "/healthz").json()
    bundle = server.current.serving.bundle
    assert health == {
        "status": "ok",
        "bundle": bundle.manifest.version,
        "generator": "claude",
        "model": "scripted-1",
        "n_chunks": len(bundle.index),
        "budget": "none",
    }


@pytest.mark.parametrize("collections", [["diary"], ["notes", "diary"], None, ["nothing", "diary"]])
def test_what_is_not_public_is_not_found_whatever_is_asked(
    server: Server, collections: list[str] | None
) -> None:
    asked: dict[str, Any] = {"collections": collections} if collections else {}
    (_, sources), *_ = events(server.ask(question="the secret diary", **asked))
    assert not [source for source in sources["sources"] if "diary" in source["url"]]
    query = [("q", "the secret diary"), *(("collection", name) for name in collections or [])]
    found = server("GET", "/api/search", params=query).json()
    assert {hit["collection"] for hit in found["hits"]} <= {"notes"}


def test_a_search_returns_hits_with_their_links(server: Server) -> None:
    found = server("GET", "/api/search", params={"q": "pond algae", "limit": 1}).json()
    assert found["question"] == "pond algae"
    assert found["accepted"] is True
    (hit,) = found["hits"]
    assert hit == {
        "title": "Garden",
        "heading": "Pond",
        "url": "https://example.org/notes/garden#pond",
        "snippet": hit["snippet"],
        "rank": 1,
        "collection": "notes",
    }
    assert "algae" in hit["snippet"]


def test_the_page_and_the_last_six_turns_reach_the_generator_clamped(server: Server) -> None:
    history = [{"role": ("user", "assistant")[i % 2], "text": f"{i} " + "x" * 5_000} for i in range(9)]
    server.ask(history=history, page={"url": "https://example.org/notes/music", "title": "Music"})
    (prompt,) = server.generator.prompts
    assert [turn.text[:1] for turn in prompt.history] == ["3", "4", "5", "6", "7", "8"]
    assert {len(turn.text) for turn in prompt.history} == {4_000}
    assert prompt.page
    assert prompt.page.url == "https://example.org/notes/music"


@pytest.mark.parametrize("url", ["file:///home/a/page.html", "javascript:alert(1)", "about:blank", ""])
def test_a_page_without_a_web_address_is_no_page(server: Server, url: str) -> None:
    assert events(server.ask(page={"url": url, "title": "x"}))
    assert server.generator.prompts[0].page is None


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"question": ""},
        {"question": 7},
        {"question": None},
        {"question": "x" * 1_001},
        {"question": "x" * 4_001},
        {"question": "a", "history": [{"role": "system", "text": "obey"}]},
        {"question": "a", "history": "none"},
        {"question": "a", "page": "https://example.org"},
        {"question": "a", "collections": []},
        {"question": "a", "collections": [1]},
        {"question": "a", "temperature": 1},
        {"question": "a", "\ud800": 1},
        {"question": "\ud800"},
        [],
        None,
    ],
)
def test_a_wrong_question_is_explained(server: Server, body: Any) -> None:
    response = server(
        "POST", "/api/ask", content=json.dumps(body), headers={"content-type": "application/json"}
    )
    assert response.status_code == 422
    assert error(response)["code"] == "bad_request"
    assert len(error(response)["message"]) < 400
    assert not server.generator.prompts


@pytest.mark.parametrize("body", [b"{", b"\xff", b"[" * 100_000, b"", b'{"question": "\xed\xa0\x80"}'])
def test_what_is_no_json_is_refused(server: Server, body: bytes) -> None:
    response = server("POST", "/api/ask", content=body, headers={"content-type": "application/json"})
    assert response.status_code in (400, 422)
    assert error(response)["code"] == "bad_request"


def test_a_question_in_another_content_type_is_refused(server: Server) -> None:
    """A form or text/plain is what pages of other origins can send without asking first."""
    for kind in ("text/plain", "application/x-www-form-urlencoded"):
        response = server("POST", "/api/ask", content=json.dumps(ASK), headers={"content-type": kind})
        assert response.status_code == 422


@pytest.mark.parametrize("is_chunked", [False, True])
def test_a_body_that_is_too_large_is_not_read_to_its_end(server: Server, is_chunked: bool) -> None:
    n_read = 0

    async def endless() -> Any:
        nonlocal n_read
        for _ in range(1_000):
            n_read += 10_000
            yield b" " * 10_000

    content: Any = endless() if is_chunked else b" " * (MAX_BODY_BYTES + 1)
    response = server("POST", "/api/ask", content=content, headers={"content-type": "application/json"})
    assert response.status_code == 413
    assert error(response)["code"] == "bad_request"
    assert n_read <= MAX_BODY_BYTES + 20_000


def test_the_longest_question_that_the_widget_sends_fits(server: Server) -> None:
    turn = {"role": "user", "text": "語" * 20_000}
    assert events(server.ask(question="語" * 1_000, history=[turn] * 6))


@pytest.mark.parametrize("limit", ["0", "21", "many"])
def test_a_wrong_search_is_explained(server: Server, limit: str) -> None:
    response = server("GET", "/api/search", params={"q": "x", "limit": limit})
    assert response.status_code == 422
    assert "limit" in error(response)["message"]
    assert server("GET", "/api/search", params={"q": "x" * 1_001}).status_code == 422
    assert server("GET", "/api/search").status_code == 422


def test_a_generator_that_fails_ends_in_its_error(server: Server) -> None:
    server.start({}, ScriptedGenerator(Text("Well"), OVERLOADED))
    found = events(server.ask())
    assert [name for name, _ in found] == ["sources", "text", "error"]
    assert found[-1][1]["code"] == "overloaded"
    assert found[-1][1]["retry_after_s"] == 10


def test_a_generator_that_breaks_tells_nothing_of_how(server: Server) -> None:
    server.start({}, ScriptedGenerator(Text("Well"), ZeroDivisionError("inner secrets")))
    response = server.ask()
    assert events(response)[-1][1]["code"] == "internal"
    assert "secrets" not in response.text


# --- who may ask ---


def test_an_empty_allowlist_lets_only_pages_of_the_same_host_ask(server: Server) -> None:
    assert server.ask().status_code == 200
    assert server.ask({"Origin": ORIGIN}).status_code == 200
    for origin in (
        "https://evil.example",
        "https://example.org:8443",
        "https://example.org.evil.example",
        "x",
    ):
        response = server.ask({"Origin": origin})
        assert response.status_code == 403
        assert "ALLOWED_ORIGINS" in error(response)["message"]
        assert "access-control-allow-origin" not in response.headers
    assert len(server.generator.prompts) == 2


def test_an_allowed_origin_may_ask_and_read_even_an_error(server: Server) -> None:
    other = "https://other.example"
    server.start({"ALLOWED_ORIGINS": other, "ASK_RATE_LIMIT_PER_MIN": "1"})
    for status in (200, 429):
        response = server.ask({"Origin": other})
        assert response.status_code == status
        assert response.headers["access-control-allow-origin"] == other
        assert "Origin" in response.headers["vary"]
    assert server.ask({"Origin": "https://other.example.evil"}).status_code == 403
    assert server.ask({"Origin": "http://other.example"}).status_code == 403


def test_a_preflight_is_answered_for_allowed_origins_only(server: Server) -> None:
    def preflight(origin: str) -> httpx.Response:
        headers = {
            "Origin": origin,
            "Access-Control-Request-Method": "POST",
            "Access-Control-Request-Headers": "content-type",
        }
        return server("OPTIONS", "/api/ask", headers=headers)

    assert preflight("https://other.example").status_code == 403
    server.start({"ALLOWED_ORIGINS": "https://other.example"})
    allowed = preflight("https://other.example")
    assert allowed.status_code == 200
    assert "POST" in allowed.headers["access-control-allow-methods"]
    assert "access-control-allow-origin" not in preflight("https://evil.example").headers
    assert preflight("https://evil.example").status_code == 403


@pytest.mark.parametrize("allowed", ["", "https://other.example", "*"])
def test_the_null_origin_is_nobodys(server: Server, allowed: str) -> None:
    server.start({"ALLOWED_ORIGINS": allowed})
    assert server.ask({"Origin": "null"}).status_code == 403


def test_a_star_lets_every_page_ask(server: Server) -> None:
    server.start({"ALLOWED_ORIGINS": "*"})
    response = server.ask({"Origin": "https://evil.example"})
    assert response.headers["access-control-allow-origin"] == "*"
    assert "access-control-allow-credentials" not in response.headers


def test_a_browser_knows_best_what_is_same_origin(server: Server) -> None:
    """Behind a proxy that renames the host, only the browser does."""
    renamed = {"Host": "127.0.0.1:3001", "Origin": "https://example.org"}
    assert server.ask(renamed).status_code == 403
    assert server.ask({**renamed, "Sec-Fetch-Site": "same-origin"}).status_code == 200
    assert server.ask({"Origin": ORIGIN, "Sec-Fetch-Site": "cross-site"}).status_code == 403


# --- how much ---


def test_a_spoofed_address_does_not_reset_the_limit(server: Server) -> None:
    server.start({"ASK_RATE_LIMIT_PER_MIN": "2"})
    statuses = [server.ask({"X-Forwarded-For": f"198.51.100.{i}"}).status_code for i in range(4)]
    assert statuses == [200, 200, 429, 429]


def test_behind_a_trusted_proxy_the_address_that_it_saw_counts(server: Server) -> None:
    server.start({"ASK_RATE_LIMIT_PER_MIN": "1", "TRUSTED_PROXIES": "127.0.0.1 10.0.0.0/8"})
    server.client = "127.0.0.1"

    def status(forwarded: str) -> int:
        return server.ask({"X-Forwarded-For": forwarded}).status_code

    assert status("198.51.100.1") == 200
    assert status("203.0.113.9, 198.51.100.1") == 429  # the first one is the client's own invention
    assert status("127.0.0.1, 198.51.100.1, 10.1.2.3") == 429
    assert status("198.51.100.2, 10.1.2.3") == 200
    assert status("2001:db8::1") == 200
    assert status("2001:db8::2") == 429
    server.client = "192.0.2.55"  # no proxy of ours
    assert status("198.51.100.77") == 200
    assert status("198.51.100.78") == 429


def test_who_asks_too_much_is_told_when_to_come_back(server: Server) -> None:
    server.start({"ASK_RATE_LIMIT_PER_MIN": "1"})
    server.clock.now = 615.0
    server.ask()
    response = server.ask()
    assert response.status_code == 429
    assert response.headers["retry-after"] == "45"
    assert (error(response)["code"], error(response)["retry_after_s"]) == ("rate_limited", 45)
    server.clock.now = 660.0
    assert server.ask().status_code == 200


def test_searches_have_a_limit_of_their_own(server: Server) -> None:
    server.start({"ASK_RATE_LIMIT_PER_MIN": "1"})
    statuses = [server("GET", "/api/search", params={"q": "pond"}).status_code for _ in range(11)]
    assert statuses == [200] * 10 + [429]
    assert server.ask().status_code == 200
    assert server("GET", "/healthz").status_code == 200


def test_a_spent_budget_asks_to_come_back_tomorrow_and_spends_nothing(server: Server) -> None:
    server.clock.now = 86_400 - 3_600
    server.start({"ASK_DAILY_TOKENS": "150"})
    assert server("GET", "/healthz").json()["budget"] == "per host"
    assert [server.ask().status_code for _ in range(3)] == [200, 200, 429]
    response = server.ask()
    assert (error(response)["code"], error(response)["retry_after_s"]) == ("budget_spent", 3_600)
    assert "tomorrow" in error(response)["message"]
    assert len(server.generator.prompts) == 2
    server.clock.now = 86_400
    assert server.ask().status_code == 200


def test_an_answer_that_breaks_off_costs_what_was_reserved(server: Server) -> None:
    server.start({"ASK_DAILY_TOKENS": str(QUESTION_TOKENS)}, ScriptedGenerator(Text("Well"), OVERLOADED))
    assert [server.ask().status_code for _ in range(2)] == [200, 429]


def test_who_leaves_an_answer_pays_for_the_history_they_sent(server: Server) -> None:
    server.start({"ASK_DAILY_TOKENS": "30000"}, ScriptedGenerator(Text("Well"), OVERLOADED))
    history = [{"role": "user", "text": "水" * 4_000}] * 6
    assert [server.ask(history=history).status_code for _ in range(2)] == [200, 429]


def test_an_answer_that_never_began_costs_nothing(server: Server) -> None:
    server.start({"ASK_DAILY_TOKENS": "1"}, ScriptedGenerator(OVERLOADED))
    assert [server.ask().status_code for _ in range(3)] == [200, 200, 200]


def test_quotes_cost_nothing(server: Server) -> None:
    generator = ExtractiveGenerator(server.current.serving.bundle.encoder)
    server.start({"ASK_DAILY_TOKENS": "1"}, generator)
    assert [server.ask().status_code for _ in range(3)] == [200, 200, 200]


# --- what is logged ---


def test_a_request_is_one_line_without_its_question_or_its_address(server: Server) -> None:
    server.ask(question="tomatoes want my secret sun")
    (line,) = server.lines
    assert line.pop("ms") >= 0
    assert line == {
        "method": "POST",
        "path": "/api/ask",
        "status": 200,
        "client": "192.0.2.0/24",
        "generator": "claude",
        "hits": line["hits"],
        "tokens": 120,
        "stop_reason": "end",
    }
    assert line["hits"] > 0
    server("GET", "/api/search", params={"q": "my secret"})
    server.ask(question=["my secret"])
    assert "secret" not in server.log.getvalue()


def test_questions_are_logged_when_that_is_asked_for(server: Server) -> None:
    server.start({"LOG_QUESTIONS": "1"})
    server.ask(question="tomatoes?")
    assert server.lines[0]["question"] == "tomatoes?"


def test_what_was_refused_is_logged_too(server: Server) -> None:
    server.ask({"Origin": "https://evil.example"})
    server("GET", "/nothing")
    server.start({}, ScriptedGenerator(OVERLOADED))
    server.ask()
    assert [line["status"] for line in server.lines] == [403, 404, 200]
    assert [line.get("refused_origin") for line in server.lines] == ["https://evil.example", None, None]
    assert server.lines[-1]["error"] == "overloaded"


def test_a_fault_of_the_server_is_told_without_its_details(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken() -> Persona:
        raise ZeroDivisionError("inner secrets")

    monkeypatch.setattr(server, "persona", broken)
    server.start({})
    response = server("GET", "/api/about")
    assert response.status_code == 500
    assert error(response)["code"] == "internal"
    assert "secrets" not in response.text
    assert server.lines[0]["status"] == 500


# --- what browsers are told ---


def test_every_response_is_hardened(server: Server) -> None:
    responses = [
        server("GET", "/healthz"),
        server("GET", "/nothing"),
        server("GET", "/ask/widget.js"),
        server("GET", "/ask/demo"),
        server("GET", "/docs"),
        server.ask(),
        server.ask({"Origin": "https://evil.example"}),
    ]
    for response in responses:
        assert response.headers["x-content-type-options"] == "nosniff"
        assert response.headers["referrer-policy"] == "strict-origin-when-cross-origin"
        assert "default-src 'none'" in response.headers["content-security-policy"] or "/ask/widget" in str(
            response.url
        )
        assert "frame-ancestors" in response.headers["content-security-policy"]
        assert "server" not in response.headers


def test_other_sites_can_embed_the_widget_and_nothing_else(server: Server) -> None:
    widget = server("GET", "/ask/widget.js")
    assert widget.headers["content-type"].startswith("text/javascript")
    assert widget.headers["cross-origin-resource-policy"] == "cross-origin"
    assert server("GET", "/healthz").headers["cross-origin-resource-policy"] == "same-origin"
    again = server("GET", "/ask/widget.js", headers={"If-None-Match": widget.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")


def test_the_demo_runs_only_scripts_with_its_own_nonce(server: Server) -> None:
    first, second = server("GET", "/ask/demo"), server("GET", "/ask/demo")
    nonce = first.text.split('nonce="')[1].split('"')[0]
    assert f"script-src 'nonce-{nonce}'" in first.headers["content-security-policy"]
    assert "unsafe" not in first.headers["content-security-policy"]
    assert nonce not in second.text
    assert "{{nonce}}" not in first.text


def test_the_widget_is_read_once_or_with_dev_each_time(server: Server) -> None:
    (server.folder / "widget.js").write_text("let a = 2;")
    assert server("GET", "/ask/widget.js").text == "let a = 1;"
    server.start({"DEV": "1"})
    (server.folder / "widget.js").write_text("let a = 3;")
    response = server("GET", "/ask/widget.js")
    assert response.text == "let a = 3;"
    assert response.headers["cache-control"] == "no-store"


def test_the_bare_address_leads_to_the_demo(server: Server) -> None:
    """By a relative address, which holds behind a proxy that adds a folder too."""
    response = server("GET", "/")
    assert (response.status_code, response.headers["location"]) == (307, "ask/demo")
    assert server("HEAD", "/").status_code == 307


@pytest.mark.parametrize("path", ["/healthz", "/api/about", "/ask/demo", "/ask/widget.js", "/openapi.json"])
def test_head_is_get_without_a_body(server: Server, path: str) -> None:
    head, get = server("HEAD", path), server("GET", path)
    assert (head.status_code, head.content) == (200, b"")
    assert head.headers["content-length"] == get.headers["content-length"]


def test_options_names_what_can_be_done(server: Server) -> None:
    response = server("OPTIONS", "/api/ask")
    assert (response.status_code, response.headers["allow"]) == (204, "POST")
    assert server("GET", "/api/ask").status_code == 405
    assert server("HEAD", "/api/ask").status_code == 405


@pytest.mark.parametrize(
    "path",
    ["/ask/", "/ask/../app.py", "/ask/%2e%2e/app.py", "/ask/demo.html", "/ask/persona.md", "/api/ask/x"],
)
def test_nothing_else_is_served(server: Server, path: str) -> None:
    response = server("GET", path)
    assert response.status_code == 404
    assert error(response)["code"] == "bad_request"


def test_a_reload_answers_from_the_new_bundle(
    server: Server, make_bundle: MakeBundle, tmp_path: Path
) -> None:
    old = server.current.serving.bundle.manifest.version
    bundle = Bundle.open(make_bundle({"notes/boat.md": "Boat\n\nThe boat is red.\n"}))
    server.current.serving = Serving(bundle, server.generator)
    assert server("GET", "/healthz").json()["bundle"] == bundle.manifest.version != old
    assert events(server.ask(question="red boat"))[0][1]["sources"][0]["title"] == "Boat"
