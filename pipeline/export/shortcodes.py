"""Template tags of site generators taken out of a text: what stood between and inside them stays."""

from __future__ import annotations

import html
import re
from collections.abc import Mapping

from pipeline.export.prose import rewrite

# Named arguments whose value a reader sees.
_SEEN = re.compile(
    r"""\b(?:caption|title|alt|summary|label|text|author)\s*=\s*(?:"((?:\\.|[^"\\])*)"|'((?:\\.|[^'\\])*)')""",
    re.I,
)

# Tags have an upper length, so that one never closed is not sought through all of a large page.
_HUGO = re.compile(r"\{\{[<%]\s*(?P<paired>comment)\s*[>%]\}\}|\{\{[<%](?!\s*/\*).{0,4000}?[%>]\}\}", re.S)
_HUGO_CLOSING = {"comment": re.compile(r"\{\{[<%]\s*/\s*comment\s*[>%]\}\}")}
_HUGO_ESCAPED = re.compile(r"(\{\{[<%])\s*/\*(.{0,4000}?)\*/\s*([%>]\}\})", re.S)

_LIQUID = re.compile(
    r"\{%-?\s*(?P<paired>raw|comment|highlight\s+(?P<language>[^\s%]+))\b.{0,4000}?-?%\}"
    r"|\{%.{0,4000}?%\}|\{\{.{0,4000}?\}\}|\{#(?!\w).{0,4000}?#\}",
    re.S,
)
_LIQUID_CLOSING = {
    name: re.compile(rf"\{{%-?\s*end{name}\s*-?%\}}") for name in ("raw", "comment", "highlight")
}

# WordPress shows an unknown [word] as text, so only its own shortcodes and those with arguments or a
# closing tag are tags here: "[sic]" and "[1]" stay.
_WORDPRESS_CORE = "caption|wp_caption|gallery|embed|audio|video|playlist|toc|more"
_WORDPRESS_PRIVATE = "private|member|members|members_only|restrict|protected|hide"
_WORDPRESS = re.compile(
    rf"\[(?P<paired>{_WORDPRESS_PRIVATE})\b[^\]\n]*\]"
    rf"|\[/?(?:{_WORDPRESS_CORE})\b[^\]\[]*\](?![(\[:])"
    r"|\[/[a-z][\w-]*\](?![(\[:])"
    r"|\[(?P<name>[a-z][\w-]*)(?:\s[^\]\[]*?)?/?\](?![(\[:])",
    re.S | re.I,
)
_WORDPRESS_CLOSING = {name: re.compile(rf"\[/{name}\]", re.I) for name in _WORDPRESS_PRIVATE.split("|")}


class _Pairs:
    """The closing tags of one text."""

    def __init__(self, text: str, closing: Mapping[str, re.Pattern[str]]) -> None:
        self._text = text
        self._closing = closing
        self._last = {name: _last_start(tag, text) for name, tag in closing.items()}

    def close(self, opening: re.Match[str]) -> re.Match[str] | None:
        """The tag that closes a paired one, or None; behind the last one nothing is sought."""
        name = (opening["paired"] or "").split(" ")[0].lower()
        if opening.end() > self._last.get(name, -1):
            return None
        return self._closing[name].search(self._text, opening.end())


def _last_start(tag: re.Pattern[str], text: str) -> int:
    return max((match.start() for match in tag.finditer(text)), default=-1)


def strip_hugo(text: str) -> str:
    """A Hugo text without its shortcodes. Escaped ones are shown as a reader sees them, also in code."""
    if "{{<" not in text and "{{%" not in text:
        return text
    pairs = _Pairs(text, _HUGO_CLOSING)

    def replacement(_: str, match: re.Match[str]) -> tuple[str, int]:
        if closing := pairs.close(match):
            return "", closing.end()
        return _seen_arguments(match[0]), match.end()

    return _HUGO_ESCAPED.sub(r"\1\2\3", rewrite(text, _HUGO, replacement))


def strip_liquid(text: str, is_html: bool = False) -> str:
    """A Jekyll or Zola text without its template tags; `highlight` becomes a block of code.

    In markdown, tags in code stay; HTML has no such code, and its indent means nothing.
    """
    if "{%" not in text and "{{" not in text:
        return text
    pairs = _Pairs(text, _LIQUID_CLOSING)

    def replacement(_: str, match: re.Match[str]) -> tuple[str, int]:
        if closing := pairs.close(match):
            return _liquid_pair(match, text[match.end() : closing.start()], is_html), closing.end()
        return "" if match[0].startswith("{#") else _seen_arguments(match[0]), match.end()

    return rewrite(text, _LIQUID, replacement, spans=() if is_html else None)


def _liquid_pair(opening: re.Match[str], inner: str, is_html: bool) -> str:
    if language := opening["language"]:
        code = inner.removeprefix("\n").removesuffix("\n")
        if is_html:
            return f'<pre><code class="language-{language}">{html.escape(code)}</code></pre>'
        return f"```{language}\n{code}\n```"
    return inner if opening["paired"] == "raw" else ""


def strip_wordpress(text: str) -> str:
    """A WordPress text without its shortcodes. What only members may read goes with its tags."""
    if "[" not in text:
        return text
    paired = {name.lower() for name in re.findall(r"\[/([A-Za-z][\w-]*)\]", text)}
    pairs = _Pairs(text, _WORDPRESS_CLOSING)

    def replacement(_: str, match: re.Match[str]) -> tuple[str, int] | None:
        if closing := pairs.close(match):
            return "", closing.end()
        name = match["name"] or match["paired"]
        if name and name.lower() not in paired and not re.search(r"""\w=["']?\S""", match[0]):
            return None
        return _seen_arguments(match[0]), match.end()

    return rewrite(text, _WORDPRESS, replacement)


def _seen_arguments(tag: str) -> str:
    return " ".join(value for pair in _SEEN.findall(tag) if (value := pair[0] or pair[1]))
