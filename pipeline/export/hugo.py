"""Hugo content: sections, page bundles, languages, permalinks and shortcodes."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Mapping, Sequence
from typing import Any

from pipeline import urls
from pipeline.export.dates import first_date, parse_date
from pipeline.export.generator import read_config, site_languages
from pipeline.export.language import file_language, page_language
from pipeline.export.markdown import partial_reason, written_url
from pipeline.export.sections import (
    ancestors,
    below,
    cascaded,
    content_prefix,
    hidden_section,
    section_files,
)
from pipeline.export.shortcodes import strip_hugo
from pipeline.export.tree import Draft, Rules, publish, read_tree
from pipeline.export.types import ALWAYS, Export, ExportWarning, Window
from pipeline.frontmatter import Meta, is_false, private_reason, text_value
from pipeline.site import Site, SiteError

# gohugo.io/configuration/introduction, in Hugo's order.
_CONFIG = tuple(
    f"{folder}{name}.{suffix}"
    for folder in ("", "config/_default/")
    for name in ("hugo", "config")
    for suffix in ("toml", "yaml", "yml", "json")
)
_LANGUAGES = tuple(f"config/_default/languages.{suffix}" for suffix in ("toml", "yaml", "yml", "json"))
# gohugo.io/configuration/front-matter, "Dates": the first that is a date counts.
_DATE_KEYS = {
    "publishdate": ("publishdate", "pubdate", "published", "date"),
    "expirydate": ("expirydate", "unpublishdate"),
}


def export_hugo(site: Site) -> Export:
    """The pages of a Hugo site.

    options in site.toml: `content`, the content folder ("content" where there is one, or "content/en"
    for a language of its own); `languages`, the languages other than the default one, told by file names
    (`about.fr.md`); `permalinks`, a pattern for each section; `future`, whether pages dated ahead are
    shown, as by `hugo --buildFuture`. Custom shortcodes are not run: what they would print is missing,
    what they enclose stays.
    """
    config = read_config(site, *_CONFIG)
    prefix = content_prefix(site)
    is_content_only = not prefix and not config
    archetypes = re.compile(rf"(?:themes/[^/]+/)?{re.escape(_archetypes(config))}/")
    tree = read_tree(site, is_page=lambda path: is_content_only or not archetypes.match(path))
    drafts = below(prefix, tree.drafts)
    sections = section_files(drafts)
    ignored = _ignored_files(site, config)
    bundles = {posixpath.dirname(draft.path) for draft in drafts if _name(draft.path) == "index"}

    def hidden(draft: Draft) -> str | None:
        if not draft.path.startswith(prefix):
            return "outside of the content folder"
        if ignored.search(f"/{draft.path}"):
            return "ignored by Hugo's configuration"
        (draft,) = below(prefix, [draft])
        if _name(draft.path) != "_index" and (reason := partial_reason(draft.path)):
            return reason
        bundle = next((folder for folder in ancestors(draft.path) if folder in bundles), None)
        if bundle is not None and (_name(draft.path), posixpath.dirname(draft.path)) != ("index", bundle):
            return f"a resource of the page bundle {bundle or '.'}"
        inherited = cascaded(draft, sections, config)
        meta = {**inherited, **draft.front.meta}
        reason = private_reason(meta) or _not_rendered(meta)
        if reason and (private_reason(inherited) or _not_rendered(inherited)):
            return f"{reason} (from a section's cascade)"
        return reason or hidden_section(draft, sections)

    def window(draft: Draft) -> Window:
        (draft,) = below(prefix, [draft])
        return _window({**cascaded(draft, sections, config), **draft.front.meta}, config, site)

    named = _named_languages(site, config)
    languages = site_languages(site, text_value(_setting(config, "defaultcontentlanguage")), named)
    default_language = languages[0] if languages else "en"
    folders = _language_folders(named)

    def own_folder(draft: Draft) -> str | None:
        return next((folder for folder in folders if draft.path.startswith(f"{folder}/")), None)

    def language(draft: Draft) -> str:
        folder = own_folder(draft)
        tags = languages if folder is None else [folders[folder], *languages]
        return page_language(draft.front.meta) or file_language(draft.path, tags)

    def url(draft: Draft) -> str:
        folder = own_folder(draft)
        if folder is None:
            path = urls.strip_suffix(draft.path.removeprefix(prefix))
            stem, tag = _language(path, languages or [default_language])
        else:
            stem, tag = urls.strip_suffix(draft.path.removeprefix(f"{folder}/")), folders[folder]
        return _url(site, draft, stem, "" if tag in ("", default_language) else f"{tag}/")

    return publish(
        site,
        tree,
        Rules(
            anchor_style="hugo",
            url=url,
            hidden=hidden,
            body=strip_hugo,
            notes=_notes,
            window=window,
            language=language,
        ),
    )


def _ignored_files(site: Site, config: Meta) -> re.Pattern[str]:
    """What matches the paths of the files that Hugo passes over (its ignoreFiles)."""
    patterns = _setting(config, "ignorefiles")
    try:
        return re.compile("|".join(f"(?:{pattern})" for pattern in patterns or ()) or r"(?!)")
    except re.error as error:
        raise SiteError(f"{site.source}: ignoreFiles: {patterns!r} is no list of patterns: {error}") from None


def _archetypes(config: Meta) -> str:
    """The folder of the templates that `hugo new` fills in: no pages, and often no readable front matter."""
    return text_value(_setting(config, "archetypedir")).strip("/") or "archetypes"


def _named_languages(site: Site, config: Meta) -> Meta:
    """The languages that the configuration names, each with its settings."""
    named = _setting(config, "languages") or read_config(site, *_LANGUAGES)
    return named if isinstance(named, dict) else {}


def _language_folders(named: Meta) -> dict[str, str]:
    """The language of each content folder that is one language's own (its contentDir), the deepest first."""
    tables = {tag: table for tag, table in named.items() if isinstance(table, dict)}
    folders = {tag: text_value(_setting(table, "contentdir")).strip("/") for tag, table in tables.items()}
    deepest_first = sorted(folders.items(), key=lambda each: len(each[1]), reverse=True)
    return {folder: tag for tag, folder in deepest_first if folder}


