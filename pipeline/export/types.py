"""What export hands on: pages, and an account of everything that is not one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import date

from pipeline.page import Page
from pipeline.site import Site


@dataclass(frozen=True, slots=True)
class Exclusion:
    """A file (or a post of a file) that is not published, and why."""

    path: str
    reason: str


@dataclass(frozen=True, slots=True)
class ExportWarning:
    """Something a person should look at. `line` counts from 1; 0 means the file as a whole."""

    path: str
    line: int
    message: str


@dataclass(frozen=True, slots=True)
class Window:
    """A run of days, from the first one until before the end."""

    first: date = date.min
    end: date = date.max


ALWAYS = Window()


@dataclass(frozen=True, slots=True)
class Export:
    """The pages of one site, by path. `n_pages_in` counts the pages and the exclusions.

    `windows` are the days on which pages are shown, by path, of those that are not always; `window` are
    the days on which the same source makes the same export. `languages` are those of pages, by path, of
    those that say one.
    """

    site: str
    n_pages_in: int
    pages: tuple[Page, ...]
    exclusions: tuple[Exclusion, ...] = ()
    warnings: tuple[ExportWarning, ...] = ()
    windows: Mapping[str, Window] = field(default_factory=dict)
    window: Window = ALWAYS
    languages: Mapping[str, str] = field(default_factory=dict)


Exporter = Callable[[Site], Export]
