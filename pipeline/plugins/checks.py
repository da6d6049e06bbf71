"""What is wrong with the marketplace of a folder, its plugins, their skills, commands and servers.

`claude plugin validate` checks the manifests' keys; what it lets through is checked here: that what they name
is there, and that two places that say the same thing agree.
Formats: https://code.claude.com/docs/en/plugins-reference and .../plugin-marketplaces, .../skills
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

MARKETPLACE = Path(".claude-plugin/marketplace.json")
PLUGIN = Path(".claude-plugin/plugin.json")
_ROOT_VARIABLE = "${CLAUDE_PLUGIN_ROOT}/"

# Longer ones are cut off where a session lists what it has.
MAX_DESCRIPTION_CHARS = 1024
MAX_LISTED_CHARS = 1536

_NAME = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
_VERSION = re.compile(r"(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(-[0-9A-Za-z.-]+)?(\+[0-9A-Za-z.-]+)?")
_FRONT_MATTER = re.compile(r"---\n(.*?)\n---\n", re.S)
_SKILL_KEYS = frozenset(
    ("name", "description", "when_to_use", "license", "compatibility", "metadata", "allowed-tools", "model",
     "argument-hint", "arguments", "disable-model-invocation", "user-invocable", "context", "agent", "hooks",
     "effort", "paths", "shell")
)  # fmt: skip
_COMMAND_KEYS = _SKILL_KEYS - {"name"}
_PATH_KEYS = ("skills", "commands", "agents", "hooks", "mcpServers", "lspServers", "outputStyles")


def problems(root: Path) -> list[str]:
    """What is wrong with the marketplace in a folder: sentences that name file, key and remedy."""
    return list(_marketplace_problems(root))


def _marketplace_problems(root: Path) -> Iterator[str]:
    try:
        table = _read_json(root / MARKETPLACE)
    except ValueError as error:
        yield f"{MARKETPLACE}: {error}"
        return
    yield from _name_problems(f"{MARKETPLACE}: name", table.get("name"))
    yield from _person_problems(f"{MARKETPLACE}: owner", table.get("owner"))
    entries = table.get("plugins")
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        yield f"{MARKETPLACE}: plugins: write a list of tables"
        return
    for index, entry in enumerate(entries):
        yield from _entry_problems(root, f"{MARKETPLACE}: plugins[{index}]", entry)
    listed = {(root / str(entry.get("source"))).resolve() for entry in entries}
    for folder in sorted(path.parent.parent for path in (root / "plugins").glob(f"*/{PLUGIN}")):
        if folder.resolve() not in listed:
            yield f"{MARKETPLACE}: plugins: {folder.relative_to(root)} is not listed; add it, or remove it"


def _entry_problems(root: Path, where: str, entry: Mapping[str, Any]) -> Iterator[str]:
    source = entry.get("source")
    if not isinstance(source, str) or not source.startswith("./") or ".." in source.split("/"):
        yield f"{where}.source: {source!r} is no folder of this repository; write it as ./plugins/NAME"
        return
    folder = root / source
    if not folder.is_dir():
        yield f"{where}.source: there is no folder {source}; write the plugin's, or remove the entry"
        return
    yield from _plugin_problems(root, folder, entry, where)


def _plugin_problems(root: Path, folder: Path, entry: Mapping[str, Any], where: str) -> Iterator[str]:
    manifest = (folder / PLUGIN).relative_to(root)
    try:
        table = _read_json(root / manifest)
    except ValueError as error:
        yield f"{manifest}: {error}"
        return
    yield from _name_problems(f"{manifest}: name", table.get("name"))
    yield from _person_problems(f"{manifest}: author", table.get("author"))
    version = table.get("version")
    if not (isinstance(version, str) and _VERSION.fullmatch(version)):
        yield f"{manifest}: version: {version!r} is no version; write three numbers, as in 1.2.3"
    for key in ("name", "version", "description"):
        if entry.get(key) != table.get(key):
            other = f"{table.get(key)!r} in {manifest}"
            yield f"{where}.{key}: {entry.get(key)!r} here, and {other}; say the same in both"
    for key in _PATH_KEYS:
        paths = table.get(key)
        for path in [paths] if isinstance(paths, str) else paths if isinstance(paths, list) else []:
            if not str(path).startswith("./") or not (folder / str(path)).exists():
                yield f"{manifest}: {key}: {path!r} is not there; write a path in the plugin, from ./ on"
    yield from _server_problems(root, folder)
    yield from _project_problems(root, folder, version)
    for skill in sorted((folder / "skills").glob("*")):
        if skill.is_dir():
            yield from _skill_problems(root, skill)
    for command in sorted((folder / "commands").glob("*.md")):
        yield from _text_problems(command.relative_to(root), command, _read(command), _COMMAND_KEYS)


def _server_problems(root: Path, folder: Path) -> Iterator[str]:
    path = folder / ".mcp.json"
    if not path.exists():
        return
    where = path.relative_to(root)
    try:
        table = _read_json(path)
    except ValueError as error:
        yield f"{where}: {error}"
        return
    servers = table.get("mcpServers", table)
    for name, server in servers.items():
        if not isinstance(server, dict) or not ("command" in server or "url" in server):
            yield f"{where}: {name}: write a command or a url"
            continue
        for word in [server.get("command"), *server.get("args", [])]:
            inside = str(word).partition(_ROOT_VARIABLE)[2]
            if inside and not (folder / inside).exists():
                yield f"{where}: {name}: {inside} is not in the plugin; write a file that is"


def _project_problems(root: Path, folder: Path, version: object) -> Iterator[str]:
    path = folder / "pyproject.toml"
    if path.exists() and f'\nversion = "{version}"\n' not in _read(path):
        yield f"{path.relative_to(root)}: version: it is {version} in plugin.json; say the same in both"


def _skill_problems(root: Path, folder: Path) -> Iterator[str]:
    # Compared as written: a skill.md is found on a Mac, and is no skill on Linux.
    names = [path.name for path in folder.iterdir()]
    where = (folder / "SKILL.md").relative_to(root)
    if "SKILL.md" not in names:
        yield f"{where}: there is none; write it, with capitals, or remove the folder"
        return
    text = _read(folder / "SKILL.md")
    yield from _text_problems(where, folder / "SKILL.md", text, _SKILL_KEYS)
    name = front_matter(text).get("name")
    yield from _name_problems(f"{where}: name", name)
    if name != folder.name:
        yield f"{where}: name: {name!r} is not that of its folder, {folder.name}; name both the same"


def _text_problems(where: Path, path: Path, text: str, known: frozenset[str]) -> Iterator[str]:
    """Problems of a skill or a command: its front matter, and the files that it leads to."""
    table = front_matter(text)
    description = table.get("description")
    if not isinstance(description, str) or not description.strip():
        yield f"{where}: description: say what it does and when to use it; nothing else of it is seen before"
        return
    if len(description) > MAX_DESCRIPTION_CHARS or re.search(r"[<>]", description):
        yield f"{where}: description: write at most {MAX_DESCRIPTION_CHARS} characters, without < and >"
    if len(description) + len(str(table.get("when_to_use", ""))) > MAX_LISTED_CHARS:
        yield f"{where}: when_to_use: {MAX_LISTED_CHARS} characters are seen, description included; cut it"
    for key in sorted(table.keys() - known):
        yield f"{where}: {key}: there is no such key; there are {', '.join(sorted(known))}"
    for target in re.findall(r"\]\((?!\w+:|#)([^)#\s]+)", text):
        if not (path.parent / target).exists():
            yield f"{where}: it leads to {target}, which is not there; correct the link"
    for inside in re.findall(r"\$\{CLAUDE_PLUGIN_ROOT\}/([\w./-]*\w)", text):
        if not any((parent / inside).exists() for parent in path.parents if (parent / PLUGIN).exists()):
            yield f"{where}: {inside} is not in the plugin; write a file that is"


def front_matter(text: str) -> dict[str, Any]:
    """What the text of a skill or a command says about itself; nothing where that cannot be read."""
    found = _FRONT_MATTER.match(text)
    try:
        table = yaml.safe_load(found[1]) if found else None
    except yaml.YAMLError:
        return {}
    return table if isinstance(table, dict) else {}


def _name_problems(where: str, name: object) -> Iterator[str]:
    if not (isinstance(name, str) and len(name) <= 64 and _NAME.fullmatch(name)):
        yield f"{where}: {name!r} is no name; write at most 64 of a-z, 0-9 and single hyphens"


def _person_problems(where: str, person: object) -> Iterator[str]:
    if not (isinstance(person, dict) and person.get("name")):
        yield f'{where}: say who it is, as {{"name": …}}'


def _read(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def _read_json(path: Path) -> dict[str, Any]:
    """A file's table. Raises ValueError, with what to do, where there is none."""
    try:
        table = json.loads(_read(path))
    except OSError as error:
        raise ValueError(f"it cannot be read ({error.strerror}); write it") from None
    except ValueError as error:
        raise ValueError(f"it is no JSON ({error}); correct it") from None
    if not isinstance(table, dict):
        raise ValueError("it is no table; write one, in braces")
    return table
