"""Zola content: sections, co-located pages, slugs and template tags."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Sequence

from pipeline import urls
from pipeline.export.generator import is_below, read_config, site_languages
from pipeline.export.language import file_language, page_language
from pipeline.export.markdown import partial_reason
from pipeline.export.sections import below, content_prefix, hidden_section, section_files
from pipeline.export.shortcodes import strip_liquid
from pipeline.export.tree import Draft, Rules, publish, read_tree
from pipeline.export.types import Export
from pipeline.frontmatter import Meta, is_false, text_value
from pipeline.site import Site

_DATE = re.compile(r"\d{4}-\d{2}-\d{2}(?:T[\d:]+(?:\.\d+)?(?:Z|[+-][\d:]+)?)?[-_](?=.)")


def export_zola(site: Site) -> Export:
    """The pages and sections of a Zola site, with Zola's default slugs (`slugify.paths = "on"`).

    options.content in site.toml names the content folder.
    """
    tree = read_tree(site)
    prefix = content_prefix(site)
    sections = section_files(below(prefix, tree.drafts))
    config = read_config(site, "config.toml", "zola.toml")
    ignored = config.get("ignored_content")
    languages = site_languages(site, text_value(config.get("default_language")), config.get("languages"))
    others = [tag for tag in languages if tag != languages[0]]

    def hidden(draft: Draft) -> str | None:
        if not draft.path.startswith(prefix):
            return "outside of the content folder"
        if is_below(draft.path.removeprefix(prefix), ignored):
            return "ignored by Zola's configuration"
        if not draft.path.rsplit("/", 1)[-1].startswith("_index.") and (reason := partial_reason(draft.path)):
            return reason
        if "render" in draft.front.meta and is_false(draft.front.meta["render"]):
            return "render = false"
        return hidden_section(below(prefix, [draft])[0], sections)

    def url(draft: Draft) -> str:
        return _url(site, draft.front.meta, draft.path.removeprefix(prefix), others)

    def language(draft: Draft) -> str:
        return page_language(draft.front.meta) or file_language(draft.path, languages)

    rules = Rules(anchor_style="zola", url=url, hidden=hidden, body=strip_liquid, language=language)
    return publish(site, tree, rules)


def _url(site: Site, meta: Meta, file: str, languages: Sequence[str]) -> str:
    if path := text_value(meta.get("path")):
        return urls.join(site.base_url, urls.quote_address(path), True)
    stem = urls.strip_suffix(file)
    stem, dot, language = stem.rpartition(".")
    prefix = f"{language}/" if dot and language in languages else ""
    stem = stem if prefix else urls.strip_suffix(file)
    folder, name = posixpath.split(stem)
    if name == "_index":
        return urls.join(site.base_url, prefix + _slugs(folder), True)
    if name == "index":
        folder, name = posixpath.split(folder)
    slug = text_value(meta.get("slug")) or _DATE.sub("", name, count=1)
    return urls.join(site.base_url, prefix + _slugs(posixpath.join(folder, slug)), True)


def _slugs(path: str) -> str:
    return "/".join(urls.zola_slug(part) for part in path.split("/") if part)
