"""Public addresses: how each site generator makes a URL of a file's path and front matter."""

from __future__ import annotations

import posixpath
import re
import unicodedata
from collections.abc import Mapping
from urllib.parse import quote, urlsplit

# Docusaurus 3, plugin-content-docs/src/numberPrefix.ts: dates and versions are no number prefixes.
_NOT_A_NUMBER_PREFIX = re.compile(r"(?:\d{2}|\d{4})[-_.]\d{2}(?:[-_.](?:\d{2}|\d{4}))?|\d+[-_.]\d+")
_NUMBER_PREFIX = re.compile(r"\d+\s*[-_.]+\s*(?=[^-_.\s])")
# Docusaurus 3, plugin-content-blog/src/blogUtils.ts, DATE_FILENAME_REGEX.
_BLOG_FILE = re.compile(
    r"(?P<folder>.*)(?P<date>\d{4}[-/]\d{1,2}[-/]\d{1,2})[-/]?(?P<text>.*?)(?:/index)?\.mdx?"
)
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:(?!\d)")


def is_http_url(url: str) -> bool:
    """Whether this is an absolute http(s) address with a host and without white space."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return False
    return parts.scheme in ("http", "https") and bool(parts.hostname) and not re.search(r"[\s\x00-\x1f]", url)


def has_scheme(address: str) -> bool:
    """Whether an address names its own scheme (`https:`, `mailto:`) and so is no path."""
    return _SCHEME.match(address) is not None


def quote_path(path: str) -> str:
    """A path of file names as the path of a URL: letters of any script stay, what has a meaning in URLs
    (`#`, `?`, `%`, white space, quotes) is percent-encoded."""
    return re.sub(r"""[\x00-\x20\x7f"#%<>?\\^`{|}]|\s""", lambda match: quote(match[0], safe=""), path)


def quote_address(address: str) -> str:
    """A path that somebody wrote as an address: like `quote_path`, but `%xx`, `?` and `#` stay."""
    unsafe = r"""[\x00-\x20\x7f"<>\\^`{|}]|\s|%(?![0-9A-Fa-f]{2})"""
    return re.sub(unsafe, lambda match: quote(match[0], safe=""), address)


def join(base_url: str, path: str, trailing_slash: bool | None = None) -> str:
    """The address of a path below base_url.

    Doubled slashes collapse and `..` never climbs above base_url. `trailing_slash` None leaves the end of
    the path as it is; a path whose last segment has a file's extension (`.html`) never gets a slash.
    """
    path, mark, rest = _split_query(path)
    clean = posixpath.normpath("/" + path.lstrip("/")).lstrip("/")
    is_folder = path.endswith("/") or not clean
    if trailing_slash is not None and not re.search(r"\.(?:html?|xml|php|aspx?)$", clean):
        is_folder = trailing_slash
    if not clean:
        return base_url.rstrip("/") + "/" + mark + rest
    return base_url.rstrip("/") + "/" + clean + ("/" if is_folder else "") + mark + rest


def _split_query(path: str) -> tuple[str, str, str]:
    match = re.search(r"[?#]", path)
    return (path[: match.start()], match[0], path[match.end() :]) if match else (path, "", "")


def strip_suffix(path: str) -> str:
    """A path without its file name's extension."""
    return posixpath.splitext(path)[0]


def strip_number_prefix(name: str) -> str:
    """`01-intro` -> `intro`, as Docusaurus does it: `2024-05-01-news` and `8.0-rc` stay."""
    return name if _NOT_A_NUMBER_PREFIX.match(name) else _NUMBER_PREFIX.sub("", name, count=1)


def docusaurus_doc_slug(path: str, doc_id: str | None, slug: str | None) -> str:
    """The slug of a doc below its instance's route, from its path in the instance's folder.

    An index, a README or a file named as its folder (in any case) is the folder's page, unless it has a
    slug; an `id` takes the place of the file's name (plugin-content-docs/src/slug.ts).
    """
    if slug and slug.startswith("/"):
        return slug
    folder, name = posixpath.split(strip_suffix(path))
    folder_slug = "/" + "".join(f"{strip_number_prefix(part)}/" for part in folder.split("/") if part)
    if not slug and name.lower() in ("index", "readme", posixpath.basename(folder).lower()):
        return folder_slug
    return posixpath.normpath(folder_slug + (slug or doc_id or strip_number_prefix(name))) + (
        "/" if slug and slug.endswith("/") else ""
    )


def docusaurus_blog_slug(path: str, slug: str | None) -> str:
    """The slug of a blog post below its blog's route, from its path in the blog's folder."""
    if slug:
        return slug
    if dated := _BLOG_FILE.fullmatch(path):
        return f"/{dated['date'].replace('-', '/')}/{dated['folder']}{dated['text']}"
    return "/" + re.sub(r"(?:/index)?\.mdx?$", "", path)


def hugo_path(path: str) -> str:
    """A path as Hugo writes it: lower case, white space as hyphens, only letters, digits and `.-_+~@/`."""
    words = re.sub(r"\s+", "-", path.strip().lower())
    kept = "".join(c for c in words if c in "./-_+~@" or unicodedata.category(c)[0] in "LMN")
    return re.sub(r"--+", "-", kept)


def zola_slug(text: str) -> str:
    """A segment as Zola's default slugs write it: ASCII letters and digits in lower case, and hyphens."""
    ascii_text = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode()
    return re.sub(r"[^a-z0-9]+", "-", ascii_text.lower()).strip("-") or text


def jekyll_slug(text: str, cased: bool = False) -> str:
    """A segment as Jekyll's default slugs write it: letters, digits, hyphens; lower case unless cased."""
    slug = "".join(c if unicodedata.category(c)[0] in "LMN" else "-" for c in text)
    slug = re.sub(r"--+", "-", slug).strip("-")
    return slug if cased else slug.lower()


def expand_permalink(pattern: str, values: Mapping[str, str]) -> str:
    """A permalink pattern (`/:year/:slug/`) with its placeholders filled in.

    Longer names win (`:slugorfilename` over `:slug`); an unknown placeholder stays as it is.
    """
    names = sorted(values, key=len, reverse=True)
    filled = re.sub(rf":({'|'.join(map(re.escape, names))})", lambda match: values[match[1]], pattern)
    return re.sub(r"//+", "/", filled)
