"""Sites and collections as they are written down: sites/collections.toml and sites/<name>/site.toml."""

from __future__ import annotations

import re
import shutil
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeVar, get_args
from urllib.parse import urlsplit

from pipeline.language import primary_language

SiteKind = Literal[
    "markdown", "docusaurus", "wordpress", "hugo", "jekyll", "zola", "html", "url", "last-fm", "reminders"
]  # fmt: skip
KINDS: tuple[SiteKind, ...] = get_args(SiteKind)
# What these are made of is no website, and what they make goes into no bundle.
SNAPSHOTS: tuple[SiteKind, ...] = ("last-fm", "reminders")
# The source of kind "reminders" that is no file: the application itself, which only macOS has.
REMINDERS_APP = "Reminders.app"

COLLECTION_EXAMPLE = 'on three lines: [garden], title = "The garden", public = true'

_KEYS = {
    "kind", "source", "base_url", "collection", "include", "exclude",
    "trailing_slash", "keep_extension", "instances", "language", "options",
}  # fmt: skip
_SNAPSHOT_KEYS: Mapping[object, set[str]] = {
    "last-fm": {"kind", "source", "options"},
    "reminders": {"kind", "source", "collection", "options"},
}
_REQUIRED = ("kind", "source", "base_url", "collection")
# The keys of [options] that each kind understands; a misspelt one would change addresses without a word.
_OPTIONS: Mapping[SiteKind, frozenset[str]] = {
    "hugo": frozenset({"content", "languages", "default_language", "permalinks", "future"}),
    "zola": frozenset({"content", "languages"}),
    "jekyll": frozenset({"permalink", "collections", "future"}),
    "last-fm": frozenset({"period", "artists", "albums", "tracks"}),
    "reminders": frozenset({"done"}),
}
# A name has 2 to 15 letters, digits, _ and -, and begins with a letter, as Last.fm says when one is chosen.
_LAST_FM_USER = re.compile(r"https://www\.last\.fm/user/[A-Za-z][A-Za-z0-9_-]{1,14}/?")
_TYPES = {str: "a text in quotes", bool: "true or false", list: "a list", dict: "a table"}


T = TypeVar("T")


class SiteError(Exception):
    """An input of the build is wrong. The message names the file, the line or key, and the remedy."""


@dataclass(frozen=True, slots=True)
class Collection:
    """One of the closed set of collections."""

    name: str
    title: str
    public: bool
    sample: bool = False


@dataclass(frozen=True, slots=True)
class Instance:
    """One docs or blog plugin of a Docusaurus site: its folder below the source, and its route."""

    type: Literal["docs", "blog"]
    folder: str
    route: str


@dataclass(frozen=True, slots=True)
class Site:
    """One site of the build.

    `source` is a folder, a file (a WXR export) or, for kind "url", an http(s) address. `base_url` ends
    in a slash. `include` and `exclude` are glob patterns over paths relative to the source; an empty
    `include` means everything. `trailing_slash` None means the kind's own habit. `language` is a tag of
    BCP 47, or empty where pages of all languages are taken.

    Snapshots have no `base_url`, and kind "last-fm", which nobody asks, no `collection`: both are empty.
    """

    name: str
    kind: SiteKind
    source: str
    base_url: str
    collection: str
    folder: Path
    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    trailing_slash: bool | None = None
    keep_extension: bool = False
    instances: tuple[Instance, ...] = ()
    language: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def toml(self) -> Path:
        """The file that describes the site."""
        return self.folder / "site.toml"

    @property
    def source_path(self) -> Path:
        """The source as a path. Only for kinds other than "url"."""
        return Path(self.source)

    @property
    def questions(self) -> Path:
        """The site's evaluation questions; the file need not exist."""
        return self.folder / "questions.jsonl"


@dataclass(frozen=True, slots=True)
class MissingSite:
    """A site whose source is not on this machine, and the sentence that says why it is skipped."""

    name: str
    reason: str


