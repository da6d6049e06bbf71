"""Specs laid out, and what is wrong with where things are."""

from __future__ import annotations

import itertools
from typing import Any

from benchmarks.diagram_layout import score
from plugins.diagram.skills.excalidraw.scripts.build_excalidraw import (
    Placed,
    Sizes,
    Spec,
    lay_out,
    measure,
    read_spec,
    theme_of,
)
from tests.plugins.diagram.drawing import EXAMPLES

SHAPES = ("rectangle", "ellipse", "diamond", "text")


def placed(data: dict[str, Any], engine: str = "own") -> tuple[Spec, Sizes, Placed]:
    spec = read_spec(data)
    sizes = measure(spec, theme_of(spec.theme), EXAMPLES)
    return spec, sizes, lay_out(spec, sizes, engine)


def faults(data: dict[str, Any]) -> dict[str, int]:
    """What lies on what it should not, and nothing else of the score."""
    found = score(*placed(data))
    names = ("overlaps", "through", "labels_hit", "shared")
    return {name: getattr(found, name) for name in names if getattr(found, name)}


def graph(*edges: str, **more: Any) -> dict[str, Any]:
    """A map of arrows like "a b"; its nodes in the order in which the arrows name them."""
    pairs = [edge.split() for edge in edges]
    names = dict.fromkeys(itertools.chain.from_iterable(pairs))
    nodes = [{"id": name, "label": name} | more.get("nodes", {}).get(name, {}) for name in names]
    return {
        "nodes": nodes,
        "edges": [{"from": a, "to": b} | more.get("edge", {}) for a, b in pairs],
        "groups": more.get("groups", []),
        "direction": more.get("direction", "right"),
    }
