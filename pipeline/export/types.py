"""What export hands on: pages, and an account of everything that is not one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

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
class Export:
    """The pages of one site, by path. `n_pages_in` counts the pages and the exclusions."""

    site: str
    n_pages_in: int
    pages: tuple[Page, ...]
    exclusions: tuple[Exclusion, ...] = ()
    warnings: tuple[ExportWarning, ...] = ()


Exporter = Callable[[Site], Export]
