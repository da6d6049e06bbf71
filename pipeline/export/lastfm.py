"""What somebody listens to, as Last.fm counts it: a page for a Docusaurus site.

The page says `noindex`, which Docusaurus does not know and Ralph obeys: wherever it is put, it is published
with the site and stays out of the index, where lists of titles would answer questions that nobody asked.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date, datetime, tzinfo
from typing import Any, NoReturn

import requests

from handler.bundle.counted import counted
from pipeline.export.escape import escape, link
from pipeline.export.pages import yaml_string
from pipeline.export.settings import LastFmSettings
from pipeline.export.snapshot import Snapshot
from pipeline.site import Site, SiteError

TIMEOUT_S = 30.0
MAX_SIZE_BYTES = 20_000_000
ATTEMPTS = 3
PAGE_SIZE = 200
PERIODS = {
    "7day": "the last 7 days",
    "1month": "the last month",
    "3month": "the last 3 months",
    "6month": "the last 6 months",
    "12month": "the last 12 months",
    "overall": "all the time",
}
# Each option's default, and the most that it may be: a page of a thousand tracks is read by nobody.
_COUNTS = {"artists": (10, PAGE_SIZE), "albums": (10, PAGE_SIZE), "tracks": (50, 1000)}
# Its own errors that pass: offline, a temporary error, too many requests (https://www.last.fm/api/errorcodes).
_PASSING = (11, 16, 29)
_RATE_LIMITED = 29
_REMEDIES = {
    6: "is there a user {user}?",
    10: "LASTFM_API_KEY is not a key that it knows",
    17: "{user} hides what was played: show it in Last.fm's privacy settings, or set options: tracks = 0",
    26: "LASTFM_API_KEY is suspended",
}

Item = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class _Options:
    period: str
    artists: int
    albums: int
    tracks: int


def export_last_fm(
    site: Site,
    settings: LastFmSettings,
    today: date,
    zone: tzinfo | None = None,
    pause: Callable[[float], None] = time.sleep,
) -> Snapshot:
    """The page about the user whose profile is the site's source.

    Days are those of `zone`, by default this machine's. Raises SiteError for a wrong option, without a key,
    and when Last.fm cannot be asked or refuses; no message has the key.
    """
    options = _options(site)
    if not settings.api_key:
        raise SiteError(
            f"{site.toml}: LASTFM_API_KEY is not set: get a key at https://www.last.fm/api/account/create "
            "and put it into the environment or into .env"
        )
    api = _Api(site, settings, pause)
    period = {"period": options.period}
    artists = list(api.items("user.getTopArtists", "topartists", "artist", options.artists, period))
    albums = list(api.items("user.getTopAlbums", "topalbums", "album", options.albums, period))
    tracks = list(
        api.items("user.getRecentTracks", "recenttracks", "track", options.tracks, {"extended": "1"})
    )
    name = f"Top {{}} of {PERIODS[options.period]}"
    body = "\n".join(
        [
            *_front_matter(api.user, options.period, today),
            f"{link(api.user, site.source)} at Last.fm, as of {today.isoformat()}.",
            *_table(name.format("artists"), ("Artist", "Plays"), map(_artist, artists)),
            *_table(name.format("albums"), ("Album", "Artist", "Plays"), map(_album, albums)),
            *_table(
                "Recent tracks",
                ("Day", "Artist", "Track", "Album"),
                (_track(track, zone) for track in tracks),
            ),
        ]
    )
    return Snapshot(
        {"listening.md": f"{body}\n"},
        ", ".join(
            counted(len(each), noun)
            for each, noun in ((artists, "artist"), (albums, "album"), (tracks, "track"))
        ),
        "Put listening.md into your site; Ralph leaves it out of the index there too",
    )


class _Api:
    """Reads of one user by the API's version 2.0."""

    def __init__(self, site: Site, settings: LastFmSettings, pause: Callable[[float], None]) -> None:
        self.user = site.source.rstrip("/").rpartition("/")[2]
        self._where = f"{site.toml}: source"
        self._settings = settings
        self._pause = pause

    def items(self, method: str, root: str, name: str, count: int, more: Mapping[str, str]) -> Iterator[Item]:
        """At most `count` items of a method's answer, each once, in Last.fm's order."""
        seen: set[str] = set()
        n_pages = -(-count // PAGE_SIZE)
        for page in range(1, n_pages + 1):
            query = {"limit": str(min(count, PAGE_SIZE)), "page": str(page), **more}
            table = self._ask(method, query).get(root)
            if not isinstance(table, dict):
                raise SiteError(f"{self._where}: Last.fm's answer to {method} has no {root}")
            found = table.get(name, [])
            for item in found if isinstance(found, list) else [found]:  # of one, Last.fm makes no list
                if not _is_item(item) or (name == "track" and not _seconds(item)):  # it plays now
                    continue
                # What is played meanwhile pushes a page's last item onto the next.
                known = json.dumps([item.get(key) for key in ("date", "url", "name")])
                if known in seen:
                    continue
                seen.add(known)
                yield item
                if len(seen) == count:
                    return
            if page >= _number(_attributes(table).get("totalPages")):
                return

    def _ask(self, method: str, query: Mapping[str, str]) -> dict[str, Any]:
        """The answer to one request, asked again while it is refused in passing: it only reads."""
        for attempt in range(1, ATTEMPTS + 1):
            wait_s = 2.0**attempt
            try:
                status, data = self._get({"method": method, "user": self.user, "format": "json", **query})
            except requests.RequestException as error:
                # Its own text has the address, and with it the key.
                reason, passing = f"cannot be reached ({type(error).__name__})", True
            else:
                answer = _json(data)
                code = answer.get("error")
                if status == 200 and answer and code is None:
                    return answer
                passing = code in _PASSING or status == 429 or status >= 500
                if code == _RATE_LIMITED or status == 429:
                    wait_s *= 5
                reason = self._refusal(status, answer)
            if not passing or attempt == ATTEMPTS:
                self._refuse(method, reason)
            self._pause(wait_s)
        raise AssertionError  # the last attempt has returned or raised

    def _get(self, query: Mapping[str, str]) -> tuple[int, bytes]:
        with requests.get(
            self._settings.base_url,
            params={**query, "api_key": self._settings.api_key},
            headers={"User-Agent": "ralph/0.1"},
            timeout=TIMEOUT_S,
            allow_redirects=False,  # the key is for Last.fm alone
            stream=True,
        ) as answer:
            data = bytearray()
            for part in answer.iter_content(65_536):
                data += part
                if len(data) > MAX_SIZE_BYTES:
                    self._refuse(query["method"], f"answered more than {MAX_SIZE_BYTES:,} bytes")
            return answer.status_code, bytes(data)

    def _refusal(self, status: int, answer: Item) -> str:
        code = answer.get("error")
        if not isinstance(code, int):
            return f"answered {status} and no JSON that is understood"
        said = str(answer.get("message", "")).replace(self._settings.api_key, "…")[:200]
        remedy = _REMEDIES.get(code, "").format(user=self.user)
        return f"answered error {code}, {said!r}" + (f": {remedy}" if remedy else "")

    def _refuse(self, method: str, reason: str) -> NoReturn:
        raise SiteError(f"{self._where}: Last.fm, asked for {method}, {reason}")


def _options(site: Site) -> _Options:
    period = site.options.get("period", "1month")
    if period not in PERIODS:
        raise SiteError(f"{site.toml}: options: period: {period!r} is none of {', '.join(PERIODS)}")
    counts = {}
    for key, (default, most) in _COUNTS.items():
        value = counts[key] = site.options.get(key, default)
        if type(value) is not int or not 0 <= value <= most:  # not isinstance: True is an int
            raise SiteError(f"{site.toml}: options: {key}: {value!r} is no number from 0 to {most}")
    return _Options(period, **counts)


def _front_matter(user: str, period: str, today: date) -> list[str]:
    return [
        "---",
        'title: "Listening"',
        f"description: {yaml_string(f'What {user} listens to, as Last.fm counts it.')}",
        f"date: {today.isoformat()}",
        f"period: {yaml_string(period)}",
        "noindex: true",
        "---",
        "",
    ]


def _table(heading: str, columns: tuple[str, ...], rows: Iterator[tuple[str, ...]]) -> list[str]:
    """A heading and a table, or nothing when there are no rows."""
    lines = [f"| {' | '.join(row)} |" for row in rows]
    head = ["", f"## {heading}", "", f"| {' | '.join(columns)} |", "|---" * len(columns) + "|"]
    return [*head, *lines] if lines else []


def _artist(item: Item) -> tuple[str, ...]:
    return _linked(item), str(_number(item.get("playcount")))


def _album(item: Item) -> tuple[str, ...]:
    return _linked(item), _name(item.get("artist")), str(_number(item.get("playcount")))


def _track(item: Item, zone: tzinfo | None) -> tuple[str, ...]:
    day = datetime.fromtimestamp(_seconds(item), zone).date().isoformat()
    loved = " ♥" if item.get("loved") == "1" else ""
    return day, _name(item.get("artist")), _linked(item) + loved, _name(item.get("album"))


def _linked(item: Item) -> str:
    return link(str(item["name"]), str(item.get("url") or ""))


def _name(thing: object) -> str:
    """The name of an artist or album, which stands under another key in the extended answer."""
    if not isinstance(thing, dict):
        return escape(thing) if isinstance(thing, str) else ""
    return escape(str(thing.get("name") or thing.get("#text") or ""))


def _is_item(item: object) -> bool:
    return isinstance(item, dict) and isinstance(item.get("name"), str) and bool(item["name"].strip())


def _attributes(table: Item) -> Item:
    found = table.get("@attr")
    return found if isinstance(found, dict) else {}


def _seconds(item: Item) -> int:
    """When a track was played, in seconds since 1970; 0 for the one that plays now."""
    played = item.get("date")
    seconds = _number(played.get("uts")) if isinstance(played, dict) else 0
    return seconds if seconds < 253_402_214_400 else 0  # 9999-12-31, the last day that dates have


def _number(value: object) -> int:
    """A count, which Last.fm writes as text; 0 for anything else."""
    text = str(value)
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 16 else 0


def _json(data: bytes) -> dict[str, Any]:
    try:
        answer = json.loads(data)
    except (ValueError, RecursionError):
        return {}
    return answer if isinstance(answer, dict) else {}
