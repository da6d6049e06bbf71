"""`ralph add PATH|URL`: a new site, described in sites/<name>/site.toml once a person has seen its pages."""

from __future__ import annotations

import argparse
import json
import os
import re
import shlex
import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from pipeline import urls
from pipeline.detect import Detection, detect
from pipeline.export.exporters import EXPORTERS, export
from pipeline.export.pages import format_report, make_report, shortened
from pipeline.settings import read_settings
from pipeline.site import (
    COLLECTION_EXAMPLE,
    Collection,
    Instance,
    Site,
    SiteError,
    SiteKind,
    check_base_url,
    load_collections,
)

# Of the pages, of those that a reason leaves out, and of the warnings: `doit export` lists all.
_SHOWN = 10


def main(argv: Sequence[str], ask: Callable[[str], str] = input) -> int:
    """Show what would be published of a path or an address, ask, and write its site.toml.

    Publishes nothing by itself: that is `doit build`. 0 when written, 1 when the answer is no, 2 when the
    command line or the source is wrong.
    """
    try:
        return _add(_parser().parse_args(argv), ask)
    except SiteError as error:
        print(f"ralph: {error}", file=sys.stderr)
        return 2


def _add(options: argparse.Namespace, ask: Callable[[str], str]) -> int:
    site = describe_site(options, load_collections(options.sites))
    exported = export(site, read_settings(os.environ).today)
    print(format_report(make_report(exported), _SHOWN))
    pages = [f"  {page.url}  {page.title}" for page in exported.pages]
    for line in shortened(pages, "  … and {} more pages", _SHOWN):
        print(line)
    if not exported.pages:
        raise SiteError(f"nothing of {site.source} would be published; no site.toml was written")
    if not options.yes and not _agreed(ask, f"Write {site.toml}? [y/N] "):
        print("Nothing was written.")
        return 1
    try:
        site.folder.mkdir(parents=True, exist_ok=True)
        site.toml.write_text(site_toml(site), encoding="utf-8")
    except OSError as error:
        raise SiteError(
            f"{site.toml}: cannot be written ({error.strerror}); allow it, or give another --name"
        ) from None
    print(f"Wrote {site.toml}. `doit build` publishes these pages into the collection {site.collection}.")
    return 0


def describe_site(options: argparse.Namespace, collections: Mapping[str, Collection]) -> Site:
    """The site that a command line asks for. Raises SiteError for what it lacks or gets wrong."""
    source: str = options.source
    if not urls.is_http_url(source):
        if urls.has_scheme(source) and not Path(source).exists():
            raise SiteError(f"{source}: give a path or an http(s) address")
        if not Path(source).expanduser().exists():
            raise SiteError(f"{source}: not there; give a folder, a WordPress export (.xml) or an address")
        source = str(Path(source).expanduser().resolve())
    found = _detected(source, options.kind)
    print(f"{source}: {found.kind}, since {found.because}")
    base_url = options.base_url or found.base_url
    _check_complete(options, base_url, collections)
    name = options.name or _default_name(source)
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*", name):
        raise SiteError(f"{name!r} cannot name a site; give letters, digits, dots or hyphens with --name")
    folder: Path = options.sites / name
    if (folder / "site.toml").exists():
        raise SiteError(f"{folder / 'site.toml'} is there already; give another --name, or edit that file")
    return Site(
        name=name,
        kind=found.kind,
        source=source,
        base_url=check_base_url("--base-url", base_url),
        collection=options.collection,
        folder=folder,
        instances=found.instances,
        options=found.options,
    )


def site_toml(site: Site) -> str:
    """The text of a site's site.toml."""
    values = {
        "kind": site.kind,
        "source": site.source,
        "base_url": site.base_url,
        "collection": site.collection,
    }
    lines = [f"{key} = {_toml_value(value)}" for key, value in values.items()]
    for instance in site.instances:
        lines += ["", *_instance_lines(instance)]
    if site.options:
        lines += ["", "[options]", *(f"{key} = {_toml_value(value)}" for key, value in site.options.items())]
    return "\n".join(lines) + "\n"


def _instance_lines(instance: Instance) -> list[str]:
    values = {"type": instance.type, "folder": instance.folder, "route": instance.route}
    return ["[[instances]]", *(f"{key} = {_toml_value(value)}" for key, value in values.items())]


