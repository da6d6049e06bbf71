"""What is made of Last.fm's answers, from a stand-in of its API."""

from __future__ import annotations

import json
import socket
from datetime import UTC, date
from pathlib import Path
from typing import Any

import pytest
from markdown_it import MarkdownIt

from pipeline.export.exporters import export
from pipeline.export.lastfm import export_last_fm
from pipeline.export.settings import LastFmSettings, read_last_fm_settings
from pipeline.export.snapshot import Snapshot, write_snapshot
from pipeline.site import Instance, Site, SiteError
from tests.fakes.last_fm_api import KEY, LastFmApi, album, artist, error, track

TODAY = date(2026, 1, 2)
NOON = 1_767_268_800  # 2026-01-01 12:00 UTC


def site(tmp_path: Path, **options: Any) -> Site:
    return Site("last-fm", "last-fm", "https://www.last.fm/user/ada_l", "", "", tmp_path, options=options)


def take(api: LastFmApi, tmp_path: Path, key: str = KEY, **options: Any) -> Snapshot:
    pauses: list[float] = []
    return export_last_fm(
        site(tmp_path, **options), LastFmSettings(key, api.url), TODAY, UTC, pause=pauses.append
    )


def page(api: LastFmApi, tmp_path: Path, **options: Any) -> str:
    return take(api, tmp_path, **options).files["listening.md"]


def test_a_snapshot_is_a_page_of_three_tables(tmp_path: Path) -> None:
    with LastFmApi(
        artists=[artist("Bill Evans", 12), artist("Beck", 3)],
        albums=[album("Odyssey", "Beck", 2)],
        tracks=[
            track("Volare", "Domenico Modugno", NOON, loved="1"),
            track("Odyssey", "Beck", NOON - 86_400),
        ],
    ) as api:
        assert page(api, tmp_path) == (
            "---\n"
            'title: "Listening"\n'
            'description: "What ada_l listens to, as Last.fm counts it."\n'
            "date: 2026-01-02\n"
            'period: "1month"\n'
            "noindex: true\n"
            "---\n\n"
            "[ada\\_l](https://www.last.fm/user/ada_l) at Last.fm, as of 2026-01-02.\n\n"
            "## Top artists of the last month\n\n"
            "| Artist | Plays |\n|---|---|\n"
            "| [Bill Evans](https://www.last.fm/music/Bill+Evans) | 12 |\n"
            "| [Beck](https://www.last.fm/music/Beck) | 3 |\n\n"
            "## Top albums of the last month\n\n"
            "| Album | Artist | Plays |\n|---|---|---|\n"
            "| [Odyssey](https://www.last.fm/music/Odyssey) | Beck | 2 |\n\n"
            "## Recent tracks\n\n"
            "| Day | Artist | Track | Album |\n|---|---|---|---|\n"
            "| 2026-01-01 | Domenico Modugno | [Volare](https://www.last.fm/music/x/_/y) ♥ | The album |\n"
            "| 2025-12-31 | Beck | [Odyssey](https://www.last.fm/music/x/_/y) | The album |\n"
        )


def test_equal_answers_give_equal_bytes_and_nothing_of_the_key(tmp_path: Path) -> None:
    with LastFmApi(artists=[artist("Beck")]) as api:
        for name in ("a", "b"):
            write_snapshot(take(api, tmp_path), tmp_path / name)
    first, second = ((tmp_path / name / "listening.md").read_bytes() for name in ("a", "b"))
    assert first == second
    assert KEY.encode() not in first
    assert KEY not in repr(LastFmSettings(KEY, api.url))


def test_in_a_site_it_is_published_and_left_out_of_the_index(tmp_path: Path) -> None:
    docs = tmp_path / "checkout" / "docs"
    with LastFmApi(artists=[artist("Beck")]) as api:
        write_snapshot(take(api, tmp_path), docs / "now")
    (docs / "pond.md").write_text("# Pond\n\nAlgae.\n")
    checkout = Site(
        "til", "docusaurus", str(docs.parent), "https://example.org/", "notes", tmp_path,
        instances=(Instance("docs", "docs", "docs"),),
    )  # fmt: skip
    exported = export(checkout, TODAY)
    assert [page.path for page in exported.pages] == ["docs/pond.md"]
    assert [(e.path, e.reason) for e in exported.exclusions] == [("docs/now/listening.md", "noindex")]


