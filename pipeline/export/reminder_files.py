"""Where reminders are read from: iCalendar files, JSON of reminders-cli, and macOS's own application."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, tzinfo
from pathlib import Path

from pipeline.export.ical import Component, Property, read_components
from pipeline.export.tree import decode
from pipeline.export.types import ExportWarning
from pipeline.site import REMINDERS_APP, SiteError

MAX_SIZE_BYTES = 20_000_000
# The first time, macOS asks whether it may; some thousand reminders take it half a minute.
APPLICATION_TIMEOUT_S = 300
SCRIPT = Path(__file__).with_name("reminders.js")
_DATE = re.compile(
    r"(\d{4})-?(\d\d)-?(\d\d)(?:[T ](\d\d):?(\d\d)(?::?\d\d(?:\.\d+)?)?(Z|[+-]\d\d:?\d\d)?)?", re.A
)


@dataclass(frozen=True, slots=True)
class Reminder:
    """One reminder. `time` is "HH:MM" or empty; `priority` is 1 (first) to 9, or 0; `rule` an RRULE.

    `uid` and `changed`, which may be empty, tell two states of one reminder apart. `done_on` is a day.
    """

    title: str
    notes: str = ""
    day: date | None = None
    time: str = ""
    priority: int = 0
    done: bool = False
    done_on: str = ""
    tags: tuple[str, ...] = ()
    rule: str = ""
    url: str = ""
    uid: str = ""
    changed: str = ""


@dataclass(frozen=True, slots=True)
class ReminderList:
    """A list and what is in it, in the source's order."""

    name: str
    reminders: tuple[Reminder, ...]


def read_file(path: Path, zone: tzinfo | None, warnings: list[ExportWarning]) -> list[ReminderList]:
    """The lists of an .ics or .json file. Appends to warnings what is odd.

    Raises SiteError when it cannot be read, is too large, or holds no reminders by its form.
    """
    try:
        with path.open("rb") as file:
            data = file.read(MAX_SIZE_BYTES + 1)
    except OSError as error:
        raise SiteError(f"{path}: cannot be read ({error.strerror}); allow it") from None
    if len(data) > MAX_SIZE_BYTES:
        raise SiteError(f"{path}: larger than {MAX_SIZE_BYTES:,} bytes; export its lists one by one")
    text, warning = decode(data, path.name)
    warnings += [warning] if warning else []
    read = _read_ics if path.suffix.lower() == ".ics" else _read_json
    return read(text, path, zone, warnings)


def read_application(
    with_done: bool, zone: tzinfo | None, warnings: list[ExportWarning], osascript: str = "osascript"
) -> list[ReminderList]:
    """The lists of macOS's application. Raises SiteError when it does not answer, or may not be asked."""
    try:
        done = subprocess.run(
            [osascript, "-l", "JavaScript", str(SCRIPT), "all" if with_done else "open"],
            capture_output=True, check=False, timeout=APPLICATION_TIMEOUT_S, stdin=subprocess.DEVNULL,
        )  # fmt: skip
    except OSError as error:
        raise SiteError(f"{REMINDERS_APP}: osascript cannot be run ({error.strerror})") from None
    except subprocess.TimeoutExpired:
        raise SiteError(
            f"{REMINDERS_APP}: no answer in {APPLICATION_TIMEOUT_S} s; open it and try again"
        ) from None
    if done.returncode != 0:
        lines = done.stderr.decode("utf-8", "replace").strip().splitlines()
        raise SiteError(
            f"{REMINDERS_APP}: {lines[-1][:300] if lines else 'osascript failed'}; allow it under System "
            "Settings, Privacy & Security, Automation"
        )
    return _read_json(done.stdout.decode("utf-8", "replace"), Path(REMINDERS_APP), zone, warnings)


def _read_ics(
    text: str, path: Path, zone: tzinfo | None, warnings: list[ExportWarning]
) -> list[ReminderList]:
    lists: dict[str, list[Reminder]] = {}
    kinds = set()
    for component in read_components(text):
        kinds.add(component.kind)
        reminders = lists.setdefault(component.calendar or path.stem, [])
        if component.kind == "VTODO":
            if not component.ended:
                warnings.append(
                    ExportWarning(path.name, component.line, "the file ends within this reminder")
                )
            reminders.append(_of_component(component, path.name, zone, warnings))
    if "VCALENDAR" not in kinds:
        raise SiteError(f"{path}: no iCalendar file; export a list of Reminders into it")
    if "VEVENT" in kinds and "VTODO" not in kinds:
        raise SiteError(f"{path}: a calendar of events, without reminders; take it out, or export a list")
    # The calendar begins before its name is known.
    return [
        ReminderList(name, tuple(found))
        for name, found in lists.items()
        if found or len(lists) == 1 or name != path.stem
    ]


