"""`ralph add PATH|URL`: a new site, described in sites/<name>/site.toml once a person has seen its pages."""

from __future__ import annotations

import argparse
import json
import os
import re
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
    check_base_url,
    load_collections,
)

# Of the pages, of those that a reason leaves out, and of the warnings: `doit export` lists all.
_SHOWN = 10


def main(argv: Sequence[str], ask: Callable[[str], str] = input) -> int:
    """Show what would be published of a path or an address, ask, and write its site.toml.

    Publishes nothing by itself: that is `doit build`. 0 when written, 1 when not, 2 for a wrong command line.
    """
    try:
        options = _parser().parse_args(argv)
        site = describe_site(options, load_collections(options.sites))
        exported = export(site, read_settings(os.environ).today)
    except SiteError as error:
        print(error, file=sys.stderr)
        return 1
    print(format_report(make_report(exported), _SHOWN))
    pages = [f"  {page.url}  {page.title}" for page in exported.pages]
    for line in shortened(pages, "  … and {} more pages", _SHOWN):
        print(line)
    if not exported.pages:
        print(f"Nothing of {site.source} would be published; no site.toml was written.", file=sys.stderr)
        return 1
    if not options.yes and not _agreed(ask, f"Write {site.toml}? [y/N] "):
        print("Nothing was written.")
        return 1
    site.folder.mkdir(parents=True, exist_ok=True)
    site.toml.write_text(site_toml(site), encoding="utf-8")
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
    found = detect(source)
    if options.kind and (found is None or found.kind != options.kind):
        found = Detection(options.kind, "--kind names it", base_url=found.base_url if found else "")
    if found is None and Path(source).is_file():
        raise SiteError(f"{source}: not a WordPress export (.xml); give one, a folder or an address")
    if found is None:
        raise SiteError(f"{source}: no markdown or HTML in it; name its kind with --kind")
    print(f"{source}: {found.kind}, since {found.because}")
    if options.collection not in collections:
        listed = "; ".join(f"{c.name} ({c.title})" for c in collections.values()) or "none yet"
        wrong = f"{options.collection!r} is no collection" if options.collection else "no collection is named"
        raise SiteError(
            f"{wrong}; name one with --collection: {listed}. Another one is first written into "
            f"{options.sites / 'collections.toml'}, {COLLECTION_EXAMPLE}"
        )
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
        base_url=_base_url(options.base_url or found.base_url, source),
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


def _base_url(base_url: str, source: str) -> str:
    if not base_url:
        raise SiteError(
            f"{source} does not say where it is published; give its address with --base-url https://…/"
        )
    return check_base_url("--base-url", base_url)


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
