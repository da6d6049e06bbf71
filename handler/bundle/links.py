"""Links from page to page of one site: their words say what the other page is about."""

from __future__ import annotations

import posixpath
import re
from urllib.parse import urljoin, urlsplit

_CODE = r"(?<!`)(?P<ticks>`+)(?!`).+?(?<!`)(?P=ticks)(?!`)"
# A link may hold an image.
_LABEL = r"(?<![!\\])\[(?P<label>(?:[^\[\]]++|(?<=!)\[[^\[\]]*+\]\([^()]*+\))*+)\]"
_TITLE = r"""(?:"[^"]*"|'[^']*'|\([^()]*\))"""
_TARGET = rf"\(\s*(?P<target><[^<>\n]*>|[^\s()]*(?:\([^\s()]*\)[^\s()]*)*)(?P<title>\s+{_TITLE})?\s*\)"
_DEFINITION = r"^ {0,3}\[(?!\^)(?P<name>[^\[\]\n]+)\]:[ \t]*(?P<address>\S+)(?P<rest>[^\n]*)$"
_LINK = re.compile(rf"{_CODE}|{_DEFINITION}|{_LABEL}{_TARGET}", re.S | re.M)

# What a page's address may end in. Others are files, whose links say what they are.
_PAGE_SUFFIXES = frozenset(("", ".md", ".mdx", ".markdown", ".htm", ".html", ".php"))


def split_links(markdown: str, url: str) -> tuple[str, str]:
    """A text of the page at `url` without its links to pages of the same site, and those links.

    Links in code are code. An absolute address is of the same site when it has the same host.
    """
    if "](" not in markdown and "]:" not in markdown:
        return markdown, ""
    links: list[str] = []

    def keep(match: re.Match[str]) -> str:
        target = match["target"] or match["address"]
        if target is None or not _is_page_of_site(target.strip("<>"), url):
            return match[0]
        links.append(match[0])
        return " "

    return _LINK.sub(keep, markdown), "\n".join(links)


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
