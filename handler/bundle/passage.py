"""What the encoder sees of a chunk: its place, and its markdown as plain text."""

from __future__ import annotations

import html
import re

# The line before the text is clipped to this many bytes, so that it never starves the text. No tokenizer
# in use makes more than one token of a byte; of English it makes one of four.
PREFIX_BYTES = 160


def passage_text(title: str, heading: tuple[str, ...], text: str) -> str:
    """The plain text to embed for a chunk: `title > heading > …` on a line, then the chunk's words."""
    lines = plain_text(text).split("\n")
    while lines and lines[0] in heading:  # the first line says it already
        lines.pop(0)
    return "\n".join(line for line in (passage_prefix(title, heading), *lines) if line)


def title_text(title: str) -> str:
    """The text to embed for a page's title."""
    return passage_prefix(title, ())


def passage_prefix(title: str, heading: tuple[str, ...]) -> str:
    """Title and heading path on one line of at most PREFIX_BYTES bytes.

    What does not fit is left out from the middle: the title and the innermost heading say most.
    """
    parts = [part for part in (" ".join(part.split()) for part in (title, *heading)) if part]
    if len(parts) > 1 and parts[0].casefold() == parts[1].casefold():
        parts.pop(0)
    while len(parts) > 2 and len(" > ".join(parts).encode()) > PREFIX_BYTES:
        parts.pop(1)
    room = PREFIX_BYTES // max(len(parts), 1) - len(" > ")
    if len(" > ".join(parts).encode()) > PREFIX_BYTES:
        parts = [_clip(part, room) for part in parts]
    return " > ".join(parts)


def _clip(text: str, n_bytes: int) -> str:
    """The text up to a number of bytes, to the last whole word where there is one."""
    if len(text.encode()) <= n_bytes:
        return text
    clipped = text.encode()[:n_bytes].decode(errors="ignore")
    return clipped.rsplit(" ", 1)[0]


_FENCE = re.compile(r"[\s>]*(`{3,}(?=[^`]*$)|~{3,})(.*)$")


def plain_text(markdown: str) -> str:
    """The words of markdown as a reader sees them: no markup, link targets or table rules.

    Texts of links and images stay, and code stays as it is.
    """
    parts: list[str] = []
    prose: list[str] = []
    fence = ""
    for line in markdown.split("\n"):
        mark = _FENCE.match(line)
        if fence:
            if mark and mark[1].startswith(fence) and not mark[2].strip():
                fence = ""
            else:
                parts.append(line)
        elif mark:
            parts.append(_plain_prose("\n".join(prose)))
            prose = []
            fence = mark[1]
            parts.append(mark[2].strip())
        else:
            prose.append(line)
    parts.append(_plain_prose("\n".join(prose)))
    lines = (" ".join(line.split()) for part in parts for line in part.split("\n"))
    return "\n".join(line for line in lines if line)


_CODE = re.compile(r"(?<!`)(`+)(?!`)(.+?)(?<!`)\1(?!`)", re.S)
_COMMENT = re.compile(r"<!--.*?(?:-->|$)|\{/\*.*?\*/\}", re.S)
_ALT = re.compile(r"""<[a-zA-Z][^<>]*?\salt\s*=\s*(?:"([^"]*)"|'([^']*)')[^<>]*>""")
_TAG = re.compile(r"</?[a-zA-Z][\w.:-]*(?:\s[^<>]*)?/?>")
_AUTOLINK = re.compile(r"<((?:[a-zA-Z][\w+.-]*:|[^\s<>@]+@)[^\s<>]*)>")
# Of links: where they lead, and the title that may stand behind it.
LINK_ADDRESS = r"(?:<[^<>\n]*>|[^\s()]*(?:\([^\s()]*\)[^\s()]*)*)"
LINK_TITLE = r"""(?:"[^"]*"|'[^']*'|\([^()]*\))"""
_TARGET = rf"\(\s*{LINK_ADDRESS}(?:\s+{LINK_TITLE})?\s*\)"
_IMAGE = re.compile(rf"!\[([^\[\]]*)\](?:{_TARGET}|\[[^\[\]]*\])")
_LINK = re.compile(rf"\[([^\[\]]*)\](?:{_TARGET}|\[[^\[\]]*\])")
_DEFINITION = re.compile(r"^ {0,3}\[(?!\^)[^\[\]]+\]:\s.*$", re.M)
_RULE = re.compile(r"^[\s>]*(?=.*[-=*_])[|:\s*_=-]+$", re.M)
_LINE_MARK = re.compile(r"^(?:[\s>]*(?:>|[-*+]\s))*\s*(?:#{1,6}(?:\s+|$))?(?:\[[ xX]\]\s)?", re.M)
_CLOSING_HASHES = re.compile(r"\s+#+\s*$|\s*\{:?\s*#[^{}]*\}\s*$", re.M)
_EMPHASIS = re.compile(r"\*+(?=\S)|(?<=\S)\*+|(?<!\w)_+(?=\w)|(?<=\w)_+(?!\w)|~~")
_ESCAPE = re.compile(r"\\([!-/:-@\[-`{-~])")


def _plain_prose(markdown: str) -> str:
    kept: list[str] = []

    def keep(text: str) -> str:
        """A mark that stands for the text until all markup is gone."""
        kept.append(text)
        return f"\0{len(kept) - 1}\0"

    text = _CODE.sub(lambda match: keep(match[2]), markdown.replace("\0", " "))
    text = _ESCAPE.sub(lambda match: keep(match[1]), text)
    text = _COMMENT.sub(" ", text)
    text = _ALT.sub(lambda match: f" {match[1] or match[2] or ''} ", text)
    text = _AUTOLINK.sub(lambda match: keep(match[1]), text)
    text = _TAG.sub(" ", text)
    text = _IMAGE.sub(r"\1", text)
    text = _LINK.sub(r"\1", text)
    text = _DEFINITION.sub("", text)
    text = _RULE.sub("", text)
    text = _CLOSING_HASHES.sub("", text)
    text = _LINE_MARK.sub("", text)
    text = _EMPHASIS.sub("", text).replace("|", " ")
    text = html.unescape(text)
    while "\0" in text:  # a code span may hold the mark of another
        text = re.sub("\0(\\d+)\0", lambda match: kept[int(match[1])], text)
    return text
