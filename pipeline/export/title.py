"""A page's title: what its front matter says, else its first heading, else its file's name."""

from __future__ import annotations

import html
import posixpath
import re

from pipeline.export.prose import code_spans
from pipeline.frontmatter import Meta, text_value

_HEADING = re.compile(
    r"^ {0,3}#(?:[ \t]+(.*?))?(?:[ \t]+#+)?[ \t]*\r?$"
    r"|^ {0,3}(?!#{1,6}[ \t]|[>|])(\S.*)\r?\n {0,3}=+[ \t]*\r?$",
    re.M,
)
_HTML_HEADING = re.compile(r"<h1\b[^>]{0,1000}>(.{0,1000}?)</h1\s*>", re.S | re.I)
_INLINE_HTML = re.compile(r"</?(?:a|b|br|code|em|i|mark|small|span|strong|sub|sup|u|wbr)\b[^<>]*>", re.I)
# A title stands at the top; a heading further down names a part of a very long page.
_SEARCHED_CHARACTERS = 50_000


def page_title(meta: Meta, body: str, path: str) -> str:
    """The title of a page as plain text on one line; never empty."""
    for key in ("title", "post_title"):
        if title := plain_text(text_value(meta.get(key)), markdown=False):
            return title
    return first_heading(body) or _file_title(path)


def first_heading(body: str) -> str:
    """The text of the first level-1 heading near the top of a markdown body, or empty."""
    head = body[:_SEARCHED_CHARACTERS]
    spans = code_spans(head)
    for pattern in (_HEADING, _HTML_HEADING):
        for match in pattern.finditer(head):
            if not any(start <= match.start() < end for start, end in spans):
                written = next((group for group in match.groups() if group), "")
                if title := plain_text(written):
                    return title
    return ""


def plain_text(text: str, markdown: bool = True) -> str:
    """A heading's text without markup: links by their text, no emphasis, entities decoded."""
    if markdown:
        text = re.sub(r"\s*\{#[^}\s]+\}\s*$", "", text)
        text = re.sub(r"!?\[([^\]]*)\](?:\([^)]*\)|\[[^\]]*\])", r"\1", text)
        text = re.sub(r"(\*\*|__|\*|`+|~~)(?=\S)(.+?)(?<=\S)\1", r"\2", text)
        text = re.sub(r"\\([!-/:-@\[-`{-~])", r"\1", text)
    text = _INLINE_HTML.sub("", text)
    return " ".join(html.unescape(text).split())


def _file_title(path: str) -> str:
    folder, name = posixpath.split(posixpath.splitext(path)[0])
    if name.lower() in ("index", "_index", "readme") and folder:
        name = posixpath.basename(folder)
    undated = re.sub(r"^\d{4}-\d{1,2}-\d{1,2}[-_]?", "", name) or name
    return " ".join(re.sub(r"[-_]+", " ", undated).split()) or name