@pytest.mark.parametrize(
    "name",
    [
        "A*S*T*R*I*S*K_s", "a | b", "[x](javascript:alert(1))", "<img src=x onerror=alert(1)>", "{alert(1)}",
        "# 1. x", "`code`", "&copy; <b>", "![](https://evil.example/x.png)", "$x^2$", "back\\slash",
        "~~gone~~",
        "https://evil.example/<script>", "אבג", "🎹 日本", "a\nb\r\n# c", "\u202egnp.exe", "\x00\x1b[31m",
    ],
)  # fmt: skip
def test_a_name_is_shown_and_does_nothing(name: str, tmp_path: Path) -> None:
    with LastFmApi(artists=[{**artist("x"), "name": name, "url": "javascript:alert(1)"}]) as api:
        text = page(api, tmp_path).partition("\n---\n")[2]
    html = MarkdownIt("commonmark").enable("table").render(text)
    shown = "".join(c for c in " ".join(name.split()) if c.isprintable() and c != "\u202e")
    cell = html.split("<td>")[1].split("</td>")[0]
    tokens = MarkdownIt("commonmark").enable("table").parse(text)
    inline = next(
        t for t in tokens[tokens.index(next(t for t in tokens if t.type == "td_open")) :] if t.children
    )
    assert inline.children is not None
    assert "".join(child.content for child in inline.children) == shown
    assert {child.type for child in inline.children} <= {"text", "text_special", "link_open", "link_close"}
    assert "javascript:" not in "".join(str(child.attrs) for child in inline.children)
    assert "<img" not in cell
    # What MDX reads as code.
    assert "<" not in text
    assert text.replace("\\{", "").count("{") == 0


def test_one_item_that_is_no_list_and_what_plays_now(tmp_path: Path) -> None:
    playing: dict[str, Any] = {**track("Now", "Beck", 0), "@attr": {"nowplaying": "true"}}
    del playing["date"]
    with LastFmApi(artists=artist("Beck"), tracks=[playing, track("Then", "Beck", NOON)]) as api:
        text = page(api, tmp_path)
    assert "[Beck]" in text
    assert "[Then]" in text
    assert "[Now]" not in text


def test_items_that_are_none_are_passed_over(tmp_path: Path) -> None:
    odd: list[Any] = [None, 3, {"name": ""}, {"name": ["x"]}, {"name": "Plain", "playcount": "many"}]
    with LastFmApi(artists=odd, tracks=[track("x", "y", 10**15), track("z", "y", 10**40)]) as api:
        assert take(api, tmp_path).counts == "1 artist, 0 albums, 0 tracks"


def test_pages_are_asked_for_as_far_as_they_are_needed_and_each_track_is_once(tmp_path: Path) -> None:
    tracks = [track(f"t{number}", "Beck", NOON - number) for number in range(450)]
    tracks[200] = tracks[199]  # pushed onto the second page while the first was read
    with LastFmApi(tracks=tracks) as api:
        assert take(api, tmp_path, tracks=300, artists=0, albums=0).counts.endswith(" 300 tracks")
        assert [query["page"] for query in api.queries] == ["1", "2"]
        assert (
            take(api, tmp_path, tracks=1000, artists=0, albums=0).counts == "0 artists, 0 albums, 449 tracks"
        )
        assert [query["page"] for query in api.queries[2:]] == ["1", "2", "3"]


def test_the_period_is_asked_for(tmp_path: Path) -> None:
    with LastFmApi(artists=[artist("Beck")]) as api:
        assert "## Top artists of the last 7 days" in page(api, tmp_path, period="7day", tracks=0)
    assert [query.get("period") for query in api.queries] == ["7day", "7day"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"period": "week"}, "options: period: 'week' is none of 7day"),
        ({"tracks": 1001}, "options: tracks: 1001 is no number from 0 to 1000"),
        ({"artists": True}, "options: artists: True is no number"),
        ({"albums": "10"}, "options: albums: '10' is no number"),
    ],
)
def test_a_wrong_option_is_named_before_anything_is_asked(
    options: dict[str, Any], message: str, tmp_path: Path
) -> None:
    with LastFmApi() as api, pytest.raises(SiteError, match=message):
        take(api, tmp_path, **options)
    assert api.queries == []


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (error(6, "User not found", 404), "error 6, 'User not found': is there a user ada_l"),
        (error(17, "Login: User required to be logged in", 403), "ada_l hides what was played"),
        (error(26, "Suspended"), "LASTFM_API_KEY is suspended"),
        ((302, {"Location": "http://127.0.0.1:1/"}, b""), "answered 302"),
        ((200, {}, b"<html>"), "no JSON that is understood"),
        ((200, {}, b"[" * 100_000), "no JSON that is understood"),
        ((200, {}, b'{"topartists": []}'), "has no topartists"),
        ((200, {}, b"{}"), "no JSON"),
    ],
)
def test_a_refusal_is_one_sentence_and_is_not_asked_again(
    answer: tuple[int, dict[str, str], bytes], message: str, tmp_path: Path
) -> None:
    with LastFmApi(first=[answer]) as api, pytest.raises(SiteError, match=message) as raised:
        take(api, tmp_path)
    assert len(api.queries) == 1
    assert "\n" not in str(raised.value)
    assert str(tmp_path / "site.toml") in str(raised.value)


