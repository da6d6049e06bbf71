"""One exporter for each kind of site, and the pages that come out of it."""

from __future__ import annotations

import dataclasses
from datetime import date

from pipeline import urls
from pipeline.export.dates import shown_on
from pipeline.export.docusaurus import export_docusaurus
from pipeline.export.html import export_html
from pipeline.export.hugo import export_hugo
from pipeline.export.jekyll import export_jekyll
from pipeline.export.language import in_language
from pipeline.export.markdown import export_markdown
from pipeline.export.types import Export, Exporter
from pipeline.export.web import export_url
from pipeline.export.wordpress import export_wordpress
from pipeline.export.zola import export_zola
from pipeline.page import Page
from pipeline.site import Site, SiteError

EXPORTERS: dict[str, Exporter] = {
    "markdown": export_markdown,
    "docusaurus": export_docusaurus,
    "wordpress": export_wordpress,
    "hugo": export_hugo,
    "jekyll": export_jekyll,
    "zola": export_zola,
    "html": export_html,
    "url": export_url,
}


def export(site: Site, today: date) -> Export:
    """The public pages of a site by path, as of today, and an account of all that is not published.

    Where site.toml names a language, those that say another one are not.

    Raises SiteError when two pages have one URL, or a page has none that is http(s) and absolute.
    """
    if site.kind not in ("url", "wordpress") and not site.source_path.is_dir():
        raise SiteError(f"{site.source}: not a folder, and kind {site.kind!r} takes one")
    exported = in_language(site.language, shown_on(today, EXPORTERS[site.kind](site)))
    pages = tuple(sorted(exported.pages, key=lambda page: page.path))
    check_urls(site, pages)
    return dataclasses.replace(
        exported,
        pages=pages,
        exclusions=tuple(sorted(exported.exclusions, key=lambda exclusion: exclusion.path)),
        warnings=tuple(sorted(exported.warnings, key=lambda w: (w.path, w.line, w.message))),
    )


def check_urls(site: Site, pages: tuple[Page, ...]) -> None:
    """Raise SiteError for the first page whose URL is no http(s) address, or is another page's already."""
    owners: dict[str, Page] = {}
    for page in pages:
        if not urls.is_http_url(page.url):
            raise SiteError(f"{site.source}: {page.path}: its URL {page.url!r} is not an http(s) address")
        other = owners.setdefault(page.url, page)
        if other is not page:
            raise SiteError(
                f"{site.source}: {other.path} and {page.path} have one URL, {page.url}; "
                f"change the slug of one, or add it to exclude in {site.toml}"
            )
