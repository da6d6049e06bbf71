"""What the drawing script makes of specs: the examples, and those by chance."""

from __future__ import annotations

import functools
import json
from pathlib import Path
from typing import Any

from plugins.diagram.skills.excalidraw.scripts.build_excalidraw import build, draw_svg, read_spec, to_json
from tests.plugins.diagram.random_specs import random_spec

PLUGIN = Path(__file__).resolve().parents[3] / "plugins" / "diagram"
EXAMPLES = PLUGIN / "examples"


def drawing(spec: dict[str, Any], edited: str = "") -> str:
    """The .excalidraw file of a spec, drawn onto the one that a person edited where there is one."""
    file = json.loads(edited) if edited else None
    return to_json(build(read_spec(spec), EXAMPLES, file))


@functools.cache
def drawn_example(name: str) -> str:
    """The .excalidraw file of an example."""
    return drawing(json.loads((EXAMPLES / f"{name}.spec.json").read_text(encoding="utf-8")))


@functools.cache
def drawn_by_chance(seed: int) -> str:
    """The .excalidraw file of a random spec."""
    return drawing(random_spec(seed))


def svg_of(text: str) -> str:
    """The .excalidraw.svg of an .excalidraw file."""
    return draw_svg(json.loads(text))
