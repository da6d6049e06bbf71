"""HTML as markdown: the main part of a page, without the furniture of its site."""

from __future__ import annotations

import logging
import re
from collections import Counter
from typing import Any
from urllib.parse import urljoin

import trafilatura
from bs4 import BeautifulSoup, Comment, Tag
from bs4.dammit import UnicodeDammit
from markdownify import ATX, MarkdownConverter

from pipeline.language import primary_language

# A page that it finds no text in is kept whole here; its own errors about that would alarm for nothing.
logging.getLogger("trafilatura").setLevel(logging.CRITICAL)

_NOT_TEXT = "script, style, template, noscript, iframe, svg, canvas, object, title, meta, link, base"
_CONTROLS = frozenset(("dialog", "form", "button", "select", "input"))
_FURNITURE_ROLES = frozenset(("navigation", "banner", "contentinfo", "search", "dialog", "alertdialog"))
_BANNER = re.compile(
    r"(?:^|[-_ ])(?:cookies?|consent|gdpr|cookie(?:bar|banner|notice|law)|breadcrumbs?"
    r"|skip-?(?:link|nav|to-content)\w*|share|sharing|social-?links|newsletter|subscribe"
    r"|site-?(?:header|footer|nav)|navbar|sidebar|toc|table-of-contents|related-posts"
    r"|pagination|pager)(?:$|[-_ ])",
    re.I,
)
_PERMALINK_CLASSES = frozenset(
    ("headerlink", "hash-link", "anchor", "heading-anchor", "header-anchor", "anchor-link")
)
_HEADINGS = ("h1", "h2", "h3", "h4", "h5", "h6")
_PERMALINK_SIGNS = frozenset(("", "#", "¶", "§", "🔗", "\u200b"))
# Of the words that trafilatura takes for the page's text, the share that the chosen element must hold. It
# sometimes takes a line of furniture along, which must not make the whole page the main part.
_HELD_SHARE = 0.97
# Elements nested deeper give way to what is in them: the converter calls itself for each level.
_DEEPEST_LEVEL = 120
_INLINE = frozenset(
    ("a", "abbr", "b", "code", "em", "font", "i", "mark", "small", "span", "strong", "sub", "sup", "u")
)
# An element with more than this share of the page's words is no furniture, whatever its name says
# (a form around the whole page, a class "with-sidebar" on the layout).
_FURNITURE_SHARE = 0.3


class _Converter(MarkdownConverter):
    """Markdown whose headings keep their ids as `{#id}`, so that citations can point at them."""

    def convert_hN(self, n: int, el: Tag, text: str, parent_tags: set[str]) -> str:  # noqa: N802
        converted: str = super().convert_hN(n, el, text, parent_tags)  # type: ignore[misc]  # made by name
        anchor = _anchor(el)
        if not anchor or not converted.strip() or "_inline" in parent_tags:
            return converted
        return f"{converted.rstrip()} {{#{anchor}}}\n\n"

    def convert_dt(self, el: Tag, text: str, parent_tags: set[str]) -> str:  # noqa: ARG002
        return f"\n\n**{text.strip()}**\n" if text.strip() else ""

    def convert_dd(self, el: Tag, text: str, parent_tags: set[str]) -> str:  # noqa: ARG002
        return f"\n{text.strip()}\n" if text.strip() else ""


def decode_html(data: bytes, charset: str | None = None) -> str:
    """The text of an HTML file's bytes: by `charset` (of the HTTP header), byte-order mark, meta or guess."""
    dammit = UnicodeDammit(data, known_definite_encodings=[charset] if charset else [], is_html=True)
    return dammit.unicode_markup or data.decode("latin-1")


def parse_html(text: str) -> BeautifulSoup:
    """The tree of an HTML text, however broken. Headings link to themselves no more, but keep their ids."""
    soup = BeautifulSoup(text, "lxml")
    _flatten(soup)
    for heading in soup.find_all(_HEADINGS):
        for link in heading.select("a"):
            is_sign = bool(_PERMALINK_CLASSES & set(link.get("class") or ()))
            if link.get("id") and not heading.get("id"):
                heading["id"] = str(link["id"])
            if is_sign and link.get_text(strip=True) in _PERMALINK_SIGNS:
                link.decompose()
            elif str(link.get("href") or "").startswith("#"):
                link.unwrap()
    return soup


def _flatten(soup: BeautifulSoup) -> None:
    """Bound the depth of a tree; words of elements that go stay apart."""
    levels: list[tuple[Tag, int]] = [(soup, 0)]
    too_deep: list[Tag] = []
    while levels:
        element, level = levels.pop()
        for child in element.find_all(True, recursive=False):
            levels.append((child, level + 1))
            if level >= _DEEPEST_LEVEL:
                too_deep.append(child)
    for element in too_deep:
        if element.name not in _INLINE:
            element.insert(0, "\n")
            element.append("\n")
        element.unwrap()


def html_title(soup: BeautifulSoup) -> str:
    """The page's own title: og:title, else its only h1, else the title element; empty when there is none.

    Where a site's name is an h1 too, the only one of the main part counts.
    """
    candidates = [_meta(soup, "og:title")]
    headings = soup.find_all("h1")
    if len(headings) > 1:
        headings = soup.select("main h1")
    if len(headings) == 1:
        candidates.append(headings[0].get_text())
    if soup.title is not None:
        candidates.append(soup.title.get_text())
    return next((title for candidate in candidates if (title := " ".join(candidate.split()))), "")


def html_description(soup: BeautifulSoup) -> str:
    """The page's meta description, or empty."""
    return " ".join((_meta(soup, "description") or _meta(soup, "og:description")).split())