def _of_component(todo: Component, file: str, zone: tzinfo | None, warnings: list[ExportWarning]) -> Reminder:
    def moment(name: str) -> tuple[date | None, str]:
        found = todo.properties.get(name)
        if found is None:
            return None, ""
        day, time = _moment(found.value, zone)
        if day is None:
            warnings.append(ExportWarning(file, found.line, f"{name}: {found.value[:80]!r} is no date"))
        return day, time

    day, time = moment("DUE")
    done_day, _ = moment("COMPLETED")
    priority = todo.text("PRIORITY").strip()
    return Reminder(
        title=todo.text("SUMMARY"),
        notes=todo.text("DESCRIPTION"),
        day=day,
        time=time,
        priority=int(priority) if priority in set("123456789") else 0,
        done="COMPLETED" in todo.properties
        or todo.text("STATUS").strip().upper() in ("COMPLETED", "CANCELLED"),
        done_on=done_day.isoformat() if done_day else "",
        tags=tuple(tag for tag in todo.properties.get("CATEGORIES", Property("", 0)).texts if tag.strip()),
        rule=todo.text("RRULE"),
        url=todo.text("URL"),
        # An exception to a series has the series' id.
        uid=f"{uid} {todo.text('RECURRENCE-ID')}" if (uid := todo.text("UID")) else "",
        changed=todo.text("LAST-MODIFIED") or todo.text("DTSTAMP"),
    )


def _read_json(
    text: str, path: Path, zone: tzinfo | None, warnings: list[ExportWarning]
) -> list[ReminderList]:
    try:
        table = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise SiteError(f"{path}: no JSON: {str(error).splitlines()[0]}") from None
    if not isinstance(table, list) or not all(isinstance(row, dict) for row in table):
        raise SiteError(f"{path}: no list of reminders; `reminders show-all --format json` makes one")
    lists: dict[str, list[Reminder]] = {}
    for number, row in enumerate(table, start=1):
        reminders = lists.setdefault(_text(row, "list") or path.stem, [])
        if len(row) > 1:  # a list that is empty has its name alone
            reminders.append(_of_row(row, path.name, number, zone, warnings))
    return [ReminderList(name, tuple(found)) for name, found in lists.items()]


def _of_row(
    row: Mapping[str, object], file: str, number: int, zone: tzinfo | None, warnings: list[ExportWarning]
) -> Reminder:
    due, priority = _text(row, "dueDate"), row.get("priority")
    day, time = _moment(due, zone)
    if due and day is None:
        warnings.append(ExportWarning(file, 0, f"reminder {number}: dueDate: {due[:80]!r} is no date"))
    done_day, _ = _moment(_text(row, "completionDate"), zone)
    return Reminder(
        title=_text(row, "title"),
        notes=_text(row, "notes"),
        day=day,
        # Reminders without a time have midnight's there.
        time="" if time == "00:00" else time,
        priority=priority if type(priority) is int and 1 <= priority <= 9 else 0,
        done=row.get("isCompleted") is True,
        done_on=done_day.isoformat() if done_day else "",
        url=_text(row, "url"),
        uid=_text(row, "externalId"),
        changed=_text(row, "lastModified"),
    )


def _text(row: Mapping[str, object], key: str) -> str:
    value = row.get(key)
    return value if isinstance(value, str) else ""


def _moment(written: str, zone: tzinfo | None) -> tuple[date | None, str]:
    """The day and the time of a date: as written, or, of one in UTC or with an offset, as it is in `zone`.

    A time in a zone of its own is told as it is: it is what its author saw. None for what is no date.
    """
    match = _DATE.fullmatch(written.strip())
    try:
        if match is None:
            return None, ""
        year, month, day = (int(match[i]) for i in (1, 2, 3))
        if match[4] is None:
            return date(year, month, day), ""
        moment = datetime(year, month, day, int(match[4]), int(match[5]), tzinfo=UTC)
        if match[6]:
            offset = match[6].replace(":", "") if match[6] != "Z" else "+0000"
            written_zone = datetime.strptime(offset, "%z").tzinfo
            moment = moment.replace(tzinfo=written_zone).astimezone(zone)
        return moment.date(), f"{moment:%H:%M}"
    except (ValueError, OverflowError, OSError):
        return None, ""
