"""WordPress: a folder of markdown files with permalinks, or the WXR file that its own export makes."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import IO
from urllib.parse import urlsplit
from xml.etree.ElementTree import Element, ParseError

from defusedxml.common import DefusedXmlException
from defusedxml.ElementTree import iterparse

from pipeline import urls
from pipeline.export.html_text import html_to_markdown
from pipeline.export.markdown import partial_reason
from pipeline.export.shortcodes import strip_wordpress
from pipeline.export.title import plain_text
from pipeline.export.tree import Draft, Rules, pattern_reason, publish, read_tree
from pipeline.export.types import Exclusion, Export
from pipeline.frontmatter import text_value
from pipeline.page import Page
from pipeline.site import Site, SiteError

_CONTENT = "{http://purl.org/rss/1.0/modules/content/}encoded"
_EXCERPT = re.compile(r"\{http://wordpress\.org/export/[\d.]+/excerpt/\}encoded")
_BLOCK = re.compile(
    r"\s*</?(?:p|div|h[1-6]|ul|ol|li|dl|table|t[rhd]|thead|tbody|blockquote|pre|hr|figure|section|article|form"
    r"|details)\b",
    re.I,
)


def export_wordpress(site: Site) -> Export:
    """The posts and pages of a WordPress export, at the paths of their permalinks below base_url."""
    return _export_wxr(site) if site.source_path.is_file() else _export_markdown(site)


def _export_markdown(site: Site) -> Export:
    def hidden(draft: Draft) -> str | None:
        if not draft.front.meta and not draft.front.error:
            return "no front matter: not a post or page of the export"
        return partial_reason(draft.path.rsplit("/", 1)[-1])

    rules = Rules("none", url=lambda draft: _markdown_url(site, draft), hidden=hidden, body=strip_wordpress)
    return publish(site, read_tree(site), rules)


def _markdown_url(site: Site, draft: Draft) -> str:
    for key in ("permalink", "link", "url"):
        if address := text_value(draft.front.meta.get(key)):
            return permalink_url(site, draft.path, address)
    slug = next((s for key in ("post_name", "slug") if (s := text_value(draft.front.meta.get(key)))), None)
    name = urls.strip_suffix(draft.path).rsplit("/", 1)[-1]
    return urls.join(site.base_url, urls.quote_address(slug or re.sub(r"^\d{4}-\d\d-\d\d-", "", name)), True)


def permalink_url(site: Site, page_path: str, permalink: str) -> str:
    """The path (and query) of a page's permalink, put on the site's own base_url; `%xx` stays as it is.

    Raises SiteError naming page and key when it is no address.
    """
    try:
        parts = urlsplit(permalink)
    except ValueError as error:
        raise SiteError(
            f"{site.source}: {page_path}: permalink: {permalink!r} is not an address ({error})"
        ) from None
    path = urls.quote_address(parts.path) + (f"?{parts.query}" if parts.query else "")
    base = urlsplit(site.base_url).path
    if base != "/" and path.startswith(base):
        path = path[len(base) :]
    return urls.join(site.base_url, path, site.trailing_slash)


@dataclass(frozen=True, slots=True)
class _Item:
    """One post, page, attachment or menu entry of a WXR file."""

    title: str
    link: str
    post_id: str
    kind: str
    status: str
    password: str
    name: str
    content: str
    excerpt: str

    @property
    def path(self) -> str:
        """What stands for the item's file: WXR has one file for all."""
        return f"{self.kind or 'item'}/{self.name or self.post_id or 'untitled'}"


def _export_wxr(site: Site) -> Export:
    pages: list[Page] = []
    exclusions: list[Exclusion] = []
    seen: set[str] = set()
    try:
        with site.source_path.open("rb") as stream:
            for item in _items(stream):
                path = item.path if item.path not in seen else f"{item.path}-{item.post_id or len(seen)}"
                seen.add(path)
                reason = _reason_to_hide(item) or pattern_reason(site, path)
                if reason is None:
                    pages.append(_wxr_page(site, item, path))
                else:
                    exclusions.append(Exclusion(path, reason))
    except (ParseError, DefusedXmlException, LookupError, ValueError) as error:
        raise SiteError(f"{site.source}: not a well-formed WordPress export (WXR): {error}") from None
    if not pages and not exclusions:
        raise SiteError(f"{site.source}: no posts in it; export it in WordPress under Tools, Export")
    return Export(site.name, len(pages) + len(exclusions), tuple(pages), tuple(exclusions))


def _items(stream: IO[bytes]) -> Iterator[_Item]:
    """The items of a WXR stream, each forgotten by the parser once it is read."""
    channel: Element | None = None
    for event, element in iterparse(stream, events=("start", "end"), forbid_dtd=True):
        if event == "start":
            channel = element if element.tag == "channel" else channel
        elif element.tag == "item":
            yield _read_item(element)
            if channel is not None:
                channel.clear()


def _read_item(element: Element) -> _Item:
    texts: dict[str, str] = {}
    excerpt = ""
    for child in element:
        name = child.tag if child.tag == _CONTENT else child.tag.rpartition("}")[2]
        if _EXCERPT.match(child.tag):
            excerpt = child.text or ""
        else:
            texts.setdefault(name, (child.text or "").strip())
    return _Item(
        title=texts.get("title", ""),
        link=texts.get("link", ""),
        post_id=texts.get("post_id", ""),
        kind=texts.get("post_type", ""),
        status=texts.get("status", ""),
        password=texts.get("post_password", ""),
        name=texts.get("post_name", ""),
        content=texts.get(_CONTENT, ""),
        excerpt=excerpt.strip(),
    )


def _reason_to_hide(item: _Item) -> str | None:
    if item.kind not in ("post", "page"):
        return f"a WordPress {item.kind or 'item of no type'}"
    if item.status != "publish":
        return f"status: {item.status or 'none'}"
    if item.password:
        return "password-protected"
    if not (item.content.strip() or item.title.strip()):
        return "empty"
    return None


def _wxr_page(site: Site, item: _Item, path: str) -> Page:
    body = html_to_markdown(_paragraphs(strip_wordpress(item.content)))
    return Page(
        site=site.name,
        collection=site.collection,
        path=path,
        url=permalink_url(site, path, item.link or item.name),
        title=plain_text(item.title, markdown=False) or item.name.replace("-", " ") or item.post_id,
        description=plain_text(item.excerpt, markdown=False),
        body=body,
        anchor_style="none",
        sha256=hashlib.sha256(f"{item.title}\0{item.link}\0{item.content}".encode()).hexdigest(),
    )


def _paragraphs(content: str) -> str:
    """HTML with the paragraphs that WordPress makes of blank lines when it shows a classic post."""
    if "<!-- wp:" in content or re.search(r"<p\b", content, re.I):
        return content
    parts = re.split(r"(<pre\b.*?</pre>)", content, flags=re.S | re.I)
    for i in range(0, len(parts), 2):
        blocks = re.split(r"\r?\n[ \t]*\r?\n", parts[i])
        parts[i] = "\n".join(
            block if _BLOCK.match(block) else f"<p>{'<br>'.join(block.strip().splitlines())}</p>"
            for block in blocks
            if block.strip()
        )
    return "".join(parts)
