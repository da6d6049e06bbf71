"""The block structure of a markdown body: what stands where, and how it may be taken apart."""

from __future__ import annotations

import html
import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import regex
from markdown_it import MarkdownIt
from markdown_it.token import Token

# A body is parsed this many characters at a time: the parser takes up to 160 bytes a character (measured
# on lists), so a page of 100 MB would take 16 GB at once.
SLAB_CHARS = 500_000

# Longer headings are not parsed for markup: nobody wrote them as headings.
_MAX_HEADING_CHARS = 5_000

Kind = Literal["heading", "prose", "lines", "framed", "container"]


@dataclass(frozen=True, slots=True)
class Heading:
    """A heading: its level from 1, its plain text, its source without `{#id}`, and its explicit id.

    `is_html` tells a raw `<h2>` from a markdown heading: no generator gives the former an id of its own.
    """

    level: int
    text: str
    source: str
    explicit_id: str = ""
    is_html: bool = False


@dataclass(frozen=True, slots=True)
class Frame:
    """Rows between a head and a tail that belong to each part when the rows are split.

    A fence has its opening and closing line, a table its header rows; plain lines have neither.
    """

    head: str
    rows: tuple[str, ...]
    tail: str

    @property
    def text(self) -> str:
        """The whole as it is written down."""
        return "\n".join(part for part in (self.head, "\n".join(self.rows), self.tail) if part)

    @property
    def overhead_chars(self) -> int:
        """What each part costs beside its rows."""
        return sum(len(part) + 1 for part in (self.head, self.tail) if part)


@dataclass(frozen=True, slots=True)
class Block:
    """A block of a page, and the white space (`gap`) that parts it from the block before.

    A container (list, list item, quote) has the children that make it up. A framed block and plain lines
    have a frame. `headings` are those in the block, in order, nested ones included: a heading in a quote
    starts no section, and takes an anchor all the same.
    """

    kind: Kind
    text: str
    gap: str = "\n\n"
    children: tuple[Block, ...] = ()
    frame: Frame | None = None
    headings: tuple[Heading, ...] = ()


_WORD = regex.compile(r"\w")


def has_words(text: str) -> bool:
    """Whether there is anything in the text that could be looked for."""
    return _WORD.search(text) is not None


def parse_blocks(body: str) -> Iterator[Block]:
    """The outermost blocks of a markdown body, in order. All of its text is in them.

    Bodies over SLAB_CHARS are parsed in slabs that begin and end between blocks. A single list, quote or
    table longer than a slab is cut at a line end, and its remainder parsed as if it began there.
    """
    # Only these end a line in CommonMark; str.splitlines knows more. A NUL is unsafe in SQLite, and
    # CommonMark 2.3 says what to put for it.
    body = regex.sub(r"\r\n?", "\n", body).replace("\0", "\N{REPLACEMENT CHARACTER}")
    start = 0
    while start < len(body):
        end = _line_end(body, start + SLAB_CHARS)
        slab = _Slab(body[start:end])
        if end < len(body) and (fence := slab.open_fence()):
            end = _fence_end(body, end, fence)
            slab = _Slab(body[start:end])
        n_lines = slab.n_lines if end == len(body) else slab.n_whole_lines()
        yield from slab.blocks(n_lines)
        start += slab.n_chars(n_lines)


def _line_end(body: str, position: int) -> int:
    return body.find("\n", position) + 1 or len(body)


def _fence_end(body: str, position: int, markup: str) -> int:
    """Where the line ends that closes an open fence, or the end of the body."""
    closing = regex.compile(rf"^ {{0,3}}{regex.escape(markup)}{regex.escape(markup[0])}*[ \t]*$", regex.M)
    match = closing.search(body, position)
    return _line_end(body, match.end()) if match else len(body)


