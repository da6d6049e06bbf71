"""The examples, the skill's own, the picture of the README, and `doit diagram`, which draws them."""

from __future__ import annotations

import dataclasses
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from plugins.diagram.skills.excalidraw.scripts import build_excalidraw
from plugins.diagram.skills.excalidraw.scripts.build_excalidraw import drawing_in_svg, faults
from tests.plugins.diagram.drawing import EXAMPLES, PLUGIN, drawing, drawn_example, svg_of

ROOT = PLUGIN.parents[1]
SKILL = (PLUGIN / "skills" / "excalidraw" / "SKILL.md").read_text(encoding="utf-8")
NAMES = sorted(path.name.removesuffix(".spec.json") for path in EXAMPLES.glob("*.spec.json"))


@pytest.mark.parametrize("name", NAMES)
def test_an_example_is_drawn_sound_and_the_same_each_time(name: str) -> None:
    spec = json.loads((EXAMPLES / f"{name}.spec.json").read_text(encoding="utf-8"))
    assert faults(json.loads(drawn_example(name))) == []
    assert drawing(spec) == drawn_example(name)


def test_the_picture_of_the_readme_is_what_its_spec_draws() -> None:
    picture = ROOT / "sites" / "ralph" / "ralph-map.excalidraw.svg"
    committed, drawn = picture.read_text(encoding="utf-8"), svg_of(drawn_example("ralph-map"))
    # What is embedded is compressed, and not everywhere to the same bytes.
    payload = re.compile(r"(?s)<metadata>.*?</metadata>")
    assert (drawing_in_svg(committed), payload.sub("", committed)) == (
        drawing_in_svg(drawn),
        payload.sub("", drawn),
    ), f"doit diagram:ralph-map && cp build/diagrams/{picture.name} sites/ralph/"


def test_the_worked_example_of_the_skill_is_drawn() -> None:
    (example,) = re.findall(r"```json\n(.*?)```", SKILL, re.DOTALL)
    drawn = json.loads(drawing(json.loads(example)))
    texts = {element["originalText"] for element in drawn["elements"] if element["type"] == "text"}
    assert {"From a website to an answer", "near enough?", "read-only"} <= texts


def test_the_skill_names_every_key_of_a_spec_and_of_a_theme() -> None:
    build = build_excalidraw
    kinds = (build.Spec, build.Node, build.Group, build.Edge, build.Note, build.Theme)
    keys = {field.name for kind in kinds for field in dataclasses.fields(kind)}
    keys -= {"source", "target", "way"}  # from and to in a spec; and what only an updated file has
    assert [
        key for key in sorted(keys | {"from", "to", "base"}) if not re.search(rf'[`"]{key}[`"]', SKILL)
    ] == []
    named = {*build.THEMES, *build.FONTS, *build.ON_DARK, "rectangle", "diamond", "elbow", "curved"}
    assert [word for word in sorted(named) if f"`{word}`" not in SKILL and f'"{word}"' not in SKILL] == []


def test_the_skill_and_the_documentation_name_every_option_of_the_script() -> None:
    usage = subprocess.run(
        [sys.executable, build_excalidraw.__file__, "--help"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    options = set(re.findall(r"--[a-z]+", usage)) - {"--help"}
    assert {"--spec", "--out", "--validate", "--update"} <= options
    assert [option for option in sorted(options) if option not in SKILL] == []
    assert set(re.findall(r"--[a-z]+", SKILL)) <= options


def doit(build: Path, *task: str) -> str:
    return subprocess.run(
        [sys.executable, "-m", "doit", "-f", str(ROOT / "dodo.py"), *task],
        cwd=ROOT,
        env={**os.environ, "RALPH_BUILD": str(build)},
        capture_output=True,
        text=True,
        check=True,
    ).stdout


def test_doit_draws_each_map_once_and_its_own_tasks_as_they_are(tmp_path: Path) -> None:
    build = tmp_path / "build"
    assert "diagram:shapes" in doit(build, "diagram")
    made = {path.name for path in (build / "diagrams").iterdir()}
    assert {f"{name}.excalidraw{more}" for name in [*NAMES, "tasks"] for more in ("", ".svg")} <= made
    assert (build / "diagrams" / "ralph-map.excalidraw").read_text("utf-8") == drawn_example("ralph-map")

    tasks = json.loads((build / "diagrams" / "tasks.spec.json").read_text(encoding="utf-8"))
    colors = {node["id"]: node.get("color") for node in tasks["nodes"]}
    assert colors["export:ralph"] == colors["seal"] == "orange"
    arrows = {(edge["from"], edge["to"]) for edge in tasks["edges"]}
    assert {("chunk:ralph", "embed"), ("embed", "index"), ("seal", "package")} <= arrows

    # Only what changed: the tasks are asked again, the maps are not drawn again.
    assert "diagram:shapes" not in doit(build, "diagram")