def _setting(table: Meta, name: str) -> Any:
    """A setting by its name in lower case: Hugo's own names are in any."""
    return next((value for key, value in table.items() if key.lower() == name), None)


def _window(meta: Meta, config: Meta, site: Site) -> Window:
    """The days on which Hugo shows a page: from its publishDate until before its expiryDate."""
    first = end = None
    if not (site.options.get("future") is True or _setting(config, "buildfuture") is True):
        first = first_date(meta, _date_keys(config, "publishdate"))
    if _setting(config, "buildexpired") is not True:
        end = first_date(meta, _date_keys(config, "expirydate"))
    return Window(first or ALWAYS.first, end or ALWAYS.end)


def _date_keys(config: Meta, name: str) -> list[str]:
    """The keys of front matter that give a date, as the configuration's `frontmatter` table may say."""
    table = _setting(config, "frontmatter")
    written = _setting(table, name) if isinstance(table, dict) else None
    keys = [str(key) for key in written] if isinstance(written, list) else [":default"]
    return [key for each in keys for key in (_DATE_KEYS[name] if each == ":default" else (each,))]


def _not_rendered(meta: Meta) -> str | None:
    """Why Hugo makes no page of it: headless bundles, and build options that render nothing."""
    if not is_false(meta.get("headless")):
        return "headless"
    build = meta.get("build") or meta.get("_build")
    render = build.get("render") if isinstance(build, dict) else None
    if render is not None and text_value(render).lower() in ("never", "link", "false"):
        return f"build.render: {text_value(render).lower()}"
    return None


def _notes(draft: Draft) -> list[ExportWarning]:
    """Dates that may have been meant to hide the page, and cannot be read."""
    return [
        ExportWarning(
            draft.path,
            0,
            f"{key}: {text_value(value)!r} is no date, and holds nothing back; write YYYY-MM-DD",
        )
        for key, value in draft.front.meta.items()
        if key.lower() in ("publishdate", "pubdate", *_DATE_KEYS["expirydate"])
        and text_value(value)
        and parse_date(value) is None
    ]


def _url(site: Site, draft: Draft, stem: str, prefix: str) -> str:
    """The address of a page whose path in its content folder is `stem`; `prefix` is its language's."""
    meta = draft.front.meta
    if address := text_value(meta.get("url")):
        return written_url(
            site, draft.path, address if re.search(r"(/|\.\w+)$", address) else address + "/", "url"
        )
    folder, name = posixpath.split(stem)
    if name == "_index":
        return urls.join(site.base_url, prefix + urls.hugo_path(folder), True)
    if name == "index":
        folder, name = posixpath.split(folder)
    slug = text_value(meta.get("slug"))
    pattern = _permalink(site, folder)
    if pattern:
        path = urls.expand_permalink(pattern, _permalink_values(meta, folder, name, slug))
    else:
        path = posixpath.join(folder, slug or name)
    return urls.join(site.base_url, prefix + urls.quote_path(urls.hugo_path(path)).lstrip("/"), True)


def _language(stem: str, languages: Sequence[str]) -> tuple[str, str]:
    """A path without its language and that language (`about.fr` -> `about`, `fr`), if it has one of these."""
    name, _, language = stem.rpartition(".")
    return (name, language) if name and language in languages else (stem, "")


def _permalink(site: Site, folder: str) -> str | None:
    patterns: Mapping[str, Any] = site.options.get("permalinks", {})
    patterns = patterns.get("page", patterns) if isinstance(patterns.get("page"), dict) else patterns
    pattern = patterns.get(folder.split("/")[0])
    return pattern if isinstance(pattern, str) else None


def _permalink_values(meta: Meta, folder: str, name: str, slug: str) -> dict[str, str]:
    date = re.match(r"(\d{4})-(\d{2})-(\d{2})", text_value(meta.get("date")))
    year, month, day = date.groups() if date else ("0001", "01", "01")
    title = text_value(meta.get("title")) or name
    return {
        "year": year, "month": month, "day": day, "title": title, "slug": slug or title,
        "slugorfilename": slug or name, "slugorcontentbasename": slug or name, "filename": name,
        "contentbasename": name, "section": folder.split("/")[0], "sections": folder,
    }  # fmt: skip


def _name(path: str) -> str:
    return posixpath.basename(path).split(".")[0]
