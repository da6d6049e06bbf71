"""A Docusaurus 3 checkout: the docs and blog instances that site.toml lists."""

from __future__ import annotations

import re

from pipeline import urls
from pipeline.export.admonitions import strip_admonitions, titles
from pipeline.export.markdown import partial_reason
from pipeline.export.mdx import strip_mdx
from pipeline.export.tree import Draft, Rules, publish, read_tree
from pipeline.export.types import Export, ExportWarning
from pipeline.frontmatter import text_value
from pipeline.site import Instance, Site, SiteError


def export_docusaurus(site: Site) -> Export:
    """The pages of the site's docs and blogs; src/pages is React and stays out.

    Versions, translations and generated pages (tags, archives, category indexes) are not exported.
    Raises SiteError when site.toml lists no instance, or a folder that is not there.
    """
    if not site.instances:
        raise SiteError(
            f"{site.toml}: instances: list the docs and blog folders, such as "
            '[[instances]] type = "docs" folder = "docs" route = "docs"'
        )
    for instance in site.instances:
        if not (site.source_path / instance.folder).is_dir():
            raise SiteError(f"{site.toml}: instances: folder: {instance.folder!r} is not in {site.source}")

    def hidden(draft: Draft) -> str | None:
        instance = _instance(site, draft.path)
        if instance is None:
            return "outside the docs and blog folders of site.toml"
        below = draft.path.removeprefix(f"{instance.folder}/")
        if "__tests__" in below.split("/") or ".test." in below:
            return "a test"
        return partial_reason(below)

    rules = Rules(
        anchor_style="docusaurus",
        url=lambda draft: _url(site, draft),
        hidden=hidden,
        body=lambda text: strip_admonitions(strip_mdx(text)),
        notes=_notes,
    )
    return publish(site, read_tree(site), rules)


def _notes(draft: Draft) -> list[ExportWarning]:
    """Words to the reader that may have been meant to hide the page, and hide it nowhere."""
    return [
        ExportWarning(
            draft.path,
            draft.front.body_line + line - 1,
            f"an admonition says {title!r}, and hides nothing; if it is meant: "
            "unlisted: true in the front matter",
        )
        for line, title in titles(draft.front.body)
        if re.search(r"\b(?:private|draft)\b", title, re.I)
    ]


def _instance(site: Site, path: str) -> Instance | None:
    """The instance a file belongs to: the one with the deepest folder."""
    owners = [i for i in site.instances if path.startswith(f"{i.folder}/") or not i.folder]
    return max(owners, key=lambda instance: len(instance.folder), default=None)


def _url(site: Site, draft: Draft) -> str:
    instance = _instance(site, draft.path)
    assert instance is not None  # files outside of the instances are hidden
    path = draft.path.removeprefix(f"{instance.folder}/")
    slug = text_value(draft.front.meta.get("slug")) or None
    if urls.has_scheme(slug or ""):
        raise SiteError(f"{site.source_path / draft.path}: slug: {slug!r} is not a path; write /{path}")
    if instance.type == "blog":
        below = urls.docusaurus_blog_slug(path, slug)
    else:
        below = urls.docusaurus_doc_slug(path, text_value(draft.front.meta.get("id")) or None, slug)
    quote = urls.quote_address if slug else urls.quote_path
    return urls.join(site.base_url, f"{instance.route}/{quote(below).lstrip('/')}", site.trailing_slash)
