"""Words of others as markdown that shows them and does nothing else, in CommonMark, GFM and MDX alike."""

from __future__ import annotations

import re
import unicodedata
from urllib.parse import quote

from pipeline import urls

# What begins inline markup, a table's cell, an entity, a formula or an expression. `<` is written as an
# entity, so that no later step that knows less of escapes ever sees a tag or a comment. A `!` makes an image
# of the link behind it, and of `www.` GFM makes an address, in which escapes are none.
_MARKUP = re.compile(r"[\\`*_\[\]{}|~$&>]|!\Z|(?<=[wW]{3})\.")
# What begins a block where a line begins.
_BLOCK = re.compile(r"(?:[#+=:-]|\d+(?=[.)]))")
_URL = re.compile(r"https?://[^\s<>\"`|\\^{}]+", re.I)
# Full stops, commas and brackets behind an address end the sentence around it.
_URL_END = ".,:;!?'\")]*_~"


def escape(text: str) -> str:
    """Text on one line, for wherever markdown has inline text. Addresses of the web in it become links."""
    line = _line(text)
    parts, done = [], 0
    for match in _URL.finditer(line):
        address = match[0].rstrip(_URL_END)
        if urls.is_http_url(address):
            parts += [_plain(line[done : match.start()], at_start=done == 0), link(address, address)]
            done = match.start() + len(address)
    return "".join([*parts, _plain(line[done:], at_start=done == 0)])


def link(text: str, address: str) -> str:
    """A link to an http(s) address; of any other, the text alone."""
    plain = _plain(_line(text), at_start=True)
    if not urls.is_http_url(address) or not plain:
        return plain
    # Brackets and spaces would end the address; what is quoted already stays.
    target = quote(urls.quote_address(address), safe="%/:=&?~#+!$,;@")
    return f"[{plain}]({target})"


def _plain(text: str, at_start: bool) -> str:
    escaped = _MARKUP.sub(r"\\\g<0>", text).replace("<", "&lt;")
    if at_start and (block := _BLOCK.match(escaped)):
        at = block.end() - (not block[0].isdecimal())
        escaped = f"{escaped[:at]}\\{escaped[at:]}"
    return escaped


def _line(text: str) -> str:
    """Text on one line, without control characters and marks that turn what follows (UAX 9, 2.2)."""
    turning = "\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
    line = " ".join(text.split())
    seen = "".join(c for c in line if unicodedata.category(c) not in ("Cc", "Cs") and c not in turning)
    return " ".join(seen.split())
