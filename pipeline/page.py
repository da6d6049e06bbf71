"""A page as every stage after export sees it: public, clean, and with an address."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

AnchorStyle = Literal["github", "docusaurus", "hugo", "kramdown", "zola", "none"]


@dataclass(frozen=True, slots=True)
class Page:
    """One published page.

    `path` is the page's file relative to its site's source, with forward slashes. `body` is markdown
    without front matter. `description` is the front matter's, or empty. `sha256` is the digest of the
    source file's bytes. `anchor_style` says how the site's generator turns headings into fragments.
    """

    site: str
    collection: str
    path: str
    url: str
    title: str
    description: str
    body: str
    anchor_style: AnchorStyle
    sha256: str
