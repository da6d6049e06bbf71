"""One live page, from a server on loopback."""

from __future__ import annotations

import dataclasses
import socket
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from urllib.parse import unquote

import pytest

from pipeline.export.exporters import export
from pipeline.export.web import fetch
from pipeline.site import Site, SiteError
from tests.fakes.loopback import LoopbackHandler, LoopbackServer, answering

TODAY = date(2026, 1, 1)

HTML = "text/html; charset=iso-8859-1"
PAGE = "<title>Café</title><main><h1>Café</h1><p>Words about the café and its tea.</p></main>".encode(
    "latin-1"
)
ANSWERS: dict[str, tuple[int, dict[str, str], bytes]] = {
    "/page": (200, {"Content-Type": HTML}, PAGE),
    "/moved": (302, {"Location": "/page"}, b""),
    "/to-file": (302, {"Location": "file:///etc/hostname"}, b""),
    "/to-ftp": (302, {"Location": "ftp://127.0.0.1/x"}, b""),
    "/loop": (302, {"Location": "/loop"}, b""),
    "/image": (200, {"Content-Type": "image/png"}, b"\x89PNG"),
    "/hidden": (200, {"Content-Type": HTML, "X-Robots-Tag": "noindex"}, PAGE),
    "/text.md": (200, {"Content-Type": "text/markdown"}, b"---\ntitle: Notes\n---\n# Heading\n"),
    "/draft.md": (200, {"Content-Type": "text/plain"}, b"---\ndraft: true\n---\nsecret\n"),
    "/german": (200, {"Content-Type": HTML}, b"<html lang=de>" + PAGE),
    "/café": (200, {"Content-Type": HTML}, PAGE),
}


class Handler(LoopbackHandler):
    def do_GET(self) -> None:
        status, headers, body = ANSWERS.get(unquote(self.path), (404, {}, b""))
        self.reply(status, body, headers)


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with LoopbackServer(("127.0.0.1", 0), Handler) as server, answering(server):
        yield f"http://127.0.0.1:{server.server_address[1]}"


def site(url: str, tmp_path: Path) -> Site:
    base_url = url.split("/", 3)[0] + "//" + url.split("/", 3)[2] + "/"
    return Site("live", "url", url, base_url, "docs", tmp_path)


@pytest.mark.parametrize("path", ["/page", "/moved", "/café"])
def test_a_live_page_is_one_page(path: str, server: str, tmp_path: Path) -> None:
    exported = export(site(server + path, tmp_path), TODAY)
    assert [(page.title, page.body) for page in exported.pages] == [
        ("Café", "# Café\n\nWords about the café and its tea.\n")
    ]
    assert exported.pages[0].url.startswith(server)


def test_the_address_after_redirects_is_cited(server: str, tmp_path: Path) -> None:
    page = export(site(f"{server}/moved#part", tmp_path), TODAY).pages[0]
    assert (page.url, page.path) == (f"{server}/page", "127.0.0.1/page")


def test_a_markdown_answer_is_read_as_markdown(server: str, tmp_path: Path) -> None:
    page = export(site(f"{server}/text.md", tmp_path), TODAY).pages[0]
    assert (page.title, page.body) == ("Notes", "# Heading\n")


def test_a_live_page_in_another_language_is_left_out(server: str, tmp_path: Path) -> None:
    german = dataclasses.replace(site(f"{server}/german", tmp_path), language="en")
    assert [e.reason for e in export(german, TODAY).exclusions] == ["language de, not en"]


@pytest.mark.parametrize(("path", "reason"), [("/hidden", "noindex"), ("/draft.md", "draft")])
def test_private_answers_are_left_out(path: str, reason: str, server: str, tmp_path: Path) -> None:
    exported = export(site(server + path, tmp_path), TODAY)
    assert [e.reason for e in exported.exclusions] == [reason]
    assert exported.pages == ()


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("/to-file", "file"),
        ("/to-ftp", "not http"),
        ("/loop", "infinite loop"),
        ("/image", "is image/png"),
        ("/missing", "answered 404"),
    ],
)
def test_what_is_no_page_is_an_error(path: str, message: str, server: str, tmp_path: Path) -> None:
    with pytest.raises(SiteError, match=message):
        export(site(server + path, tmp_path), TODAY)


def test_a_page_that_is_too_large_is_an_error(server: str) -> None:
    with pytest.raises(SiteError, match="larger than 10 bytes"):
        fetch(f"{server}/page", "here", max_size_bytes=10)


def test_a_server_that_does_not_answer_is_an_error() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent, pytest.raises(SiteError, match="timed out"):
        fetch(f"http://127.0.0.1:{silent.getsockname()[1]}/", "here", timeout_s=0.1)


@pytest.mark.parametrize("url", ["file:///etc/hostname", "ftp://127.0.0.1/", "http:///x"])
def test_only_http_addresses_are_fetched(url: str) -> None:
    with pytest.raises(SiteError, match="not an http"):
        fetch(url, "here")
