"""Reference links of markdown with their addresses beside them, so that a part of a page needs no other."""

from __future__ import annotations

import re

from pipeline.export.prose import rewrite

# CommonMark 0.31, sections 4.7 and 6.3. Footnotes (`[^1]`) look alike and are none.
_DEFINITION = re.compile(
    r"^ {0,3}\[(?!\^)(?P<name>(?:[^\[\]\\\n]|\\.)+)\]:[ \t]*(?:\n[ \t]*)?(?P<address><[^<>\n]*>|[^\s<]\S*)",
    re.M,
)
_REFERENCE = re.compile(
    r"(?<!\\)\[(?!\^)(?P<text>(?:[^\[\]\\]++|\\.|(?<=!)\[[^\[\]]*+\]\([^()]*+\))++)\]"
    r"(?:\[(?P<name>[^\[\]]*)\])?(?![:(\[])"
)


def inline_references(text: str) -> str:
    """The markdown with `[text][name]`, `[name][]` and `[name]` as `[text](address)`; definitions stay.

    Of several definitions of a name the first holds. Code is left alone.
    """
    if "]:" not in text:
        return text
    addresses: dict[str, str] = {}

    def collect(_: str, match: re.Match[str]) -> None:
        address = match["address"]
        whole = address.startswith("<") or address.count("(") == address.count(")")
        addresses.setdefault(_folded(match["name"]), address if whole else f"<{address}>")

    rewrite(text, _DEFINITION, collect)

    def inline(_: str, match: re.Match[str]) -> tuple[str, int] | None:
        address = addresses.get(_folded(match["name"] or match["text"]))
        return (f"[{match['text']}]({address})", match.end()) if address else None

    return rewrite(text, _REFERENCE, inline) if addresses else text


def _folded(name: str) -> str:
    return " ".join(name.split()).casefold()
