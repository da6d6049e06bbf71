#!/usr/bin/env python3
"""Draws a map of a system, described in JSON, as an Excalidraw file that people can edit.

    build_excalidraw.py --spec map.spec.json --out map.excalidraw
    build_excalidraw.py --validate map.excalidraw

One file on purpose: with font_widths.json beside it, it is all that a person has to copy, and it needs
nothing but Python. A spec becomes a drawing in five steps, each a section below:

    Spec (what is drawn) -> Text (how large) -> Layout (where) -> Elements (as what) -> Check (is it sound)

The same spec gives the same bytes: ids, seeds and the order of the elements come from hashes of the ids
in the spec, so that a changed spec gives a small diff.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

# ----------------------------------------------------------------------------------------------------
# Spec: what is drawn
# ----------------------------------------------------------------------------------------------------

Point = tuple[float, float]
Size = tuple[float, float]
Shape = Literal["rectangle", "ellipse", "diamond", "text", "image"]
Kind = Literal["straight", "elbow", "curved"]
Direction = Literal["right", "down"]


class DiagramError(Exception):
    """What is wrong with a spec or a file, in one line that a person can act on."""


@dataclass(frozen=True)
class Box:
    """A rectangle whose sides are parallel to the axes; y grows downwards."""

    x: float
    y: float
    width: float
    height: float

    @property
    def right(self) -> float:
        return self.x + self.width

    @property
    def bottom(self) -> float:
        return self.y + self.height

    @property
    def center(self) -> Point:
        return self.x + self.width / 2, self.y + self.height / 2


@dataclass(frozen=True)
class Node:
    """A thing on the map. `at` is its top left corner; None: the layout finds a place."""

    id: str
    label: str
    shape: Shape = "rectangle"
    group: str | None = None
    at: Point | None = None
    size: Size | None = None
    color: str | None = None
    link: str | None = None
    image: str | None = None


@dataclass(frozen=True)
class Group:
    """Nodes that belong together, in a box (or an Excalidraw frame); `group` is the group around it."""

    id: str
    label: str
    group: str | None = None
    frame: bool = False
    color: str | None = None


@dataclass(frozen=True)
class Edge:
    """An arrow between two nodes, or from a node to itself."""

    id: str
    source: str
    target: str
    label: str = ""
    kind: Kind = "elbow"
    both: bool = False
    dashed: bool = False
    color: str | None = None


@dataclass(frozen=True)
class Note:
    """Small free text, beside the node `near` or, without one, under the map."""

    id: str
    text: str
    near: str | None = None
    at: Point | None = None


@dataclass(frozen=True)
class Spec:
    """A whole map. Every id is unique over its kind, and every reference names something that is there."""

    title: str = ""
    theme: str | Mapping[str, object] = "slate"
    direction: Direction = "right"
    nodes: Sequence[Node] = ()
    groups: Sequence[Group] = ()
    edges: Sequence[Edge] = ()
    notes: Sequence[Note] = ()


# ----------------------------------------------------------------------------------------------------
# Themes
# ----------------------------------------------------------------------------------------------------

# ----------------------------------------------------------------------------------------------------
# Text: how large things are
# ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Sizes:
    """How much room each thing takes, by its id. An edge or a group without a label has no entry."""

    nodes: Mapping[str, Size]
    edge_labels: Mapping[str, Size] = field(default_factory=dict)
    group_labels: Mapping[str, Size] = field(default_factory=dict)
    notes: Mapping[str, Size] = field(default_factory=dict)


# ----------------------------------------------------------------------------------------------------
# Layout: where things are
# ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Route:
    """The way of one arrow: absolute points, the first and last on the boxes of its two nodes.

    An elbow's segments are parallel to the axes. The centre of `label` lies on the way (on the middle
    of a straight or curved one), because Excalidraw draws the label of an arrow on the arrow. `kind` is
    the edge's, or another one where that would have gone through a node.
    """

    kind: Kind
    points: Sequence[Point]
    label: Box | None = None


@dataclass(frozen=True)
class Placed:
    """Where everything is, by its id. A group's box has room for its label in its top left corner."""

    nodes: Mapping[str, Box]
    groups: Mapping[str, Box]
    routes: Mapping[str, Route]
    notes: Mapping[str, Box]


def lay_out(spec: Spec, sizes: Sizes, engine: str = "own") -> Placed:
    """Places for everything in the spec; what has a place (`at`) keeps it."""
    raise NotImplementedError


# ----------------------------------------------------------------------------------------------------
# Mermaid: a flowchart as a spec
# ----------------------------------------------------------------------------------------------------

# ----------------------------------------------------------------------------------------------------
# Elements: what Excalidraw draws
# ----------------------------------------------------------------------------------------------------

# ----------------------------------------------------------------------------------------------------
# Update: what a person changed in the file stays
# ----------------------------------------------------------------------------------------------------

# ----------------------------------------------------------------------------------------------------
# Check: is a file sound
# ----------------------------------------------------------------------------------------------------

# ----------------------------------------------------------------------------------------------------
# Pictures: SVG and PNG
# ----------------------------------------------------------------------------------------------------

# ----------------------------------------------------------------------------------------------------
# Command line
# ----------------------------------------------------------------------------------------------------