def load_collections(sites: Path) -> dict[str, Collection]:
    """The closed set of collections of a sites folder, by name.

    Raises SiteError when collections.toml is missing, unreadable, or has a key of the wrong type.
    """
    path = sites / "collections.toml"
    collections = {}
    for name, table in _read_toml(path).items():
        if not re.fullmatch(r"[a-z0-9_-]+", name):
            raise SiteError(f"{path}: [{name}]: a collection's name has only a-z, 0-9, _ and -")
        if not isinstance(table, dict):
            raise SiteError(f"{path}: {name}: write a table, [{name}], with title and public")
        unknown = sorted(set(table) - {"title", "public", "sample"})
        if unknown:
            raise SiteError(f"{path}: [{name}] {unknown[0]}: unknown key; known are title, public, sample")
        if not isinstance(table.get("public"), bool):
            raise SiteError(f"{path}: [{name}] public: say true or false; nothing is published by default")
        collections[name] = Collection(
            name=name,
            title=_typed(path, f"[{name}] title", table.get("title", name), str),
            public=table["public"],
            sample=_typed(path, f"[{name}] sample", table.get("sample", False), bool),
        )
    return collections


def load_sites(
    sites: Path, collections: Mapping[str, Collection], environ: Mapping[str, str]
) -> tuple[list[Site], list[MissingSite]]:
    """The sites of a folder, by name, and those whose source is not on this machine.

    Raises SiteError naming file and key for anything in a site.toml that is wrong.
    """
    found: list[Site] = []
    missing: list[MissingSite] = []
    for path in sorted(sites.glob("*/site.toml")):
        site = load_site(path, collections, environ)
        if isinstance(site, MissingSite):
            missing.append(site)
        else:
            found.append(site)
    return found, missing


def load_site(
    path: Path, collections: Mapping[str, Collection], environ: Mapping[str, str]
) -> Site | MissingSite:
    """The site that one site.toml describes. Raises SiteError when a key is wrong."""
    table = _read_toml(path)
    name = path.parent.name
    known = next((keys for kind, keys in _SNAPSHOT_KEYS.items() if table.get("kind") == kind), _KEYS)
    unknown = sorted(set(table) - known)
    if unknown:
        raise SiteError(f"{path}: {unknown[0]}: unknown key; known are {', '.join(sorted(known))}")
    for key in _REQUIRED:
        if key not in known:
            continue
        if key not in table:
            raise SiteError(f'{path}: {key}: missing; write {key} = "…"')
        _typed(path, key, table[key], str)
    if table["kind"] not in KINDS:
        raise SiteError(f"{path}: kind: {table['kind']!r} is none of {', '.join(KINDS)}")
    if "collection" in known:
        _check_collection(path, table["kind"], table["collection"], collections)
    source = _expand(table["source"], environ)
    if source is None:
        variable = re.findall(r"\$\{(\w+)\}", table["source"])[0]
        return MissingSite(name, f"{variable} is not set")
    if table["kind"] == "url":
        check_url(f"{path}: source", source)
    elif table["kind"] == "last-fm":
        if not _LAST_FM_USER.fullmatch(source):
            raise SiteError(f"{path}: source: {source!r} is no profile; write https://www.last.fm/user/NAME")
    elif table["kind"] == "reminders" and source == REMINDERS_APP:
        if shutil.which("osascript", path=environ.get("PATH")) is None:
            return MissingSite(
                name, f"{source} is on macOS only; elsewhere name what it exported, a .ics file"
            )
    else:
        source = str((path.parent / Path(source).expanduser()).resolve())
        if not Path(source).exists():
            return MissingSite(name, f"{source} is not there")
    return Site(
        name=name,
        kind=table["kind"],
        source=source,
        base_url=check_base_url(f"{path}: base_url", table["base_url"]) if "base_url" in known else "",
        collection=table.get("collection", ""),
        folder=path.parent,
        include=_strings(path, "include", table.get("include", [])),
        exclude=_strings(path, "exclude", table.get("exclude", [])),
        trailing_slash=_typed(path, "trailing_slash", table["trailing_slash"], bool)
        if "trailing_slash" in table
        else None,
        keep_extension=_typed(path, "keep_extension", table.get("keep_extension", False), bool),
        instances=_instances(path, table["kind"], table.get("instances", [])),
        language=_language(path, table["language"]) if "language" in table else "",
        options=_options(path, table["kind"], table.get("options", {})),
    )