class _Slab:
    """A stretch of markdown, parsed."""

    def __init__(self, text: str) -> None:
        self.lines = text.split("\n")
        if not self.lines[-1]:
            self.lines.pop()
        self.n_lines = len(self.lines)
        self._env: dict[str, Any] = {}
        self._tokens: list[Token] = []
        _MARKDOWN.block.parse(text, _MARKDOWN, self._env, self._tokens)

    def n_chars(self, n_lines: int) -> int:
        """The length of the first lines, their ends included."""
        return sum(len(line) + 1 for line in self.lines[:n_lines])

    def n_whole_lines(self) -> int:
        """The number of lines before the last outermost block, which may go on after the slab.

        All of them when there is one block alone.
        """
        starts = [token.map[0] for token, _ in _elements(self._tokens) if token.map]
        return starts[-1] if len(starts) > 1 else self.n_lines

    def open_fence(self) -> str:
        """The markup of the fence that fills the slab and is not closed in it, or nothing."""
        elements = list(_elements(self._tokens))
        if len(elements) != 1 or elements[0][0].type != "fence":
            return ""
        token = elements[0][0]
        return "" if _closes(self.lines[-1], token.markup) else token.markup

    def blocks(self, n_lines: int) -> list[Block]:
        """The outermost blocks of the first lines."""
        return self._tile(self._tokens, 0, n_lines)

    def _tile(self, tokens: Sequence[Token], start: int, end: int) -> list[Block]:
        """Blocks that together hold every word of the lines from start to end."""
        blocks: list[Block] = []
        cursor = start
        for token, inner in _elements(tokens):
            if token.map is None or token.map[0] >= end:
                continue
            first, last = max(token.map[0], cursor), min(token.map[1], end)
            if cursor < first and has_words(self._slice(cursor, first)):  # link definitions leave no token
                blocks.append(self._plain_lines(cursor, first))
            elif not blocks:
                first = cursor  # a list item's mark on a line of its own
            blocks.extend(self._element(token, inner, first, last))
            cursor = last
        if has_words(self._slice(cursor, end)):  # nested deeper than the parser goes
            blocks.append(self._plain_lines(cursor, end))
        return blocks

    def _element(self, token: Token, inner: Sequence[Token], start: int, end: int) -> list[Block]:
        text, gap = self._slice(start, end), self._gap(start)
        match token.type:
            case "heading_open":
                heading = _heading(int(token.tag[1]), inner[0].content, self._env)
                return [Block("heading", text, gap, headings=(heading,))]
            case "bullet_list_open" | "ordered_list_open" | "list_item_open" | "blockquote_open":
                children = tuple(self._tile(inner, start, end))
                if len(children) == 1 and children[0].text == text:
                    return (
                        [replace(children[0], gap=gap)]
                        if children[0].kind != "heading"
                        else [Block("prose", text, gap, headings=children[0].headings)]
                    )
                headings = tuple(heading for child in children for heading in child.headings)
                return [Block("container", text, gap, children, headings=headings)]
            case "fence":
                return [Block("framed", text, gap, frame=_fence_frame(text, token.markup))]
            case "table_open":
                header, delimiter, *rows = text.split("\n")
                return [Block("framed", text, gap, frame=Frame(f"{header}\n{delimiter}", tuple(rows), ""))]
            case "html_block":
                return _html_blocks(text, gap)
            case "code_block":
                return [self._plain_lines(start, end)]
            case _:
                return [Block("prose", text, gap)]

    def _plain_lines(self, start: int, end: int) -> Block:
        text = self._slice(start, end)
        return Block("lines", text, self._gap(start), frame=Frame("", tuple(text.split("\n")), ""))

    def _slice(self, start: int, end: int) -> str:
        """The lines as text, without blank ones around them."""
        while start < end and not self.lines[start].strip():
            start += 1
        while start < end and not self.lines[end - 1].strip():
            end -= 1
        return "\n".join(self.lines[start:end])

    def _gap(self, start: int) -> str:
        return "\n" if start and self.lines[start - 1].strip(" \t>") else "\n\n"


def _elements(tokens: Sequence[Token]) -> Iterator[tuple[Token, Sequence[Token]]]:
    """Each outermost element: the token that opens it, and the tokens within."""
    i = 0
    while i < len(tokens):
        j = i
        if tokens[i].nesting == 1:
            while tokens[j].nesting != -1 or tokens[j].level != tokens[i].level:
                j += 1
        yield tokens[i], tokens[i + 1 : j]
        i = j + 1


def _closes(line: str, markup: str) -> bool:
    """Whether the line can close the fence that the markup opened (CommonMark 4.5)."""
    mark = line.lstrip(" \t>").rstrip(" \t")
    return len(mark) >= len(markup) and not mark.strip(markup[0])


