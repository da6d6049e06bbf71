"""MDX as plain markdown: modules and component tags go, the prose between and inside them stays."""

from __future__ import annotations

import re

from pipeline.export.prose import rewrite

_MDX = re.compile(
    r"\{\s*/\*"  # a comment
    r"|<head\b"  # Docusaurus: metadata for the page's head, shown to nobody
    r"|</?>|</?(?=[A-Z])"  # a fragment or a component
    r"|(?:\A|(?<=\n))(?=(?:import|export)\b)",  # a module statement
    re.S,
)
# What no reader sees: where it may end, and how it ends there.
_UNSEEN = {
    "{": ("*/", re.compile(r"\*/\s*\}")),
    "<head": ("</head", re.compile(r"</head\s*>")),
}
_HEADING_ID = re.compile(r"\s*(#[^\s{}*]+)\s*")
_NAME = re.compile(r"[A-Z][\w$]*(?:[.:][\w$-]+)*")
_ATTRIBUTE = re.compile(r"\s+(?:([\w:.-]+)(?:\s*=\s*(?:\"([^\"]*)\"|'([^']*)'|(?=\{))|)|(?=\{))")
_TAG_END = re.compile(r"\s*/?>")
_TEXT_IN_BRACES = re.compile(r"\{\s*([\"'`])(.*)\1\s*\}", re.S)
# Attributes whose value a reader sees.
_SEEN = frozenset(("title", "label", "alt", "caption", "summary", "description", "header", "heading"))

_CLAUSE = r"(?:[\w$]+|\*\s*as\s+[\w$]+|\{[^{}]*\})"
_IMPORT = re.compile(
    rf"""import\s*(?:(?:type\s+)?{_CLAUSE}(?:\s*,\s*{_CLAUSE})?\s*from\s*)?(["'])[^"'\n]*\1[^\S\n]*"""
    r"""(?:with\s*\{[^{}]*\})?[^\S\n]*;?[^\S\n]*(?:\r?\n|\Z)"""
)
_EXPORT = re.compile(r"export\s+(?:default|const|let|var|function|class|async|type|interface|\{|\*)(?![\w'])")
_JS_TOKEN = re.compile(
    r"""//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'|`(?:\\.|[^`\\])*`|[{}()\[\]]|\n""", re.S
)
# In characters, and in brackets. What stays open longer or deeper is no code that somebody wrote, and its end
# is not sought through a large page.
_LONGEST_STATEMENT = 10_000
_DEEPEST_STATEMENT = 40
_OPENING, _CLOSING = "{([", "})]"


def strip_mdx(text: str) -> str:
    """The markdown of an MDX text.

    Imports, exports, comments and the tags of components go; the children of components stay, and so do
    the attributes that a reader sees, such as a tab's label. Code and lower-case HTML stay as they are.
    """
    if not re.search(r"</?[A-Z>]|\{\s*/\*|<head\b|^(?:import|export)\b", text, re.M):
        return text
    # Behind the last end everything is unclosed, and would be sought to the end of the text.
    last_end = {opening: text.rfind(end) for opening, (end, _) in _UNSEEN.items()}

    def replacement(text: str, match: re.Match[str]) -> tuple[str, int] | None:
        opening = "{" if match[0].startswith("{") else match[0]
        if opening not in _UNSEEN:
            return _replacement(text, match)
        end, closing = _UNSEEN[opening]
        start = text.find(end, match.end()) if match.end() <= last_end[opening] else -1
        closed = closing.match(text, start) if start >= 0 else None
        return (_heading_id(text, match, start), closed.end()) if closed else None

    return rewrite(text, _MDX, replacement)


def _heading_id(text: str, comment: re.Match[str], end: int) -> str:
    """`{#id}` for the comment that gives a heading its id in Docusaurus, or nothing for any other."""
    line_start = text.rfind("\n", 0, comment.start()) + 1
    heading_id = _HEADING_ID.fullmatch(text, comment.end(), end)
    return f"{{{heading_id[1]}}}" if heading_id and text.startswith("#", line_start) else ""


def _replacement(text: str, match: re.Match[str]) -> tuple[str, int] | None:
    tag = match[0]
    if tag in ("<>", "</>"):
        return "", match.end()
    if tag == "</":
        closing = re.compile(rf"{_NAME.pattern}\s*>").match(text, match.end())
        return ("", closing.end()) if closing else None
    if tag == "<":
        return _opening_tag(text, match.end())
    return _module_statement(text, match.start())


def _opening_tag(text: str, position: int) -> tuple[str, int] | None:
    """The attributes to keep of the tag whose name starts at position, and the tag's end."""
    name = _NAME.match(text, position)
    assert name is not None  # the caller looked ahead at a capital letter
    position = name.end()
    seen: list[str] = []
    while attribute := _ATTRIBUTE.match(text, position):
        position = attribute.end()
        value = attribute[2] or attribute[3] or ""
        if text[position : position + 1] == "{":
            end = _balanced_end(text, position)
            if end is None:
                return None
            braces = _TEXT_IN_BRACES.fullmatch(text, position, end)
            value, position = (braces[2] if braces else ""), end
        if attribute[1] in _SEEN and value.strip():
            seen.append(value)
    end_of_tag = _TAG_END.match(text, position)
    return (" ".join(seen), end_of_tag.end()) if end_of_tag else None


def _module_statement(text: str, start: int) -> tuple[str, int] | None:
    """The end of the import or export at start; None when it is a sentence that begins with such a word."""
    if statement := _IMPORT.match(text, start):
        return "", statement.end()
    if not _EXPORT.match(text, start) or not _begins_block(text, start):
        return None
    depth = 0
    for token in _JS_TOKEN.finditer(text, start, start + _LONGEST_STATEMENT):
        depth += (token[0] in _OPENING) - (token[0] in _CLOSING)
        if (
            token[0] == "\n"
            and depth <= 0
            and re.compile(r"\s*(?:\n|\Z)|import\b|export\b").match(text, token.end())
        ):
            return "", token.end()
        if depth > _DEEPEST_STATEMENT:
            return None
    return ("", len(text)) if depth <= 0 and len(text) < start + _LONGEST_STATEMENT else None


def _begins_block(text: str, start: int) -> bool:
    before = text[:start].rstrip(" \t\r") if start < 400 else text[start - 400 : start].rstrip(" \t\r")
    return (
        not before.strip()
        or before.endswith(("\n\n", "\n\r\n"))
        or before.rstrip().endswith((";", "'", '"', "}"))
    )


def _balanced_end(text: str, start: int) -> int | None:
    """Where the brace at start is closed, strings and comments apart; None when it never is."""
    depth = 0
    for token in _JS_TOKEN.finditer(text, start, start + _LONGEST_STATEMENT):
        depth += (token[0] in _OPENING) - (token[0] in _CLOSING)
        if depth == 0:
            return token.end()
        if depth > _DEEPEST_STATEMENT:
            break
    return None
