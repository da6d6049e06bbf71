"""A Jekyll site: posts, pages and collections, by the permalinks of _config.yml or site.toml."""

from __future__ import annotations

import dataclasses
import posixpath
import re
from collections.abc import Collection, Mapping
from datetime import date
from typing import Any

from pipeline import urls
from pipeline.export.dates import parse_date
from pipeline.export.generator import is_below, read_config
from pipeline.export.html_text import (
    html_language,
    html_title,
    html_to_markdown,
    is_noindex,
    main_markdown,
    parse_html,
)
from pipeline.export.language import page_language
from pipeline.export.markdown import partial_reason, written_url
from pipeline.export.shortcodes import strip_liquid
from pipeline.export.tree import MARKDOWN, Draft, Rules, publish, read_tree
from pipeline.export.types import ALWAYS, Export, Window
from pipeline.frontmatter import Meta, is_false, text_value
from pipeline.site import Site

# jekyllrb.com/docs/permalinks, "Built-in formats".
_STYLES = {
    "date": "/:categories/:year/:month/:day/:title.html",
    "pretty": "/:categories/:year/:month/:day/:title/",
    "ordinal": "/:categories/:year/:y_day/:title.html",
    "none": "/:categories/:title.html",
}
# What is read of _config.yml.
_CONFIG = ("permalink", "collections", "exclude", "defaults", "future")
_HTML = (".html", ".htm")
# jekyllrb.com/docs/structure: what begins with _ and is no collection that _config.yml could name.
_OWN_FOLDERS = frozenset(("_posts", "_drafts", "_pages", "_includes", "_layouts", "_data", "_sass", "_site"))
# jekyllrb.com/docs/configuration/options, "Exclude": these always.
_EXCLUDED = ["vendor/bundle", "vendor/cache", "vendor/gems", "vendor/ruby", "gemfiles"]
_POST = re.compile(r"(?P<year>\d{4})-(?P<month>\d{1,2})-(?P<day>\d{1,2})-(?P<name>.+)")


def export_jekyll(site: Site) -> Export:
    """The posts, pages and collections of a Jekyll site.

    options in site.toml win over _config.yml: `permalink`, a style or a pattern, `collections`, for each a
    table with `permalink` and `output`, `exclude`, `defaults`, and `future`, whether posts dated ahead are
    shown. Pages and posts in HTML are those with front matter, their layouts left away.
    """
    config = {**_read_config(site), **site.options}
    collections = _collections(config)

    def hidden(draft: Draft) -> str | None:
        if is_below(draft.path, config.get("exclude")):
            return "excluded by _config.yml"
        parts = draft.path.split("/")
        if "_drafts" in parts:
            return "draft"
        if parts[0].startswith("_") and parts[0][1:] in collections:
            if is_false(collections[parts[0][1:]].get("output", True)):
                return f"the collection {parts[0][1:]} has output: false"
            parts = parts[1:]
        elif len(parts) > 1 and parts[0].startswith("_") and parts[0] not in _OWN_FOLDERS:
            return f"in {parts[0]}, which is no collection of _config.yml or of options in site.toml"
        parts = [part for part in parts if part not in ("_posts", "_pages")]
        if reason := partial_reason("/".join(parts)):
            return reason
        if not draft.front.error and draft.front.body_line == 1:
            return "no front matter: Jekyll copies it as it is"
        if "_posts" in draft.path.split("/") and not _POST.fullmatch(_stem(draft.path)):
            return "a post whose name has no date: Jekyll passes it over"
        if _is_html(draft.path) and not re.search(r"\w", draft.front.body):
            return "a template: no text of its own"
        # Servers show it in place of pages that are not there; it is no page itself.
        return "an error page" if draft.path == "404.html" else None

    def window(draft: Draft) -> Window:
        """The days on which Jekyll shows a page: posts and documents of collections from their date on."""
        folders = draft.path.split("/")[:-1]
        is_document = "_posts" in folders or folders[:1] in ([f"_{name}"] for name in collections)
        if not is_document or config.get("future") is True:
            return ALWAYS
        return Window(_date(draft) or ALWAYS.first)

    rules = Rules(
        anchor_style="kramdown",
        url=lambda draft: _url(site, draft, config, collections),
        hidden=hidden,
        window=window,
    )
    tree = read_tree(site, (*MARKDOWN, *_HTML), is_page=lambda path: _may_be_page(path, collections))
    drafts = tuple(_with_defaults(_as_markdown(draft), config) for draft in tree.drafts)
    return publish(site, dataclasses.replace(tree, drafts=drafts), rules)


