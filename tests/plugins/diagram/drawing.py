"""The drawing script, which is no package: loaded from its file, as a person runs it."""

from __future__ import annotations

import functools
import importlib.util
import json
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

from tests.plugins.diagram.random_specs import random_spec

PLUGIN = Path(__file__).resolve().parents[3] / "plugins" / "diagram"
SCRIPT = PLUGIN / "skills" / "excalidraw" / "scripts" / "build_excalidraw.py"
EXAMPLES = PLUGIN / "examples"


@functools.cache
def script() -> ModuleType:
    """The script as a module."""
    spec = importlib.util.spec_from_file_location("build_excalidraw", SCRIPT)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


def drawing(spec: dict[str, Any], edited: str = "") -> str:
    """The .excalidraw file of a spec, drawn onto the one that a person edited where there is one."""
    file = json.loads(edited) if edited else None
    built = script().build(script().read_spec(spec), EXAMPLES, file)
    return str(script().to_json(built))


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
    return str(script().draw_svg(json.loads(text)))
