"""Front matter that a section's _index file hands down to the pages below it (Hugo, Zola)."""

from __future__ import annotations

import dataclasses
import posixpath
from collections.abc import Iterable, Mapping
from typing import Any

from pathspec import PathSpec

from pipeline.export.tree import Draft
from pipeline.frontmatter import Meta, private_reason
from pipeline.site import Site, SiteError


def content_prefix(site: Site) -> str:
    """What the paths of a site's content begin with: options.content, else "content/" if it is there, or "".

    Raises SiteError when the folder that options.content names is not there.
    """
    named = site.options.get("content")
    folder = str(named or "content").strip("/")
    if (site.source_path / folder).is_dir():
        return f"{folder}/"
    if named:
        raise SiteError(f"{site.toml}: options.content: {named!r} is not a folder in {site.source}")
    return ""


def below(prefix: str, drafts: Iterable[Draft]) -> list[Draft]:
    """The drafts whose paths begin with prefix, with their paths without it."""
    return [
        dataclasses.replace(draft, path=draft.path.removeprefix(prefix))
        for draft in drafts
        if draft.path.startswith(prefix)
    ]


def ancestors(path: str) -> list[str]:
    """The folders of a path, outermost first; the source itself is the empty one."""
    folder = posixpath.dirname(path)
    parts = folder.split("/") if folder else []
    return ["/".join(parts[:n]) for n in range(len(parts) + 1)]


def section_files(drafts: Iterable[Draft]) -> dict[str, Draft]:
    """The _index file of each folder that has one."""
    return {
        posixpath.dirname(draft.path): draft
        for draft in sorted(drafts, key=lambda draft: draft.path, reverse=True)
        if posixpath.basename(draft.path).split(".")[0] == "_index"
    }


def hidden_section(draft: Draft, sections: Mapping[str, Draft]) -> str | None:
    """Why a page is hidden by a section above it, or None.

    Neither Hugo nor Zola renders what lies below a section that is a draft. A section whose malformed
    front matter may say so hides its pages too.
    """
    for folder in ancestors(draft.path):
        section = sections.get(folder)
        if section is None or section.path == draft.path:
            continue
        if section.front.unreadable_privacy:
            return f"below {section.path}, whose front matter is malformed"
        if reason := private_reason(section.front.meta):
            return f"below {section.path}: {reason}"
    return None


def cascaded(draft: Draft, sections: Mapping[str, Draft], config: Meta) -> Meta:
    """What the `cascade` of the configuration, of the sections above and of its own gives a Hugo page.

    The nearest wins. A cascade with a target applies to the paths it names; targets by kind, language or
    environment apply to all, since leaving a page out is the safer mistake.
    """
    values: dict[str, Any] = {}
    above = [sections[folder].front.meta for folder in ancestors(draft.path) if folder in sections]
    for meta in (config, *above):
        cascade = next((value for key, value in meta.items() if key.lower() == "cascade"), None)
        for table in cascade if isinstance(cascade, list) else [cascade]:
            if isinstance(table, dict) and _is_target(table, draft.path):
                values.update(
                    {key: value for key, value in table.items() if key not in ("target", "_target")}
                )
                values.update(table["params"] if isinstance(table.get("params"), dict) else {})
    return values


def _is_target(table: Meta, path: str) -> bool:
    target = table.get("target") or table.get("_target")
    pattern = target.get("path") if isinstance(target, dict) else None
    if not pattern:
        return True
    pattern = str(pattern).strip("{}")
    return PathSpec.from_lines("gitignore", [pattern]).match_file(f"{path.rsplit('.', 1)[0]}")
