"""What kind of site a folder, a file or an address is, and where it says it lives."""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import yaml

from pipeline import urls
from pipeline.frontmatter import parse
from pipeline.site import Instance, SiteKind

# Enough to tell what a folder is without walking through all of a large one.
_SAMPLE_FILES = 2_000
_SAMPLE_BYTES = 4_000


@dataclass(frozen=True, slots=True)
class Detection:
    """The kind of a site and why; its base_url where its own configuration names one, else empty."""

    kind: SiteKind
    because: str
    base_url: str = ""
    instances: tuple[Instance, ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict)


def detect(source: str) -> Detection | None:
    """What is at source, a path or an http(s) address; None when it holds nothing that could be a page."""
    if urls.is_http_url(source):
        parts = urlsplit(source)
        return Detection("url", "it is an address", base_url=f"{parts.scheme}://{parts.netloc}/")
    path = Path(source)
    if path.is_file():
        head = path.read_bytes()[:_SAMPLE_BYTES]
        is_wxr = path.suffix.lower() == ".xml" and b"wordpress.org/export" in head
        if not is_wxr:
            return None
        link = re.search(rb"<link>\s*([^<\s]+)\s*</link>", head)
        base = link[1].decode("utf-8", "replace") if link else ""
        return Detection("wordpress", f"{path.name} is a WordPress export", base_url=_http(base))
    detectors: tuple[Callable[[Path], Detection | None], ...] = (
        _docusaurus, _zola, _hugo, _jekyll, _wordpress, _plain,
    )  # fmt: skip
    return next((found for detector in detectors if (found := detector(path)) is not None), None)


def _docusaurus(root: Path) -> Detection | None:
    """A checkout, or a repository that has one in a folder such as website/ and maybe its docs beside it."""
    configs = [*sorted(root.glob("docusaurus.config.*")), *sorted(root.glob("*/docusaurus.config.*"))]
    if not configs:
        return None
    config = configs[0]
    text = config.read_text(encoding="utf-8", errors="replace")
    host, base = _js_string(text, "url"), _js_string(text, "baseUrl")
    because = config.relative_to(root).as_posix()
    found: dict[str, Instance] = {}
    for written in [*re.findall(r"\bpath:\s*['\"]([^'\"\n/][^'\"\n]*)", text), "blog", "posts", "docs"]:
        folder = Path(os.path.normpath(config.parent / written))
        if not folder.is_dir() or folder in (root, config.parent):
            continue
        if not folder.is_relative_to(root):
            because += f"; {written} is outside of this folder, and left out: add one that holds both"
            continue
        below = folder.relative_to(root).as_posix()
        given = re.escape(written)
        route = re.search(rf"path:\s*['\"]{given}['\"][^}}]*?routeBasePath:\s*['\"]/?([^'\"]*)", text)
        found.setdefault(
            below,
            Instance(
                type="blog" if folder.name in ("blog", "posts") else "docs",
                folder=below,
                route=route[1] if route else folder.name,
            ),
        )
    return Detection(
        "docusaurus",
        because,
        base_url=_joined(host, base),
        instances=tuple(sorted(found.values(), key=lambda instance: instance.folder)),
    )


def _zola(root: Path) -> Detection | None:
    config = _toml(root / "config.toml")
    if "base_url" not in config or not (root / "content").is_dir():
        return None
    return Detection("zola", "config.toml with base_url", base_url=_http(config["base_url"]))


def _hugo(root: Path) -> Detection | None:
    names = [f"{stem}.{suffix}" for stem in ("hugo", "config") for suffix in ("toml", "yaml", "yml", "json")]
    names += [f"config/_default/{name}" for name in names]
    for name in names:
        path = root / name
        if not path.is_file():
            continue
        config = _toml(path) if path.suffix == ".toml" else _yaml(path)
        if "hugo" in path.name or any(key.lower() == "baseurl" for key in config):
            base = next((value for key, value in config.items() if key.lower() == "baseurl"), "")
            return Detection("hugo", name, base_url=_http(base), options=_hugo_options(root))
    if (root / "content").is_dir() and (root / "archetypes").is_dir():
        return Detection("hugo", "content and archetypes folders", options=_hugo_options(root))
    return None


def _hugo_options(root: Path) -> dict[str, Any]:
    """The content folder of the first language, where each language has its own."""
    return {"content": "content/en"} if (root / "content" / "en").is_dir() else {}


def _jekyll(root: Path) -> Detection | None:
    config = _yaml(root / "_config.yml")
    if not config and not (root / "_posts").is_dir():
        return None
    if not config and (wordpress := _wordpress(root)):
        return wordpress  # its markdown export has a _posts folder too
    base = _joined(str(config.get("url") or ""), str(config.get("baseurl") or ""))
    return Detection("jekyll", "_config.yml" if config else "a _posts folder", base_url=base)


def _wordpress(root: Path) -> Detection | None:
    for path in islice(_files(root, (".md", ".markdown")), 50):
        meta = parse(path.read_bytes()[:_SAMPLE_BYTES].decode("utf-8", "replace")).meta
        if "permalink" in meta and ("post_title" in meta or "ID" in meta):
            base = re.match(r"https?://[^/]+/", str(meta["permalink"]).strip())
            return Detection("wordpress", f"permalink and post_title in {path.name}", base[0] if base else "")
    return None


def _plain(root: Path) -> Detection | None:
    suffixes = [
        path.suffix.lower() for path in islice(_files(root, (".md", ".mdx", ".html", ".htm")), _SAMPLE_FILES)
    ]
    n_html = sum(suffix in (".html", ".htm") for suffix in suffixes)
    if not suffixes:
        return None
    kind: SiteKind = "html" if n_html > len(suffixes) - n_html else "markdown"
    host = root / "CNAME"
    base = f"https://{host.read_text(encoding='utf-8').strip()}/" if host.is_file() else ""
    return Detection(kind, f"mostly {'HTML' if kind == 'html' else 'markdown'} files", base_url=_http(base))


def _files(root: Path, suffixes: tuple[str, ...]) -> Iterable[Path]:
    """The files of a folder, hidden folders and node_modules apart, the shallow ones first."""
    folders = [root]
    while folders:
        folder = folders.pop(0)
        for path in sorted(folder.iterdir()):
            if path.name.startswith(".") or path.name == "node_modules" or path.is_symlink():
                continue
            if path.is_dir():
                folders.append(path)
            elif path.suffix.lower() in suffixes:
                yield path


def _toml(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8-sig")) if path.is_file() else {}
    except (tomllib.TOMLDecodeError, UnicodeDecodeError):
        return {}


def _yaml(path: Path) -> dict[str, Any]:
    try:
        loaded = yaml.safe_load(path.read_text(encoding="utf-8-sig")) if path.is_file() else {}
    except (yaml.YAMLError, UnicodeDecodeError):
        return {}
    return loaded if isinstance(loaded, dict) else {}


def _js_string(text: str, key: str) -> str:
    match = re.search(rf"^\s*(?:const\s+)?{key}\s*[:=]\s*(['\"`])(.*?)\1", text, re.M)
    return match[2] if match else ""


def _joined(host: str, base: str) -> str:
    return _http(host.rstrip("/") + "/" + base.strip("/") + ("/" if base.strip("/") else ""))


def _http(address: object) -> str:
    return str(address) if urls.is_http_url(str(address)) else ""
