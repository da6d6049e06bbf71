"""The marketplace of plugins: what its checks find, what is packed, and the wheel of a server."""

from __future__ import annotations

import ast
import csv
import hashlib
import io
import json
import shutil
import subprocess
import sys
import tomllib
import zipfile
from base64 import urlsafe_b64decode
from collections.abc import Callable, Mapping
from importlib.metadata import packages_distributions
from pathlib import Path
from typing import Any

import pytest

from pipeline.plugins.build import PluginError, build_plugins, pack_marketplace, write_wheel
from pipeline.plugins.checks import problems
from pipeline.plugins.cost import Cost, costs, list_tools, tokens
from pipeline.plugins.wheel import imported_files, make_wheel

ROOT = Path(__file__).resolve().parent.parent.parent
PLUGIN = ROOT / "plugins" / "ralph-fs"

ENTRY = {"name": "pens", "source": "./plugins/pens", "version": "1.0.0", "description": "Draws."}
MARKETPLACE = {"name": "shelf", "owner": {"name": "Somebody"}, "plugins": [ENTRY]}
MANIFEST = {"name": "pens", "version": "1.0.0", "description": "Draws.", "author": {"name": "Somebody"}}
SERVERS = {"mcpServers": {"pens": {"command": "python3", "args": ["${CLAUDE_PLUGIN_ROOT}/server.py"]}}}
SKILL = (
    "---\nname: sketch\ndescription: Draws a cat. Use it when a cat is missing.\n---\nSee [how](how.md).\n"
)

Edit = Callable[[Path], None]


