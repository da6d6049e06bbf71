"""Questions that a site asks of itself: the texts of its links, and its pages' descriptions.

A link's text is what somebody wrote who wanted its page to be found; a description says what a page is about,
in other words than its own. Where descriptions are asked, the site is indexed without them.
"""

from __future__ import annotations

import re
import shutil
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urldefrag, urljoin

from pipeline.frontmatter import parse

_DESCRIPTION = re.compile(r"^description:.*\n(?:[ \t]+.*\n)*", re.M)
_CODE = re.compile(r"^```.*?^```", re.M | re.S)
_INLINE = re.compile(r"(?<!!)\[([^\[\]]+)\]\(([^()\s]+)\)")
_REFERENCE = re.compile(r"(?<!!)\[([^\[\]]+)\]\[([^\[\]]*)\]")
_DEFINITION = re.compile(r"^\[([^\[\]]+)\]:\s*(\S+)", re.M)
_MARKUP = re.compile(r"\{\{.*?\}\}|[`*_]")


@dataclass(frozen=True, slots=True)
class SiteSet:
    """A site of the corpora: the folder of its content, and its site.toml but for source and collection."""

    content: str
    toml: str


SITES = {
    "hugoDocs": SiteSet("content/en", 'kind = "hugo"\nbase_url = "https://gohugo.io/"\n'),
    "babel-website": SiteSet(
        ".",
        'kind = "docusaurus"\nbase_url = "https://babeljs.io/"\n'
        '[[instances]]\ntype = "docs"\nfolder = "docs"\nroute = "docs"\n'
        '[[instances]]\ntype = "blog"\nfolder = "website/blog"\nroute = "blog"\n',
    ),
}


def copy_without_descriptions(source: Path, target: Path) -> dict[str, str]:
    """Copies a site's content and returns the descriptions that were left out, by path."""
    descriptions = {}
    for path in sorted(path for path in source.rglob("*") if path.is_file()):
        name = path.relative_to(source)
        (target / name).parent.mkdir(parents=True, exist_ok=True)
        if path.suffix != ".md":
            shutil.copyfile(path, target / name)
            continue
        text = path.read_text(encoding="utf-8")
        if description := plain(str(parse(text).meta.get("description") or "")):
            descriptions[name.as_posix()] = description
        (target / name).write_text(_DESCRIPTION.sub("", text, count=1), encoding="utf-8")
    return descriptions


def link_texts(content: Path, url_by_path: Mapping[str, str]) -> dict[str, set[str]]:
    """The texts of links between pages, of two words or more, and the addresses that they lead to."""
    by_address = {url.rstrip("/"): url for url in url_by_path.values()}
    targets: dict[str, set[str]] = defaultdict(set)
    for path, url in url_by_path.items():
        for text, link in _links((content / path).read_text(encoding="utf-8")):
            linked = urldefrag(urljoin(url, link)).url.rstrip("/")
            if link.partition("#")[0].endswith(".md"):
                file = (content / path).parent / link.partition("#")[0]
                linked = url_by_path.get(_relative(file, content), "").rstrip("/")
            target = by_address.get(linked)
            if target and target != url and " " in plain(text):
                targets[plain(text).lower()].add(target)
    return dict(targets)


def plain(text: str) -> str:
    """A line of markdown as it is spoken."""
    return " ".join(_MARKUP.sub("", _INLINE.sub(r"\1", text)).split())


def _links(text: str) -> Iterable[tuple[str, Any]]:
    text = _CODE.sub("", text)
    yield from _INLINE.findall(text)
    definitions = {name.lower(): link for name, link in _DEFINITION.findall(text)}
    for words, name in _REFERENCE.findall(text):
        yield words, definitions.get((name or words).lower(), "")


def _relative(file: Path, folder: Path) -> str:
    try:
        return file.resolve().relative_to(folder.resolve()).as_posix()
    except ValueError:  # it leads out of the site
        return ""
