"""A folder of markdown files read once, and published by the rules of a kind of site."""

from __future__ import annotations

import codecs
import hashlib
import os
import posixpath
import stat
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, get_args

from pathspec import PathSpec

from pipeline.export.language import page_language
from pipeline.export.prose import drop_comments
from pipeline.export.title import page_title
from pipeline.export.types import ALWAYS, Exclusion, Export, ExportWarning, Window
from pipeline.frontmatter import FrontMatter, Meta, parse, private_reason, text_value
from pipeline.page import AnchorStyle, Page
from pipeline.site import Site, SiteError

Patterns = PathSpec[Any]
MARKDOWN = (".md", ".mdx", ".markdown")
# UTF-32 first: its little-endian mark begins with that of UTF-16.
_MARKS = (
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)


@dataclass(frozen=True, slots=True)
class Draft:
    """One markdown file before anybody has decided whether it is a page."""

    path: str
    front: FrontMatter
    sha256: str


@dataclass(frozen=True, slots=True)
class Tree:
    """All markdown files of a source, by path, with what was left out or odd in reading them."""

    drafts: tuple[Draft, ...]
    exclusions: tuple[Exclusion, ...]
    warnings: tuple[ExportWarning, ...]


@dataclass(frozen=True, slots=True)
class Rules:
    """What one kind of site does in its own way.

    `url` is the public address of a draft. `hidden` says why a draft is not published, beside what its
    own front matter says. `body` is the markdown as a reader sees it. `notes` are warnings to pass on.
    `window` are the days on which the generator shows it. `language` is the one that it is in, or empty.
    """

    anchor_style: AnchorStyle
    url: Callable[[Draft], str]
    hidden: Callable[[Draft], str | None] = lambda _: None
    body: Callable[[str], str] = lambda text: text
    notes: Callable[[Draft], Sequence[ExportWarning]] = lambda _: ()
    window: Callable[[Draft], Window] = lambda _: ALWAYS
    language: Callable[[Draft], str] = lambda draft: page_language(draft.front.meta)


def read_tree(
    site: Site, suffixes: Sequence[str] = MARKDOWN, is_page: Callable[[str], bool] = lambda _: True
) -> Tree:
    """The markdown files below a site's source, each read once; those whose path `is_page` denies, never."""
    exclusions: list[Exclusion] = []
    warnings: list[ExportWarning] = []
    drafts = []
    for path, location in find_files(site, suffixes, exclusions):
        if is_page(path):
            drafts.append(read_draft(path, read_bytes(location), warnings))
    return Tree(tuple(drafts), tuple(exclusions), tuple(warnings))


def read_draft(path: str, data: bytes, warnings: list[ExportWarning]) -> Draft:
    """The draft of a markdown file's bytes. Appends to warnings what is odd about them."""
    text, warning = decode(data, path)
    front = parse(text)
    if warning is not None:
        warnings.append(warning)
    if front.error:
        warnings.append(ExportWarning(path, front.error_line, front.error))
    return Draft(path, front, hashlib.sha256(data).hexdigest())


def publish(site: Site, tree: Tree, rules: Rules) -> Export:
    """The pages of a tree by the rules of its kind."""
    pages: list[Page] = []
    windows: dict[str, Window] = {}
    languages: dict[str, str] = {}
    exclusions = list(tree.exclusions)
    warnings = list(tree.warnings)
    for draft in tree.drafts:
        reason = reason_to_hide(draft) or rules.hidden(draft)
        if reason is not None:
            exclusions.append(Exclusion(draft.path, reason))
            continue
        body = drop_comments(rules.body(draft.front.body))
        if not body.strip():
            warnings.append(ExportWarning(draft.path, 0, "no text: no question finds it"))
        warnings += rules.notes(draft)
        if (window := rules.window(draft)) != ALWAYS:
            windows[draft.path] = window
        if language := rules.language(draft):
            languages[draft.path] = language
        pages.append(
            Page(
                site=site.name,
                collection=site.collection,
                path=draft.path,
                url=rules.url(draft),
                title=page_title(draft.front.meta, body, draft.path),
                description=text_value(draft.front.meta.get("description")),
                body=body,
                anchor_style=anchor_style(draft.front.meta, rules.anchor_style),
                sha256=draft.sha256,
            )
        )
    n_pages_in = len(pages) + len(exclusions)
    return Export(
        site.name,
        n_pages_in,
        tuple(pages),
        tuple(exclusions),
        tuple(warnings),
        windows,
        languages=languages,
    )


