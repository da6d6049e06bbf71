"""The languages that pages are in, by what they say themselves, and the one that a site keeps."""

from __future__ import annotations

import dataclasses
import posixpath
from collections.abc import Sequence

from pipeline import urls
from pipeline.export.types import Exclusion, Export
from pipeline.frontmatter import Meta, text_value
from pipeline.language import primary_language

_KEYS = ("lang", "language", "locale")


def page_language(meta: Meta) -> str:
    """The language that front matter names, such as `en`; empty when it names none.

    Keys are read in any case, at the top level and under `params` (Hugo) and `extra` (Zola).
    """
    for scope in (meta, meta.get("params"), meta.get("extra")):
        values = {str(key).lower(): value for key, value in scope.items()} if isinstance(scope, dict) else {}
        for key in _KEYS:
            if language := primary_language(text_value(values.get(key))):
                return language
    return ""


def file_language(path: str, tags: Sequence[str]) -> str:
    """The language that a file's name ends in, `fr` of `about.fr.md`, if it is one of the tags.

    Else that of the first tag; empty when there is none.
    """
    suffix = posixpath.splitext(urls.strip_suffix(path))[1].removeprefix(".")
    is_tag = suffix.lower() in {tag.lower() for tag in tags}
    return primary_language(suffix if is_tag else next(iter(tags), ""))


def in_language(tag: str, export: Export) -> Export:
    """The export without the pages that say another language than the tag, and without warnings about them.

    Those that say none stay. No languages are left in it to tell of. An empty tag keeps all as it is.
    """
    if not tag:
        return export
    others = {
        path: language for path, language in export.languages.items() if language != primary_language(tag)
    }
    left_out = tuple(
        Exclusion(page.path, f"language {others[page.path]}, not {tag}")
        for page in export.pages
        if page.path in others
    )
    return dataclasses.replace(
        export,
        pages=tuple(page for page in export.pages if page.path not in others),
        exclusions=(*export.exclusions, *left_out),
        warnings=tuple(warning for warning in export.warnings if warning.path not in others),
        languages={},
    )