@pytest.fixture
def shelf(tmp_path: Path) -> Path:
    """A marketplace with one plugin, of which nothing is wrong."""
    files = {
        ".claude-plugin/marketplace.json": json.dumps(MARKETPLACE),
        "plugins/pens/.claude-plugin/plugin.json": json.dumps(MANIFEST),
        "plugins/pens/.mcp.json": json.dumps(SERVERS),
        "plugins/pens/server.py": "",
        "plugins/pens/skills/sketch/SKILL.md": SKILL,
        "plugins/pens/skills/sketch/how.md": "With a pen.\n",
        "plugins/pens/commands/draw.md": "---\ndescription: Draws what is named.\n---\nDraw $ARGUMENTS\n",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    return tmp_path


def market(**changed: Any) -> Edit:
    """Changes keys of the marketplace; None takes one away."""
    return _json(".claude-plugin/marketplace.json", MARKETPLACE, changed)


def entry(**changed: Any) -> Edit:
    return market(plugins=[{**ENTRY, **changed}])


def manifest(**changed: Any) -> Edit:
    return _json("plugins/pens/.claude-plugin/plugin.json", MANIFEST, changed)


def _json(name: str, table: Mapping[str, Any], changed: Mapping[str, Any]) -> Edit:
    merged = {key: value for key, value in {**table, **changed}.items() if value is not None}
    return text(name, json.dumps(merged))


def text(name: str, content: str) -> Edit:
    def edit(root: Path) -> None:
        (root / name).write_text(content, encoding="utf-8")

    return edit


def skill(line: str, name: str = "sketch") -> Edit:
    return text("plugins/pens/skills/sketch/SKILL.md", f"---\nname: {name}\n{line}\n---\n")


def renamed(name: str, other: str) -> Edit:
    def edit(root: Path) -> None:
        (root / name).rename(root / other)

    return edit


def test_a_sound_marketplace_has_no_problems(shelf: Path) -> None:
    assert problems(shelf) == []


def test_this_repository_has_no_problems() -> None:
    assert problems(ROOT) == []


@pytest.mark.parametrize(
    ("edit", "problem"),
    [
        (text(".claude-plugin/marketplace.json", "{"), "marketplace.json: it is no JSON"),
        (text(".claude-plugin/marketplace.json", "[]"), "marketplace.json: it is no table"),
        (market(name="Shelf of pens"), "marketplace.json: name: 'Shelf of pens' is no name"),
        (market(owner="Somebody"), "marketplace.json: owner: say who it is"),
        (market(plugins={}), "marketplace.json: plugins: write a list"),
        (market(plugins=[]), "plugins: plugins/pens is not listed"),
        (entry(source="plugins/pens"), "plugins[0].source: 'plugins/pens' is no folder"),
        (entry(source="./plugins/../../pens"), "plugins[0].source: './plugins/../../pens' is no folder"),
        (entry(source="./plugins/pins"), "plugins[0].source: there is no folder ./plugins/pins"),
        (entry(name="pins"), "plugins[0].name: 'pins' here, and 'pens' in plugins/pens"),
        (entry(version="1.0.1"), "plugins[0].version: '1.0.1' here, and '1.0.0'"),
        (manifest(name="Pens"), "plugin.json: name: 'Pens' is no name"),
        (manifest(author="Somebody"), "plugin.json: author: say who it is"),
        (manifest(version="1.0"), "plugin.json: version: '1.0' is no version"),
        (manifest(skills="./sketches"), "plugin.json: skills: './sketches' is not there"),
        (manifest(commands=["commands"]), "plugin.json: commands: 'commands' is not there"),
        (renamed("plugins/pens/.claude-plugin", "plugins/pens/claude"), "plugin.json: it cannot be read"),
        (renamed("plugins/pens/server.py", "plugins/pens/serve.py"), "pens: server.py is not in the plugin"),
        (text("plugins/pens/.mcp.json", "{}}"), ".mcp.json: it is no JSON"),
        (text("plugins/pens/.mcp.json", '{"pens": {}}'), ".mcp.json: pens: write a command or a url"),
        (text("plugins/pens/pyproject.toml", '[project]\nversion = "1.1.0"\n'), "it is 1.0.0 in plugin.json"),
        (
            renamed("plugins/pens/skills/sketch/SKILL.md", "plugins/pens/skills/sketch/skill.md"),
            "skills/sketch/SKILL.md: there is none",
        ),
        (
            renamed("plugins/pens/skills/sketch", "plugins/pens/skills/draft"),
            "is not that of its folder, draft",
        ),
        (skill("description: Draws.", name="Sketch"), "name: 'Sketch' is no name"),
        (skill("descriptoin: Draws."), "SKILL.md: description: say what it does"),
        (skill("description: Draws.\nautomatic: true"), "SKILL.md: automatic: there is no such key"),
        (skill(f"description: {'Draws. ' * 147}"), "write at most 1024 characters"),
        (skill("description: Draws <b>cats</b>."), "without < and >"),
        (skill(f"description: Draws.\nwhen_to_use: {'Now. ' * 307}"), "1536 characters are seen"),
        (skill("description: [Draws"), "SKILL.md: description: say what it does"),
        (renamed("plugins/pens/skills/sketch/how.md", "plugins/pens/how.md"), "it leads to how.md"),
        (text("plugins/pens/commands/draw.md", "Draw.\n"), "draw.md: description: say what it does"),
        (
            text(
                "plugins/pens/commands/draw.md",
                "---\ndescription: Draws.\n---\n!`${CLAUDE_PLUGIN_ROOT}/draw.py`",
            ),
            "draw.md: draw.py is not in the plugin",
        ),
    ],
)
def test_what_is_wrong_is_said_with_its_place_and_a_remedy(shelf: Path, edit: Edit, problem: str) -> None:
    edit(shelf)
    found = problems(shelf)
    assert [line for line in found if problem in line], found
    assert all(";" in line or ": say " in line or ": write " in line for line in found)


def test_a_marketplace_with_a_problem_is_not_packed(shelf: Path, tmp_path: Path) -> None:
    entry(name="pins")(shelf)
    with pytest.raises(PluginError, match="say the same in both"):
        build_plugins(shelf, tmp_path / "out", claude=None)
    assert not (tmp_path / "out").exists()


def test_what_is_packed_can_stand_alone_and_holds_no_leftovers(shelf: Path, tmp_path: Path) -> None:
    (shelf / "plugins/pens/__pycache__").mkdir()
    (shelf / "plugins/pens/.env").write_text("KEY=1\n")
    (tmp_path / "out" / "old").mkdir(parents=True)
    pack_marketplace(shelf, tmp_path / "out")
    assert problems(tmp_path / "out") == []
    packed = {path.name for path in (tmp_path / "out").rglob("*")}
    assert packed >= {"marketplace.json", ".mcp.json", "server.py", "SKILL.md", "draw.md"}
    assert not packed & {"__pycache__", ".env", "old"}
    assert [path for path in tmp_path.iterdir() if path.name.startswith(".out")] == []


def test_what_the_validator_of_claude_code_says_is_passed_on(shelf: Path, tmp_path: Path) -> None:
    (tmp_path / "claude").write_text(
        '#!/bin/sh\necho "$@"\ncase $4 in *pens) echo no colour >&2; exit 1 ;; esac\n'
    )
    (tmp_path / "claude").chmod(0o755)
    with pytest.raises(PluginError, match=r"(?s)plugin validate --strict .*/plugins/pens.*no colour"):
        build_plugins(shelf, tmp_path / "out", str(tmp_path / "claude"))


def tree(root: Path, files: Mapping[str, str]) -> Path:
    for name, content in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(content, encoding="utf-8")
    return root


def test_a_wheel_holds_what_its_package_imports_and_no_more(tmp_path: Path) -> None:
    clone = tree(
        tmp_path,
        {
            "plugin/pens/__init__.py": "",
            "plugin/pens/__main__.py": "import json\nfrom ink import colours\n",
            "plugin/pens/late.py": "def draw():\n    from ink.deep.well import open\n",
            "ink/__init__.py": "",
            "ink/colours.py": 'import ink.base\nSCHEMA = "colours.sql"\n',
            "ink/base.py": "",
            "ink/unused.py": "",
            "ink/colours.sql": "CREATE TABLE colour (name);",
            "ink/other.sql": "",
            "ink/deep/__init__.py": "",
            "ink/deep/well.py": "from ink.base import nothing\n",
            "paper/__init__.py": "",
        },
    )
    assert list(imported_files("pens", (clone / "plugin", clone))) == [
        "ink/__init__.py",
        "ink/base.py",
        "ink/colours.py",
        "ink/colours.sql",
        "ink/deep/__init__.py",
        "ink/deep/well.py",
        "pens/__init__.py",
        "pens/__main__.py",
        "pens/late.py",
    ]


def test_the_wheel_is_the_same_to_the_byte_wherever_and_whenever_it_is_made(tmp_path: Path) -> None:
    for folder in ("plugins/ralph-fs", "pipeline", "handler"):
        shutil.copytree(ROOT / folder, tmp_path / folder, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "LICENSE", tmp_path)
    (tmp_path / "sites").mkdir()
    shutil.copy(ROOT / "sites" / "collections.toml", tmp_path / "sites")
    assert make_wheel(tmp_path / "plugins" / "ralph-fs", tmp_path) == make_wheel(PLUGIN)


def test_the_record_of_the_wheel_has_the_digest_of_every_file() -> None:
    name, data = make_wheel(PLUGIN)
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        files = {member: archive.read(member) for member in archive.namelist()}
    record = next(member for member in files if member.endswith("/RECORD"))
    assert list(files)[-1] == record
    assert name.startswith(record.partition(".dist-info")[0])
    rows = {row[0]: row[1:] for row in csv.reader(files[record].decode().splitlines())}
    assert rows.pop(record) == ["", ""]
    assert rows.keys() == files.keys() - {record}
    for member, (digest, size) in rows.items():
        assert int(size) == len(files[member])
        assert (
            urlsafe_b64decode(digest.removeprefix("sha256=") + "=") == hashlib.sha256(files[member]).digest()
        )


def test_an_older_wheel_makes_way_for_the_new_one(tmp_path: Path) -> None:
    shutil.copytree(PLUGIN, tmp_path / "ralph-fs", ignore=shutil.ignore_patterns("*.whl"))
    (tmp_path / "ralph-fs" / "ralph_fs-0.0.1-py3-none-any.whl").touch()
    write_wheel(tmp_path / "ralph-fs", ROOT)
    assert [path.name for path in (tmp_path / "ralph-fs").glob("*.whl")] == [make_wheel(PLUGIN)[0]]


def test_the_requirements_of_the_wheel_name_all_that_it_imports() -> None:
    project = tomllib.loads((PLUGIN / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    lines = (PLUGIN / "requirements.txt").read_text(encoding="utf-8").splitlines()
    pinned = {line.partition("==")[0] for line in lines if "==" in line}
    assert all(dependency.partition(">")[0] in pinned for dependency in project["dependencies"])
    files = imported_files("ralph_fs", (PLUGIN, ROOT))
    wanted = set()
    for path in (path for path in files.values() if path.suffix == ".py"):
        for node in ast.walk(ast.parse(path.read_bytes())):
            if isinstance(node, ast.Import):
                wanted |= {alias.name.partition(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module:
                wanted.add(node.module.partition(".")[0])
    distributions = packages_distributions()
    own = {name.partition("/")[0] for name in files}
    others = wanted - own - sys.stdlib_module_names
    missing = {
        name for name in others if not {d.lower().replace("_", "-") for d in distributions[name]} & pinned
    }
    assert missing == set()


def test_the_wheel_needs_what_the_extra_of_the_clone_names_in_the_same_versions() -> None:
    wheel = tomllib.loads((PLUGIN / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    clone = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extra = set(clone["optional-dependencies"]["mcp"])
    assert extra <= set(wheel["dependencies"]) <= extra | set(clone["dependencies"])


def test_a_plugin_costs_a_session_the_lines_that_list_it(shelf: Path) -> None:
    (cost,) = costs(shelf)
    listed = ["sketch: Draws a cat. Use it when a cat is missing.", "draw: Draws what is named."]
    whole = [
        (shelf / "plugins/pens" / name).read_text() for name in ("skills/sketch/SKILL.md", "commands/draw.md")
    ]
    assert cost == Cost("plugin pens", sum(map(tokens, listed)), sum(map(tokens, whole)))


def test_a_server_costs_a_session_the_schemas_of_its_tools(tmp_path: Path) -> None:
    (tmp_path / "server.py").write_text(
        "import sys, json\n"
        "for message in map(json.loads, sys.stdin):\n"
        "    if 'id' in message:\n"
        "        tools = {'tools': [{'name': 'draw'}]}\n"
        "        result = tools if message['method'] == 'tools/list' else {}\n"
        "        print(json.dumps({'jsonrpc': '2.0', 'id': message['id'], 'result': result}))\n"
    )
    assert list_tools([sys.executable, str(tmp_path / "server.py")], tmp_path) == [{"name": "draw"}]


def test_a_server_that_does_not_start_is_no_answer(tmp_path: Path) -> None:
    program = "import sys; sys.stdin.readline(); sys.exit('no module of that name')"
    with pytest.raises(subprocess.CalledProcessError) as caught:
        list_tools([sys.executable, "-c", program], tmp_path)
    assert caught.value.stderr == "no module of that name\n"


def test_the_tools_of_the_server_cost_a_session_little() -> None:
    (cost,) = (cost for cost in costs(ROOT) if cost.what.startswith("server ralph-fs"))
    assert 0 < cost.always_tokens <= 2_200