def _fence_frame(text: str, markup: str) -> Frame:
    """A fence as a frame; one that was never closed is closed in each part."""
    # In a quote, empty lines of it may stand above the fence.
    head, *rows = text[text.rfind("\n", 0, text.index(markup)) + 1 :].split("\n")
    # Repeated, the opening line must not begin another list item.
    indent = regex.sub(r"[^>\s]", " ", head[: head.index(markup)])
    tail = rows.pop() if rows and _closes(rows[-1], markup) else indent + markup
    return Frame(head, tuple(rows), tail)


_EXPLICIT_ID = regex.compile(r"\s*\{(?::?\s*|/\*\s*)#([^\s{}*]+)[^{}]*\}\s*$")


def _heading(level: int, content: str, env: dict[str, Any]) -> Heading:
    match = _EXPLICIT_ID.search(content[-_MAX_HEADING_CHARS:])
    source = content[: len(content) - len(match[0])] if match else content
    return Heading(level, _inline_text(source, env), source.strip(), match[1] if match else "")


def _inline_text(source: str, env: dict[str, Any]) -> str:
    if len(source) > _MAX_HEADING_CHARS:
        return source
    (inline,) = _MARKDOWN.parseInline(source, env)
    return " ".join(_text_of(inline.children or []).split())


def _text_of(tokens: Sequence[Token]) -> str:
    parts = []
    for token in tokens:
        if token.type == "image":
            parts.append(_text_of(token.children or []))
        elif token.type in ("softbreak", "hardbreak"):
            parts.append(" ")
        elif token.type != "html_inline":
            parts.append(token.content)
    return "".join(parts)


# Bounded, so that headings never closed are not sought through all of a page.
_HTML_HEADING = regex.compile(r"(?is)<h([1-6])\b([^>]{0,1000})>(.{0,2000}?)</h\1\s*>")
_HTML_ID = regex.compile(r"""(?i)\bid\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s"'>]+))""")
_HTML_TABLE = regex.compile(r"(?is)\s*<table\b.*?</table\s*>\s*")
_HTML_TABLE_HEAD = regex.compile(r"(?is).*?</thead\s*>|(?:(?!</tr).)*<th\b.*?</tr\s*>|.*?(?=<tr\b)")
_HTML_TABLE_TAIL = regex.compile(r"(?is)(?:</tbody\s*>\s*)?</table\s*>\s*$")
_HTML_ROW = regex.compile(r"(?is).+?</tr\s*>|.+$")
_VERBATIM_HTML = regex.compile(r"(?i)\s*<(?:!--|pre\b|script\b|style\b|textarea\b)")


def _html_blocks(text: str, gap: str) -> list[Block]:
    """Raw HTML as blocks: a table as a frame, a heading as a heading, the rest as lines."""
    blocks: list[Block] = []
    headings = [] if _VERBATIM_HTML.match(text) else list(_HTML_HEADING.finditer(text))
    borders = [0, *(position for match in headings for position in match.span()), len(text)]
    for i, (start, end) in enumerate(itertools.pairwise(borders)):
        part = text[start:end].strip("\n")
        if i % 2:
            blocks.append(Block("heading", part, gap, headings=(_html_heading(headings[i // 2]),)))
        elif part.strip():
            blocks.append(_html_block(part, gap))
        else:
            continue
        gap = "\n"
    return blocks


def _html_heading(match: regex.Match[str]) -> Heading:
    found = _HTML_ID.search(match[2])
    text = " ".join(html.unescape(regex.sub(r"<[^>]*>", "", match[3])).split())
    explicit_id = next(filter(None, found.groups()), "") if found else ""
    return Heading(int(match[1]), text, match[3], explicit_id, is_html=True)


def _html_block(text: str, gap: str) -> Block:
    tail = _HTML_TABLE_TAIL.search(text)
    head = _HTML_TABLE_HEAD.match(text)
    if tail is None or head is None or not _HTML_TABLE.fullmatch(text):
        return Block("lines", text, gap, frame=Frame("", tuple(text.split("\n")), ""))
    rows = _HTML_ROW.findall(text, head.end(), tail.start())
    frame = Frame(head[0].strip(), tuple(row.strip() for row in rows), tail[0].strip())
    return Block("framed", text, gap, frame=frame)


_MARKDOWN = MarkdownIt("commonmark").enable(["table", "strikethrough"])
