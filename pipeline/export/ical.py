"""The to-dos of an iCalendar file (RFC 5545), read line by line.

By ourselves, because the well-kept package for it reads all or nothing: one date that is none makes
icalendar 7.3 refuse a whole list. It also takes five times as long, 5 s for 10,000 to-dos.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

# Sections 3.1 and 3.2: a name, parameters whose values may be quoted, a value.
_LINE = re.compile(r'([A-Za-z0-9-]+)(?:;[A-Za-z0-9-]+=(?:"[^"]*"|[^";:])*)*:(.*)', re.S)
_LINE_END = re.compile(r"\r\n|\n|\r")
_COMMA = re.compile(r"(?<!\\),")


@dataclass(frozen=True, slots=True)
class Property:
    """One property's value as it is written, and the line that it begins in, from 1."""

    value: str
    line: int

    @property
    def text(self) -> str:
        """The value as text (section 3.3.11)."""
        return _unescape(self.value)

    @property
    def texts(self) -> tuple[str, ...]:
        """The value as a list of texts."""
        return tuple(_unescape(part) for part in _COMMA.split(self.value))


@dataclass(slots=True)
class Component:
    """A calendar's to-do or event: its properties by name, of several with one name the last.

    `calendar` is what the file calls the list that it is in. `ended` is false where the file breaks off.
    """

    kind: str
    line: int
    calendar: str = ""
    properties: dict[str, Property] = field(default_factory=dict)
    ended: bool = False

    def text(self, name: str) -> str:
        """A property's text, or nothing when it is not there."""
        found = self.properties.get(name)
        return found.text if found else ""


def read_components(text: str) -> Iterator[Component]:
    """The to-dos and events of a file, in its order; what stands within them, such as an alarm, is left out.

    A line that is none is passed over. The first one that is given, of kind "VCALENDAR", has the name of the
    calendar even if it is empty; a text without a calendar gives nothing.
    """
    calendar = ""
    inner: list[str] = []
    component: Component | None = None
    for number, line in _lines(text):
        match = _LINE.fullmatch(line)
        if match is None:
            continue
        name, value = match[1].upper(), match[2]
        kind = value.strip().upper()
        if name == "BEGIN" and component is not None:
            inner.append(kind)
        elif name == "BEGIN" and kind == "VCALENDAR":
            calendar = ""
            yield Component(kind, number, ended=True)
        elif name == "BEGIN" and kind in ("VTODO", "VEVENT"):
            component = Component(kind, number, calendar)
        elif name == "END" and inner:
            inner.pop()
        elif name == "END" and component is not None:
            component.ended = True
            yield component
            component = None
        elif name == "X-WR-CALNAME" and component is None:
            calendar = _unescape(value)
            yield Component("VCALENDAR", number, calendar, ended=True)
        elif component is not None and not inner:
            component.properties[name] = Property(value, number)
    if component is not None:
        yield component


def _lines(text: str) -> Iterator[tuple[int, str]]:
    """The content lines with their numbers, those joined that were folded (section 3.1)."""
    start, parts = 1, [""]
    for number, line in enumerate(_LINE_END.split(text.removeprefix("\ufeff")), start=1):
        if line.startswith((" ", "\t")):
            parts.append(line[1:])
            continue
        yield start, "".join(parts)
        start, parts = number, [line]
    yield start, "".join(parts)


def _unescape(value: str) -> str:
    return re.sub(r"\\(.)", lambda match: "\n" if match[1] in "nN" else match[1], value, flags=re.S)
