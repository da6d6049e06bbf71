"""Exported URLs against what two real sites publish: python -m benchmarks.urls --corpora DIR --data DIR.

til (Docusaurus) against the routes of its own build, in DIR/til_queries/urls.tsv; dw-posts (WordPress)
against the permalinks in its files, on the address where that site lives today.
"""

from __future__ import annotations

import argparse
import csv
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from urllib.parse import urlsplit

from pipeline.export.exporters import export
from pipeline.settings import read_settings
from pipeline.site import MissingSite, Site, SiteError, load_collections, load_site

SITES = Path(__file__).resolve().parent.parent / "sites"


def described_site(name: str, corpora: Path) -> Site:
    """A site as its own site.toml describes it, with its source in the corpora."""
    environ = {"RALPH_TIL": str(corpora / "til"), "RALPH_DAVIDAWINDHAM": str(corpora / "dw-posts")}
    site = load_site(SITES / name / "site.toml", load_collections(SITES), environ)
    if isinstance(site, MissingSite):
        raise SiteError(f"{name}: {site.reason}")
    return site


def expected_til_urls(corpora: Path, data: Path) -> dict[str, str]:
    """The public URL of each source file of til that the corpus holds.

    The corpus leaves out one draft with personal data; the site's own build, and so the list, has it.
    """
    with (data / "til_queries" / "urls.tsv").open(encoding="utf-8", newline="") as stream:
        rows = list(csv.DictReader(stream, delimiter="\t", quoting=csv.QUOTE_NONE))
    return {r["source_file"]: r["public_url"] for r in rows if (corpora / "til" / r["source_file"]).is_file()}


def expected_dw_urls(corpora: Path) -> dict[str, str]:
    """The path of each permalink of dw-posts on https://davidwindham.com."""
    root = corpora / "dw-posts"
    expected = {}
    for path in sorted(root.rglob("*.md")):
        permalink = re.search(r"^permalink:\s*(?:>\s*)?(\S+)\s*$", path.read_text(encoding="utf-8"), re.M)
        if permalink:
            expected[path.relative_to(root).as_posix()] = (
                "https://davidwindham.com" + urlsplit(permalink[1]).path
            )
    return expected


def compare(name: str, expected: Mapping[str, str], site: Site) -> int:
    """Print how many URLs come out exactly, and each that does not; the number of differences."""
    exported = {page.path: page.url for page in export(site, read_settings({}).today).pages}
    wrong = [
        f"  {path}: expected {expected.get(path, 'no page')}, got {exported.get(path, 'no page')}"
        for path in sorted(expected.keys() | exported.keys())
        if expected.get(path) != exported.get(path)
    ]
    n_exact = sum(exported.get(path) == url for path, url in expected.items())
    print(f"{name}: {n_exact} of {len(expected)} URLs exact, {len(wrong)} differences")
    print(*wrong, sep="\n", end="\n" if wrong else "")
    return len(wrong)


def main(argv: Sequence[str]) -> int:
    """Print both checks; 1 when a URL differs."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--corpora", type=Path, required=True)
    parser.add_argument("--data", type=Path, required=True)
    options = parser.parse_args(argv)
    n_wrong = compare(
        "til", expected_til_urls(options.corpora, options.data), described_site("til", options.corpora)
    )
    n_wrong += compare(
        "dw-posts", expected_dw_urls(options.corpora), described_site("davidawindham.com", options.corpora)
    )
    return 1 if n_wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
