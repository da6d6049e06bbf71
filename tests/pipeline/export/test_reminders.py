"""Lists of Apple's Reminders as markdown, from its exports and from a stand-in of macOS's application."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from datetime import UTC, date, timedelta, timezone
from pathlib import Path

import pytest
from markdown_it import MarkdownIt

from pipeline.export.reminder_files import SCRIPT
from pipeline.export.reminders import export_reminders
from pipeline.export.snapshot import Snapshot, write_snapshot
from pipeline.site import REMINDERS_APP, MissingSite, Site, SiteError, load_collections, load_site

ICS = """BEGIN:VCALENDAR\r
VERSION:2.0\r
PRODID:-//Apple Inc.//iCloud//EN\r
X-WR-CALNAME:Short\\, Term\r
BEGIN:VTODO\r
UID:1\r
SUMMARY:Order brake fluid for the auto that is in the garage of the hou\r
 se\\, and a filter\r
DESCRIPTION:Two litres.\\nAsk at the counter.\\n\\nOr https://parts.example/a_b?x=1.\r
DUE;TZID=America/New_York:20261201T090000\r
PRIORITY:1\r
CATEGORIES:auto,house\\, garden\r
RRULE:FREQ=WEEKLY;INTERVAL=2\r
BEGIN:VALARM\r
ACTION:DISPLAY\r
DESCRIPTION:Reminder\r
TRIGGER:-PT15M\r
END:VALARM\r
END:VTODO\r
BEGIN:VTODO\r
UID:2\r
SUMMARY:Stumps\r
END:VTODO\r
BEGIN:VTODO\r
UID:3\r
SUMMARY:Invoices\r
STATUS:COMPLETED\r
COMPLETED:20261130T230000Z\r
END:VTODO\r
BEGIN:VTODO\r
UID:4\r
SUMMARY:Roster\r
DUE;VALUE=DATE:20261130\r
END:VTODO\r
END:VCALENDAR\r
"""
SHORT_TERM = """---
title: "Short, Term"
---

3 open reminders.

## Due Monday, 2026-11-30

- Roster

## Due Tuesday, 2026-12-01

