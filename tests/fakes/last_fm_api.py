"""Last.fm's API 2.0 as far as it is asked: three methods, pages, and answers that a test prescribes.

with LastFmApi(tracks=[...]) as api:
    export_last_fm(site, LastFmSettings(KEY, api.url), today)
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from typing import Any, Self
from urllib.parse import parse_qs, urlsplit

from tests.fakes.loopback import LoopbackHandler, LoopbackServer, answering

KEY = "0123456789abcdef0123456789abcdef"
ROOTS = {
    "user.getTopArtists": ("topartists", "artist"),
    "user.getTopAlbums": ("topalbums", "album"),
    "user.getRecentTracks": ("recenttracks", "track"),
}
Answer = tuple[int, Mapping[str, str], bytes]


def artist(name: str, plays: int = 1) -> dict[str, Any]:
    url = f"https://www.last.fm/music/{name.replace(' ', '+')}"
    return {"name": name, "playcount": str(plays), "url": url, "mbid": "", "@attr": {"rank": "1"}}


def album(name: str, by: str, plays: int = 1) -> dict[str, Any]:
    return {**artist(name, plays), "artist": {"name": by, "url": "https://www.last.fm/music/x"}}


def track(name: str, by: str, seconds: int, loved: str = "0") -> dict[str, Any]:
    return {
        "name": name,
        "artist": {"name": by, "url": "https://www.last.fm/music/x"},
        "album": {"#text": "The album", "mbid": ""},
        "url": "https://www.last.fm/music/x/_/y",
        "loved": loved,
        "date": {"uts": str(seconds), "#text": "20 Oct 2020, 10:03"},
    }


def error(number: int, message: str, status: int = 200) -> Answer:
    return status, {}, json.dumps({"error": number, "message": message}).encode()


class LastFmApi:
    """The stand-in. `first` are answers in the place of its own, one a request until they are used up."""

    def __init__(
        self,
        artists: object = (),
        albums: object = (),
        tracks: object = (),
        first: Iterable[Answer] = (),
    ) -> None:
        self.queries: list[dict[str, str]] = []
        self._items = dict(zip(ROOTS, (artists, albums, tracks), strict=True))
        self._first = iter(first)
        api = self

        class Handler(LoopbackHandler):
            def do_GET(self) -> None:
                query = {key: values[0] for key, values in parse_qs(urlsplit(self.path).query).items()}
                api.queries.append(query)
                status, headers, body = next(api._first, None) or api._answer(query)
                self.reply(status, body, headers)

        self._server = LoopbackServer(("127.0.0.1", 0), Handler)
        self._stack = ExitStack()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}/2.0/"

    def __enter__(self) -> Self:
        self._stack.enter_context(self._server)
        self._stack.enter_context(answering(self._server))
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def _answer(self, query: Mapping[str, str]) -> Answer:
        if query["api_key"] != KEY:
            return error(10, f"Invalid API key - {query['api_key']} is none", 403)
        root, name = ROOTS[query["method"]]
        items, limit, page = self._items[query["method"]], int(query["limit"]), int(query["page"])
        found, total = items, 1  # of one, Last.fm makes no list
        if isinstance(items, list | tuple):
            found, total = items[(page - 1) * limit : page * limit], len(items)
        attributes = {"page": str(page), "total": str(total), "totalPages": str(-(-total // limit))}
        return 200, {}, json.dumps({root: {name: found, "@attr": attributes}}).encode()