def _toml_value(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")  # JSON strings are TOML strings


def _detected(source: str, kind: SiteKind | None) -> Detection:
    """What is at the source; of the kind that was named, where one was. Raises SiteError if it cannot be."""
    try:
        found = detect(source)
    except OSError as error:
        raise SiteError(f"{error.filename}: cannot be read ({error.strerror}); allow it") from None
    if kind == "url" and not urls.is_http_url(source):
        raise SiteError(f"{source}: not an address, and kind 'url' takes one; leave --kind out")
    if kind and (found is None or found.kind != kind):
        found = Detection(kind, "--kind names it", base_url=found.base_url if found else "")
    if found is None and Path(source).is_file():
        raise SiteError(f"{source}: not a WordPress export (.xml); give one, a folder or an address")
    if found is None:
        raise SiteError(f"{source}: no markdown or HTML in it; name its kind with --kind")
    if found.kind == "docusaurus" and not found.instances:
        raise SiteError(
            f"{source}: no docusaurus.config.* with docs or a blog, in it or in a folder of it; "
            "give the folder of the checkout, or name another --kind, such as markdown"
        )
    return found


def _check_complete(
    options: argparse.Namespace, base_url: str, collections: Mapping[str, Collection]
) -> None:
    """Raise SiteError for all that the command line leaves out, with a whole one to copy."""
    needs = []
    if not base_url:
        needs.append("--base-url: nothing here says where it is published; give its address, https://…/")
    if options.collection not in collections:
        listed = "; ".join(f"{c.name} ({c.title})" for c in collections.values()) or "none yet"
        wrong = f"{options.collection!r} is none" if options.collection else "none is named"
        needs.append(
            f"--collection: {wrong}; there are: {listed}. Another one is first written into "
            f"{options.sites / 'collections.toml'}, {COLLECTION_EXAMPLE}"
        )
    if needs:
        example = _command_line(options, base_url or "https://example.org/", _likely(options, collections))
        raise SiteError("\n  ".join(["more is needed to add it", *needs, f"For example: {example}"]))


def _likely(options: argparse.Namespace, collections: Mapping[str, Collection]) -> str:
    """The collection that is asked for, or the first that is there, samples last."""
    if options.collection in collections:
        return str(options.collection)
    return min(collections.values(), key=lambda c: c.sample).name if collections else "NAME"


def _command_line(options: argparse.Namespace, base_url: str, collection: str) -> str:
    given = {
        "--name": options.name,
        "--kind": options.kind,
        "--base-url": base_url,
        "--collection": collection,
        "--sites": options.sites if options.sites != read_settings(os.environ).sites else None,
    }
    program = "ralph" if shutil.which("ralph") else sys.argv[0]
    words = [word for option, value in given.items() if value for word in (option, str(value))]
    return shlex.join([program, "add", options.source, *words, *(["--yes"] if options.yes else [])])


def _default_name(source: str) -> str:
    name = urlsplit(source).hostname if urls.is_http_url(source) else Path(source).stem
    return re.sub(r"[^A-Za-z0-9._-]+", "-", name or "").strip("-._") or "site"


def _agreed(ask: Callable[[str], str], question: str) -> bool:
    try:
        return ask(question).strip().lower() in ("y", "yes")
    except EOFError:
        print()
        return False


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="ralph add", description=main.__doc__ and main.__doc__.partition("\n")[0]
    )
    parser.add_argument(
        "source", metavar="PATH|URL", help="a folder, a WordPress export (.xml) or one page's address"
    )
    parser.add_argument(
        "--name", metavar="NAME", help="the site's folder below sites/ (default: from the source)"
    )
    parser.add_argument("--collection", metavar="NAME", help="one of sites/collections.toml")
    parser.add_argument(
        "--base-url", metavar="URL", help="where the site is published (default: what its configuration says)"
    )
    parser.add_argument(
        "--kind", choices=list(EXPORTERS), help="the kind of site (default: what the source looks like)"
    )
    parser.add_argument(
        "--sites", metavar="DIR", type=Path, default=read_settings(os.environ).sites, help="the sites folder"
    )
    parser.add_argument("--yes", action="store_true", help="write without asking")
    return parser


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
