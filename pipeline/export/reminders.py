"""Apple's Reminders as markdown, a page for each list: for the local chat, and in no bundle."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from datetime import date, tzinfo
from pathlib import Path

from handler.bundle.counted import counted
from pipeline.export.escape import escape
from pipeline.export.pages import page_files, yaml_string
from pipeline.export.reminder_files import Reminder, ReminderList, read_application, read_file
from pipeline.export.snapshot import Snapshot
from pipeline.export.types import ExportWarning
from pipeline.site import REMINDERS_APP, Site, SiteError

SUFFIXES = (".ics", ".json")
_WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
# Apple writes 1, 5 and 9; RFC 5545, 3.8.1.9, makes bands of the numbers around them.
_PRIORITIES = {**dict.fromkeys(range(1, 5), "high"), 5: "medium", **dict.fromkeys(range(6, 10), "low")}
_PERIODS = {"DAILY": "day", "WEEKLY": "week", "MONTHLY": "month", "YEARLY": "year"}


def export_reminders(site: Site, zone: tzinfo | None = None) -> Snapshot:
    """A page for each list, its open reminders by the day that they are due; done ones if `options.done`.

    The source is a file, a folder of such, or the application. Times that are written in UTC are told in
    `zone`, by default this machine's. Raises SiteError for what cannot be read.
    """
    with_done = site.options.get("done", False)
    if type(with_done) is not bool:
        raise SiteError(f"{site.toml}: options: done: {with_done!r} is not true or false")
    warnings: list[ExportWarning] = []
    lists = _merged(_read(site, zone, with_done, warnings))
    files = page_files((found.name for found in lists), name=_file_name)
    n_open = sum(not reminder.done for found in lists for reminder in found.reminders)
    return Snapshot(
        {files[found.name]: _page(found, with_done) for found in lists},
        f"{counted(len(lists), 'list')}, {counted(n_open, 'open reminder')}",
        f"`RAG_DB_PATH={{index}} ralph ingest {{folder}} --collection {site.collection}` puts them where "
        "`RAG_DB_PATH={index} ralph local` finds them",
        tuple(warnings),
    )


def _read(
    site: Site, zone: tzinfo | None, with_done: bool, warnings: list[ExportWarning]
) -> Iterator[ReminderList]:
    if site.source == REMINDERS_APP:
        yield from read_application(with_done, zone, warnings)
        return
    source = site.source_path
    files = [source] if source.is_file() else _files(source)
    if not files:
        raise SiteError(f"{source}: no {' or '.join(SUFFIXES)} file is in it; export your lists into it")
    for file in files:
        if file.suffix.lower() not in SUFFIXES:
            raise SiteError(f"{file}: give a file that ends in {' or '.join(SUFFIXES)}")
        yield from read_file(file, zone, warnings)


def _files(folder: Path) -> list[Path]:
    try:
        files = sorted(folder.iterdir())
    except OSError as error:
        raise SiteError(f"{folder}: cannot be listed ({error.strerror}); allow it") from None
    return [
        file
        for file in files
        if file.suffix.lower() in SUFFIXES and not file.name.startswith(".") and file.is_file()
    ]


def _merged(lists: Iterable[ReminderList]) -> list[ReminderList]:
    """One list for each name, by name; of reminders with one id the one that was changed last."""
    by_name: dict[str, dict[object, Reminder]] = {}
    for found in lists:
        name = " ".join(found.name.split()) or "Reminders"
        reminders = by_name.setdefault(name, {})
        for reminder in found.reminders:
            key = reminder.uid or object()  # what has no id is nobody's twin
            if key not in reminders or reminders[key].changed <= reminder.changed:
                reminders[key] = reminder
    return [ReminderList(name, tuple(by_name[name].values())) for name in sorted(by_name)]


def _file_name(list_name: str) -> str:
    """A file name of letters and digits; never one that begins with _, which would make a page a partial."""
    name = re.sub(r"[\W_]+", "-", list_name.lower()).strip("-")
    return f"{name[:60] or 'list'}.md"


def _page(found: ReminderList, with_done: bool) -> str:
    open_ones = sorted((r for r in found.reminders if not r.done), key=_order)
    count = counted(len(open_ones), "open reminder") if open_ones else "No open reminders"
    lines = ["---", f"title: {yaml_string(found.name)}", "---", "", f"{count}."]
    day: object = ""
    for reminder in open_ones:
        if reminder.day != day:
            lines += ["", f"## {_heading(reminder.day)}", ""]
            day = reminder.day
        lines += _item(reminder)
    done = sorted((r for r in found.reminders if r.done), key=lambda r: (r.done_on, *_order(r)), reverse=True)
    if with_done and done:
        lines += ["", "## Done", "", *(line for reminder in done for line in _item(reminder))]
    return "\n".join(lines) + "\n"


def _order(reminder: Reminder) -> tuple[object, ...]:
    return reminder.day or date.max, reminder.time, reminder.priority or 10, reminder.title, reminder.uid


def _heading(day: date | None) -> str:
    return f"Due {_WEEKDAYS[day.weekday()]}, {day.isoformat()}" if day else "No date"


def _item(reminder: Reminder) -> list[str]:
    facts = [
        f"done {reminder.done_on}" if reminder.done and reminder.done_on else "",
        f"at {reminder.time}" if reminder.time else "",
        f"{_PRIORITIES[reminder.priority]} priority" if reminder.priority in _PRIORITIES else "",
        _repeats(reminder.rule),
        f"tags: {', '.join(map(escape, reminder.tags))}" if reminder.tags else "",
        escape(reminder.url),
    ]
    said = ", ".join(fact for fact in facts if fact)
    return [
        f"- {escape(reminder.title) or 'Untitled'}{f' ({said})' if said else ''}",
        *_notes(reminder.notes),
    ]


def _notes(text: str) -> Sequence[str]:
    """A reminder's notes as paragraphs of its item, line for line."""
    paragraphs = [
        part for part in re.split(r"\n\s*\n", text.replace("\r\n", "\n").replace("\r", "\n")) if part.strip()
    ]
    lines: list[str] = []
    for paragraph in paragraphs:
        written = [shown for line in paragraph.split("\n") if (shown := escape(line))]
        lines += ["", *(f"  {line}  " for line in written[:-1]), *(f"  {line}" for line in written[-1:])]
    return lines


def _repeats(rule: str) -> str:
    """How often, in words; of a rule that is more than that, that it repeats."""
    parts = dict(part.split("=", 1) for part in rule.upper().split(";") if "=" in part)
    period, every = _PERIODS.get(parts.get("FREQ", "")), parts.get("INTERVAL", "1")
    if not rule or period is None or not every.isdecimal():
        return "repeats" if rule else ""
    return f"every {period}" if int(every[:6]) == 1 else f"every {int(every[:6])} {period}s"
