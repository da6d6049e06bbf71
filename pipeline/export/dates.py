"""Pages that their generator holds back by a date: until it comes, or once it has passed."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable, Mapping
from datetime import date
from email.utils import parsedate

from pipeline.export.types import ALWAYS, Exclusion, Export, Window
from pipeline.frontmatter import Meta, text_value

_DATE = re.compile(r"(\d{4})[-/](\d{1,2})[-/](\d{1,2})(?!\d)")


def parse_date(value: object) -> date | None:
    """The day of a date as front matter writes it: year first, or as in mail ("2 Jan 2027"); else None.

    The day is the one written down, whatever the time and its zone: an author's own calendar.
    """
    text = text_value(value)
    try:
        if match := _DATE.match(text):
            year, month, day = (int(number) for number in match.groups())
            return date(year, month, day)
        mail = parsedate(text) or parsedate(f"{text} 00:00")
        return date(*mail[:3]) if mail else None
    except (ValueError, OverflowError):
        return None


def first_date(meta: Meta, keys: Iterable[str]) -> date | None:
    """The date under the first of the keys, in any case, that has a readable one."""
    values = {key.lower(): value for key, value in meta.items()}
    return next((found for key in keys if (found := parse_date(values.get(key.lower())))), None)


def shown_on(today: date, export: Export) -> Export:
    """The export as it is today: pages outside of their window are left out.

    Its own window says from when and until when it stays the same.
    """
    kept, exclusions = [], list(export.exclusions)
    for page in export.pages:
        reason = _reason_to_hide(export.windows.get(page.path, ALWAYS), today)
        if reason is None:
            kept.append(page)
        else:
            exclusions.append(Exclusion(page.path, reason))
    return dataclasses.replace(
        export, pages=tuple(kept), exclusions=tuple(exclusions), window=_stable(export.windows, today)
    )


def _reason_to_hide(window: Window, today: date) -> str | None:
    if today < window.first:
        return f"dated ahead: {window.first}"
    return f"expired: {window.end}" if window.end <= today else None


def _stable(windows: Mapping[str, Window], today: date) -> Window:
    """The days around today on which no page comes or goes."""
    borders = {day for window in windows.values() for day in (window.first, window.end)}
    return Window(
        max((day for day in borders if day <= today), default=ALWAYS.first),
        min((day for day in borders if day > today), default=ALWAYS.end),
    )
