"""A folder of HTML pages, as a web server would serve it."""

from __future__ import annotations

import hashlib
import posixpath
from collections import Counter
from dataclasses import dataclass
from pathlib import PurePosixPath

from pipeline import urls
from pipeline.export.html_text import (
    canonical_url,
    decode_html,
    html_description,
    html_language,
    html_title,
    is_noindex,
    main_markdown,
    parse_html,
)
from pipeline.export.markdown import partial_reason
from pipeline.export.tree import find_files, read_bytes
from pipeline.export.types import Exclusion, Export, ExportWarning
from pipeline.page import Page
from pipeline.site import Site


@dataclass(frozen=True, slots=True)
class HtmlPage:
    """A page, and the language that its html element names, or empty."""

    page: Page
    language: str


def export_html(site: Site) -> Export:
    """The pages of a folder of HTML files.

    A page lives at its canonical address when that is below base_url, else at its path; two files with
    one canonical address are one page, the file that stands there. `noindex` pages and `_`-prefixed files
    and folders are left out.
    """
    exclusions: list[Exclusion] = []
    warnings: list[ExportWarning] = []
    pages: list[Page] = []
    languages: dict[str, str] = {}
    for path, location in find_files(site, (".html", ".htm", ".xhtml"), exclusions):
        # Servers show it in place of pages that are not there; it is no page itself.
        if reason := partial_reason(path) or ("an error page" if path == "404.html" else None):
            exclusions.append(Exclusion(path, reason))
            continue
        read = html_page(site, path, read_bytes(location), _file_url(site, path))
        if isinstance(read, Exclusion):
            exclusions.append(read)
            continue
        page = read.page
        if read.language:
            languages[path] = read.language
        if not page.body.strip():
            warnings.append(ExportWarning(path, 0, "no text in its main part"))
        pages.append(page)
    n_by_url = Counter(page.url for page in pages)
    own = {page.url for page in pages if page.url == _file_url(site, page.path)}
    copies = {page.path for page in pages if n_by_url[page.url] > 1 and page.url in own}
    copies -= {page.path for page in pages if page.url == _file_url(site, page.path)}
    exclusions += [
        Exclusion(page.path, f"its canonical page is {page.url}") for page in pages if page.path in copies
    ]
    kept = tuple(page for page in pages if page.path not in copies)
    n_pages_in = len(kept) + len(exclusions)
    return Export(site.name, n_pages_in, kept, tuple(exclusions), tuple(warnings), languages=languages)


def html_page(
    site: Site, path: str, data: bytes, own_url: str, charset: str | None = None
) -> HtmlPage | Exclusion:
    """The page of an HTML document's bytes, or why it is left out."""
    text = decode_html(data, charset)
    soup = parse_html(text)
    if is_noindex(soup):
        return Exclusion(path, "noindex")
    if soup.select_one('meta[http-equiv="refresh" i]') and len(soup.get_text(strip=True)) < 200:
        return Exclusion(path, "a redirect")
    title, body = html_title(soup), main_markdown(text)
    if not title and not body.strip():
        return Exclusion(path, "empty")
    canonical = canonical_url(soup, own_url)
    page = Page(
        site=site.name,
        collection=site.collection,
        path=path,
        url=canonical if canonical and canonical.startswith(site.base_url) else own_url,
        title=title or PurePosixPath(path).stem.replace("-", " "),
        description=html_description(soup),
        body=body,
        anchor_style="none",
        sha256=hashlib.sha256(data).hexdigest(),
    )
    return HtmlPage(page, html_language(soup))


def _file_url(site: Site, path: str) -> str:
    folder, name = posixpath.split(path)
    if urls.strip_suffix(name) == "index":
        return urls.join(site.base_url, urls.quote_path(folder), True)
    if site.trailing_slash is None:
        return urls.join(site.base_url, urls.quote_path(path))
    return urls.join(site.base_url, urls.quote_path(urls.strip_suffix(path)), site.trailing_slash)
