"""Where a markdown text is code, so that everything else can be rewritten and code stays untouched."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import lru_cache

Span = tuple[int, int]
# What replaces a match and where it ends; None leaves the match as it is.
Replace = Callable[[str, "re.Match[str]"], tuple[str, int] | None]

_TOKEN = re.compile(r"`+|~{3,}|\\.|<!--|(?:\A|\n)(?:[ \t]*\r?\n)++|\A(?=(?: {4}|\t))")
_CONTAINER = re.compile(r"(?:[ \t>]|[-*+][ \t]|\d{1,9}[.)][ \t])*")
_NOT_INDENTED = re.compile(r"^ {0,3}[^ \t\r\n]|\Z", re.M)
_LIST_ITEM = re.compile(r"[ \t>]*(?:[-*+]|\d{1,9}[.)])(?:[ \t]|$)")
_PARAGRAPH_END = re.compile(r"\n[ \t>]*(?:\n|`{3,}|~{3,})|\Z")
_COMMENT = re.compile(r"<!--(?:>|->|.*?-->)", re.S)
# How far back an indented line looks for the list item it may belong to.
_LIST_LOOKBACK_LINES = 200


def drop_comments(text: str) -> str:
    """A markdown text without its HTML comments; those in code are text and stay."""
    if "<!--" not in text:
        return text
    end = text.rfind("-->") + len(
        "-->"
    )  # behind it every comment is unclosed, and would be sought to the end
    return rewrite(text, _COMMENT, lambda _, match: ("", match.end()), end)


def rewrite(
    text: str,
    pattern: re.Pattern[str],
    replace: Replace,
    end: int | None = None,
    spans: Sequence[Span] | None = None,
) -> str:
    """The text with each match of pattern that starts outside of code replaced, as far as `end`.

    `spans` are what is code, by default markdown's.
    """
    end = len(text) if end is None else end
    spans = code_spans(text) if spans is None else spans
    parts: list[str] = []
    done = position = i = 0
    while match := pattern.search(text, position, end):
        while i < len(spans) and spans[i][1] <= match.start():
            i += 1
        if i < len(spans) and spans[i][0] <= match.start():
            position = spans[i][1]
            continue
        replaced = replace(text, match)
        if replaced is None:
            position = max(match.end(), match.start() + 1)
            continue
        parts += text[done : match.start()], replaced[0]
        done = position = max(replaced[1], match.start() + 1)
    return "".join([*parts, text[done:]]) if parts else text


def code_spans(text: str) -> list[Span]:
    """The code of a markdown text in order: fenced and indented blocks and inline code, as start and end.

    Fences may stand in lists and quotes; one never closed runs to the end. A comment hides what looks like
    code in it. Source: CommonMark 0.31, sections 4.4, 4.5 and 6.1, without a full parse: linear time on
    pages of any size.
    """
    spans: list[Span] = []
    position = 0
    paragraph_end = -1
    last_comment_end = text.rfind("-->")
    unmatched: set[int] = set()  # lengths of backtick runs with no closing run in this paragraph
    while token := _TOKEN.search(text, position):
        start, position = token.span()
        kind = token[0][:1]
        if token[0] == "<!--":
            position = text.find("-->", start) + 3 if start < last_comment_end else position
            continue
        if kind == "\\":
            continue
        if kind not in ("`", "~"):
            indent = _indent(text, position)
            if indent >= 4 and indent - _item_offset(text, start, indent) >= 4:
                end_of_block = _search(_NOT_INDENTED, text, position).start()
                spans.append((position, end_of_block))
                position = end_of_block
            continue
        end_of_fence = _fence_end(text, token)
        if end_of_fence is not None:
            spans.append((start, end_of_fence))
            position = end_of_fence
        elif kind == "`":
            if start >= paragraph_end:
                unmatched.clear()
                paragraph_end = _search(_PARAGRAPH_END, text, start).start()
            n_ticks = position - start
            closing = None if n_ticks in unmatched else _run(n_ticks).search(text, position, paragraph_end)
            if closing is None:
                unmatched.add(n_ticks)
            else:
                spans.append((start, closing.end()))
                position = closing.end()
    return spans


def _fence_end(text: str, token: re.Match[str]) -> int | None:
    """The end of the fenced block that a run of backticks or tildes opens, or None when it opens none."""
    run = token[0]
    if len(run) < 3:  # first, or a long line of inline code would be walked back for each
        return None
    line_start = text.rfind("\n", 0, token.start()) + 1
    if _CONTAINER.fullmatch(text, line_start, token.start()) is None:
        return None
    line_end = text.find("\n", token.end())
    if run[0] == "`" and "`" in text[token.end() : line_end if line_end >= 0 else len(text)]:
        return None
    prefix = text[line_start : token.start()].expandtabs(4)
    offset = len(prefix) if prefix.strip(" >") else _item_offset(text, line_start - 1, len(prefix))
    if not prefix.strip() and len(prefix) - offset >= 4:
        return None
    end = len(text)
    if offset and line_end >= 0:  # the end of its list item is the end of the block, closed or not
        end = _search(_outside_item(min(offset, 4)), text, line_end + 1).start()
    closing = _closing_fence(run).search(text, token.end(), end)
    end = closing.end() if closing else end
    return max(end, token.end())


@lru_cache(maxsize=8)
def _outside_item(offset: int) -> re.Pattern[str]:
    return re.compile(rf"^(?! {{{offset}}}| {{0,3}}\t|[ \t>]*\r?$)|\Z", re.M)


def _indent(text: str, line_start: int) -> int:
    line = text[line_start : line_start + 80].expandtabs(4)
    return len(line) - len(line.lstrip(" "))


@lru_cache(maxsize=64)
def _closing_fence(run: str) -> re.Pattern[str]:
    return re.compile(rf"^[ \t>]*{re.escape(run)}{re.escape(run[0])}*[ \t]*\r?$", re.M)


@lru_cache(maxsize=64)
def _run(n_ticks: int) -> re.Pattern[str]:
    return re.compile(rf"(?<!`)`{{{n_ticks}}}(?!`)")


def _item_offset(text: str, end: int, indent: int) -> int:
    """The content column of the list item that a line indented by `indent` after `end` belongs to, or 0."""
    for _ in range(_LIST_LOOKBACK_LINES):
        if end <= 0:
            return 0
        line_start = text.rfind("\n", 0, end) + 1
        line = text[line_start : min(end, line_start + 200)].expandtabs(4)
        item = _LIST_ITEM.match(line)
        if item and (offset := len(item[0].rstrip()) + 1) <= indent:
            return offset
        if not item and line[:1].strip():
            return 0
        end = line_start - 1
    return min(indent, 2)  # a list too long to look through


def _search(pattern: re.Pattern[str], text: str, start: int) -> re.Match[str]:
    match = pattern.search(text, start)
    assert match is not None  # every pattern given here matches at the end of the text
    return match