def _read_config(site: Site) -> Mapping[str, Any]:
    config = read_config(site, "_config.yml", "_config.yaml", "_config.toml")
    return {key: config[key] for key in _CONFIG if key in config}


def _date(draft: Draft) -> date | None:
    """The day of a post or document: its front matter's date, else the one that its name begins with."""
    return parse_date(draft.front.meta.get("date")) or parse_date(_stem(draft.path))


def _may_be_page(path: str, collections: Collection[str]) -> bool:
    """Whether a file is worth a look. Gems, layouts, includes and what Jekyll built (`_site`) are not."""
    if is_below(path, _EXCLUDED):
        return False
    with_pages = {"_posts", "_drafts", "_pages", *(f"_{name}" for name in collections)}
    folders = path.split("/")[:-1]
    return not _is_html(path) or all(name[0] != "_" or name in with_pages for name in folders)


def _is_html(path: str) -> bool:
    return path.lower().endswith(_HTML)


def _as_markdown(draft: Draft) -> Draft:
    """The draft without Liquid's tags, HTML as markdown; what the HTML says of itself is front matter."""
    meta, body = draft.front.meta, draft.front.body
    if not _is_html(draft.path):
        return dataclasses.replace(draft, front=dataclasses.replace(draft.front, body=strip_liquid(body)))
    text = strip_liquid(body, is_html=True)
    soup = parse_html(text)
    meta = {"anchor_style": "none", **meta}  # kramdown does not see it: no heading has an id but its own
    if is_noindex(soup):
        meta["noindex"] = "true"
    if title := html_title(soup):
        meta.setdefault("title", title)
    if not page_language(meta) and (language := html_language(soup)):
        meta["lang"] = language
    # A page without a layout brings its own navigation.
    markdown = main_markdown(text) if re.search(r"<body\b", text, re.I) else html_to_markdown(text)
    return dataclasses.replace(draft, front=dataclasses.replace(draft.front, meta=meta, body=markdown))


def _with_defaults(draft: Draft, config: Mapping[str, Any]) -> Draft:
    """The draft with the front matter that the configuration gives it (jekyllrb.com/docs/configuration)."""
    values: dict[str, Any] = {}
    written = config.get("defaults")
    defaults = [each for each in written if isinstance(each, dict)] if isinstance(written, list) else []
    for default in sorted(defaults, key=lambda each: len(_scope(each)[0])):  # the longest path wins
        path, kind = _scope(default)
        if (not path or is_below(draft.path, [path])) and kind in ("", _kind(draft.path)):
            values.update(table if isinstance(table := default.get("values"), dict) else {})
    return dataclasses.replace(
        draft, front=dataclasses.replace(draft.front, meta={**values, **draft.front.meta})
    )


def _scope(default: Mapping[str, Any]) -> tuple[str, str]:
    scope = default.get("scope")
    if not isinstance(scope, dict):
        return "", ""
    return text_value(scope.get("path")).strip("/"), text_value(scope.get("type"))


def _kind(path: str) -> str:
    """What Jekyll calls a file's type: posts, drafts, pages, or the name of its collection."""
    folders = path.split("/")[:-1]
    if "_posts" in folders or "_drafts" in folders:
        return "posts" if "_posts" in folders else "drafts"
    return folders[0][1:] if folders and folders[0].startswith("_") else "pages"