def find_files(
    site: Site, suffixes: Sequence[str], exclusions: list[Exclusion]
) -> Iterator[tuple[str, Path]]:
    """The files of a site's source that end in one of suffixes: path below the source and location, by path.

    Appends to exclusions what is not to be read: symbolic links out of the source, what is no plain file,
    what the site's patterns leave out. Folders whose name starts with a dot and node_modules hold no pages
    and are passed over.
    """
    root = site.source_path
    for path, location in sorted(_walk(root, exclusions)):
        if not path.lower().endswith(tuple(suffixes)):
            continue
        reason = _reason_to_skip(site, path, location)
        if reason is None:
            yield path, location
        else:
            exclusions.append(Exclusion(path.encode("utf-8", "backslashreplace").decode(), reason))


def read_bytes(location: Path) -> bytes:
    """The bytes of a file. Raises SiteError when it cannot be read."""
    try:
        return location.read_bytes()
    except OSError as error:
        raise SiteError(
            f"{location}: cannot be read ({error.strerror}); allow it, or add it to exclude in site.toml"
        ) from None


def decode(data: bytes, path: str) -> tuple[str, ExportWarning | None]:
    """The text of a file's bytes, and a warning when they are not UTF-8 (then Windows-1252 or Latin-1).

    A NUL, which is no text, is replaced as CommonMark 0.31, section 2.3, says.
    """
    text, warning = _decode(data, path)
    return text.replace("\0", "\N{REPLACEMENT CHARACTER}"), warning


def _decode(data: bytes, path: str) -> tuple[str, ExportWarning | None]:
    if (encoding := wide_encoding(data)) is not None:
        name = encoding.removesuffix("-le").removesuffix("-be").upper()
        text = data.decode(encoding, "replace")
        return text, ExportWarning(path, 0, f"read as {name}; save it as UTF-8")
    try:
        return data.decode("utf-8"), None
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
    try:
        return data.decode("cp1252"), ExportWarning(path, line, "not UTF-8; read as Windows-1252")
    except UnicodeDecodeError:
        return data.decode("latin-1"), ExportWarning(path, line, "not UTF-8; read as Latin-1")


def wide_encoding(data: bytes) -> str | None:
    """UTF-16 or UTF-32, told by the byte-order mark or by every other byte being NUL; else None.

    Read as UTF-8 such a file would have no front matter, and be published whatever that says.
    """
    for mark, encoding in _MARKS:
        if data.startswith(mark):
            return encoding
    head = data[:8]
    if len(head) >= 4 and not any(head[1::2]) and all(head[::2]):
        return "utf-16-le"
    if len(head) >= 4 and not any(head[::2]) and all(head[1::2]):
        return "utf-16-be"
    return None


def _walk(root: Path, exclusions: list[Exclusion]) -> Iterator[tuple[str, Path]]:
    for folder, names, files in os.walk(root, onerror=_refuse):
        for name in sorted(names):
            if Path(folder, name).is_symlink():
                path = Path(folder, name).relative_to(root).as_posix()
                exclusions.append(Exclusion(f"{path}/", "a symbolic link to a folder"))
        names[:] = [name for name in names if not name.startswith(".") and name != "node_modules"]
        for name in files:
            location = Path(folder, name)
            yield location.relative_to(root).as_posix(), location


def _refuse(error: OSError) -> None:
    """A folder that cannot be listed would silently shrink the site."""
    raise SiteError(f"{error.filename}: cannot be listed ({error.strerror}); allow it")


def pattern_reason(site: Site, path: str) -> str | None:
    """Why the site's patterns leave a path out, or None. Patterns are those of .gitignore files."""
    if _patterns(site.exclude).match_file(path):
        return "excluded by site.toml"
    if site.include and not _patterns(site.include).match_file(path):
        return "not included by site.toml"
    return None


@lru_cache(maxsize=64)
def _patterns(lines: tuple[str, ...]) -> Patterns:
    return PathSpec.from_lines("gitignore", lines)


def _reason_to_skip(site: Site, path: str, location: Path) -> str | None:
    if not _is_text(path):
        return "its name is not UTF-8"
    if posixpath.basename(path).startswith("."):
        return "a hidden file"
    if reason := pattern_reason(site, path):
        return reason
    if location.is_symlink() and not _resolves_inside(location, site.source_path):
        return "a symbolic link out of the source"
    if not stat.S_ISREG(location.stat().st_mode):
        return "not a plain file"
    return None


def _is_text(path: str) -> bool:
    try:
        path.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def _resolves_inside(location: Path, root: Path) -> bool:
    try:
        return location.resolve(strict=True).is_relative_to(root.resolve())
    except (OSError, RuntimeError):  # a dangling link, or a loop of links
        return False


def anchor_style(meta: Meta, default: AnchorStyle) -> AnchorStyle:
    """The style that front matter names: a curated page keeps that of the site it came from."""
    named = text_value(meta.get("anchor_style"))
    return next((style for style in get_args(AnchorStyle) if style == named), default)


def reason_to_hide(draft: Draft) -> str | None:
    """Why a file is not published, by what it says of itself, or None."""
    if draft.front.unreadable_privacy:
        return "malformed front matter that speaks of drafts or visibility"
    return private_reason(draft.front.meta)