def html_language(soup: BeautifulSoup) -> str:
    """The language that the html element names, such as `en`; empty when it names none."""
    return (
        primary_language(str(soup.html.get("lang") or soup.html.get("xml:lang") or "")) if soup.html else ""
    )


def canonical_url(soup: BeautifulSoup, own_url: str) -> str | None:
    """The address that the page itself calls canonical, absolute and without fragment."""
    link = soup.select_one('link[rel~="canonical"][href]')
    return urljoin(own_url, str(link["href"]).strip()).partition("#")[0] if link else None


def is_noindex(soup: BeautifulSoup) -> bool:
    """Whether the page asks search engines, all or one of them, to leave it out."""
    directives = " ".join(
        str(meta.get("content", "")) for meta in soup.find_all("meta") if _is_for_robots(meta)
    )
    return bool(re.search(r"\b(?:noindex|none)\b", directives.lower()))


def _is_for_robots(meta: Tag) -> bool:
    names = (str(meta.get(key) or "").strip().lower() for key in ("name", "property", "http-equiv"))
    return any(name in ("robots", "x-robots-tag") or name.endswith("bot") for name in names)


def main_markdown(text: str) -> str:
    """The main part of an HTML page as markdown.

    trafilatura says which words are the page's text; the smallest element that holds them is converted
    whole, so that code, tables, lists and heading ids stay as they are (trafilatura's own output loses them).
    """
    soup = parse_html(text)
    # As parsed: trafilatura refuses a document without an html element.
    extracted = trafilatura.extract(str(soup), include_comments=False, favor_recall=True)
    words = Counter((extracted or "").split())
    root = soup.body or soup
    _remove_furniture(root, words)
    return _convert(_smallest_holder(root, words) if words else root)


def html_to_markdown(text: str) -> str:
    """All of an HTML fragment as markdown."""
    return _convert(parse_html(text))


def _convert(element: Tag) -> str:
    for comment in element.find_all(string=lambda string: isinstance(string, Comment)):
        comment.extract()
    for hidden in element.select(_NOT_TEXT):
        hidden.decompose()
    markdown: str = _Converter(
        heading_style=ATX,
        bullets="-",
        code_language_callback=_code_language,
        escape_asterisks=False,
        escape_underscores=False,
        table_infer_header=True,
    ).convert_soup(element)
    return re.sub(r"[ \t]+$", "", re.sub(r"\n{3,}", "\n\n", markdown), flags=re.M).strip() + "\n"


def _remove_furniture(root: Tag, words: Counter[str]) -> None:
    """Take out what belongs to the site rather than to the page, unless it holds much of the page's text."""
    for element in root.select(f"{_NOT_TEXT}, nav, footer"):
        element.decompose()
    total = words.total()
    for element in root.find_all(True):
        if not element.decomposed and _looks_like_furniture(element):
            held = (words & Counter(element.get_text(" ").split())).total()
            if held <= _FURNITURE_SHARE * total:
                element.decompose()


def _looks_like_furniture(element: Tag) -> bool:
    if element.name in ("html", "body", "main", "article"):
        return False
    if element.name in ("header", "aside"):
        return element.find_parent(("main", "article")) is None
    if (
        element.name in _CONTROLS
        or element.get("role") in _FURNITURE_ROLES
        or element.get("aria-hidden") == "true"
    ):
        return True
    if element.has_attr("hidden") and element.get("role") != "tabpanel":
        return True
    names = " ".join([str(element.get("id") or ""), *(element.get("class") or ())])
    return bool(_BANNER.search(names)) and element.find_parent(("pre", "code", "table")) is None


def _smallest_holder(root: Tag, words: Counter[str]) -> Tag:
    """The deepest element that still holds nearly all the given words; below main or article all of them."""
    needed = _HELD_SHARE * (words & Counter(root.get_text(" ").split())).total()
    while True:
        if root.name in ("main", "article"):
            needed = (words & Counter(root.get_text(" ").split())).total()
        held = (
            child
            for child in root.find_all(True, recursive=False)
            if (words & Counter(child.get_text(" ").split())).total() >= needed
        )
        child = next(held, None)
        if child is None or child.name in ("table", "pre", "ul", "ol", "p", "blockquote"):
            return root
        root = child


def _anchor(heading: Tag) -> str:
    """The fragment of a heading: its own id, its inner anchor's, or that of the section it opens."""
    inner = heading.find(lambda tag: tag.has_attr("id") or (tag.name == "a" and tag.has_attr("name")))
    parent = (
        heading.parent if heading.parent is not None and heading.parent.name in ("section", "div") else None
    )
    opens = parent is not None and next(parent.find_all(True, recursive=False).__iter__(), None) is heading
    for tag in (heading, inner, parent if opens else None):
        if isinstance(tag, Tag) and (
            value := tag.get("id") or (tag.get("name") if tag.name == "a" else None)
        ):
            return re.sub(r"[\s{}]", "", str(value))
    return ""


def _code_language(pre: Tag) -> str:
    for element in (pre, pre.find("code"), pre.parent):
        for name in (element.get("class") or ()) if isinstance(element, Tag) else ():
            if match := re.fullmatch(
                r"(?:language|lang|highlight-source|brush:?|highlight)-?([\w+#-]+)", str(name)
            ):
                return match[1]
    return ""


def _meta(soup: BeautifulSoup, name: str) -> str:
    wanted: Any = re.compile(rf"^{re.escape(name)}$", re.I)
    meta = soup.find("meta", attrs={"name": wanted}) or soup.find("meta", attrs={"property": wanted})
    return str(meta.get("content") or "") if isinstance(meta, Tag) else ""