def check_base_url(where: str, url: str) -> str:
    """A site's public address with a slash at its end. Raises SiteError, which begins with `where`.

    Pages are put behind it, so it has no query and no fragment; and it is published, so it names no user.
    """
    parts = urlsplit(check_url(where, url))
    if parts.query or parts.fragment or "@" in parts.netloc:
        raise SiteError(f"{where}: {url!r} has more than host and path; write https://example.org/")
    return url.rstrip("/?#") + "/"


def _check_collection(path: Path, kind: str, name: str, collections: Mapping[str, Collection]) -> None:
    toml = path.parent.parent / "collections.toml"
    if name not in collections:
        raise SiteError(
            f"{path}: collection: {name!r} is none of {', '.join(collections) or 'none'}; "
            f"name it in {toml} to allow it"
        )
    if kind == "reminders" and collections[name].public:
        raise SiteError(
            f"{path}: collection: {name!r} is public, and reminders are for the local chat alone; "
            f"name one that says public = false in {toml}"
        )


def _read_toml(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except FileNotFoundError:
        raise SiteError(
            f"{path}: not found; point RALPH_SITES elsewhere, or write the file, {COLLECTION_EXAMPLE}"
        ) from None
    except OSError as error:
        raise SiteError(
            f"{path}: cannot be read ({error.strerror}); make it a file that you may read"
        ) from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SiteError(f"{path}: not valid TOML: {error}") from None


def _expand(text: str, environ: Mapping[str, str]) -> str | None:
    """The text with its ${VARIABLES} filled in, or None when one of them is unset or empty."""
    if any(not environ.get(name) for name in re.findall(r"\$\{(\w+)\}", text)):
        return None
    return re.sub(r"\$\{(\w+)\}", lambda match: environ[match[1]], text)


def check_url(where: str, url: str) -> str:
    """An http(s) address, as it is. Raises SiteError, which begins with `where`, when it is none."""
    try:
        parts = urlsplit(url)
        valid = parts.scheme in ("http", "https") and bool(parts.hostname) and not re.search(r"\s", url)
    except ValueError:
        valid = False
    if not valid:
        raise SiteError(f"{where}: {url!r} is not an http(s) address; write https://example.org/")
    return url


def _instances(path: Path, kind: SiteKind, tables: Any) -> tuple[Instance, ...]:
    instances = []
    for table in _typed(path, "instances", tables, list):
        if not isinstance(table, dict) or set(table) != {"type", "folder", "route"}:
            raise SiteError(f"{path}: instances: each has exactly type, folder and route")
        if table["type"] not in ("docs", "blog"):
            raise SiteError(f"{path}: instances: type: {table['type']!r} is neither docs nor blog")
        folder, route = (_typed(path, f"instances: {key}", table[key], str) for key in ("folder", "route"))
        instances.append(Instance(table["type"], folder.strip("/"), route.strip("/")))
    if instances and kind != "docusaurus":
        raise SiteError(f'{path}: instances: only kind = "docusaurus" has them; remove them')
    return tuple(instances)


def _language(path: Path, value: Any) -> str:
    tag = _typed(path, "language", value, str).strip()
    if not primary_language(tag):
        raise SiteError(f'{path}: language: {value!r} is no language tag (BCP 47); write language = "en"')
    return tag


def _options(path: Path, kind: SiteKind, table: Any) -> Mapping[str, Any]:
    known = _OPTIONS.get(kind, frozenset())
    unknown = sorted(set(_typed(path, "options", table, dict)) - known)
    if unknown:
        listed = f"known are {', '.join(sorted(known))}" if known else f"kind {kind} has none"
        raise SiteError(f"{path}: options: {unknown[0]}: unknown key; {listed}")
    return dict(table)


def _strings(path: Path, key: str, value: Any) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise SiteError(f'{path}: {key}: write a list of patterns, such as ["drafts/**"]')
    return tuple(value)


def _typed(path: Path, key: str, value: Any, kind: type[T]) -> T:
    if not isinstance(value, kind):
        raise SiteError(f"{path}: {key}: {value!r} is not {_TYPES[kind]}")
    return value
