"""Links from page to page of one site: their words say what the other page is about."""

from __future__ import annotations

import posixpath
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from urllib.parse import urljoin, urlsplit

from handler.bundle.passage import LINK_ADDRESS, LINK_TITLE

_CODE = r"(?<![`~])(?P<fence>`+|~{3,})(?![`~]).+?(?<![`~])(?P=fence)(?![`~])"
# CommonMark 0.31, section 4.7. Footnotes (`[^1]`) look alike and are none, nor is prose behind `[Note]:`.
_DEFINITION = (
    r"^ {0,3}\[(?!\^)(?P<defined>[^\[\]\n]+)\]:[ \t]*(?P<address><[^<>\n]*>|[^\s<]\S*)"
    rf"(?:[ \t]+{LINK_TITLE})?[ \t]*\r?$"
)
# A link's text may hold an image.
_LABEL = r"(?<![!\\\]])\[(?P<label>(?:[^\[\]]++|(?<=!)\[[^\[\]]*+\]\([^()]*+\))*+)(?<!\\)\]"
_TARGET = (
    rf"\(\s*+(?P<target>{LINK_ADDRESS})(?:\s+{LINK_TITLE})?\s*\)"
    r"|\[(?!\^)(?P<name>[^\[\]]*)\]"
)
_LINK = re.compile(rf"{_CODE}|{_DEFINITION}|{_LABEL}(?:{_TARGET})?", re.S | re.M)

# What a page's address may end in. Others are files, whose links say what they are.
_PAGE_SUFFIXES = frozenset(("", ".md", ".mdx", ".markdown", ".htm", ".html", ".php"))

_NO_DEFINITIONS: Mapping[str, str] = {}


def split_links(markdown: str, url: str, definitions: Mapping[str, str] = _NO_DEFINITIONS) -> tuple[str, str]:
    """A text of the page at `url` without its links to pages of the same site, and those links, a line each.

    Links in code are code. An absolute address is of the same site when it has the same host. `definitions`
    are what the page says anywhere of the names of its reference links.
    """
    if "[" not in markdown:
        return markdown, ""
    links: list[str] = []

    def keep(match: re.Match[str]) -> str:
        target = match["address"] or match["target"]
        if target is None and match["label"]:
            target = definitions.get(_folded(match["name"] or match["label"]))
        if target is None or not _is_page_of_site(target.strip("<>"), url):
            return match[0]
        links.append(" ".join(match[0].split()))
        return " "

    return _LINK.sub(keep, markdown), "\n".join(links)


def link_definitions(markdown: str) -> dict[str, str]:
    """The addresses that a text defines for reference links, by folded name: of several the first."""
    found: dict[str, str] = {}
    if "]:" in markdown:
        for match in _LINK.finditer(markdown):
            if match["defined"]:
                found.setdefault(_folded(match["defined"]), match["address"])
    return found


def definitions_by_page(texts: Iterable[tuple[str, str]]) -> Mapping[str, Mapping[str, str]]:
    """The link definitions of each page by its URL, of the URLs and texts of chunks; none of any other page.

    They mostly stand at a page's end, far from their links.
    """
    found: defaultdict[str, dict[str, str]] = defaultdict(dict)
    for url, text in texts:
        for name, address in link_definitions(text).items():
            found[url].setdefault(name, address)
    return found


def _folded(name: str) -> str:
    return " ".join(name.split()).casefold()


def _is_page_of_site(target: str, url: str) -> bool:
    try:
        address = urlsplit(urljoin(url, target))
    except ValueError:
        return False
    here = urlsplit(url)
    return (address.scheme.removesuffix("s"), address.netloc) == (
        here.scheme.removesuffix("s"),
        here.netloc,
    ) and posixpath.splitext(address.path)[1].lower() in _PAGE_SUFFIXES
