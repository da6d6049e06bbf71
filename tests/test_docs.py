"""What can be typed or set is in the documentation, and what the documentation links to is there."""

from __future__ import annotations

import argparse
import re
import tomllib
from pathlib import Path

import pytest

from handler.__main__ import HELP, _parser
from pipeline.add import _parser as add_parser
from pipeline.ingest_command import _parser as ingest_parser
from pipeline.site import _KEYS, _OPTIONS, KINDS

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "sites" / "ralph"
PAGES = sorted(
    [
        *DOCS.glob("*.md"),
        *ROOT.glob("*.md"),
        *(ROOT / "benchmarks").glob("*.md"),
        *ROOT.glob("plugins/*/README.md"),
    ]
)


def read(name: str) -> str:
    return (DOCS / name).read_text(encoding="utf-8")


def variables() -> set[str]:
    """The environment variables that the settings modules, and this repository's sites, read."""
    found: set[str] = set()
    rooms = ("handler", "handler/local", "pipeline", "pipeline/deploy", "pipeline/export")
    for folder in (*rooms, "plugins/ralph-fs/ralph_fs"):
        path = ROOT / folder / "settings.py"
        found |= set(re.findall(r'"([A-Z][A-Z_]{2,})"', path.read_text(encoding="utf-8")))
    for path in (ROOT / "sites").glob("*/site.toml"):
        found |= set(re.findall(r"\$\{(\w+)\}", path.read_text(encoding="utf-8")))
    return found


def test_every_setting_is_documented() -> None:
    text = read("settings.md")
    assert variables()
    assert [name for name in sorted(variables()) if f"`{name}`" not in text] == []


def test_every_documented_setting_is_read() -> None:
    documented = set(re.findall(r"`([A-Z][A-Z_]{2,})`", read("settings.md")))
    assert documented == variables()


def test_every_command_and_option_is_documented() -> None:
    text = read("commands.md")
    (commands,) = (a for a in _parser([])._actions if isinstance(a, argparse._SubParsersAction))
    missing = [f"ralph {name}" for name in commands.choices if f"## ralph {name}" not in text]
    for parser in commands.choices.values():
        options = [option for action in parser._actions for option in action.option_strings]
        missing += [o for o in options if o.startswith("--") and o != "--help" and f"`{o}" not in text]
    assert missing == []


@pytest.mark.parametrize(("name", "parser"), [("add", add_parser()), ("ingest", ingest_parser())])
def test_every_option_of_an_installed_command_is_documented(
    name: str, parser: argparse.ArgumentParser
) -> None:
    section = read("commands.md").split(f"## ralph {name}")[1].split("\n## ")[0]
    options = [option for action in parser._actions for option in action.option_strings]
    assert [o for o in options if o.startswith("--") and o != "--help" and f"`{o}" not in section] == []


def test_every_installed_command_is_documented() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    text = read("commands.md")
    names = project["entry-points"]["ralph.commands"]
    assert [name for name in names if f"## ralph {name}" not in text] == []
    shown = _parser(sorted(names)).format_help()
    assert [name for name in names if f"    {name:10}{HELP[name]}" not in shown] == []


def test_every_kind_and_key_of_a_site_is_documented() -> None:
    text = read("sites.md")
    assert [kind for kind in KINDS if f'"{kind}"' not in text] == []
    assert [key for key in sorted(_KEYS.union(*_OPTIONS.values())) if f"`{key}`" not in text] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_between_files_lead_somewhere(page: Path) -> None:
    targets = re.findall(r"\]\((?!https?://|#)([^)#\s]+)", page.read_text(encoding="utf-8"))
    assert [target for target in targets if not (page.parent / target).exists()] == []


def test_the_questions_of_the_sample_expect_pages_that_exist() -> None:
    base_url = tomllib.loads((DOCS / "site.toml").read_text(encoding="utf-8"))["base_url"]
    expected = set(re.findall(rf'"{re.escape(base_url)}([^"]*)"', read("questions.jsonl")))
    assert expected
    assert [name for name in sorted(expected) if not (DOCS / name).is_file()] == []