- Order brake fluid for the auto that is in the garage of the house, and a filter (at 09:00, high priority, \
every 2 weeks, tags: auto, house, garden)

  Two litres.
  Ask at the counter.

  Or [https://parts.example/a\\_b?x=1](https://parts.example/a_b?x=1).

## No date

- Stumps
""".replace("litres.", "litres.  ")


def todo(*lines: str) -> str:
    return "\n".join(["BEGIN:VTODO", *lines, "END:VTODO"])


def calendar(*parts: str, name: str = "Tasks") -> str:
    return "\n".join(["BEGIN:VCALENDAR", f"X-WR-CALNAME:{name}", *parts, "END:VCALENDAR", ""])


def make_site(folder: Path, source: Path | str, **options: object) -> Site:
    return Site("reminders", "reminders", str(source), "", "todo", folder, options=options)


def take(folder: Path, text: str | bytes, name: str = "tasks.ics", **options: object) -> Snapshot:
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return export_reminders(make_site(folder, path, **options), UTC)


def body(snapshot: Snapshot, name: str = "tasks.md") -> str:
    return snapshot.files[name].partition("\n---\n\n")[2]


def test_a_list_is_a_page_of_what_is_open_by_its_day(tmp_path: Path) -> None:
    snapshot = take(tmp_path, ICS)
    assert snapshot.files == {"short-term.md": SHORT_TERM}
    assert snapshot.counts == "1 list, 3 open reminders"
    assert snapshot.warnings == ()


def test_done_ones_are_there_when_they_are_asked_for(tmp_path: Path) -> None:
    text = take(tmp_path, ICS, done=True).files["short-term.md"]
    assert text.endswith("\n## Done\n\n- Invoices (done 2026-11-30)\n")
    with pytest.raises(SiteError, match=r"options: done: 'yes' is not true or false"):
        take(tmp_path, ICS, done="yes")


@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
def test_line_ends_of_any_kind_and_mixed_make_the_same_page(newline: str, tmp_path: Path) -> None:
    lines = ICS.split("\r\n")
    mixed = "".join(line + (newline if number % 2 else "\r\n") for number, line in enumerate(lines))
    assert take(tmp_path, mixed).files["short-term.md"] == SHORT_TERM


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16"])
def test_a_file_in_another_encoding_is_read(encoding: str, tmp_path: Path) -> None:
    assert take(tmp_path, ICS.encode(encoding)).files["short-term.md"] == SHORT_TERM


def test_equal_sources_give_equal_bytes_and_lists_that_are_gone_go(tmp_path: Path) -> None:
    folder = tmp_path / "snapshot"
    write_snapshot(take(tmp_path, calendar(todo("SUMMARY:x"), name="Old")), folder)
    for _ in range(2):
        write_snapshot(take(tmp_path, ICS), folder)
        assert {path.name: path.read_text() for path in folder.iterdir()} == {"short-term.md": SHORT_TERM}
    assert folder.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize(
    ("due", "heading", "item"),
    [
        ("DUE:20261201T233000Z", "Wednesday, 2026-12-02", "x (at 00:30)"),
        ("DUE:20261201T233000", "Tuesday, 2026-12-01", "x (at 23:30)"),
        ("DUE;TZID=Nope/Nowhere:20261201T233000", "Tuesday, 2026-12-01", "x (at 23:30)"),
        ("DUE;TZID=\"a:b;c\":20261201T080000", "Tuesday, 2026-12-01", "x (at 08:00)"),
        ("due;value=date:20261201", "Tuesday, 2026-12-01", "x"),
    ],
)  # fmt: skip
def test_a_time_is_as_written_or_in_the_zone_of_this_machine(
    due: str, heading: str, item: str, tmp_path: Path
) -> None:
    (tmp_path / "a.ics").write_text(calendar(todo("SUMMARY:x", due)))
    site = make_site(tmp_path, tmp_path / "a.ics")
    text = body(export_reminders(site, timezone(timedelta(hours=1))))
    assert f"## Due {heading}\n\n- {item}\n" in text


@pytest.mark.parametrize(
    "due", ["tomorrow", "20261301", "20260230T090000", "20261201T250000", "", "99999999"]
)
def test_a_date_that_is_none_is_a_warning_with_its_line_and_the_reminder_stays(
    due: str, tmp_path: Path
) -> None:
    snapshot = take(tmp_path, calendar(todo("SUMMARY:Keep me", f"DUE:{due}"), todo("SUMMARY:And me")))
    assert "## No date\n\n- And me\n- Keep me\n" in body(snapshot)
    assert [(w.path, w.line, w.message) for w in snapshot.warnings] == [
        ("tasks.ics", 5, f"DUE: {due!r} is no date")
    ]


def test_of_two_with_one_id_the_one_changed_last_stays(tmp_path: Path) -> None:
    new = todo("UID:1", "SUMMARY:New", "LAST-MODIFIED:20260202T000000Z")
    old = todo("UID:1", "SUMMARY:Old", "LAST-MODIFIED:20260101T000000Z")
    other_day = todo("UID:1", "SUMMARY:Exception", "RECURRENCE-ID:20260303")
    without = todo("SUMMARY:Same")
    text = body(take(tmp_path, calendar(new, old, other_day, without, without)))
    assert [line for line in text.splitlines() if line.startswith("- ")] == [
        "- Exception", "- New", "- Same", "- Same",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("rule", "words"),
    [
        ("FREQ=DAILY", "x (every day)"),
        ("FREQ=MONTHLY;INTERVAL=3;BYDAY=1MO", "x (every 3 months)"),
        ("FREQ=NOPE", "x (repeats)"),
        ("INTERVAL=x", "x (repeats)"),
        ("FREQ=DAILY;INTERVAL=" + "9" * 5000, "x (every 999999 days)"),
        ("", "x"),
    ],
)
def test_a_rule_is_said_in_words(rule: str, words: str, tmp_path: Path) -> None:
    assert f"- {words}\n" in body(take(tmp_path, calendar(todo("SUMMARY:x", f"RRULE:{rule}"))))


@pytest.mark.parametrize(
    "words",
    [
        "[x](javascript:alert(1))", "<script>alert(1)</script>", "<javascript:alert(1)>", "<!-- x -->",
        "![x](data:text/html,x)", "# Heading", "- item", "1. item", "+ item", "---", "===", "> quote",
        ":::danger", "| a | b |",
        "    code", "```", "{import('x')}", "import x from 'y'", "[x]: javascript:alert(1)", "&lt;script&gt;",
        "javascript:alert(1)", "\u202egpj.exe", "\x07bell", "\u2028line",
    ],
)  # fmt: skip
def test_words_of_others_are_shown_and_do_nothing(words: str, tmp_path: Path) -> None:
    written = words.replace(",", "\\,").replace("\u2028", " ")
    notes = f"{written}\\n\\n{written}\\n{written}"
    text = body(take(tmp_path, calendar(todo(f"SUMMARY:{written}", f"DESCRIPTION:{notes}", f"URL:{words}"))))
    tokens = MarkdownIt("commonmark").enable(["table", "strikethrough"]).parse(text)
    children = [child for token in tokens for child in token.children or ()]
    assert {token.type for token in tokens} <= {
        "paragraph_open", "paragraph_close", "inline", "heading_open", "heading_close",
        "bullet_list_open", "bullet_list_close", "list_item_open", "list_item_close",
    }  # fmt: skip
    assert {child.type for child in children} <= {"text", "text_special", "hardbreak", "softbreak"}
    assert len([token for token in tokens if token.type == "heading_open"]) == 1
    assert len([token for token in tokens if token.type == "list_item_open"]) == 1
    shown = " ".join("".join(c for c in words if c.isprintable() and c != "\u202e").split())
    assert "".join(child.content for child in children).count(shown.strip()) >= 4
    assert "<" not in text


def test_an_address_with_escapes_in_it_is_not_left_to_gfm(tmp_path: Path) -> None:
    assert "- www\\.a.example\\_ and WWW\\.b" in body(
        take(tmp_path, calendar(todo("SUMMARY:www.a.example_ and WWW.b")))
    )


def test_only_links_to_the_web_are_links(tmp_path: Path) -> None:
    text = body(take(tmp_path, calendar(todo("SUMMARY:x", "URL:https://example.org/a (b)"))))
    assert "[https://example.org/a](https://example.org/a) (b)" in text


def test_a_file_that_breaks_off_keeps_what_it_has_and_says_so(tmp_path: Path) -> None:
    snapshot = take(tmp_path, "BEGIN:VCALENDAR\nBEGIN:VTODO\nSUMMARY:Half a rem")
    assert "- Half a rem\n" in body(snapshot)
    assert [w.message for w in snapshot.warnings] == ["the file ends within this reminder"]


def test_lines_that_are_none_are_passed_over(tmp_path: Path) -> None:
    text = calendar(
        "???", todo("no colon", ":", ";:", "SUMMARY:x", "END:VALARM"), "END:VTODO", "BEGIN:VTIMEZONE"
    )
    assert "- x\n" in body(take(tmp_path, text))


def test_an_empty_list_is_a_page_that_says_so(tmp_path: Path) -> None:
    assert body(take(tmp_path, calendar())) == "No open reminders.\n"


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("a.ics", "", "no iCalendar file"),
        ("a.ics", "hello", "no iCalendar file"),
        (
            "a.ics",
            calendar("BEGIN:VEVENT\nSUMMARY:Party\nEND:VEVENT"),
            "a calendar of events, without reminders",
        ),
        ("a.txt", "x", r"give a file that ends in \.ics or \.json"),
        ("a.json", "{", "no JSON"),
        ("a.json", "[" * 100_000, "no JSON"),
        ("a.json", "{}", "no list of reminders"),
        ("a.json", "[1]", "no list of reminders"),
    ],
)
def test_what_holds_no_reminders_is_an_error_that_names_the_file(
    name: str, text: str, message: str, tmp_path: Path
) -> None:
    with pytest.raises(SiteError, match=message) as raised:
        take(tmp_path, text, name)
    assert str(tmp_path / name) in str(raised.value)


def test_a_file_of_100_mb_is_refused_without_being_read(tmp_path: Path) -> None:
    path = tmp_path / "large.ics"
    path.touch()
    os.truncate(path, 100_000_000)
    with pytest.raises(SiteError, match=r"large\.ics: larger than 20,000,000 bytes"):
        export_reminders(make_site(tmp_path, path), UTC)


def test_ten_thousand_reminders_are_a_page(tmp_path: Path) -> None:
    todos = [
        todo(f"UID:{n}", f"SUMMARY:Task {n}", f"DUE;VALUE=DATE:2026{n % 12 + 1:02}01") for n in range(10_000)
    ]
    snapshot = take(tmp_path, calendar(*todos))
    assert snapshot.counts == "1 list, 10,000 open reminders"
    assert body(snapshot).count("\n## ") == 12


def test_a_folder_has_a_list_in_each_file_and_lists_of_one_name_are_one(tmp_path: Path) -> None:
    (tmp_path / "a.ics").write_text(calendar(todo("SUMMARY:Milk"), name="Groceries"))
    (tmp_path / "b.ics").write_text(calendar(todo("SUMMARY:Bread"), name=" Groceries "))
    (tmp_path / "Long Term.ICS").write_text("BEGIN:VCALENDAR\n" + todo("SUMMARY:Pond") + "\nEND:VCALENDAR")
    (tmp_path / "c.json").write_text(json.dumps([{"list": "Groceries!", "title": "Tea"}]))
    (tmp_path / ".hidden.ics").write_text("no")
    (tmp_path / "notes.txt").write_text("no")
    snapshot = export_reminders(make_site(tmp_path, tmp_path), UTC)
    assert "- Bread\n- Milk\n" in body(snapshot, "groceries.md")
    assert "- Pond\n" in body(snapshot, "long-term.md")
    (other,) = set(snapshot.files) - {"groceries.md", "long-term.md"}
    assert "- Tea\n" in body(snapshot, other)


def test_an_empty_folder_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(SiteError, match=r"no \.ics or \.json file is in it"):
        export_reminders(make_site(tmp_path, tmp_path), UTC)


@pytest.mark.parametrize("name", ["_", "../../etc/passwd", "a/b", "🎹", ".", "", "_private", "x" * 300])
def test_a_list_of_any_name_has_a_file_that_is_a_page(name: str, tmp_path: Path) -> None:
    (file,) = take(tmp_path, calendar(todo("SUMMARY:x"), name=name)).files
    assert Path(file).name == file
    assert not file.startswith(("_", "."))
    assert len(file) < 80


ROWS = [
    {"list": "Empty"},
    {
        "list": "House", "externalId": "1", "title": "Gate", "notes": "Oil it", "priority": 9,
        "isCompleted": False, "dueDate": "2026-12-01T14:30:00Z",
    },
    {"list": "House", "externalId": "2", "title": "Roof", "dueDate": "2026-12-01T00:00:00"},
    {"list": "House", "title": "Door", "dueDate": "soon", "priority": "high", "notes": None},
    {"list": "House", "title": "Wall", "isCompleted": True, "completionDate": "2026-11-30T10:00:00Z"},
]  # fmt: skip
HOUSE = (
    "3 open reminders.\n\n## Due Tuesday, 2026-12-01\n\n- Roof\n- Gate (at 14:30, low priority)\n\n"
    "  Oil it\n\n## No date\n\n- Door\n"
)


def test_json_of_reminders_cli_is_read(tmp_path: Path) -> None:
    snapshot = take(tmp_path, json.dumps(ROWS), "all.json")
    assert body(snapshot, "house.md") == HOUSE
    assert body(snapshot, "empty.md") == "No open reminders.\n"
    assert [w.message for w in snapshot.warnings] == ["reminder 4: dueDate: 'soon' is no date"]


@pytest.fixture
def osascript(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A stand-in of macOS's program on the PATH: it notes how it was called, and prints `answer`."""
    folder = tmp_path / "bin"
    folder.mkdir()
    program = folder / "osascript"
    program.write_text(
        '#!/bin/sh\ncd "$(dirname "$0")"\nprintf "%s\\n" "$@" > called\n'
        "cat answer\ncat error >&2\nexit $(cat code)\n"
    )
    program.chmod(0o755)
    for name, text in (("answer", json.dumps(ROWS)), ("error", ""), ("code", "0")):
        (folder / name).write_text(text)
    monkeypatch.setenv("PATH", str(folder), prepend=os.pathsep)
    return folder


@pytest.mark.parametrize(("done", "word"), [(False, "open"), (True, "all")])
def test_the_application_is_asked_by_a_script_with_its_argument_as_data(
    done: bool, word: str, osascript: Path, tmp_path: Path
) -> None:
    snapshot = export_reminders(make_site(tmp_path, REMINDERS_APP, done=done), UTC)
    assert body(snapshot, "house.md").startswith(HOUSE)
    *flags, script, argument = (osascript / "called").read_text().splitlines()
    assert (flags, argument) == (["-l", "JavaScript"], word)
    assert "function run(argv)" in Path(script).read_text()


def test_an_application_that_may_not_be_asked_is_one_sentence(osascript: Path, tmp_path: Path) -> None:
    (osascript / "code").write_text("1")
    (osascript / "error").write_text("execution error: Not authorised to send Apple events. (-1743)\n")
    with pytest.raises(SiteError, match=r"Not authorised .* \(-1743\); allow it under System Settings"):
        export_reminders(make_site(tmp_path, REMINDERS_APP), UTC)


# What the script finds in the application: objects whose properties are asked for, all of a list at once.
APPLICATION = """
const rows = [
  { id: "1", name: "Gate", body: null, dueDate: new Date(2026, 11, 1, 9, 5), alldayDueDate: null,
    priority: 1, completed: false, completionDate: null },
  { id: "2", name: "Roof", body: "Tiles", dueDate: new Date(2026, 11, 2),
    alldayDueDate: new Date(2026, 11, 2), priority: 0, completed: true,
    completionDate: new Date(2026, 10, 1, 3, 4, 5) },
];
const column = (found, key) => [key, () => found.map((row) => row[key])];
const columns = (found) => Object.fromEntries(Object.keys(rows[0]).map((key) => column(found, key)));
const whose = ({ completed }) => columns(rows.filter((row) => row.completed === completed));
const list = { name: () => "Reminders", reminders: { ...columns(rows), whose } };
const Application = () => ({ lists: () => [list] });
"""


@pytest.mark.skipif(shutil.which("node") is None, reason="needs a JavaScript engine: apt-get install nodejs")
@pytest.mark.parametrize(("word", "done"), [("open", []), ("all", ["## Done", "- Roof (done 2026-11-01)"])])
def test_what_the_script_prints_is_what_is_read(word: str, done: list[str], tmp_path: Path) -> None:
    program = f"{APPLICATION}{SCRIPT.read_text()}\nconsole.log(run([{word!r}]));"
    printed = subprocess.run(["node", "-e", program], capture_output=True, text=True, check=True).stdout
    lines = body(take(tmp_path, printed, "a.json", done=True), "reminders.md").splitlines()
    assert [line for line in lines if line.startswith(("-", "#"))] == [
        "## Due Tuesday, 2026-12-01", "- Gate (at 09:05, high priority)", *done,
    ]  # fmt: skip


COLLECTIONS = '[notes]\ntitle = "Notes"\npublic = true\n[todo]\npublic = false\n'
LAST_FM = 'kind = "last-fm"\nsource = "https://www.last.fm/user/ada"\n'
SITE = 'kind = "reminders"\nsource = "{0}"\ncollection = "{1}"\n'


def load(folder: Path, toml: str, **environ: str) -> Site | MissingSite:
    path = folder / "sites" / "tasks" / "site.toml"
    path.parent.mkdir(parents=True, exist_ok=True)
    (folder / "sites" / "collections.toml").write_text(COLLECTIONS)
    path.write_text(toml)
    return load_site(path, load_collections(folder / "sites"), environ)


def test_a_public_collection_is_refused_by_file_and_key(tmp_path: Path) -> None:
    with pytest.raises(
        SiteError, match=r"tasks/site\.toml: collection: 'notes' is public, and reminders are"
    ):
        load(tmp_path, SITE.format(".", "notes"))
    site = load(tmp_path, SITE.format(".", "todo"))
    assert isinstance(site, Site)
    assert site.collection == "todo"


def test_the_application_is_a_source_where_it_can_be_asked(osascript: Path, tmp_path: Path) -> None:
    here = load(tmp_path, SITE.format(REMINDERS_APP, "todo"), PATH=str(osascript))
    assert isinstance(here, Site)
    assert here.source == REMINDERS_APP
    elsewhere = load(tmp_path, SITE.format(REMINDERS_APP, "todo"), PATH=str(tmp_path))
    assert isinstance(elsewhere, MissingSite)
    assert "a .ics file" in elsewhere.reason


@pytest.mark.parametrize(
    ("toml", "message"),
    [
        (SITE.format(".", "todo") + 'base_url = "https://example.org/"\n', "base_url: unknown key"),
        (SITE.format(".", "todo") + "[options]\nperiod = 1\n", "options: period: unknown key"),
        ('kind = "last-fm"\nsource = "ada"\n', "source: 'ada' is no profile"),
        (LAST_FM + 'collection = "todo"\n', "collection: unknown"),
        ('kind = "last-fm"\n', "source: missing"),
    ],
)  # fmt: skip
def test_a_wrong_key_is_named(toml: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(SiteError, match=message):
        load(tmp_path, toml)


def test_days_are_told_with_their_names(tmp_path: Path) -> None:
    day = date(2027, 1, 1)
    assert f"Friday, {day}" in body(take(tmp_path, calendar(todo("SUMMARY:x", "DUE:20270101"))))
