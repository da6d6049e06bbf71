"""The things that a bundle holds and a search returns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Mode = Literal["hybrid", "rrf", "keyword", "vector"]


class BundleError(Exception):
    """A bundle is missing, damaged, too new, or does not fit what is asked of it."""


@dataclass(frozen=True, slots=True)
class Chunk:
    """A part of one page, small enough for the embedding model.

    `text` is markdown as the page has it, heading line included. `heading` is the path of headings that
    the chunk stands under, outermost first, as plain text without markup and without the page's title
    unless the page repeats it as a heading. `anchor` is the fragment of the innermost heading as the
    site's generator makes it, without `#`; empty before the first heading. `ordinal` counts from 0
    within the page.
    """

    url: str
    title: str
    path: str
    collection: str
    heading: tuple[str, ...]
    anchor: str
    ordinal: int
    text: str