def _collections(config: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    named = config.get("collections")
    if isinstance(named, list):
        named = {name: {} for name in named}
    return {
        str(name): {"permalink": table}
        if isinstance(table, str)
        else table
        if isinstance(table, dict)
        else {}
        for name, table in (named.items() if isinstance(named, dict) else ())
    }


def _url(
    site: Site, draft: Draft, config: Mapping[str, Any], collections: Mapping[str, Mapping[str, Any]]
) -> str:
    meta, parts = draft.front.meta, draft.path.split("/")
    pattern = text_value(meta.get("permalink"))
    if urls.has_scheme(pattern):
        return written_url(site, draft.path, pattern, "permalink")
    style = text_value(config.get("permalink")) or "date"
    if "_posts" in parts:
        values = _post_values(draft)
        pattern = pattern or _STYLES.get(style, style)
    elif parts[0].startswith("_") and parts[0][1:] in collections:
        name = parts[0][1:]
        values = _page_values(meta, "/".join(parts[1:])) | {"collection": name}
        pattern = pattern or text_value(collections[name].get("permalink")) or "/:collection/:path:output_ext"
        pattern = _STYLES.get(pattern, pattern)
    else:
        values = _page_values(meta, "/".join(part for part in parts if part != "_pages"))
        pretty = style == "pretty" or style.endswith("/")
        pattern = pattern or ("/:folder/:basename/" if pretty else "/:folder/:basename:output_ext")
    path = urls.expand_permalink(pattern, {key: urls.quote_path(value) for key, value in values.items()})
    path = re.sub(r"(^|/)index(?:\.html?)?/?$", r"\1", path)
    return urls.join(site.base_url, urls.quote_address(path), site.trailing_slash)


def _page_values(meta: Meta, path: str) -> dict[str, str]:
    stem = urls.strip_suffix(path)
    name = posixpath.basename(stem)
    slug = text_value(meta.get("slug"))
    return {
        "path": stem, "folder": posixpath.dirname(stem), "basename": name, "name": name,
        "title": slug or urls.jekyll_slug(name, cased=True), "slug": urls.jekyll_slug(slug or name),
        "output_ext": ".html", "categories": _categories(meta, ""),
    }  # fmt: skip


def _post_values(draft: Draft) -> dict[str, str]:
    dated = _POST.fullmatch(_stem(draft.path))
    assert dated is not None  # undated posts are hidden
    meta = draft.front.meta
    written = re.match(r"(\d{4})-(\d{1,2})-(\d{1,2})", text_value(meta.get("date")))
    year, month, day = (int(number) for number in (written.groups() if written else dated.groups()[:3]))
    folder = draft.path.split("_posts/")[0]
    slug = text_value(meta.get("slug")) or dated["name"]
    return {
        "year": f"{year:04}", "month": f"{month:02}", "day": f"{day:02}", "short_year": f"{year % 100:02}",
        "i_month": str(month), "i_day": str(day), "y_day": _day_of_year(year, month, day),
        "title": urls.jekyll_slug(slug, cased=True), "slug": urls.jekyll_slug(slug),
        "categories": _categories(meta, folder), "output_ext": ".html",
    }  # fmt: skip


def _day_of_year(year: int, month: int, day: int) -> str:
    leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    return f"{sum((31, 28 + leap, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)[: month - 1]) + day:03}"


def _categories(meta: Meta, folder: str) -> str:
    written = meta.get("categories") or meta.get("category") or []
    names = written.split() if isinstance(written, str) else [text_value(name) for name in written]
    folders = [part for part in folder.split("/") if part]
    return "/".join(dict.fromkeys([*folders, *(urls.jekyll_slug(name) for name in names)]))


def _stem(path: str) -> str:
    return posixpath.basename(urls.strip_suffix(path))
