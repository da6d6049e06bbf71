"""Template tags of site generators taken out of a text: what stood between and inside them stays."""

from __future__ import annotations

import re

from pipeline.export.prose import rewrite

# Named arguments whose value a reader sees.
_SEEN = re.compile(
    r"""\b(?:caption|title|alt|summary|label|text|author)\s*=\s*(?:"((?:\\.|[^"\\])*)"|'((?:\\.|[^'\\])*)')""",
    re.I,
)

# Tags have an upper length, so that one never closed is not sought through all of a large page.
_HUGO = re.compile(
    r"\{\{[<%]\s*comment\s*[>%]\}\}.*?\{\{[<%]\s*/\s*comment\s*[>%]\}\}|\{\{[<%](?!\s*/\*).{0,4000}?[%>]\}\}",
    re.S,
)
_HUGO_ESCAPED = re.compile(r"(\{\{[<%])\s*/\*(.{0,4000}?)\*/\s*([%>]\}\})", re.S)

_LIQUID = re.compile(
    r"\{%-?\s*raw\s*-?%\}(?P<raw>.*?)\{%-?\s*endraw\s*-?%\}"
    r"|\{%-?\s*comment\s*-?%\}.*?\{%-?\s*endcomment\s*-?%\}"
    r"|\{%-?\s*highlight\s+(?P<language>\S+).*?-?%\}\n?(?P<code>.*?)\n?\{%-?\s*endhighlight\s*-?%\}"
    r"|\{%.{0,4000}?%\}|\{\{.{0,4000}?\}\}|\{#(?!\w).{0,4000}?#\}",
    re.S,
)

# WordPress shows an unknown [word] as text, so only its own shortcodes and those with arguments or a
# closing tag are tags here: "[sic]" and "[1]" stay.
_WORDPRESS_CORE = "caption|wp_caption|gallery|embed|audio|video|playlist|toc|more"
_WORDPRESS_PRIVATE = "private|member|members|members_only|restrict|protected|hide"
_WORDPRESS = re.compile(
    rf"\[(?P<private>{_WORDPRESS_PRIVATE})\b[^\]\n]*\](?P<hidden>.*?)\[/(?P=private)\]"
    rf"|\[/?(?:{_WORDPRESS_CORE})\b[^\]\[]*\](?![(\[:])"
    r"|\[/[a-z][\w-]*\](?![(\[:])"
    r"|\[(?P<name>[a-z][\w-]*)(?:\s[^\]\[]*?)?/?\](?![(\[:])",
    re.S | re.I,
)


def strip_hugo(text: str) -> str:
    """A Hugo text without its shortcodes. Escaped ones are shown as a reader sees them, also in code."""
    if "{{<" not in text and "{{%" not in text:
        return text
    stripped = rewrite(text, _HUGO, lambda _, match: (_seen_arguments(match[0]), match.end()))
    return _HUGO_ESCAPED.sub(r"\1\2\3", stripped)


def strip_liquid(text: str) -> str:
    """A Jekyll or Zola text without its template tags; `highlight` becomes a fenced block."""
    if "{%" not in text and "{{" not in text:
        return text
    return rewrite(text, _LIQUID, _liquid_replacement)


def strip_wordpress(text: str) -> str:
    """A WordPress text without its shortcodes. What only members may read goes with its tags."""
    if "[" not in text:
        return text
    paired = {name.lower() for name in re.findall(r"\[/([A-Za-z][\w-]*)\]", text)}

    def replacement(_: str, match: re.Match[str]) -> tuple[str, int] | None:
        name = match["name"]
        if name and name.lower() not in paired and not re.search(r"""\w=["']?\S""", match[0]):
            return None
        return _seen_arguments(match[0]) if not match["private"] else "", match.end()

    return rewrite(text, _WORDPRESS, replacement)


def _liquid_replacement(_: str, match: re.Match[str]) -> tuple[str, int]:
    if match["raw"] is not None:
        return match["raw"], match.end()
    if match["code"] is not None:
        return f"```{match['language']}\n{match['code']}\n```", match.end()
    if re.match(r"\{%-?\s*comment\b|\{#", match[0]):
        return "", match.end()
    return _seen_arguments(match[0]), match.end()


def _seen_arguments(tag: str) -> str:
    return " ".join(value for pair in _SEEN.findall(tag) if (value := pair[0] or pair[1]))
