"""Fragments of headings, as the site's generator makes them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import regex
from text_unidecode import unidecode  # type: ignore[import-untyped]

from pipeline.blocks import Heading
from pipeline.page import AnchorStyle

# github-slugger 2 keeps exactly these (checked for every code point): letters, marks and digits of all
# scripts, connectors such as _, and - and the space.
_NOT_KEPT = regex.compile(r"[^\p{Alphabetic}\p{M}\p{Nd}\p{Pc}\- ]")


class Anchors:
    """The anchors of one page; ask for them in the order of its headings."""

    def __init__(self, style: AnchorStyle) -> None:
        self._style = style
        self._slug = _SLUGS[style]
        self._unique = _counted if style == "kramdown" else _first_free
        self._seen: Counter[str] = Counter()

    def add(self, heading: Heading) -> str:
        """The anchor of the page's next heading, without `#`; empty when it has none."""
        if self._style == "docusaurus" and heading.level == 1:
            # Docusaurus counts the id of a title and then does not write it (theme-classic, Heading).
            self._anchor(heading)
            return ""
        return self._anchor(heading)

    def _anchor(self, heading: Heading) -> str:
        if heading.explicit_id:
            if self._style in ("hugo", "zola"):  # the others may well make the same id once more
                self._seen.setdefault(heading.explicit_id, 0)
            return heading.explicit_id
        slug = "" if heading.is_html else self._slug(heading)
        return self._unique(slug, self._seen) if slug else ""


def _first_free(slug: str, seen: Counter[str]) -> str:
    """The slug, or the slug with the first number from 1 that no other anchor of the page has."""
    anchor = slug
    while anchor in seen:
        seen[slug] += 1
        anchor = f"{slug}-{seen[slug]}"
    seen[anchor] = 0
    return anchor


def _counted(slug: str, seen: Counter[str]) -> str:
    """The slug with the number of headings before it that made the same one, as kramdown counts."""
    seen[slug] += 1
    return f"{slug}-{seen[slug] - 1}" if seen[slug] > 1 else slug


def _github(heading: Heading) -> str:
    """Docusaurus and GitHub: github-slugger 2, index.js."""
    return _NOT_KEPT.sub("", heading.text.lower()).replace(" ", "-")


def _hugo(heading: Heading) -> str:
    """Hugo's default, "github": markup/goldmark/autoid.go.

    goldmark hands over the heading's last source line, markup and link targets included.
    """
    line = heading.source.rsplit("\n", 1)[-1].strip()
    kept = regex.sub(r"[^\p{L}\p{Nd}_\- \t]", "", line)
    return regex.sub(r"[ \t]", "-", kept).lower() or "heading"


def _kramdown(heading: Heading) -> str:
    """Jekyll's default: kramdown-parser-gfm, lib/kramdown/parser/gfm.rb, generate_gfm_header_id.

    kramdown has made typographic dashes of -- and --- before, and drops those.
    """
    text = regex.sub(r"(?<!-)-{2,3}(?!-)", "", heading.text)
    return _NOT_KEPT.sub("", text.lower().replace("\t", " ")).replace(" ", "-")


def _zola(heading: Heading) -> str:
    """Zola's default, slugify.anchors = "on": the slug crate. Emoji, which it spells out, are left out."""
    return regex.sub(r"[^a-z0-9]+", "-", unidecode(heading.text).lower()).strip("-")


_SLUGS: dict[AnchorStyle, Callable[[Heading], str]] = {
    "github": _github,
    "docusaurus": _github,
    "hugo": _hugo,
    "kramdown": _kramdown,
    "zola": _zola,
    "none": lambda _: "",
}
