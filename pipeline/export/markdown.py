"""A tree of plain markdown files: the address of a page is its path, unless its front matter says another."""

from __future__ import annotations

import posixpath

from pipeline import urls
from pipeline.export.tree import Draft, Rules, publish, read_tree
from pipeline.export.types import Export
from pipeline.frontmatter import text_value
from pipeline.site import Site, SiteError


def export_markdown(site: Site) -> Export:
    """The pages of a markdown tree. `_`-prefixed files and folders are partials, not pages."""
    tree = read_tree(site)
    folders_with_index = {
        posixpath.dirname(draft.path) for draft in tree.drafts if _name(draft.path) == "index"
    }
    return publish(
        site,
        tree,
        Rules(
            anchor_style="github",
            url=lambda draft: _url(site, draft, folders_with_index),
            hidden=lambda draft: partial_reason(draft.path),
        ),
    )


def partial_reason(path: str) -> str | None:
    """Why a path is a partial (`_draft.md`, `_notes/a.md`), or None when it is not."""
    return "a partial" if any(part.startswith("_") for part in path.split("/")) else None


def written_url(site: Site, path: str, address: str, key: str) -> str:
    """The public URL of an address in a page's front matter: absolute, or a path below base_url.

    Raises SiteError naming file and key for an address of another scheme than http(s).
    """
    if urls.is_http_url(address):
        return urls.quote_address(address)
    if urls.has_scheme(address) or address.startswith("//"):
        raise SiteError(
            f"{site.source_path / path}: {key}: {address!r} is neither a path nor an http(s) address; "
            f"write /{posixpath.basename(urls.strip_suffix(path))}/ or https://…"
        )
    return urls.join(site.base_url, urls.quote_address(address))


def _url(site: Site, draft: Draft, folders_with_index: set[str]) -> str:
    if address := text_value(draft.front.meta.get("url")):
        return written_url(site, draft.path, address, "url")
    slash = site.trailing_slash
    folder, name = posixpath.dirname(draft.path), _name(draft.path)
    if slug := text_value(draft.front.meta.get("slug")):
        if slug.startswith("/"):
            return urls.join(site.base_url, urls.quote_address(slug), slash)
        return urls.join(
            site.base_url, posixpath.join(urls.quote_path(folder), urls.quote_address(slug)), slash
        )
    if site.keep_extension:
        return urls.join(site.base_url, urls.quote_path(draft.path))
    if name == "index" or (name == "README" and folder not in folders_with_index):
        return urls.join(site.base_url, urls.quote_path(folder) + "/", slash)
    return urls.join(site.base_url, urls.quote_path(urls.strip_suffix(draft.path)), slash)


def _name(path: str) -> str:
    return posixpath.basename(urls.strip_suffix(path))