@pytest.mark.parametrize(
    "passing", [error(29, "Rate limit exceeded", 429), error(16, "Try again"), (503, {}, b"busy")]
)
def test_what_passes_is_asked_again_three_times_at_most(
    passing: tuple[int, dict[str, str], bytes], tmp_path: Path
) -> None:
    with LastFmApi(artists=[artist("Beck")], first=[passing, passing]) as api:
        assert "[Beck]" in page(api, tmp_path)
    with LastFmApi(first=[passing] * 9) as api, pytest.raises(SiteError, match="answered"):
        take(api, tmp_path)
    assert len(api.queries) == 3


def test_after_too_many_requests_the_wait_is_longer_and_grows(tmp_path: Path) -> None:
    pauses: list[float] = []
    limited = error(29, "Rate limit exceeded")
    with LastFmApi(first=[limited, limited]) as api:
        export_last_fm(site(tmp_path), LastFmSettings(KEY, api.url), TODAY, UTC, pause=pauses.append)
    assert pauses == [10, 20]


def test_no_error_tells_the_key(tmp_path: Path) -> None:
    wrong = "feedfacefeedfacefeedfacefeedface"
    with LastFmApi() as api, pytest.raises(SiteError, match="LASTFM_API_KEY is not a key") as refused:
        take(api, tmp_path, key=wrong)
    with socket.create_server(("127.0.0.1", 0)) as closed:
        url = f"http://127.0.0.1:{closed.getsockname()[1]}/"
    with pytest.raises(SiteError, match=r"cannot be reached \(ConnectionError\)") as unreachable:
        export_last_fm(site(tmp_path), LastFmSettings(wrong, url), TODAY, UTC, pause=lambda _: None)
    for raised in (refused, unreachable):
        assert wrong not in str(raised.value)
        assert raised.value.__cause__ is None
        assert raised.value.__suppress_context__ or raised.value.__context__ is None


def test_an_answer_without_end_is_cut_off(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pipeline.export.lastfm.MAX_SIZE_BYTES", 1000)
    with (
        LastFmApi(first=[(200, {}, b" " * 1001)]) as api,
        pytest.raises(SiteError, match="more than 1,000 bytes"),
    ):
        take(api, tmp_path)


def test_without_a_key_it_is_said_where_one_comes_from(tmp_path: Path) -> None:
    with LastFmApi() as api, pytest.raises(SiteError, match=r"https://www\.last\.fm/api/account/create"):
        take(api, tmp_path, key="")
    assert api.queries == []


def test_the_key_is_read_from_the_environment_or_else_from_the_env_file(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("LASTFM_API_KEY=of-$file\nLASTFM_BASE_URL=http://127.0.0.1:1/\n")
    assert read_last_fm_settings({}, tmp_path) == LastFmSettings("of-$file", "http://127.0.0.1:1/")
    assert read_last_fm_settings({"LASTFM_API_KEY": "mine"}, tmp_path).api_key == "mine"
    assert read_last_fm_settings({}, tmp_path / "empty").base_url == "https://ws.audioscrobbler.com/2.0/"
    with pytest.raises(SiteError, match="LASTFM_BASE_URL: 'file:///x' is not an http"):
        read_last_fm_settings({"LASTFM_BASE_URL": "file:///x"}, tmp_path)


def test_the_stand_in_answers_as_the_documentation_shows() -> None:
    """Keys of the examples at https://lastfm-docs.github.io/api-docs/user/getRecentTracks."""
    assert json.loads(error(6, "User not found")[2]) == {"error": 6, "message": "User not found"}
    assert set(track("x", "y", 1)) >= {"artist", "album", "date", "url", "name", "loved"}
