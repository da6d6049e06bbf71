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

import argparse
import base64
import dataclasses
import difflib
import functools
import hashlib
import html
import io
import json
import math
import os
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import unicodedata
import zlib
from bisect import bisect_left, bisect_right, insort
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from heapq import heappop, heappush
from itertools import accumulate, pairwise
from pathlib import Path
from random import Random
from statistics import fmean
from types import NoneType
from typing import Any, Literal, TypeGuard, cast

# ----------------------------------------------------------------------------------------------------
# Spec: what is drawn
# ----------------------------------------------------------------------------------------------------

Point = tuple[float, float]
Size = tuple[float, float]
Shape = Literal["rectangle", "ellipse", "diamond", "text", "image"]
Kind = Literal["straight", "elbow", "curved"]
Direction = Literal["right", "down"]

# Excalidraw throws away lines that reach further than 75,000 px.
FARTHEST_PX = 50_000


class DiagramError(Exception):
    """What is wrong with a spec or a file, in lines that a person can act on."""


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

    @property
    def size(self) -> Size:
        return self.width, self.height

    @property
    def transposed(self) -> Box:
        """The one with x and y exchanged."""
        return Box(self.y, self.x, self.height, self.width)

    @classmethod
    def around(cls, center: Point, size: Size) -> Box:
        return cls(center[0] - size[0] / 2, center[1] - size[1] / 2, *size)

    def moved(self, by_x: float, by_y: float) -> Box:
        return Box(self.x + by_x, self.y + by_y, self.width, self.height)


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
    way: Route | None = None  # the one in the file that is updated; it stays where it can


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


def read_spec(data: object) -> Spec:
    """The map that a JSON value describes; DiagramError names the first thing that is wrong and its place."""
    spec = Fields(data, "the spec", "title theme direction nodes groups edges notes")
    theme = spec.value("theme", "slate")
    if not isinstance(theme, (str, dict)):
        raise spec.wrong("theme", "a name or an object")
    groups = tuple(read_group(item, f"groups[{i}]") for i, item in enumerate(spec.items("groups")))
    nodes = tuple(read_node(item, f"nodes[{i}]") for i, item in enumerate(spec.items("nodes")))
    notes = [read_note(item, i) for i, item in enumerate(spec.items("notes"))]
    for i, item in enumerate(spec.items("nodes")):
        if isinstance(item, dict) and item.get("note"):
            near = nodes[i].id
            notes.append(Note(f"note of {near}", Fields(item, f"nodes[{i}]").text("note"), near=near))
    edges = read_edges(spec.items("edges"))
    check_ids_and_references(nodes, groups, edges, notes)
    return Spec(
        title=spec.text("title"),
        theme=theme,
        direction=cast(Direction, spec.one_of("direction", "right", "down")),
        nodes=nodes,
        groups=groups,
        edges=edges,
        notes=tuple(notes),
    )


def read_node(data: object, place: str) -> Node:
    fields = Fields(data, place, "id label shape group at size color link note image")
    id_ = fields.id()
    shape = "image" if fields.value("image") else "rectangle"
    node = Node(
        id=id_,
        label=fields.text("label", id_),
        shape=cast(Shape, fields.one_of("shape", shape, "rectangle", "ellipse", "diamond", "text", "image")),
        group=fields.text("group") or None,
        at=fields.pair("at"),
        size=fields.pair("size"),
        color=fields.text("color") or None,
        link=fields.text("link") or None,
        image=fields.text("image") or None,
    )
    if node.size is not None and min(node.size) < 1:
        raise DiagramError(f"node {id_!r}: size is {list(node.size)}, and cannot be less than 1")
    if (node.shape == "image") != (node.image is not None):
        raise DiagramError(f'node {id_!r}: shape "image" and "image": PATH go together')
    if node.shape != "image" and not node.label:
        raise DiagramError(f"node {id_!r}: the label is empty")
    if node.link is not None and not is_safe_link(node.link):
        raise DiagramError(
            f"node {id_!r}: link {node.link!r} is no http, https, mailto or relative address without spaces"
        )
    return node


def read_group(data: object, place: str) -> Group:
    fields = Fields(data, place, "id label group frame color")
    id_ = fields.id()
    return Group(
        id=id_,
        label=fields.text("label", id_),
        group=fields.text("group") or None,
        frame=fields.flag("frame"),
        color=fields.text("color") or None,
    )


def read_edges(items: Sequence[object]) -> tuple[Edge, ...]:
    """The arrows; one without an id is called "a -> b", the second between the same two "a -> b (2)"."""
    edges: list[Edge] = []
    for i, item in enumerate(items):
        fields = Fields(item, f"edges[{i}]", "id from to label kind both dashed color")
        source, target = fields.text("from"), fields.text("to")
        if not source or not target:
            raise DiagramError(f"edges[{i}]: needs both from and to")
        n_before = sum((edge.source, edge.target) == (source, target) for edge in edges)
        name = f"{source} -> {target}" + (f" ({n_before + 1})" if n_before else "")
        edges.append(
            Edge(
                id=fields.text("id") or name,
                source=source,
                target=target,
                label=fields.text("label"),
                kind=cast(Kind, fields.one_of("kind", "elbow", "straight", "curved")),
                both=fields.flag("both"),
                dashed=fields.flag("dashed"),
                color=fields.text("color") or None,
            )
        )
    return tuple(edges)


def read_note(data: object, i: int) -> Note:
    fields = Fields({"text": data} if isinstance(data, str) else data, f"notes[{i}]", "id text near at")
    text = fields.text("text")
    if not text:
        raise DiagramError(f"notes[{i}]: the text is empty")
    id_ = fields.text("id") or f"note {i + 1}"
    return Note(id_, text, near=fields.text("near") or None, at=fields.pair("at"))


class Fields:
    """The fields of one JSON object, each read as what it has to be; `place` is said in every error."""

    def __init__(self, data: object, place: str, known: str = "") -> None:
        if not isinstance(data, dict):
            raise DiagramError(f"{place} is {type(data).__name__}, not an object")
        self.data: dict[str, object] = data
        self.place = place
        for key in data if known else ():
            if key not in known.split():
                raise DiagramError(f"{place}: unknown key {key!r}{nearest(key, known.split())}")

    def value(self, key: str, default: object = None) -> object:
        value = self.data.get(key)
        return default if value is None else value

    def wrong(self, key: str, wanted: str) -> DiagramError:
        return DiagramError(f"{self.place}: {key} is {self.data.get(key)!r}, not {wanted}")

    def text(self, key: str, default: str = "") -> str:
        value = self.value(key, default)
        if not isinstance(value, str):
            raise self.wrong(key, "a text")
        return clean_text(value)

    def id(self) -> str:
        value = self.text("id")
        if not value:
            raise DiagramError(f"{self.place}: the id is missing")
        return value

    def flag(self, key: str) -> bool:
        value = self.value(key, False)
        if not isinstance(value, bool):
            raise self.wrong(key, "true or false")
        return value

    def one_of(self, key: str, default: str, *others: str) -> str:
        value = self.text(key, default)
        names = list(dict.fromkeys((default, *others)))
        if value not in names:
            raise DiagramError(f"{self.place}: {key} is {value!r}, not one of {', '.join(names)}")
        return value

    def pair(self, key: str) -> tuple[float, float] | None:
        value = self.value(key)
        if value is None:
            return None
        if not isinstance(value, list) or len(value) != 2 or not all(is_number(v) for v in value):
            raise self.wrong(key, "two numbers")
        if max(abs(v) for v in value) > FARTHEST_PX:
            raise self.wrong(key, f"within {FARTHEST_PX} px")
        return value[0], value[1]

    def items(self, key: str) -> list[object]:
        value = self.value(key, [])
        if not isinstance(value, list):
            raise self.wrong(key, "a list")
        return value


def clean_text(text: str) -> str:
    """The text without what no font draws: control characters, halves of surrogate pairs, outer space."""
    text = text.replace("\r\n", "\n").replace("\r", "\n").replace("\t", " ").strip()
    text = text.encode("utf-8", "replace").decode()
    return "".join(c for c in text if c == "\n" or unicodedata.category(c) != "Cc")


def check_ids_and_references(
    nodes: Sequence[Node], groups: Sequence[Group], edges: Sequence[Edge], notes: Sequence[Note]
) -> None:
    known_nodes, known_groups = [node.id for node in nodes], [group.id for group in groups]
    check_unique("node", known_nodes)
    check_unique("group", known_groups)
    check_unique("edge", [edge.id for edge in edges])
    check_unique("note", [note.id for note in notes])
    for edge in edges:
        for end, id_ in (("from", edge.source), ("to", edge.target)):
            if id_ not in known_nodes and id_ in known_groups:
                raise DiagramError(f"edge {edge.id!r}: {end} names the group {id_!r}; arrows join nodes")
            check_reference(f"edge {edge.id!r}: {end}", "node", id_, known_nodes)
    for node in nodes:
        check_reference(f"node {node.id!r}: group", "group", node.group, known_groups)
    for group in groups:
        check_reference(f"group {group.id!r}: group", "group", group.group, known_groups)
    for note in notes:
        check_reference(f"note {note.id!r}: near", "node", note.near, known_nodes)
    check_nesting(groups)


def check_unique(kind: str, ids: Sequence[str]) -> None:
    for id_, n in Counter(ids).items():
        if n > 1:
            raise DiagramError(f"{n} {kind}s have the id {id_!r}; give each its own")


def check_reference(place: str, kind: str, id_: str | None, known: Sequence[str]) -> None:
    if id_ is not None and id_ not in known:
        raise DiagramError(f"{place} names {id_!r}, but there is no such {kind}{nearest(id_, known)}")


def check_nesting(groups: Sequence[Group]) -> None:
    parents = {group.id: group.group for group in groups}
    for group in groups:
        if group.frame and group.group is not None:
            raise DiagramError(
                f"group {group.id!r} is a frame inside {group.group!r}; a frame cannot be inside a group"
            )
        around, parent = [group.id], group.group
        while parent is not None:
            if parent in around:
                cycle = " in ".join(map(repr, [*around[around.index(parent) :], parent]))
                raise DiagramError(f"group {parent!r} is inside itself: {cycle}")
            around.append(parent)
            parent = parents[parent]


def nearest(word: str, known: Sequence[str]) -> str:
    """What a person may have meant, to end an error with."""
    close = difflib.get_close_matches(word, known, n=1, cutoff=0.5)
    if close:
        return f"; did you mean {close[0]!r}?"
    return f"; there are {', '.join(map(repr, known[:12]))}" if known else ""


def is_number(value: object) -> TypeGuard[float]:
    """Whether it is one that JavaScript has: finite, and no whole number of hundreds of digits."""
    return (
        isinstance(value, (int, float))
        and not isinstance(value, bool)
        and -sys.float_info.max <= value <= sys.float_info.max
    )


def is_safe_link(link: str) -> bool:
    """Whether Excalidraw opens the address as it is: it blanks scripts and escapes quotes."""
    if not link or re.search(r'["\s\x00-\x1f\x7f]', link):
        return False
    scheme = re.match(r"([^/?#:]*):", link)
    return scheme is None or scheme[1].lower() in ("http", "https", "mailto")


# ----------------------------------------------------------------------------------------------------
# Themes
# ----------------------------------------------------------------------------------------------------

# The numbers that Excalidraw gives its fonts. 2 (Helvetica) is another font on every machine, and so has
# no widths that could be measured here; 1, 3 are kept by Excalidraw for old files.
FONTS = {"hand": 5, "sans": 6, "mono": 8, "liberation": 9}
LINE_HEIGHTS = {5: 1.25, 6: 1.25, 7: 1.15, 8: 1.25, 9: 1.15, 10: 1.25}

# Open Color, as Excalidraw's own palette: light tones for dark paper, dark ones for light paper.
ON_DARK = {
    "red": "#ff8787",
    "orange": "#ffa94d",
    "yellow": "#ffd43b",
    "green": "#69db7c",
    "teal": "#38d9a9",
    "blue": "#74c0fc",
    "violet": "#b197fc",
    "pink": "#faa2c1",
    "grey": "#9fb0c3",
}
ON_LIGHT = {
    "red": "#e03131",
    "orange": "#d9480f",
    "yellow": "#b97700",
    "green": "#2f9e44",
    "teal": "#099268",
    "blue": "#1971c2",
    "violet": "#6741d9",
    "pink": "#c2255c",
    "grey": "#64748b",
}


@dataclass(frozen=True)
class Theme:
    """How a map looks. Colours are #rrggbb, sizes px."""

    background: str
    ink: str  # outlines of nodes, and what stands in them
    line: str  # arrows
    muted: str  # groups, notes, the labels of arrows
    fill: str = "transparent"
    group_fill: str = "transparent"
    font: str = "sans"
    font_size: float = 18
    small_size: float = 14
    title_size: float = 28
    stroke_width: float = 2
    line_width: float = 1.5
    roughness: float = 0
    palette: Mapping[str, str] = field(default_factory=dict)


THEMES = {
    "slate": Theme("#2c3743", "#ffffff", "#ffffff", "#b4c1cf", palette=ON_DARK),
    "light": Theme("#ffffff", "#1e293b", "#475569", "#64748b", "#ffffff", "#f5f7fa", palette=ON_LIGHT),
    "print": Theme("#ffffff", "#000000", "#000000", "#444444", stroke_width=1.5, line_width=1),
}


def theme_of(choice: str | Mapping[str, object]) -> Theme:
    """The theme of that name, or {"base": name, key: value…} with the given keys in place of its own."""
    overrides = {"base": choice} if isinstance(choice, str) else dict(choice)
    base = overrides.pop("base", "slate")
    if not isinstance(base, str) or base not in THEMES:
        raise DiagramError(f"theme {base!r} is not there{nearest(str(base), list(THEMES))}")
    theme = THEMES[base]
    defaults = {f.name: getattr(theme, f.name) for f in dataclasses.fields(Theme)}
    for key, value in overrides.items():
        if key not in defaults:
            raise DiagramError(f"theme: unknown key {key!r}{nearest(key, ['base', *defaults])}")
        check_theme_value(key, value, defaults[key])
    # Names that the theme does not redefine stay.
    palette = {**theme.palette, **cast("dict[str, str]", overrides.get("palette", {}))}
    return dataclasses.replace(theme, **{**overrides, "palette": palette})  # type: ignore[arg-type]


def check_theme_value(key: str, value: object, default: object) -> None:
    if key == "palette":
        if not isinstance(value, dict) or not all(map(is_color, value.values())):
            raise DiagramError(f"theme: palette is {value!r}, not names with their #rrggbb")
    elif key == "font":
        if not isinstance(value, str) or value not in FONTS:
            raise DiagramError(f"theme: font is {value!r}, not one of {', '.join(FONTS)}")
    elif isinstance(default, str):
        if not is_color(value) and not (key in ("fill", "group_fill") and value == "transparent"):
            raise DiagramError(f"theme: {key} is {value!r}, not a colour like #1e293b")
    elif not is_number(value) or not (0 if key == "roughness" else 0.5) <= value <= 200:
        raise DiagramError(f"theme: {key} is {value!r}, not a number of px")


def is_color(value: object) -> bool:
    return (
        isinstance(value, str)
        and re.fullmatch(r"#([0-9a-fA-F]{3,4}|([0-9a-fA-F]{2}){3,4})", value) is not None
    )


def color_of(name: str | None, default: str, theme: Theme, place: str) -> str:
    """The colour of that name in the theme's palette, or the #rrggbb itself."""
    if name is None:
        return default
    if is_color(name):
        return name
    # A theme without colours (print) draws everything in its ink; the name must be a colour all the same.
    known = theme.palette or dict.fromkeys(ON_LIGHT, default)
    if name not in known:
        raise DiagramError(
            f"{place}: color {name!r} is neither #rrggbb nor in the palette{nearest(name, list(known))}"
        )
    return known[name]


# ----------------------------------------------------------------------------------------------------
# Text: how large things are
# ----------------------------------------------------------------------------------------------------

# Room between a shape's outline and its label: more than Excalidraw's own 5 px, which looks cramped.
PADDING_X = {"rectangle": 18, "ellipse": 12, "diamond": 8}
PADDING_Y = 14
BOUND_TEXT_PADDING = 5
# How many times as wide and high as the room for its label a shape is; the others are as large.
SHAPE_SCALE = {"ellipse": math.sqrt(2), "diamond": 2.0}
SMALLEST_NODE = (120, 60)
WIDEST_LABEL = {"rectangle": 200, "ellipse": 170, "diamond": 140, "text": 260, "image": 160}
WIDEST_ARROW_LABEL = 150
WIDEST_NOTE = 240
WIDEST_WORD = 320
UNBOUNDED = 10_000  # so wide that a text breaks at its own ends of lines alone
IMAGE_SIDE = 80

# What stays on one line: spaces, a word or its part up to a hyphen or slash, a Chinese, Japanese or Korean
# character with the closing marks after it.
UNBROKEN = re.compile(
    r"\s+|[\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff\uff00-\uffef][、。，．）」』】！？]*"
    r"|[^\s/\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff\uff00-\uffef-]*[/-]+"
    r"|[^\s/\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff\uff00-\uffef-]+"
)

# Where a name that is longer than a line breaks best: org.example.|long_|name, Singleton|Proxy.
NAME_SEAM = re.compile(r"[._:](?=\w)|[a-z](?=[A-Z])")

# Wide enough for what the fonts lack and a machine's own fonts draw: Segoe UI Emoji, the widest in use,
# takes 1.37 of the font size, Chinese and Japanese characters exactly 1.
EMOJI_WIDTH = 1400
WIDE_WIDTH = 1010
OTHER_WIDTH = 1150

# The browser adds kerning to the advance widths: it makes lines narrower, and none by 1 % wider.
KERNING = 1.01


@dataclass(frozen=True)
class Sizes:
    """How much room each thing takes, by its id. An edge or a group without a label has no entry."""

    nodes: Mapping[str, Size]
    edge_labels: Mapping[str, Size] = field(default_factory=dict)
    group_labels: Mapping[str, Size] = field(default_factory=dict)
    notes: Mapping[str, Size] = field(default_factory=dict)
    frames: frozenset[str] = frozenset()  # the groups whose label stands above their border

    def along(self, direction: Direction) -> Sizes:
        """The sizes as seen along the arrows: length and breadth for width and height."""
        if direction == "right":
            return self
        return dataclasses.replace(  # the labels of groups stay: see group_pads
            self,
            nodes={key: (size[1], size[0]) for key, size in self.nodes.items()},
            edge_labels={key: (size[1], size[0]) for key, size in self.edge_labels.items()},
            notes={key: (size[1], size[0]) for key, size in self.notes.items()},
        )


@dataclass(frozen=True)
class Text:
    """Lines as they are drawn, and the room that they take."""

    lines: tuple[str, ...]
    size: float
    font: int

    @property
    def width(self) -> float:
        return max(line_width(line, self.font, self.size) for line in self.lines)

    @property
    def height(self) -> float:
        return len(self.lines) * self.size * LINE_HEIGHTS[self.font]


def measure(spec: Spec, theme: Theme, folder: Path) -> Sizes:
    """The room that everything in the spec takes; images are looked up from the folder."""
    labels = {edge.id: arrow_label(edge, theme) for edge in spec.edges if edge.label}
    titles = {group.id: group_label(group, theme) for group in spec.groups if group.label}
    notes = {note.id: note_text(note, theme) for note in spec.notes}
    return Sizes(
        nodes={node.id: node_size(node, theme, folder) for node in spec.nodes},
        edge_labels={id_: (text.width, text.height) for id_, text in labels.items()},
        group_labels={id_: (text.width, text.height) for id_, text in titles.items()},
        notes={id_: (text.width, text.height) for id_, text in notes.items()},
        frames=frozenset(group.id for group in spec.groups if group.frame),
    )


def arrow_label(edge: Edge, theme: Theme) -> Text:
    return wrap(edge.label, FONTS[theme.font], theme.small_size, WIDEST_ARROW_LABEL)


def group_label(group: Group, theme: Theme) -> Text:
    return wrap(group.label, FONTS[theme.font], theme.small_size, UNBOUNDED)


def note_text(note: Note, theme: Theme) -> Text:
    return wrap(note.text, FONTS[theme.font], theme.small_size, WIDEST_NOTE)


def node_size(node: Node, theme: Theme, folder: Path) -> Size:
    """The size of the node with its label: the given one, or larger where the label would not fit in."""
    if node.shape == "image":
        return image_node_size(node, theme, folder)
    return labelled_size(node, FONTS[theme.font], theme.font_size)


def labelled_size(node: Node, font: int, size: float) -> Size:
    """The size of a node that is no picture, with its label in a font of that size."""
    if node.size is not None:
        width, height = node.size
        width = max(width, smallest_width(node, font, size))
        text = wrap(node.label, font, size, label_room(node.shape, width))
        return width, max(height, with_room_for(node.shape, text.height))
    text = balanced(node.label, font, size, WIDEST_LABEL[node.shape])
    if node.shape == "text":
        return text.width, text.height
    scale = SHAPE_SCALE.get(node.shape, 1)
    width = scale * (text.width + 2 * PADDING_X[node.shape])
    height = max(with_room_for(node.shape, text.height), scale * (text.height + PADDING_Y))
    # Sizes on a grid, so that neighbours with labels of nearly one length are of one size.
    return max(SMALLEST_NODE[0], 20 * math.ceil(width / 20)), max(
        SMALLEST_NODE[1], 10 * math.ceil(height / 10)
    )


def label_room(shape: str, width: float) -> float:
    """The width that a label may take in a shape, Excalidraw's own padding and a little more kept free."""
    if shape == "text":
        return width
    room = excalidraw_room(shape, width)
    return room - min(2 * (PADDING_X[shape] - BOUND_TEXT_PADDING), 0.1 * max(0, room))


def excalidraw_room(shape: str, width: float) -> float:
    """The width (or height) for a label in a shape, by Excalidraw's getBoundTextMaxWidth (or Height)."""
    return width / SHAPE_SCALE.get(shape, 1) - 2 * BOUND_TEXT_PADDING


def with_room_for(shape: str, width: float) -> float:
    """The width (or height) of a shape that has that room for a label."""
    return width if shape == "text" else (width + 2 * BOUND_TEXT_PADDING) * SHAPE_SCALE.get(shape, 1)


def smallest_width(node: Node, font: int, size: float) -> float:
    """The width at which the widest character has room; any label fits into any width above it."""
    width = max(line_width(grapheme, font, size) for grapheme in split_graphemes(node.label))
    if node.shape == "text":
        return width
    return with_room_for(node.shape, width / 0.9)  # of the room in a shape a tenth is kept free


def wrap(text: str, font: int, size: float, widest: float) -> Text:
    """The text broken into lines of at most that width: between words, else inside a word."""
    lines: list[str] = []
    for paragraph in text.split("\n"):
        line = ""
        for piece in UNBROKEN.findall(paragraph):
            if not line or line_width(line + piece.rstrip(), font, size) <= widest:
                line += piece
            else:
                lines.append(line.rstrip())
                line = piece.lstrip()
            while line_width(line.rstrip(), font, size) > widest and len(split_graphemes(line)) > 1:
                head = widest_head(line, font, size, widest)
                lines.append(head)
                line = line[len(head) :]
        lines.append(line.rstrip())
    return Text(tuple(lines), size, font)


def widest_head(line: str, font: int, size: float, widest: float) -> str:
    """As much of the line as fits, if possible up to where parts of a name meet; at least one character."""
    head = ""
    for grapheme in split_graphemes(line):
        if head and line_width(head + grapheme, font, size) > widest:
            break
        head += grapheme
    seams = [seam.end() for seam in NAME_SEAM.finditer(line) if len(head) / 2 < seam.end() <= len(head)]
    return head[: seams[-1]] if seams else head


def balanced(text: str, font: int, size: float, widest: float) -> Text:
    """The text in as few lines as that width allows, and the lines as even as that number allows."""
    longest_word = max(line_width(piece.strip(), font, size) for piece in UNBROKEN.findall(text))
    widest = max(widest, min(longest_word, WIDEST_WORD))
    best = wrap(text, font, size, widest)
    # A word that is longer than a line can be broken anywhere.
    low, high = math.ceil(longest_word if longest_word <= widest else widest / 2), math.ceil(widest)
    while low < high:
        middle = (low + high) // 2
        lines = wrap(text, font, size, middle)
        if len(lines.lines) <= len(best.lines) and lines.width <= middle:
            best, high = lines, middle
        else:
            low = middle + 1
    return best


def split_graphemes(text: str) -> list[str]:
    """What is seen as one character each: a letter with its marks, an emoji with its joiners and tones."""
    return re.findall(
        r"[\U0001f1e6-\U0001f1ff]{2}|(?:.[\u0300-\u036f\ufe00-\ufe0f\u20e3\U0001f3fb-\U0001f3ff]*)(?:\u200d.[\ufe0f\U0001f3fb-\U0001f3ff]*)*",
        text,
    )


def line_width(line: str, font: int, size: float) -> float:
    """A width in px that the line does not exceed in that font."""
    thousandths = sum(character_width(c, font) for c in line)
    # Variation selector 16 turns the character before it into an emoji, and the keycap mark both.
    thousandths += line.count("\ufe0f") * EMOJI_WIDTH
    return math.ceil(thousandths * size / 1000 * KERNING * 4) / 4


@functools.cache
def character_width(character: str, font: int) -> int:
    known = font_widths().get(font, {}).get(character)
    if known is not None:
        return known
    code = ord(character)
    if unicodedata.combining(character) or unicodedata.category(character) in ("Mn", "Me", "Cf", "Cc"):
        return 0
    if code >= 0x1F000 and code < 0x20000:
        return EMOJI_WIDTH
    if unicodedata.east_asian_width(character) in "WF":
        return EMOJI_WIDTH if code < 0x2E80 else WIDE_WIDTH
    return OTHER_WIDTH


@functools.cache
def font_widths() -> Mapping[int, Mapping[str, int]]:
    """Advance widths in thousandths of the font size, by font number and character."""
    table = json.loads(Path(__file__).with_name("font_widths.json").read_text("utf-8"))
    return {
        int(font): {character: int(width) for width, characters in widths.items() for character in characters}
        for font, widths in table.items()
    }


def image_node_size(node: Node, theme: Theme, folder: Path) -> Size:
    """The size of a picture with its label under it."""
    width, height = picture_size(node, folder)
    if not node.label:
        return width, height
    label = image_label(node, theme)
    return max(width, label.width), height + BOUND_TEXT_PADDING + label.height


def image_label(node: Node, theme: Theme) -> Text:
    return balanced(node.label, FONTS[theme.font], theme.small_size, WIDEST_LABEL["image"])


def picture_size(node: Node, folder: Path) -> Size:
    """The given size, else the picture's proportions with its longer side at IMAGE_SIDE."""
    if node.size is not None:
        return node.size
    width, height = proportions(read_picture(node, folder))
    scale = IMAGE_SIDE / max(width, height)
    return max(1, round(width * scale)), max(1, round(height * scale))


def read_picture(node: Node, folder: Path) -> bytes:
    path = folder / (node.image or "")
    try:
        content = path.read_bytes()
    except OSError as error:
        raise DiagramError(f"node {node.id!r}: image {path}: {error.strerror}") from error
    if mime_type(content) is None:
        raise DiagramError(f"node {node.id!r}: image {path} is no PNG, JPEG, GIF, WebP or SVG")
    return content


def mime_type(content: bytes) -> str | None:
    """What kind of picture the bytes are, by how they begin."""
    if content[:4] == b"RIFF" and content[8:12] == b"WEBP":
        return "image/webp"
    for start, mime in ((b"\x89PNG", "image/png"), (b"\xff\xd8\xff", "image/jpeg"), (b"GIF8", "image/gif")):
        if content.startswith(start):
            return mime
    return "image/svg+xml" if re.search(rb"<svg[\s>]", content[:4096]) else None


def proportions(content: bytes) -> Size:
    """Width and height of a picture, or a square where its header is of a kind not read here (WebP)."""
    width, height = 0.0, 0.0
    if content.startswith(b"\x89PNG") and len(content) >= 24:
        width, height = struct.unpack(">II", content[16:24])
    elif content.startswith(b"GIF8") and len(content) >= 10:
        width, height = struct.unpack("<HH", content[6:10])
    elif content.startswith(b"\xff\xd8"):
        # The frame header: a marker C0 to CF that is no table (C4, C8, CC), its length, the precision, and
        # then the size.
        start = re.search(rb"\xff[\xc0-\xc3\xc5-\xc7\xc9-\xcb\xcd-\xcf]..\x08(....)", content, re.DOTALL)
        if start:
            height, width = struct.unpack(">HH", start[1])
    elif box := re.search(rb"viewBox=[\"']\s*\S+\s+\S+\s+([\d.]+)\s+([\d.]+)", content[:4096]):
        width, height = float(box[1]), float(box[2])
    return (width, height) if width > 0 and height > 0 else (1, 1)


# ----------------------------------------------------------------------------------------------------
# Layout: where things are
# ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Route:
    """The way of one arrow: absolute points, the first and last on the outlines of its two nodes.

    An elbow's segments are parallel to the axes. The centre of `label` lies on the way (at the middle
    point of a straight or curved one), because Excalidraw draws the label of an arrow on the arrow. `kind` is
    the edge's, or another one where that would have gone through a node.
    """

    kind: Kind
    points: Sequence[Point]
    label: Box | None = None

    def mapped(self, point: Callable[[Point], Point], box: Callable[[Box], Box]) -> Route:
        """The same with each point and the label where these put them."""
        return Route(self.kind, [point(at) for at in self.points], self.label and box(self.label))


@dataclass(frozen=True)
class Placed:
    """Where everything is, by its id. A group's box has room for its label in its top left corner."""

    nodes: Mapping[str, Box]
    groups: Mapping[str, Box]
    routes: Mapping[str, Route]
    notes: Mapping[str, Box]

    def mapped(self, point: Callable[[Point], Point], box: Callable[[Box], Box]) -> Placed:
        """The same with everything where these put it."""
        return Placed(
            nodes={key: box(at) for key, at in self.nodes.items()},
            groups={key: box(at) for key, at in self.groups.items()},
            routes={key: route.mapped(point, box) for key, route in self.routes.items()},
            notes={key: box(at) for key, at in self.notes.items()},
        )

    def moved(self, by_x: float, by_y: float) -> Placed:
        """The same elsewhere."""
        return self.mapped(lambda at: (at[0] + by_x, at[1] + by_y), lambda box: box.moved(by_x, by_y))


# Distances in pixels, between what stands side by side in one layer unless said otherwise.
NODE_GAP = 40
GROUP_GAP = 40
GROUP_PAD = 24  # between a group's border and what is inside
LINE_GAP = 16  # between two arrows, or an arrow and anything else
LABEL_GAP = 10
LAYER_GAP = 64  # between two layers, where a label does not stand between them
STUB = 22  # the last piece of an arrow, before a node: Excalidraw draws a small head on a shorter one
LOOP_DEPTH = 28  # how far an arrow from a node to itself goes out
LOOP_WIDTH = 44
LOOP_SHARE = 0.7  # of its node's width, at most: beyond, the outline of an ellipse turns away

# What a layer more counts that a group spans, beside 4 for each arrow that becomes a layer longer: a group
# stays together for one arrow, and not for two.
SPAN_WEIGHT = 6

# How often an order of the layers is improved: on the map of 60 nodes of benchmarks/diagram_layout.py, 48
# attempts left 23 crossings after 0.9 s, and 5 attempts 36. Large maps get fewer, to take a few seconds.
ATTEMPTS = 48
ITEMS_IN_ALL_ATTEMPTS = 10_000
# What a line counts that leads one place up or down, beside a crossing: equal orders differ by this alone.
SPREAD_COST = 0.02

# How wide rows of parts may be, for their height: more than a page, because the rows are never quite full.
PAGE_SHAPE = 2

# A chain that is longer is wrapped, into rows so many times as long as all of them are broad.
LONGEST_ROW = 2400
ROWS_SHAPE: Mapping[Direction, float] = {"right": 2, "down": 1}

# Where the label of a straight arrow may stand on it, besides its middle.
LABEL_SHARES = (0.42, 0.58, 0.34, 0.66)

# The room between two layers in which a curve swings: its share of how far it goes across, and the most.
SWING_SHARE = 0.6
WIDEST_SWING = 140
SWING_HANDLE = 0.6  # how far a curve keeps to its first direction; beyond 2/3 it would look like an elbow

# How many pixels of a way count as much as a bend by a radian when points of a curve are chosen.
BEND_REACH = 30

# What a bend costs in the search for a way, in pixels of a longer way instead.
BEND_COST = 120


def lay_out(spec: Spec, sizes: Sizes, engine: str = "own") -> Placed:
    """Places for everything in the spec; what has a place (`at`) keeps it."""
    if engine not in ENGINES:
        raise DiagramError(f"no layout engine {engine!r}; there are {', '.join(ENGINES)}")
    drawn = ENGINES[engine](spec, sizes)
    if any(node.at for node in spec.nodes):
        drawn = keep_given_places(spec, sizes, drawn)
    drawn = dataclasses.replace(drawn, routes=straightened(spec, sizes, drawn))
    return dataclasses.replace(drawn, notes=note_places(spec, sizes, drawn))


# The own engine follows Sugiyama: turn the arrows of cycles round, give each node a layer, order the
# layers with few crossings, then choose positions within them. It thinks of layers from left to right,
# "along", with "across" downwards; a map that goes down is the transposed one.


class Item:
    """What stands in a layer: a node, the label of an arrow, or the place where an arrow passes.

    `length` is its size along, `breadth` across; `before` and `after` are the items that lines lead to
    in the neighbouring layers.
    """

    __slots__ = (
        "across",
        "after",
        "before",
        "breadth",
        "group",
        "key",
        "kind",
        "layer",
        "length",
        "order",
        "spare",
    )

    def __init__(self, kind: str, key: str, layer: int, group: str | None, length: int, breadth: int) -> None:
        self.kind = kind  # node, label, bend, or hold (keeps a group's place in a layer that it spans)
        self.key = key
        self.layer = layer
        self.group = group
        self.length = length
        self.breadth = breadth
        self.before: list[Item] = []
        self.after: list[Item] = []
        self.order = 0
        self.across = 0
        self.spare = 0  # room after it, across, for its loops and notes


@dataclass(frozen=True)
class Chain:
    """One arrow as the items that it passes, from the lower layer to the higher one."""

    edge: Edge
    turned: bool
    items: Sequence[Item]


@dataclass(frozen=True)
class Nest:
    """Which group is in which: the one around each, or None."""

    parents: Mapping[str, str | None]

    @classmethod
    def of(cls, groups: Sequence[Group]) -> Nest:
        return cls({group.id: group.group for group in groups})

    def around(self, group: str | None) -> list[str]:
        """The group and all that it is in, nearest first; empty for None, the whole map."""
        chain = []
        while group is not None:
            chain.append(group)
            group = self.parents[group]
        return chain

    def common(self, first: str | None, second: str | None) -> str | None:
        """The smallest group that has both."""
        others = self.around(second)
        return next((group for group in self.around(first) if group in others), None)


def layered(spec: Spec, sizes: Sizes) -> Placed:
    """The own engine: layers from left to right or from top to bottom, for each part of the map."""
    return packed(spec, sizes, [in_rows(part, sizes) for part in parts_of(spec)])


def parts_of(spec: Spec) -> list[Spec]:
    """The parts of a map that no arrow and no group joins; nodes without both are one part."""
    nest = Nest.of(spec.groups)
    outermost = {group.id: nest.around(group.id)[-1] for group in spec.groups}
    linked = {end for edge in spec.edges if edge.source != edge.target for end in (edge.source, edge.target)}
    part = {node.id: outermost[node.group] if node.group else node.id if node.id in linked else None
            for node in spec.nodes}  # fmt: skip
    for edge in spec.edges:
        kept, gone = part[edge.source], part[edge.target]
        part = {key: kept if name == gone else name for key, name in part.items()}
    home = {node.group: part[node.id] for node in spec.nodes}
    first = next(iter(part.values()), None)
    places = dict.fromkeys(outermost.values(), first)
    places |= {outermost[group]: name for group, name in home.items() if group}
    return [
        dataclasses.replace(
            spec,
            nodes=tuple(node for node in spec.nodes if part[node.id] == name),
            groups=tuple(group for group in spec.groups if places[outermost[group.id]] == name),
            edges=tuple(edge for edge in spec.edges if part[edge.source] == name),
            notes=tuple(note for note in spec.notes if note.near and part[note.near] == name),
        )
        for name in dict.fromkeys(part.values())
    ] or [spec]


def packed(spec: Spec, sizes: Sizes, parts: Sequence[Placed]) -> Placed:
    """The parts in rows, in the order of the spec, so that the whole is about as wide as a page."""
    if len(parts) == 1:
        return parts[0]
    extents = [around_boxes([extent_of(part), *group_titles(sizes, part.groups)]) for part in parts]
    area = sum((box.width + LAYER_GAP) * (box.height + LAYER_GAP) for box in extents)
    widest = max(*(box.width for box in extents), math.sqrt(area * PAGE_SHAPE))
    x = y = below = 0.0
    there: list[Placed] = []
    for part, box in zip(parts, extents, strict=True):
        if x and x + box.width > widest:
            x, y = 0.0, below
        there.append(part.moved(x - box.x, y - box.y))
        x += box.width + LAYER_GAP
        below = max(below, y + box.height + LAYER_GAP)
    return joined(spec, there)


def joined(spec: Spec, parts: Sequence[Placed]) -> Placed:
    """The parts as one drawing, all that is in it in the order of the spec."""
    nodes = {key: box for part in parts for key, box in part.nodes.items()}
    groups = {key: box for part in parts for key, box in part.groups.items()}
    routes = {key: route for part in parts for key, route in part.routes.items()}
    notes = {key: box for part in parts for key, box in part.notes.items()}
    return Placed(
        nodes={node.id: nodes[node.id] for node in spec.nodes},
        groups={group.id: groups[group.id] for group in spec.groups},
        routes={edge.id: routes[edge.id] for edge in spec.edges},
        notes={note.id: notes[note.id] for note in spec.notes if note.id in notes},
    )


def in_rows(spec: Spec, sizes: Sizes) -> Placed:
    """The layers of one part, and those of a long chain in rows, as the lines of a text."""
    whole = layered_part(spec, sizes)
    extent = extent_of(turned_along(whole, spec.direction))
    chain = chain_of(spec)
    if not chain or extent.width < LONGEST_ROW:
        return whole
    labels = sizes.along(spec.direction).edge_labels
    gap = LAYER_GAP + max((label[1] for label in labels.values()), default=0)
    n_rows = max(2, round(math.sqrt(extent.width / ROWS_SHAPE[spec.direction] / (extent.height + gap))))
    per_row = math.ceil((len(chain) + 1) / n_rows)
    keys = [chain[0].source, *(edge.target for edge in chain)]
    rows: list[Placed] = []
    y = 0.0
    for at in range(0, len(keys), per_row):
        members = set(keys[at : at + per_row])
        row = dataclasses.replace(
            spec,
            nodes=tuple(node for node in spec.nodes if node.id in members),
            edges=tuple(edge for edge in chain if {edge.source, edge.target} <= members),
            notes=tuple(note for note in spec.notes if note.near in members),
        )
        drawn = turned_along(layered_part(row, sizes), spec.direction)
        box = extent_of(drawn)
        drawn = drawn.moved(-box.x, y - box.y)
        if rows:
            edge = chain[at - 1]
            way = way_to_next_row(rows[-1].nodes[edge.source], drawn.nodes[edge.target], y - gap / 2)
            label = None
            if edge.id in labels:
                label = Box.around(middle_of(way), labels[edge.id])
            drawn = dataclasses.replace(drawn, routes={**drawn.routes, edge.id: Route("elbow", way, label)})
        rows.append(drawn)
        y += box.height + gap
    return turned_along(joined(spec, rows), spec.direction)


def turned_along(placed: Placed, direction: Direction) -> Placed:
    """The same with the direction of the map to the right; or turned back."""
    return placed if direction == "right" else placed.mapped(exchanged, lambda box: box.transposed)


def exchanged(point: Point) -> Point:
    return point[1], point[0]


def way_to_next_row(start: Box, end: Box, between: float) -> list[Point]:
    """The way from the last node of a row back to the first one of the next, through the gap between them."""
    (x, y), (u, v) = (start.right, start.center[1]), (end.x, end.center[1])
    out = LAYER_GAP / 2
    return [(x, y), (x + out, y), (x + out, between), (u - out, between), (u - out, v), (u, v)]


def chain_of(spec: Spec) -> list[Edge]:
    """The arrows of a part that is one chain, from its first node to its last; none where it is not."""
    after = {edge.source: edge for edge in spec.edges}
    targets = {edge.target for edge in spec.edges}
    first = next((node.id for node in spec.nodes if node.id not in targets), None)
    chain: list[Edge] = []
    while first in after and len(chain) < len(spec.edges):
        chain.append(after[first])
        first = chain[-1].target
    is_whole = len(chain) == len(spec.edges) == len(spec.nodes) - 1 and not spec.groups
    return chain if is_whole else []


def layered_part(spec: Spec, sizes: Sizes) -> Placed:
    """The layers of one part of a map."""
    sizes = with_room_for_arrows(spec, sizes.along(spec.direction))
    nest = Nest.of(spec.groups)
    turned = turned_edges(spec, nest)
    ranks = node_ranks(spec, turned)
    layers, chains = layers_and_chains(spec, sizes, nest, ranks, turned)
    order_layers(layers, nest, [group.id for group in spec.groups])
    ports = port_offsets(spec, sizes, chains)
    boxes_across = place_across(spec, sizes, nest, layers, chains, ports)
    placed = place_along(spec, sizes, nest, layers, chains, ports, boxes_across)
    return turned_along(placed, spec.direction)


def with_room_for_arrows(spec: Spec, sizes: Sizes) -> Sizes:
    """The sizes, with nodes that many arrows meet, or loops around labels, grown to keep those apart."""
    degree: Counter[tuple[str, str]] = Counter()
    for edge in spec.edges:
        if edge.source != edge.target:
            degree[edge.source, "out"] += 1
            degree[edge.target, "in"] += 1
    nodes = dict(sizes.nodes)
    for node in spec.nodes:
        most = max(degree[node.id, "out"], degree[node.id, "in"])
        if node.size is None and node.shape not in ("text", "image") and most > 2:
            length, breadth = nodes[node.id]
            apart = 6 if node.shape == "diamond" else 12
            nodes[node.id] = length, max(breadth, min(most * apart / PORT_SHARE[node.shape], 240))
        loops = loops_of(spec, sizes, node.id)
        if node.size is None and node.shape != "image" and len(loops) > 1:
            nodes[node.id] = max(nodes[node.id][0], 2 * loops[-1].half / LOOP_SHARE), nodes[node.id][1]
    return dataclasses.replace(sizes, nodes=nodes)


# --- cycles and layers ---


def turned_edges(spec: Spec, nest: Nest) -> set[str]:
    """The ids of the edges that lead back: few of them, and the rest make no cycle.

    What stands in one group, nodes and groups alike, is put in a row in which few edges lead back. So a
    group whose parts are asked by many and ask few does not stretch over the whole map for those few.
    """
    groups = {node.id: node.group for node in spec.nodes}
    inside: dict[str | None, dict[tuple[str, str], None]] = {}  # in the order of the spec
    for node in spec.nodes:
        for around in (*nest.around(node.group), None):
            inside.setdefault(around, {})[part_in(around, node.id, node.group, nest)] = None
    links: dict[str | None, list[tuple[tuple[str, str], tuple[str, str], Edge]]] = {}
    for edge in spec.edges:
        if edge.source != edge.target:
            common = nest.common(groups[edge.source], groups[edge.target])
            ends = [part_in(common, node, groups[node], nest) for node in (edge.source, edge.target)]
            links.setdefault(common, []).append((ends[0], ends[1], edge))
    turned: set[str] = set()
    for owner, found in links.items():
        one_way = [(source, target) for source, target, edge in found if not edge.both]
        place = {part: i for i, part in enumerate(in_a_row(list(inside[owner]), one_way))}
        turned |= {edge.id for source, target, edge in found if place[source] > place[target]}
    return turned


def part_in(owner: str | None, node: str, group: str | None, nest: Nest) -> tuple[str, str]:
    """The node, or the group with it, that stands right in `owner`."""
    inner = nest.around(group)
    if owner is not None:
        inner = inner[: inner.index(owner)]
    return ("group", inner[-1]) if inner else ("node", node)


def in_a_row(
    parts: Sequence[tuple[str, str]], links: Sequence[tuple[tuple[str, str], tuple[str, str]]]
) -> list[tuple[str, str]]:
    """The parts in an order in which few links lead back (Eades, Lin and Smyth 1993)."""
    out = {part: Counter[tuple[str, str]]() for part in parts}
    into = {part: Counter[tuple[str, str]]() for part in parts}
    for source, target in links:
        out[source][target] += 1
        into[target][source] += 1
    left: list[tuple[str, str]] = []
    right: list[tuple[str, str]] = []
    rest = dict.fromkeys(parts)
    while rest:
        sinks = [part for part in rest if not out[part]]
        sources = [part for part in rest if not into[part]]
        if sinks:
            chosen = sinks[-1]
            right.append(chosen)
        else:
            chosen = max(sources[:1] or rest, key=lambda part: out[part].total() - into[part].total())
            left.append(chosen)
        del rest[chosen]
        for other in out[chosen]:
            del into[other][chosen]
        for other in into[chosen]:
            del out[other][chosen]
    return left + right[::-1]


def node_ranks(spec: Spec, turned: set[str]) -> dict[str, int]:
    """A rank for each node, from 0: arrows lead to higher ranks, and are short; groups span few ranks."""
    index: dict[tuple[str, str | None], int] = {("start", None): 0}
    for group in spec.groups:
        index["start", group.id] = len(index)
        index["end", group.id] = len(index)
    for node in spec.nodes:
        index["node", node.id] = len(index)
    arcs: list[Arc] = []
    linked: set[str] = set()
    for edge in spec.edges:
        if edge.source == edge.target:
            continue
        linked |= {edge.source, edge.target}
        ends = index["node", edge.source], index["node", edge.target]
        arcs.append((*(reversed(ends) if edge.id in turned else ends), 1, 4))
    for group in spec.groups:
        start, end = index["start", group.id], index["end", group.id]
        arcs.append((start, end, 0, SPAN_WEIGHT))
        arcs.append((index["start", group.group], start, 0, 0))
        if group.group is not None:
            arcs.append((end, index["end", group.group], 0, 0))
    loose: dict[str | None, list[str]] = {}
    for node in spec.nodes:
        if node.id not in linked:
            loose.setdefault(node.group, []).append(node.id)
    columns = {
        group: max(1, round((len(ids) * (0.6 if spec.direction == "right" else 1.2)) ** 0.5))
        for group, ids in loose.items()
    }
    for node in spec.nodes:
        at = index["node", node.id]
        column = 0
        if node.id not in linked:
            column = loose[node.group].index(node.id) % columns[node.group]
        arcs.append((index["start", node.group], at, column, 0 if node.id in linked else 1))
        if node.group is not None:
            arcs.append((at, index["end", node.group], 0, 0))
    ranks = network_simplex(len(index), arcs)
    lowest = min((ranks[index["node", node.id]] for node in spec.nodes), default=0)
    return {node.id: ranks[index["node", node.id]] - lowest for node in spec.nodes}


Arc = tuple[int, int, int, int]  # tail, head, least length, weight


@dataclass(frozen=True)
class Network:
    """The arcs by their numbers, as a column of each of their four values, and those at each end."""

    tails: Sequence[int]
    heads: Sequence[int]
    lengths: Sequence[int]
    weights: Sequence[int]
    outgoing: Sequence[Sequence[int]]
    incoming: Sequence[Sequence[int]]

    @classmethod
    def of(cls, count: int, arcs: Sequence[Arc]) -> Network:
        outgoing: list[list[int]] = [[] for _ in range(count)]
        incoming: list[list[int]] = [[] for _ in range(count)]
        for a, (tail, head, _, _) in enumerate(arcs):
            outgoing[tail].append(a)
            incoming[head].append(a)
        tails, heads, lengths, weights = ([arc[k] for arc in arcs] for k in range(4))
        return cls(tails, heads, lengths, weights, outgoing, incoming)

    def slack(self, a: int, y: Sequence[int]) -> int:
        """How much longer an arc is than it has to be."""
        return y[self.heads[a]] - y[self.tails[a]] - self.lengths[a]


def network_simplex(count: int, arcs: Sequence[Arc]) -> list[int]:
    """Integers y, each y[head] - y[tail] at least its length, with the least sum of weight * difference.

    The arcs have no cycle and connect all. Gansner, Koutsofios, North and Vo, "A technique for drawing
    directed graphs" (1993), sections 2.3 and 2.4.
    """
    network = Network.of(count, arcs)
    tails, heads = network.tails, network.heads
    y = longest_paths(network)
    tree: list[set[int]] = [set() for _ in range(count)]
    for a in tight_tree(y, network):
        tree[tails[a]].add(a)
        tree[heads[a]].add(a)

    parent_arc = [-1] * count
    low = [0] * count
    number = [0] * count  # in postorder, so that a subtree is by_number[low:number + 1]
    by_number = [0] * count

    def renumber(root: int, first: int) -> None:
        low[root] = first
        stack = [(root, iter(tree[root]))]
        while stack:
            at, rest = stack[-1]
            for a in rest:
                if a != parent_arc[at]:
                    other = heads[a] if tails[a] == at else tails[a]
                    parent_arc[other] = a
                    low[other] = first
                    stack.append((other, iter(tree[other])))
                    break
            else:
                number[at] = first
                by_number[first] = at
                first += 1
                stack.pop()

    renumber(0, 0)
    cut = [0] * len(arcs)
    balance = [0] * count  # of a subtree: weight that enters it less weight that leaves it
    for at in range(count):
        entering_weight = sum(network.weights[a] for a in network.incoming[at])
        balance[at] = entering_weight - sum(network.weights[a] for a in network.outgoing[at])
    for at in by_number[:-1]:
        a = parent_arc[at]
        # The arcs across the cut, counted as positive in the direction of the tree arc.
        cut[a] = balance[at] if heads[a] == at else -balance[at]
        balance[tails[a] if heads[a] == at else heads[a]] += balance[at]

    def update_cuts(at: int, other: int, by: int, upwards: bool) -> int:
        while not low[at] <= number[other] <= number[at]:
            a = parent_arc[at]
            cut[a] += by if (tails[a] == at) == upwards else -by
            at = heads[a] if tails[a] == at else tails[a]
        return at

    tree_arcs = sorted({a for arcs_at in tree for a in arcs_at})
    start = 0
    for _ in range(50 * count):
        # Cyclic search, a bounded batch at a time: the most negative of the first few found.
        leaving, found = -1, 0
        for step in range(len(tree_arcs)):
            slot = (start + step) % len(tree_arcs)
            a = tree_arcs[slot]
            if cut[a] < 0 and (leaving < 0 or cut[a] < cut[tree_arcs[leaving]]):
                leaving = slot
                found += 1
                if found >= 30:
                    break
        if leaving < 0:
            break
        start = leaving
        out = tree_arcs[leaving]
        tail, head = tails[out], heads[out]
        tail_below = number[tail] < number[head]
        root = tail if tail_below else head
        below = by_number[low[root] : number[root] + 1]
        entering, least = -1, 0
        first, last = low[root], number[root]
        for at in below:
            for a in network.incoming[at] if tail_below else network.outgoing[at]:
                other = tails[a] if tail_below else heads[a]
                if not first <= number[other] <= last:
                    slack = network.slack(a, y)
                    if entering < 0 or slack < least:
                        entering, least = a, slack
        if entering < 0:
            break
        if least:
            shift = -least if tail_below else least
            for at in below:
                y[at] += shift
        by = cut[out]
        top = update_cuts(tails[entering], heads[entering], by, True)
        update_cuts(heads[entering], tails[entering], by, False)
        cut[entering], cut[out] = -by, 0
        for a, change in ((out, set.discard), (entering, set.add)):
            change(tree[tails[a]], a)
            change(tree[heads[a]], a)
        tree_arcs[leaving] = entering
        renumber(top, low[top])
    lowest = min(y)
    return [value - lowest for value in y]


def longest_paths(network: Network) -> list[int]:
    """The least y that the lengths of the arcs allow."""
    waiting = [len(arcs) for arcs in network.incoming]
    y = [0] * len(waiting)
    ready = [at for at, n in enumerate(waiting) if not n]
    for at in ready:
        for a in network.outgoing[at]:
            head = network.heads[a]
            y[head] = max(y[head], y[at] + network.lengths[a])
            waiting[head] -= 1
            if not waiting[head]:
                ready.append(head)
    assert len(ready) == len(y), "the arcs have a cycle"
    return y


def tight_tree(y: list[int], network: Network) -> list[int]:
    """Arcs without slack that connect all; moves `y` to make them so."""
    # The tree grows from 0. When it moves by a step, all slacks of the arcs that leave it shrink or grow
    # alike, so two heaps with one offset stay in order.
    tails, heads = network.tails, network.heads
    grown = [False] * len(y)
    moved = 0
    leaving: list[tuple[int, int]] = []
    entering: list[tuple[int, int]] = []
    chosen: list[int] = []
    at = 0
    joined: list[int] = []
    while True:
        grown[at] = True
        joined.append(at)
        y[at] -= moved  # y is kept without the tree's own movement until the end
        for a in network.outgoing[at]:
            if not grown[heads[a]]:
                heappush(leaving, (network.slack(a, y), a))
        for a in network.incoming[at]:
            if not grown[tails[a]]:
                heappush(entering, (network.slack(a, y), a))
        while leaving and grown[heads[leaving[0][1]]]:
            heappop(leaving)
        while entering and grown[tails[entering[0][1]]]:
            heappop(entering)
        if not leaving and not entering:
            break
        ahead = leaving[0][0] - moved if leaving else None
        behind = entering[0][0] + moved if entering else None
        if behind is None or (ahead is not None and ahead <= behind):
            assert ahead is not None
            moved += ahead
            a = heappop(leaving)[1]
            at = heads[a]
        else:
            moved -= behind
            a = heappop(entering)[1]
            at = tails[a]
        chosen.append(a)
    for at in joined:
        y[at] += moved
    assert len(joined) == len(y), "the arcs do not connect all"
    return chosen


# --- layers ---


def layers_and_chains(
    spec: Spec, sizes: Sizes, nest: Nest, ranks: Mapping[str, int], turned: set[str]
) -> tuple[list[list[Item]], list[Chain]]:
    """The items of each layer, in the order of the spec, and the chain of each arrow."""
    # Rank r is layer 2r; a layer between two ranks is there only where labels of arrows stand in it.
    flat = [edge for edge in spec.edges if edge.source != edge.target]
    spans = {edge.id: sorted((ranks[edge.source], ranks[edge.target])) for edge in flat}
    label_layer = label_layers([edge for edge in flat if edge.id in sizes.edge_labels], spans)
    used = sorted({2 * rank for rank in ranks.values()} | set(label_layer.values()))
    place = {layer: i for i, layer in enumerate(used)}
    layers: list[list[Item]] = [[] for _ in used or [0]]
    items: dict[str, Item] = {}
    for node in spec.nodes:
        length, breadth = sizes.nodes[node.id]
        loops = loops_of(spec, sizes, node.id)
        notes = [sizes.notes[note.id] for note in notes_beside(spec, node.id)]
        longest = max(length, *(loop.label[0] for loop in loops), *(note[0] for note in notes), 0)
        item = Item("node", node.id, place[2 * ranks[node.id]], node.group, even(longest), even(breadth))
        item.spare = even(loop_room(spec, sizes, node.id) + sum(note[1] + LABEL_GAP for note in notes))
        items[node.id] = item
        layers[items[node.id].layer].append(items[node.id])
    chains: list[Chain] = []
    for edge in flat:
        ends = items[edge.source], items[edge.target]
        low, high = reversed(ends) if edge.id in turned else ends
        group = nest.common(low.group, high.group)
        chain = [low]
        for layer in range(low.layer + 1, high.layer):
            if label_layer.get(edge.id) == used[layer]:
                length, breadth = sizes.edge_labels[edge.id]
                chain.append(Item("label", edge.id, layer, group, even(length), even(breadth)))
            else:
                chain.append(Item("bend", edge.id, layer, group, 0, 0))
            layers[layer].append(chain[-1])
        chain.append(high)
        for first, second in pairwise(chain):
            first.after.append(second)
            second.before.append(first)
        chains.append(Chain(edge, edge.id in turned, chain))
    add_holds(spec, nest, layers)
    return layers, chains


def even(value: float) -> int:
    """The next even integer, so that halves are whole too."""
    return 2 * math.ceil(value / 2)


def label_layers(edges: Sequence[Edge], spans: Mapping[str, Sequence[int]]) -> dict[str, int]:
    """The layer between two ranks in which the label of each edge stands: as few layers as that takes."""
    chosen: dict[str, int] = {}
    for edge in sorted(edges, key=lambda edge: spans[edge.id][1] - spans[edge.id][0]):
        low, high = spans[edge.id]
        middle = low + high
        shared = [layer for layer in set(chosen.values()) if 2 * low < layer < 2 * high]
        best = min(shared, key=lambda layer: (abs(layer - middle), layer), default=None)
        chosen[edge.id] = 2 * ((low + high - 1) // 2) + 1 if best is None else best
    return chosen


@dataclass(frozen=True)
class Loop:
    """An arrow from a node to itself, below it: how far down it goes, alone and with its label."""

    edge: Edge
    depth: float
    room: float
    half: float  # how far from the middle of the node its two ends are, where that is wide enough
    label: Size
    widest: float = 0  # how far those of the node's outermost loop are


def loops_of(spec: Spec, sizes: Sizes, node: str) -> list[Loop]:
    """The loops of a node, from the inmost out, each around the label of the one before."""
    loops: list[Loop] = []
    room, half = 0.0, LOOP_WIDTH / 2
    for edge in spec.edges:
        if edge.source == edge.target == node:
            label = sizes.edge_labels.get(edge.id, (0.0, 0.0))
            depth = room + max(LOOP_DEPTH, label[1] / 2 + LABEL_GAP)
            room = depth + label[1] / 2
            if label[0]:
                # The corners stay beside the label, so that it is seen to be one arrow.
                half = max(half, label[0] / 2 + LINE_GAP)
            loops.append(Loop(edge, depth, room, half, label))
            half += LINE_GAP
    return [dataclasses.replace(loop, widest=loops[-1].half) for loop in loops]


def loop_room(spec: Spec, sizes: Sizes, node: str) -> float:
    """How far the loops of a node reach beyond it, with their labels."""
    return max((loop.room for loop in loops_of(spec, sizes, node)), default=0.0)


def notes_beside(spec: Spec, node: str) -> list[Note]:
    """The notes that stand right beside a node."""
    return [note for note in spec.notes if note.near == node and note.at is None]


def add_holds(spec: Spec, nest: Nest, layers: Sequence[list[Item]]) -> None:
    """Add an item for each group to the layers that it spans but has nothing in; the deepest groups first."""
    present: dict[str, set[int]] = {group.id: set() for group in spec.groups}
    for items in layers:
        for item in items:
            for group in nest.around(item.group):
                present[group].add(item.layer)
    for found in deepest_first(spec, nest):
        spanned = present[found.id] or {0}
        for layer in range(min(spanned), max(spanned) + 1):
            if layer not in present[found.id]:
                hold = Item("hold", found.id, layer, found.id, 0, 0)
                layers[layer].append(hold)
                for group in nest.around(found.id):
                    present[group].add(layer)


# --- order within the layers ---


def order_layers(layers: Sequence[list[Item]], nest: Nest, groups: Sequence[str]) -> None:
    """Sort each layer so that few lines cross; groups stay together, and in one order in all layers.

    Barycentres in sweeps to and fro with exchanges of neighbours, from the order of the spec, then from
    shuffled copies of the best order so far, which stays where none is better.
    """
    paths = {group: tuple(reversed(nest.around(group))) for group in (None, *groups)}
    standing = {group: float(i) for i, group in enumerate(groups)}
    for items in layers:
        wish = {id(item): float(i) for i, item in enumerate(items)}
        items[:] = arranged(items, 0, wish, paths, standing)
        number(items)
    chance = Random(0)  # noqa: S311 (the same for the same spec, by design)
    best = [list(items) for items in layers]
    best_standing = standing
    least = order_cost(layers)
    size = sum(map(len, layers))
    attempts = max(4, min(ATTEMPTS, ITEMS_IN_ALL_ATTEMPTS // (size + 1)))
    for attempt in range(attempts):
        if attempt:
            reach = 2.0 if attempt < attempts // 3 else chance.choice((0.1, 0.5))
            standing = {
                group: place + chance.uniform(-reach, reach) for group, place in best_standing.items()
            }
            for items, kept in zip(layers, best, strict=True):
                wish = {
                    id(item): (i + 0.5) / len(kept) + chance.uniform(-reach, reach) / 2
                    for i, item in enumerate(kept)
                }
                items[:] = arranged(kept, 0, wish, paths, standing)
                number(items)
        for sweep in range(4):
            wishes: dict[str, list[float]] = {group: [] for group in groups}
            forward = sweep % 2 == 0
            for items in layers if forward else reversed(layers):
                wish = {id(item): barycentre(item, forward, layers) for item in items}
                items[:] = arranged(items, 0, wish, paths, standing, wishes)
                number(items)
            standing = {group: fmean(found) for group, found in wishes.items()}
            if sweep % 2:
                exchange_neighbours(layers, paths)
                cost = order_cost(layers)
                if cost < least:
                    least, best, best_standing = cost, [list(items) for items in layers], standing
        if least < 1:  # nothing crosses; what is left is how far lines lead up and down
            break
    for items, kept in zip(layers, best, strict=True):
        items[:] = kept
        number(items)


def order_cost(layers: Sequence[Sequence[Item]]) -> float:
    """Crossings, and a little for how far lines go across."""
    spread = 0.0
    for items in layers:
        middle = len(items) / 2
        for item in items:
            for other in item.after:
                spread += abs(item.order - middle - other.order + len(layers[other.layer]) / 2)
    return count_crossings(layers) + SPREAD_COST * spread


def number(items: Sequence[Item]) -> None:
    for i, item in enumerate(items):
        item.order = i


def barycentre(item: Item, forward: bool, layers: Sequence[Sequence[Item]]) -> float:
    """Where the neighbours of an item stand in the layer before (or after) it, from 0 to 1."""
    near = item.before if forward else item.after
    if not near:
        return (item.order + 0.5) / len(layers[item.layer])
    breadth = len(layers[near[0].layer])
    return sum(other.order + 0.5 for other in near) / (len(near) * breadth)


def arranged(
    items: Sequence[Item],
    depth: int,
    wish: Mapping[int, float],
    paths: Mapping[str | None, tuple[str, ...]],
    standing: Mapping[str, float],
    wishes: Mapping[str, list[float]] | None = None,
) -> list[Item]:
    """Items of one layer by wish, with those of a group side by side and groups by their standing.

    Where each group would rather be is added to `wishes`.
    """
    blocks: dict[object, list[Item]] = {}
    groups: dict[object, str] = {}
    for item in items:
        path = paths[item.group]
        inner = path[depth] if len(path) > depth else None
        key: object = ("group", inner) if inner is not None else id(item)
        if inner is not None:
            groups[key] = inner
        blocks.setdefault(key, []).append(item)
    mean = {key: fmean(wish[id(item)] for item in found) for key, found in blocks.items()}
    ordered = sorted(blocks, key=lambda key: (mean[key], blocks[key][0].order))
    if wishes is not None:
        for key, group in groups.items():
            wishes[group].append(mean[key])
    slots = [i for i, key in enumerate(ordered) if key in groups]
    standings = sorted((ordered[i] for i in slots), key=lambda key: (standing[groups[key]], groups[key]))
    for slot, key in zip(slots, standings, strict=True):
        ordered[slot] = key
    result: list[Item] = []
    for key in ordered:
        result += (
            arranged(blocks[key], depth + 1, wish, paths, standing, wishes) if key in groups else blocks[key]
        )
    return result


def count_crossings(layers: Sequence[Sequence[Item]]) -> int:
    """How many pairs of lines between neighbouring layers cross."""
    total = 0
    for items in layers:
        seen: list[int] = []
        for item in items:
            ends = sorted(other.order for other in item.after)
            for end in ends:
                total += len(seen) - bisect_right(seen, end)
            for end in ends:
                insort(seen, end)
    return total


def exchange_neighbours(layers: Sequence[list[Item]], paths: Mapping[str | None, tuple[str, ...]]) -> None:
    """Exchange neighbours, or an item and the group beside it, as long as fewer lines cross."""
    for _ in range(6):
        improved = False
        for items in layers:
            k = 0
            while k + 1 < len(items):
                first, second = neighbours_at(items, k, paths)
                if not first or not second:
                    k += 1
                    continue
                if crossings_between(first, second) > crossings_between(second, first):
                    begin = k + 1 - len(first)
                    items[begin : begin + len(first) + len(second)] = [*second, *first]
                    number(items)
                    improved = True
                k += 1
        if not improved:
            return


def neighbours_at(
    items: Sequence[Item], k: int, paths: Mapping[str | None, tuple[str, ...]]
) -> tuple[list[Item], list[Item]]:
    """What ends at k and what begins after it, as blocks that may change places; empty: they may not."""
    one, two = paths[items[k].group], paths[items[k + 1].group]
    depth = 0
    while depth < min(len(one), len(two)) and one[depth] == two[depth]:
        depth += 1
    if len(one) > depth and len(two) > depth:
        return [], []  # two groups: their order is that of all layers
    begin, end = k, k + 1
    if len(one) > depth:
        while begin > 0 and paths[items[begin - 1].group][: depth + 1] == one[: depth + 1]:
            begin -= 1
    if len(two) > depth:
        while end + 1 < len(items) and paths[items[end + 1].group][: depth + 1] == two[: depth + 1]:
            end += 1
    return list(items[begin : k + 1]), list(items[k + 1 : end + 1])


def crossings_between(first: Sequence[Item], second: Sequence[Item]) -> int:
    """Crossings of the lines of two blocks while the first stands before the second."""
    total = 0
    for side in ("before", "after"):
        ends = sorted(other.order for item in second for other in getattr(item, side))
        if ends:
            total += sum(bisect_left(ends, other.order) for item in first for other in getattr(item, side))
    return total


# --- positions across the layers ---

# The share of a side on which arrows may end: the outline of an ellipse or diamond turns away beyond.
PORT_SHARE: Mapping[str, float] = {
    "rectangle": 0.7, "text": 0.7, "image": 0.7, "ellipse": 0.55, "diamond": 0.3,
}  # fmt: skip
PORT_GAP = 20


def port_offsets(spec: Spec, sizes: Sizes, chains: Sequence[Chain]) -> dict[tuple[str, int], int]:
    """How far from the middle of a side each arrow meets it: (edge, 0 for its lower end or 1) -> pixels."""
    shapes = {node.id: node.shape for node in spec.nodes}
    sides: dict[tuple[str, int], list[tuple[int, int, Chain]]] = {}
    breadths: dict[str, int] = {}
    for i, chain in enumerate(chains):
        for end, item, near in ((0, chain.items[0], chain.items[1]), (1, chain.items[-1], chain.items[-2])):
            sides.setdefault((item.key, end), []).append((near.order, i, chain))
            breadths[item.key] = item.breadth
    offsets: dict[tuple[str, int], int] = {}
    for (key, end), lines in sides.items():
        step = PORT_GAP
        if len(lines) > 1:
            step = min(PORT_GAP, int(breadths[key] * PORT_SHARE[shapes[key]] / (len(lines) - 1)))
        if shapes[key] == "diamond" and meet_at_tip(sizes.nodes[key], end, [line[2] for line in lines]):
            step = 0
        for k, (_, _, chain) in enumerate(sorted(lines, key=lambda line: line[:2])):
            offsets[chain.edge.id, end] = round((k - (len(lines) - 1) / 2) * step)
    return offsets


def meet_at_tip(size: Size, end: int, chains: Sequence[Chain]) -> bool:
    """Whether the arrows on a side of a diamond share its tip: all leave or all enter, and it is a sharp one.

    On a blunt tip, that of a wide diamond on a map that goes down, there is room for them side by side.
    """
    enter = {chain.turned == (end == 0) for chain in chains}
    return size[0] > size[1] and len(enter) == 1 and not any(chain.edge.both for chain in chains)


@dataclass(frozen=True)
class Pads:
    """Room between a group's border and what is inside, with the label's."""

    along_start: int
    along_end: int
    across_start: int
    across_end: int
    along_least: int
    across_least: int
    above: int  # room before the border for the title of a frame, which stands there


def group_pads(spec: Spec, sizes: Sizes) -> dict[str, Pads]:
    """The pads of each group."""
    pads = {}
    for group in spec.groups:
        width, height = sizes.group_labels.get(group.id, (0.0, 0.0))
        title = even(height + LABEL_GAP) if height else 0
        head, above = (GROUP_PAD, title) if group.frame else (GROUP_PAD + title, 0)
        least = even(width + 2 * LABEL_GAP)
        if spec.direction == "down":
            pads[group.id] = Pads(head, GROUP_PAD, GROUP_PAD, GROUP_PAD, 0, least, above)
        else:
            pads[group.id] = Pads(GROUP_PAD, GROUP_PAD, head, GROUP_PAD, least, 0, above)
    return pads


def gap_between(first: str, second: str) -> int:
    """Least distance across between two neighbours, by their kinds."""
    kinds = {first, second}
    if kinds == {"group"} or kinds == {"group", "node"}:
        return GROUP_GAP
    if kinds == {"node"}:
        return NODE_GAP
    if "hold" in kinds:
        return 0
    if kinds == {"label"}:
        return LABEL_GAP
    return LINE_GAP


def place_across(
    spec: Spec,
    sizes: Sizes,
    nest: Nest,
    layers: Sequence[Sequence[Item]],
    chains: Sequence[Chain],
    ports: dict[tuple[str, int], int],
) -> dict[str, tuple[int, int]]:
    """Set the middle of each item across, adjust the ports, and return the borders (low, high) of each group.

    Arrows run straight where they can, long ones first; it is one linear programme, solved as ranks are
    (section 4.2 of the paper above).
    """
    pads = group_pads(spec, sizes)
    count = 1
    index: dict[int, int] = {}
    for items in layers:
        for item in items:
            index[id(item)] = count
            count += 1
    tops: dict[str, int] = {}
    bottoms: dict[str, int] = {}
    arcs: list[Arc] = []
    for group in spec.groups:
        tops[group.id], bottoms[group.id] = count, count + 1
        count += 2
        arcs.append((tops[group.id], bottoms[group.id], max(pads[group.id].across_least, 2 * GROUP_PAD), 1))
    for items in layers:
        arcs += separations(items, nest, pads, index, tops, bottoms, spec.direction)
    if spec.direction == "down":
        arcs += clear_of_titles(spec, nest, pads, layers, index, tops)
    for chain in chains:
        for k, (first, second) in enumerate(pairwise(chain.items)):
            ends = {first.kind, second.kind}
            weight = 8 if "node" not in ends else 2 if ends == {"node"} else 4
            here = ports[chain.edge.id, 0] if k == 0 else 0
            there = ports[chain.edge.id, 1] if k == len(chain.items) - 2 else 0
            arcs.append((count, index[id(first)], 200 - here, weight))
            arcs.append((count, index[id(second)], 200 - there, weight))
            count += 1
    entered = {arc[1] for arc in arcs}
    arcs += [(0, at, 0, 0) for at in range(1, count) if at not in entered]
    y = network_simplex(count, arcs)
    for items in layers:
        for item in items:
            item.across = y[index[id(item)]]
    straighten_jogs(spec, chains, ports, index, y, arcs)
    return {group.id: (y[tops[group.id]], y[bottoms[group.id]]) for group in spec.groups}


def clear_of_titles(
    spec: Spec,
    nest: Nest,
    pads: Mapping[str, Pads],
    layers: Sequence[Sequence[Item]],
    index: Mapping[int, int],
    tops: Mapping[str, int],
) -> list[Arc]:
    """What keeps nodes that arrows enter from above beside the label of their group, in its corner there."""
    shapes = {node.id: node.shape for node in spec.nodes}
    arcs: list[Arc] = []
    begun: set[str] = set()
    for items in layers:
        present = {around for item in items for around in nest.around(item.group)}
        for item in items:
            for group in nest.around(item.group):
                if group not in begun and item.kind == "node" and item.before:
                    reach = int(item.breadth * PORT_SHARE[shapes[item.key]] / 2)
                    arcs.append((tops[group], index[id(item)], pads[group].across_least + reach, 0))
        begun |= present
    return arcs


def straighten_jogs(
    spec: Spec,
    chains: Sequence[Chain],
    ports: dict[tuple[str, int], int],
    index: Mapping[int, int],
    y: Sequence[int],
    arcs: Sequence[Arc],
) -> None:
    """Move ports along their sides, and labels and bends where they have room, to where arrows run straight.

    The linear programme counts how far arrows go across, but not in how many jogs.
    """
    shapes = {node.id: node.shape for node in spec.nodes}
    sides: dict[tuple[str, int], list[tuple[int, str]]] = {}
    for chain in chains:
        for end, item in ((0, chain.items[0]), (1, chain.items[-1])):
            sides.setdefault((item.key, end), []).append((ports[chain.edge.id, end], chain.edge.id))
    beside: dict[tuple[str, int], tuple[tuple[str, int] | None, tuple[str, int] | None]] = {}
    for (_, end), side in sides.items():
        keys = [(edge, end) for _, edge in sorted(side, key=lambda port: port[0])]
        for k, key in enumerate(keys):
            beside[key] = keys[k - 1] if k else None, keys[k + 1] if k + 1 < len(keys) else None
    after: dict[int, list[Arc]] = {}
    before: dict[int, list[Arc]] = {}
    for arc in arcs:
        if not arc[3]:
            after.setdefault(arc[0], []).append(arc)
            before.setdefault(arc[1], []).append(arc)
    now = list(y)

    def takes_port(key: tuple[str, int], item: Item, to: int) -> bool:
        reach = int(item.breadth * PORT_SHARE[shapes[item.key]] / 2)
        low, high = -reach, reach
        if shapes[item.key] == "diamond" and not ports[key]:
            return to == item.across  # an arrow meets a diamond at its tip
        for other, sign in zip(beside[key], (-1, 1), strict=True):
            if other is not None:
                apart = min(12, abs(ports[other] - ports[key]))
                if sign < 0:
                    low = max(low, ports[other] + apart)
                else:
                    high = min(high, ports[other] - apart)
        return low <= to - item.across <= high

    def takes_item(item: Item, to: int) -> bool:
        v = index[id(item)]
        low = max((now[tail] + length for tail, _, length, _ in before.get(v, ())), default=0)
        high = min((now[head] - length for _, head, length, _ in after.get(v, ())), default=1 << 30)
        return low <= to <= high

    def move(item: Item, to: int) -> None:
        item.across = now[index[id(item)]] = to

    for _ in range(3):
        for chain in chains:
            items, edge = chain.items, chain.edge.id
            at = [item.across for item in items]
            at[0] += ports[edge, 0]
            at[-1] += ports[edge, 1]
            for to in (at[0], at[-1]):
                if (
                    len(set(at)) > 1
                    and takes_port((edge, 0), items[0], to)
                    and takes_port((edge, 1), items[-1], to)
                    and all(takes_item(item, to) for item in items[1:-1])
                ):
                    at = [to] * len(items)
                    ports[edge, 0], ports[edge, 1] = to - items[0].across, to - items[-1].across
                    for item in items[1:-1]:
                        move(item, to)
            for k in range(1, len(items) - 1):
                for to in (at[k - 1], at[k + 1]):
                    if at[k] != to and takes_item(items[k], to) and at[k] not in (at[k - 1], at[k + 1]):
                        at[k] = to
                        move(items[k], to)
            for end, item, to in ((0, items[0], at[1]), (1, items[-1], at[-2])):
                if takes_port((edge, end), item, to):
                    ports[edge, end] = to - item.across
                    at[-end] = to


def separations(
    items: Sequence[Item],
    nest: Nest,
    pads: Mapping[str, Pads],
    index: Mapping[int, int],
    tops: Mapping[str, int],
    bottoms: Mapping[str, int],
    direction: Direction,
) -> list[Arc]:
    """What keeps the neighbours of one layer apart, and the items of a group inside its borders."""
    arcs: list[Arc] = []
    last: tuple[int, int, str] | None = None  # variable, room after it, kind
    open_groups: list[str] = []

    def close() -> None:
        nonlocal last
        group = open_groups.pop()
        if last is not None:
            room = 0 if last[2] == "opened" else pads[group].across_end
            arcs.append((last[0], bottoms[group], last[1] + room, 0))
        last = (bottoms[group], 0, "group")

    def follow(variable: int, room: int, kind: str) -> None:
        if last is None:
            return
        opened = last[2] == "opened"
        distance = pads[open_groups[-1]].across_start if opened else gap_between(last[2], kind)
        arcs.append((last[0], variable, last[1] + distance + room, 0))

    for item in items:
        around = nest.around(item.group)[::-1]
        while open_groups and open_groups != around[: len(open_groups)]:
            close()
        for group in around[len(open_groups) :]:
            follow(tops[group], pads[group].above if direction == "right" else 0, "group")
            open_groups.append(group)
            last = (tops[group], 0, "opened")
        follow(index[id(item)], item.breadth // 2, item.kind)
        last = (index[id(item)], item.breadth // 2 + item.spare, item.kind)
    while open_groups:
        close()
    return arcs


# --- positions along, and the ways of the arrows ---


@dataclass(frozen=True)
class Step:
    """A piece of an arrow between two neighbouring layers: from `start` to `end` across."""

    chain: int
    piece: int
    start: int
    end: int


@dataclass(frozen=True)
class Columns:
    """Where the layers are along, and where arrows turn between them: (chain, piece) -> (along, across)."""

    starts: Sequence[float]
    lengths: Sequence[float]
    turns: Mapping[tuple[int, int], Sequence[Point]]

    def center(self, layer: int) -> float:
        return self.starts[layer] + self.lengths[layer] / 2

    def ends(self, layer: int) -> float:
        return self.starts[layer] + self.lengths[layer]


@dataclass(frozen=True)
class Reach:
    """The layers that a group spans, and the room at both ends for its border and those of groups in it."""

    first: int
    last: int
    before: int
    behind: int


def place_along(
    spec: Spec,
    sizes: Sizes,
    nest: Nest,
    layers: Sequence[Sequence[Item]],
    chains: Sequence[Chain],
    ports: Mapping[tuple[str, int], int],
    borders: Mapping[str, tuple[int, int]],
) -> Placed:
    """Everything in its place: layers beside each other with room for the arrows between them."""
    pads = group_pads(spec, sizes)
    reaches = group_reaches(spec, nest, layers, pads)
    columns = place_columns(layers, chains, ports, pads, reaches, borders)
    nodes: dict[str, Box] = {}
    labels: dict[str, Box] = {}
    for items in layers:
        for item in items:
            if item.kind in ("node", "label"):
                size = (sizes.nodes if item.kind == "node" else sizes.edge_labels)[item.key]
                box = Box.around((columns.center(item.layer), item.across), size)
                (nodes if item.kind == "node" else labels)[item.key] = box
    shapes = {node.id: node.shape for node in spec.nodes}
    routes: dict[str, Route] = {}
    for c, chain in enumerate(chains):
        points = chain_points(c, chain, shapes, nodes, ports, columns)
        way = points[::-1] if chain.turned else points
        routes[chain.edge.id] = Route("elbow", way, labels.get(chain.edge.id))
    notes: dict[str, Box] = {}
    for node in spec.nodes:
        for loop in loops_of(spec, sizes, node.id):
            routes[loop.edge.id] = loop_route(loop, nodes[node.id], node.shape)
        middle, low = nodes[node.id].center[0], nodes[node.id].bottom + loop_room(spec, sizes, node.id)
        for note in notes_beside(spec, node.id):
            length, breadth = sizes.notes[note.id]
            notes[note.id] = Box(middle - length / 2, low + LABEL_GAP, length, breadth)
            low += LABEL_GAP + breadth
    groups = place_groups(spec, nest, layers, pads, reaches, columns, borders)
    return joined(spec, [Placed(nodes, groups, routes, notes)])


def group_reaches(
    spec: Spec, nest: Nest, layers: Sequence[Sequence[Item]], pads: Mapping[str, Pads]
) -> dict[str, Reach]:
    """The reach of each group, in the order of the spec."""
    spanned: dict[str, list[int]] = {group.id: [] for group in spec.groups}
    for i, items in enumerate(layers):
        for item in items:
            for around in nest.around(item.group):
                spanned[around].append(i)
    reaches: dict[str, Reach] = {}
    for group in deepest_first(spec, nest):
        first, last = spanned[group.id][0], spanned[group.id][-1]
        inner = [reaches[child.id] for child in spec.groups if child.group == group.id]
        reaches[group.id] = Reach(
            first,
            last,
            pads[group.id].along_start
            + (pads[group.id].above if spec.direction == "down" else 0)
            + max((child.before for child in inner if child.first == first), default=0),
            pads[group.id].along_end
            + max((child.behind for child in inner if child.last == last), default=0),
        )
    return {group.id: reaches[group.id] for group in spec.groups}


def deepest_first(spec: Spec, nest: Nest) -> list[Group]:
    """The groups, each after those in it."""
    return sorted(spec.groups, key=lambda group: -len(nest.around(group.id)))


def place_columns(
    layers: Sequence[Sequence[Item]],
    chains: Sequence[Chain],
    ports: Mapping[tuple[str, int], int],
    pads: Mapping[str, Pads],
    reaches: Mapping[str, Reach],
    borders: Mapping[str, tuple[int, int]],
) -> Columns:
    """Each layer as near to the one before as the borders of groups and the arrows between them allow."""
    steps = steps_between(layers, chains, ports)
    channels = [channel_tracks(found) for found in steps]
    has_nodes = [any(item.kind == "node" for item in items) for items in layers]
    starts: list[float] = []
    lengths: list[float] = []
    turns: dict[tuple[int, int], list[Point]] = {}
    x = 0.0
    for i, items in enumerate(layers):
        before = max((reach.before for reach in reaches.values() if reach.first == i), default=0)
        if i:
            behind = max((reach.behind for reach in reaches.values() if reach.last == i - 1), default=0)
            tracks, ways = channels[i - 1]
            stubs = [
                max(LABEL_GAP, (STUB if has_nodes[layer] else LINE_GAP) - pad)
                for layer, pad in ((i - 1, behind), (i, before))
            ]
            least = LAYER_GAP if has_nodes[i - 1] and has_nodes[i] else sum(stubs)
            if before or behind:
                least = GROUP_GAP
            swings = [abs(s.end - s.start) for s in steps[i - 1] if chains[s.chain].edge.kind == "curved"]
            swing = min(max(swings, default=0) * SWING_SHARE, WIDEST_SWING)
            room = max(least, sum(stubs) + tracks * LINE_GAP, swing)
            for key, way in ways.items():
                begin, span = x + behind + stubs[0], room - sum(stubs)
                turns[key] = [(begin + span * share, across) for share, across in way]
            x += behind + room + before
        starts.append(x)
        length: float = max((item.length for item in items), default=0)
        for group, reach in reaches.items():
            if reach.last == i:  # the label of a group may be longer than all that is in it
                begin = starts[reach.first] - reach.before
                length = max(length, begin + pads[group].along_least - reach.behind - x)
            elif reach.first == i and pads[group].along_least:
                # An arrow that leaves the group upwards in the next channel must pass behind the label.
                low = borders[group][0] - pads[group].above
                high = borders[group][0] + (0 if pads[group].above else pads[group].across_start)
                if any(
                    min(step.start, step.end) < high and max(step.start, step.end) > low for step in steps[i]
                ):
                    length = max(length, pads[group].along_least - reach.before)
        lengths.append(length)
        x += length
    return Columns(starts, lengths, turns)


def place_groups(
    spec: Spec,
    nest: Nest,
    layers: Sequence[Sequence[Item]],
    pads: Mapping[str, Pads],
    reaches: Mapping[str, Reach],
    columns: Columns,
    borders: Mapping[str, tuple[int, int]],
) -> dict[str, Box]:
    """The box of each group: the layers that it spans, less what is free at both ends."""
    boxes: dict[str, Box] = {}
    for group in deepest_first(spec, nest):
        reach, pad = reaches[group.id], pads[group.id]
        left = columns.starts[reach.first] - reach.before + (pad.above if spec.direction == "down" else 0)
        right = columns.ends(reach.last) + reach.behind
        inside = [
            (columns.center(item.layer) - item.length / 2, columns.center(item.layer) + item.length / 2)
            for items in layers[reach.first : reach.last + 1]
            for item in items
            if item.group == group.id and item.length
        ]
        inside += [
            (boxes[child.id].x, boxes[child.id].right) for child in spec.groups if child.group == group.id
        ]
        if inside:
            tight_left = max(left, min(start for start, _ in inside) - pad.along_start)
            tight_right = min(right, max(end for _, end in inside) + pad.along_end)
            if reach.first < reach.last and tight_left + pad.along_least > columns.ends(reach.first):
                tight_left = left  # so that the label ends before the arrows after the first layer
            if tight_right - tight_left >= pad.along_least:
                left, right = tight_left, tight_right
        low, high = borders[group.id]
        boxes[group.id] = Box(left, low, right - left, high - low)
    return boxes


def chain_points(
    c: int,
    chain: Chain,
    shapes: Mapping[str, str],
    nodes: Mapping[str, Box],
    ports: Mapping[tuple[str, int], int],
    columns: Columns,
) -> list[Point]:
    """The way of one arrow from its lower end to its higher one."""
    low, high = chain.items[0].key, chain.items[-1].key
    across: float = chain.items[0].across + ports[chain.edge.id, 0]
    points = [outline_point(shapes[low], nodes[low], across, 1)]
    for k in range(len(chain.items) - 1):
        for along, to in columns.turns.get((c, k), ()):
            points += [(along, across), (along, to)]
            across = to
    points.append(outline_point(shapes[high], nodes[high], across, -1))
    return without_needless_points(points)


def steps_between(
    layers: Sequence[Sequence[Item]], chains: Sequence[Chain], ports: Mapping[tuple[str, int], int]
) -> list[list[Step]]:
    """The pieces of arrows after each layer but the last."""
    steps: list[list[Step]] = [[] for _ in layers[1:]]
    for c, chain in enumerate(chains):
        across = chain.items[0].across + ports[chain.edge.id, 0]
        for k, (item, following) in enumerate(pairwise(chain.items)):
            last = k == len(chain.items) - 2
            to = following.across + (ports[chain.edge.id, 1] if last else 0)
            steps[item.layer].append(Step(c, k, across, to))
            across = to
    return steps


# Two lines nearer than this are drawn as one.
TOUCHING = 6
# Worse than any number of crossings: two arrows on one line.
ON_ONE_LINE = 1000


def channel_tracks(
    steps: Sequence[Step],
) -> tuple[int, dict[tuple[int, int], list[tuple[float, float]]]]:
    """How many tracks the arrows between two layers need, and the turns of each arrow.

    A turn is the share of the room between the layers where the arrow turns, and how far across it goes
    there. Each arrow that does not run straight turns once; two that would exchange their places on the
    same two lines turn twice.
    """
    bent = [step for step in steps if step.start != step.end]
    taken = {value for step in steps for value in (step.start, step.end)}
    for _ in range(len(bent)):
        order = track_order(bent)
        clash = next(
            (first for k, first in enumerate(order) for second in order[k + 1 :]
             if cost_before(first, second) >= ON_ONE_LINE), None,
        )  # fmt: skip
        if clash is None:
            break
        middle = free_middle(clash, taken)
        taken.add(middle)
        k = bent.index(clash)
        bent[k : k + 1] = [
            dataclasses.replace(clash, end=middle),
            dataclasses.replace(clash, start=middle, piece=clash.piece),
        ]
    order = track_order(bent)
    tracks = [0] * len(order)
    for k, step in enumerate(order):
        for j in range(k):
            if overlap(order[j], step):
                tracks[k] = max(tracks[k], tracks[j] + 1)
    counts = cluster_counts(order, tracks)
    turns: dict[tuple[int, int], list[tuple[float, float]]] = {}
    for step, track, count in zip(order, tracks, counts, strict=True):
        turns.setdefault((step.chain, step.piece), []).append(((track + 0.5) / count, step.end))
    return max(counts, default=0), turns


def overlap(first: Step, second: Step) -> bool:
    """Whether two steps need two tracks."""
    return (
        min(first.start, first.end) - LINE_GAP < max(second.start, second.end)
        and min(second.start, second.end) - LINE_GAP < max(first.start, first.end)
    )  # fmt: skip


def cost_before(first: Step, second: Step) -> int:
    """What it costs when the first step turns before the second: crossings, or worse."""
    if (first.chain, first.piece) == (second.chain, second.piece):
        return 0 if first.end == second.start else ON_ONE_LINE
    low, high = sorted((first.start, first.end))
    other_low, other_high = sorted((second.start, second.end))
    cost = (other_low < first.end < other_high) + (low < second.start < high)
    return cost + ON_ONE_LINE * (abs(first.end - second.start) < TOUCHING)


def track_order(steps: Sequence[Step]) -> list[Step]:
    """The steps in an order of few crossings: the one with most to gain from being first, then the rest."""
    rest = list(steps)
    gain = {
        a: sum(
            cost_before(other, step) - cost_before(step, other)
            for other in rest
            if other is not step and overlap(step, other)
        )
        for a, step in enumerate(rest)
    }
    left = dict(enumerate(rest))
    order: list[Step] = []
    while left:
        best = max(left, key=lambda a: (gain[a], -a))
        chosen = left.pop(best)
        order.append(chosen)
        for a, other in left.items():
            if overlap(chosen, other):
                gain[a] -= cost_before(chosen, other) - cost_before(other, chosen)
    # Each step in turn to where it costs least, as long as that helps.
    for _ in range(4):
        moved = False
        for step in list(order):
            at = order.index(step)
            del order[at]
            costs = [0]
            for other in order:
                change = cost_before(other, step) - cost_before(step, other) if overlap(other, step) else 0
                costs.append(costs[-1] + change)
            best = min(range(len(costs)), key=lambda k: (costs[k], abs(k - at)))
            moved = moved or costs[best] < costs[at]
            order.insert(best if costs[best] < costs[at] else at, step)
        if not moved:
            break
    return order


def free_middle(step: Step, taken: set[int]) -> int:
    """A place across, about half way of a step, where no other line runs."""
    middle = (step.start + step.end) // 2
    near = sorted(range(-200, 201, 4), key=abs)
    return next(
        (middle + by for by in near if all(abs(middle + by - other) >= TOUCHING for other in taken)), middle
    )


def cluster_counts(order: Sequence[Step], tracks: Sequence[int]) -> list[int]:
    """For each step, how many tracks the steps need that it overlaps, directly or through others."""
    cluster = list(range(len(order)))
    for k, step in enumerate(order):
        for j in range(k):
            if overlap(order[j], step) and cluster[j] != cluster[k]:
                old, new = cluster[k], cluster[j]
                cluster = [new if c == old else c for c in cluster]
    most: dict[int, int] = {}
    for c, track in zip(cluster, tracks, strict=True):
        most[c] = max(most.get(c, 0), track + 1)
    return [most[c] for c in cluster]


def around_boxes(boxes: Sequence[Box]) -> Box:
    """The smallest box around some."""
    x, y = min(box.x for box in boxes), min(box.y for box in boxes)
    return Box(x, y, max(box.right for box in boxes) - x, max(box.bottom for box in boxes) - y)


def outline_point(shape: str, box: Box, across: float, side: int) -> Point:
    """Where a horizontal line at `across` meets the outline, on the right (1) or the left (-1) side."""
    x, y = box.center
    share = min(1.0, abs(across - y) / (box.height / 2)) if box.height else 0.0
    half = box.width / 2
    if shape == "ellipse":
        half *= (1 - share * share) ** 0.5
    elif shape == "diamond":
        half *= 1 - share
    return x + side * half, across


def without_needless_points(points: Sequence[Point]) -> list[Point]:
    """The same way without repeated points and without points on straight lines."""
    way: list[Point] = []
    for point in points:
        if way and abs(way[-1][0] - point[0]) < 1e-6 and abs(way[-1][1] - point[1]) < 1e-6:
            continue
        if len(way) > 1 and any(
            max(abs(way[-1][axis] - other[axis]) for other in (way[-2], point)) < 1e-6 for axis in (0, 1)
        ):
            way.pop()
        way.append(point)
    return way


def loop_route(loop: Loop, box: Box, shape: str) -> Route:
    """An arrow that leaves a node below and comes back to it."""
    middle = box.center[0]
    half = loop.half * min(1.0, box.width * LOOP_SHARE / 2 / loop.widest)
    low = box.bottom + loop.depth
    ends = [outline_point(shape, box.transposed, x, 1)[0] for x in (middle + half, middle - half)]
    label = None
    if loop.label[0]:
        label = Box.around((middle, low), loop.label)
    points = [(middle + half, ends[0]), (middle + half, low), (middle - half, low), (middle - half, ends[1])]
    return Route("elbow", points, label)


# --- places that were given, and a way for any arrow ---


def keep_given_places(spec: Spec, sizes: Sizes, drawn: Placed) -> Placed:
    """The drawing with each given place kept: the rest moves near what it is linked to, all arrows anew."""
    nest = Nest.of(spec.groups)
    placed = {node.id: Box(*node.at, *sizes.nodes[node.id]) for node in spec.nodes if node.at is not None}
    for group, members in sorted(free_units(spec, nest), key=lambda unit: reading_order(unit[1], drawn)):
        by = shift_of_unit(spec, sizes, nest, drawn, placed, group, members)
        for key in members:
            placed[key] = drawn.nodes[key].moved(*by)
    return drawn_around(spec, sizes, {node.id: placed[node.id] for node in spec.nodes})


def drawn_around(spec: Spec, sizes: Sizes, nodes: Mapping[str, Box]) -> Placed:
    """The drawing with the nodes in these places, groups around them and a way for each arrow."""
    groups = group_boxes(spec, sizes, Nest.of(spec.groups), nodes)
    return Placed(nodes, groups, found_routes(spec, sizes, nodes, groups), {})


def reading_order(members: Sequence[str], drawn: Placed) -> float:
    return min(drawn.nodes[key].x + drawn.nodes[key].y for key in members)


def free_units(spec: Spec, nest: Nest) -> list[tuple[str | None, list[str]]]:
    """What moves as one: a whole group without a given place in it, or else a single node (group None)."""
    held = {group for node in spec.nodes if node.at is not None for group in nest.around(node.group)}
    units: dict[tuple[str | None, str], list[str]] = {}
    for node in spec.nodes:
        if node.at is None:
            free = [group for group in nest.around(node.group) if group not in held]
            units.setdefault((free[-1], "") if free else (None, node.id), []).append(node.id)
    return [(group, members) for (group, _), members in units.items()]


def shift_of_unit(
    spec: Spec,
    sizes: Sizes,
    nest: Nest,
    drawn: Placed,
    placed: Mapping[str, Box],
    group: str | None,
    members: Sequence[str],
) -> Point:
    """How far to move a unit from where it was drawn, to be near its neighbours and on nothing."""
    owners = {node.id: node.group for node in spec.nodes}
    owner = owners[members[0]]
    if group is not None:
        owner = nest.parents[group]
    linked = [
        other
        for edge in spec.edges
        for one, other in ((edge.source, edge.target), (edge.target, edge.source))
        if one in members and other in placed
    ]
    siblings = [key for key in placed if owner is None or owner in nest.around(owners[key])]
    near = linked or siblings or list(placed)
    by = (
        fmean(placed[key].x - drawn.nodes[key].x for key in near),
        fmean(placed[key].y - drawn.nodes[key].y for key in near),
    )
    single = with_loops(spec, sizes, members[0], drawn.nodes[members[0]])
    unit = drawn.groups[group] if group is not None else single
    around = nest.around(owner)
    obstacles = [grown(with_loops(spec, sizes, key, box), NODE_GAP) for key, box in placed.items()]
    borders = group_boxes(spec, sizes, nest, placed)
    obstacles += [grown(box, GROUP_GAP) for key, box in borders.items() if key not in around]
    # The groups around it grow to take it in, and must not take in a stranger.
    inside = around_boxes([placed[key] for key in siblings]) if owner is not None and siblings else None
    depth = 2 * GROUP_PAD * len(around)
    strangers = [box for key, box in placed.items() if key not in siblings]
    if inside is not None:
        strangers = [box for box in strangers if not touch(box, grown(inside, depth))]

    def fits(box: Box) -> bool:
        if any(touch(box, other) for other in obstacles):
            return False
        taken = grown(around_boxes([box, inside]), depth) if inside is not None else box
        return not any(touch(taken, other) for other in strangers)

    found = nearest_place(unit.moved(*by), fits)
    return found.x - unit.x, found.y - unit.y


def grown(box: Box, by: float) -> Box:
    return Box(box.x - by, box.y - by, box.width + 2 * by, box.height + 2 * by)


def touch(first: Box, second: Box) -> bool:
    """Whether two boxes have an area in common."""
    return (
        first.x < second.right
        and second.x < first.right
        and first.y < second.bottom
        and second.y < first.bottom
    )


def nearest_place(wished: Box, fits: Callable[[Box], bool]) -> Box:
    """The box where it is wished, or moved as little as it takes to fit."""
    if fits(wished):
        return wished
    for ring in range(1, 200):
        reach = ring * 20
        steps = range(-reach, reach + 1, 20)
        moves = {(x, y) for x in steps for y in (-reach, reach)} | {
            (x, y) for y in steps for x in (-reach, reach)
        }
        for x, y in sorted(moves, key=lambda move: (abs(move[0]) + abs(move[1]), move)):
            box = wished.moved(x, y)
            if fits(box):
                return box
    return wished


def group_boxes(spec: Spec, sizes: Sizes, nest: Nest, nodes: Mapping[str, Box]) -> dict[str, Box]:
    """The box around the nodes of each group; a group without any that has a place has none."""
    boxes: dict[str, Box] = {}
    for group in deepest_first(spec, nest):
        inside = []
        for node in spec.nodes:
            if node.group == group.id and node.id in nodes:
                inside.append(with_loops(spec, sizes, node.id, nodes[node.id]))
        inside += [boxes[child.id] for child in spec.groups if child.group == group.id and child.id in boxes]
        if inside:
            inner = grown(around_boxes(inside), GROUP_PAD)
            width, height = sizes.group_labels.get(group.id, (0.0, 0.0))
            head = even(height + LABEL_GAP) if height and not group.frame else 0
            boxes[group.id] = Box(
                inner.x, inner.y - head, max(inner.width, even(width + 2 * LABEL_GAP)), inner.height + head
            )
    return {group.id: boxes[group.id] for group in spec.groups if group.id in boxes}


def with_loops(spec: Spec, sizes: Sizes, node: str, box: Box) -> Box:
    """A node's box with the room for its loops, which are to its right where the map goes down."""
    room = loop_room(spec, sizes.along(spec.direction), node)
    right, below = (room, 0.0) if spec.direction == "down" else (0.0, room)
    return Box(box.x, box.y, box.width + right, box.height + below)


def found_routes(
    spec: Spec, sizes: Sizes, nodes: Mapping[str, Box], groups: Mapping[str, Box]
) -> dict[str, Route]:
    """A way for each arrow between nodes that stand anywhere: short ones first, each around the others."""
    shapes = {node.id: node.shape for node in spec.nodes}
    titles = group_titles(sizes, groups)
    found: dict[str, Route] = {}
    for node in spec.nodes:
        for loop in loops_of(spec, sizes.along(spec.direction), node.id):
            found[loop.edge.id] = own_loop(loop, nodes[node.id], node.shape, spec.direction)

    def distance(edge: Edge) -> float:
        (x, y), (u, v) = nodes[edge.source].center, nodes[edge.target].center
        return abs(x - u) + abs(y - v)

    # Those that stay as they are in an updated file (see keep_ways) are not met by the others.
    kept = {edge.id: edge.way for edge in spec.edges if edge.way and is_clear_way(edge, edge.way, nodes)}
    for edge in sorted((edge for edge in spec.edges if edge.id not in found), key=distance):
        others = [route for key, route in {**found, **kept}.items() if key != edge.id]
        labels = [route.label for route in others if route.label]
        lines = [route.points for route in others]
        ends = (nodes[edge.source], nodes[edge.target]), (shapes[edge.source], shapes[edge.target])
        around = Surroundings([*nodes.values()], [*labels, *titles], lines, [*groups.values()])
        points = direct_way(*ends, around) or nudged(
            search_way(*ends, around, spec.direction), ends[0], around
        )
        label = None
        if edge.id in sizes.edge_labels:
            label = label_on_way(
                points, sizes.edge_labels[edge.id], [*nodes.values(), *labels, *titles], lines
            )
        found[edge.id] = Route("elbow", points, label)
    return {edge.id: found[edge.id] for edge in spec.edges}


def is_clear_way(edge: Edge, way: Route, nodes: Mapping[str, Box]) -> bool:
    """Whether the way still leads from the arrow's one node to the other, and through no third."""
    start, end = nodes[edge.source], nodes[edge.target]
    return (
        is_near(way.points[0], start)
        and is_near(way.points[-1], end)
        and not any(crosses(way.points, box) for box in nodes.values() if box not in (start, end))
    )


def own_loop(loop: Loop, box: Box, shape: str, direction: Direction) -> Route:
    """A loop below its node, or to its right where the map goes down."""
    if direction == "right":
        return loop_route(loop, box, shape)
    return loop_route(loop, box.transposed, shape).mapped(exchanged, lambda box: box.transposed)


def group_titles(sizes: Sizes, groups: Mapping[str, Box]) -> list[Box]:
    """Where the labels of the groups are: in their corner, or above it for a frame."""
    return [
        Box(groups[key].x, groups[key].y - height - LABEL_GAP / 2, width, height)
        if key in sizes.frames
        else Box(groups[key].x + LABEL_GAP, groups[key].y + LABEL_GAP / 2, width, height)
        for key, (width, height) in sizes.group_labels.items()
        if key in groups
    ]


@dataclass(frozen=True)
class Surroundings:
    """What an arrow is led around: nodes and labels; and what it only keeps away from."""

    nodes: Sequence[Box]
    labels: Sequence[Box]
    lines: Sequence[Sequence[Point]]
    groups: Sequence[Box]


def direct_way(ends: tuple[Box, Box], shapes: tuple[str, str], around: Surroundings) -> list[Point]:
    """A straight way parallel to an axis between facing sides; empty when there is none that is free."""
    others = [box for box in around.nodes if box not in ends]
    for axis in (0, 1):
        flat = [box if axis == 0 else box.transposed for box in ends]
        side = 1 if flat[0].right <= flat[1].x else -1 if flat[1].right <= flat[0].x else 0
        if not side:
            continue
        reaches = [box.height * PORT_SHARE[shape] / 2 for box, shape in zip(flat, shapes, strict=True)]
        low = max(box.center[1] - reach for box, reach in zip(flat, reaches, strict=True))
        high = min(box.center[1] + reach for box, reach in zip(flat, reaches, strict=True))
        middles = [box.center[1] for box in flat]
        for across in (
            *middles,
            (low + high) / 2,
            *(m + by for m in middles for by in (PORT_GAP, -PORT_GAP)),
        ):
            if not low <= across <= high:
                continue
            way = [outline_point(shapes[n], flat[n], across, side if n == 0 else -side) for n in (0, 1)]
            points = [(x, y) if axis == 0 else (y, x) for x, y in way]
            if any(crosses(points, grown(box, 8)) for box in (*others, *around.labels)):
                continue
            room = stretched(points)
            if not any(crosses(piece, room) for line in around.lines for piece in parallel(line, axis)):
                return points
    return []


def nudged(points: list[Point], ends: tuple[Box, Box], around: Surroundings) -> list[Point]:
    """The way with its inner pieces moved a little where they would run on another arrow."""
    walls = [grown(box, -1 if box in ends else 6) for box in around.nodes] + list(around.labels)
    runs = [[piece for way in around.lines for piece in flat_pieces(way, axis)] for axis in (0, 1)]

    def runs_on(start: Point, end: Point) -> bool:
        for axis in (0, 1):
            for at, low, high in flat_pieces((start, end), axis):
                if any(abs(at - other) < TOUCHING and a < high and low < b for other, a, b in runs[axis]):
                    return True
        return False

    for k in range(1, len(points) - 2):
        if not runs_on(points[k], points[k + 1]):
            continue
        axis = 1 if points[k][1] == points[k + 1][1] else 0
        for by in (8, -8, 16, -16, 24, -24):
            moved = list(points)
            for n in (k, k + 1):
                x, y = points[n]
                moved[n] = (x + by, y) if axis == 0 else (x, y + by)
            pieces = list(pairwise(moved[k - 1 : k + 3]))
            if not any(runs_on(*piece) for piece in pieces) and not any(crosses(moved, box) for box in walls):
                points = moved
                break
    return points


def stretched(points: Sequence[Point]) -> Box:
    """The room that a straight line needs for itself."""
    return grown(around_boxes([Box(x, y, 0, 0) for x, y in points]), 8)


def parallel(way: Sequence[Point], axis: int) -> list[tuple[Point, Point]]:
    """The pieces of a way that run along an axis."""
    return [(start, end) for start, end in pairwise(way) if start[1 - axis] == end[1 - axis]]


@dataclass(frozen=True)
class Port:
    """Where an arrow may leave a node: a point of its outline, and one straight before it."""

    outline: Point
    outside: Point
    axis: int  # 0: it leaves along x
    cost: float


def node_ports(
    box: Box, shape: str, obstacles: Sequence[Box], taken: Sequence[Point], forward: int
) -> list[Port]:
    """The places where an arrow may leave; `forward` is the axis in which the map runs."""
    ports = []
    for axis, flat in ((0, box), (1, box.transposed)):
        step = min(PORT_GAP, flat.height * PORT_SHARE[shape] / 2)
        for by in (0.0, -step, step):
            for side in (1, -1):
                x, y = outline_point(shape, flat, flat.center[1] + by, side)
                edge = flat.right if side > 0 else flat.x
                for out in (20, 10):
                    outside = (edge + side * out, y)
                    here, there = ((x, y), outside) if axis == 0 else ((y, x), (outside[1], outside[0]))
                    if not any(has_point(other, there) for other in obstacles):
                        aside = 8 if shape not in ("ellipse", "diamond") else BEND_COST / 2
                        cost: float = (0 if axis == forward else BEND_COST / 4) + (aside if by else 0)
                        if any(math.dist(here, other) < TOUCHING for other in taken):
                            cost += 2 * BEND_COST
                        ports.append(Port(here, there, axis, cost))
                        break
    return ports


Stand = tuple[int, int, int]  # line along x, line along y, axis of the piece that led here


def has_point(box: Box, point: Point) -> bool:
    return box.x < point[0] < box.right and box.y < point[1] < box.bottom


def search_way(
    ends: tuple[Box, Box], shapes: tuple[str, str], around: Surroundings, direction: Direction
) -> list[Point]:
    """A way from one node to another around all others: short, with few bends and crossings.

    A* over the lines beside the boxes between the two; the whole map when there is no way there. When
    there is none at all (a node lies on another), through all, with one bend.
    """
    whole = grown(around_boxes([*around.nodes, *around.labels]), 200)
    for window in (grown(around_boxes(ends), 160), whole):
        near = Surroundings(
            [box for box in around.nodes if touch(box, window)],
            [box for box in around.labels if touch(box, window)],
            around.lines,
            [box for box in around.groups if touch(box, window)],
        )
        way = search_in(ends, shapes, near, 0 if direction == "right" else 1)
        if way:
            return way
    (x, y), (u, v) = ends[0].center, ends[1].center
    return [(x, y), (u, v)] if x == u or y == v else [(x, y), (u, y), (u, v)]


def search_in(
    ends: tuple[Box, Box], shapes: tuple[str, str], around: Surroundings, forward: int
) -> list[Point]:
    """The best way over the lines beside these boxes; empty when there is none."""
    source, target = ends
    nodes, labels = around.nodes, around.labels
    others = [box for box in nodes if box not in (source, target)]
    walls = [grown(box, 9) for box in nodes] + [grown(box, 5) for box in labels]
    closed = [grown(box, 5) for box in others] + [grown(box, 3) for box in labels]
    taken = [point for way in around.lines for point in (way[0], way[-1])]
    starts = node_ports(source, shapes[0], [*closed, grown(target, 5)], taken, forward)
    goals = node_ports(target, shapes[1], [*closed, grown(source, 5)], taken, forward)
    xs, ys = (search_lines(ends, [*starts, *goals], around, axis) for axis in (0, 1))
    blocked = (
        blocked_cells(xs, ys, walls),
        blocked_cells(ys, xs, [box.transposed for box in walls]),
    )
    pieces = [sorted(piece for way in around.lines for piece in flat_pieces(way, axis)) for axis in (0, 1)]
    borders = [
        sorted((y, box.x, box.right) for box in around.groups for y in (box.y, box.bottom)),
        sorted((x, box.y, box.bottom) for box in around.groups for x in (box.x, box.right)),
    ]
    costs: dict[tuple[int, int, int], float] = {}

    def step_cost(axis: int, i: int, j: int) -> float:
        """Of the cell after line i of `axis`, on line j of the other one."""
        key = axis, i, j
        if key not in costs:
            along, across = (xs, ys) if axis == 0 else (ys, xs)
            low, high, at = along[i], along[i + 1], across[j]
            cost = high - low
            for _, start, end in within(pieces[axis], at - 8, at + 8):
                if start < high and low < end:
                    cost += 3 * (high - low) + 40
            for _, start, end in within(borders[axis], at - 10, at + 10):
                if start < high and low < end:
                    cost += high - low
            for _, start, end in within(pieces[1 - axis], low, high):
                if start < at < end:
                    cost += BEND_COST / 3
            costs[key] = cost
        return costs[key]

    at_x, at_y = {x: i for i, x in enumerate(xs)}, {y: j for j, y in enumerate(ys)}
    goals_at: dict[tuple[int, int], list[Port]] = {}
    for port in goals:
        goals_at.setdefault((at_x[port.outside[0]], at_y[port.outside[1]]), []).append(port)
    goal = around_boxes([Box(*port.outside, 0, 0) for port in goals]) if goals else target

    def ahead(i: int, j: int, axis: int) -> float:
        """No more than the rest of the way costs."""
        along = max(goal.x - xs[i], 0, xs[i] - goal.right)
        across = max(goal.y - ys[j], 0, ys[j] - goal.bottom)
        return along + across + (BEND_COST if (across if axis == 0 else along) else 0)

    queue: list[tuple[float, int, float, Stand, Port | None]] = []
    came: dict[Stand, Stand | Port] = {}
    known: dict[Stand, float] = {}
    serial = 0
    for port in starts:
        state = (at_x[port.outside[0]], at_y[port.outside[1]], port.axis)
        if port.cost < known.get(state, math.inf):
            known[state], came[state] = port.cost, port
            heappush(queue, (port.cost + ahead(*state), serial, port.cost, state, None))
            serial += 1
    while queue:
        _, _, cost, state, end = heappop(queue)
        if end is not None:
            return way_back(state, came, end, xs, ys)
        if cost > known[state]:
            continue
        i, j, axis = state
        for port in goals_at.get((i, j), ()):
            total = cost + port.cost + (BEND_COST if port.axis != axis else 0)
            heappush(queue, (total, serial, total, state, port))
            serial += 1
        for turn in (0, 1):
            for side in (1, -1):
                k = (i if turn == 0 else j) + side
                cell = min(k, k - side)
                if not 0 <= k < len(xs if turn == 0 else ys):
                    continue
                line = j if turn == 0 else i
                if (cell, line) in blocked[turn]:
                    continue
                following = (k, j, 0) if turn == 0 else (i, k, 1)
                total = cost + step_cost(turn, cell, line) + (BEND_COST if turn != axis else 0)
                if total < known.get(following, math.inf):
                    known[following], came[following] = total, state
                    heappush(queue, (total + ahead(*following), serial, total, following, None))
                    serial += 1
    return []


def search_lines(
    ends: tuple[Box, Box], ports: Sequence[Port], around: Surroundings, axis: int
) -> list[float]:
    """The coordinates along an axis on which an arrow may turn: beside all that it is led around."""

    def sides(box: Box) -> Point:
        return (box.x, box.right) if axis == 0 else (box.y, box.bottom)

    wanted = {(ends[0].center[axis] + ends[1].center[axis]) / 2}
    for boxes, outs in (
        (around.nodes, (14, 28)),
        (around.labels, (12,)),
        (around.groups, (-LINE_GAP, LINE_GAP)),
    ):
        wanted |= {
            value for box in boxes for out in outs for value in (sides(box)[0] - out, sides(box)[1] + out)
        }
    lines = sorted({port.outside[axis] for port in ports})
    for value in sorted(wanted):
        k = bisect_left(lines, value)
        if all(abs(value - other) > LINE_GAP / 2 for other in lines[max(k - 1, 0) : k + 1]):
            lines.insert(k, value)
    return lines


def flat_pieces(way: Sequence[Point], axis: int) -> list[tuple[float, float, float]]:
    """The pieces of a way along an axis: where on the other one, from, to."""
    return [
        (start[1 - axis], min(start[axis], end[axis]), max(start[axis], end[axis]))
        for start, end in parallel(way, axis)
    ]


def within(
    pieces: Sequence[tuple[float, float, float]], low: float, high: float
) -> Sequence[tuple[float, float, float]]:
    """Those of sorted pieces that lie at `low` or beyond, and before `high`."""
    return pieces[bisect_left(pieces, (low,)) : bisect_left(pieces, (high,))]


def blocked_cells(
    along: Sequence[float], across: Sequence[float], walls: Sequence[Box]
) -> set[tuple[int, int]]:
    """The cells (after line i along, on line j across) that lead through a wall."""
    blocked: set[tuple[int, int]] = set()
    for box in walls:
        first, last = bisect_right(along, box.x) - 1, bisect_left(along, box.right)
        low, high = bisect_right(across, box.y), bisect_left(across, box.bottom)
        blocked.update((i, j) for i in range(max(first, 0), last) for j in range(low, high))
    return blocked


def way_back(
    state: Stand,
    came: Mapping[Stand, Stand | Port],
    end: Port,
    xs: Sequence[float],
    ys: Sequence[float],
) -> list[Point]:
    points = [end.outline, end.outside]
    while True:
        points.append((xs[state[0]], ys[state[1]]))
        before = came[state]
        if isinstance(before, Port):
            points += [before.outside, before.outline]
            return without_needless_points(points[::-1])
        state = before


def label_on_way(
    points: Sequence[Point], size: Size, boxes: Sequence[Box], lines: Sequence[Sequence[Point]]
) -> Box:
    """A place for a label on a way, clear of all else if there is one: on a long piece, near its middle."""
    best: tuple[float, Box] | None = None
    for start, end in pairwise(points):
        length = abs(start[0] - end[0]) + abs(start[1] - end[1])
        room = size[0] if start[1] == end[1] else size[1]
        for share in (0.5, 0.35, 0.65, 0.2, 0.8):
            box = Box.around(toward(start, end, share), size)
            faults = 4.0 * sum(touch(grown(box, 3), other) for other in boxes)
            faults += sum(crosses(way, box) for way in lines)
            faults += sum(crosses(piece, box) for piece in pairwise(points) if piece != (start, end)) * 0.5
            faults += (
                (length * min(share, 1 - share) * 2 < room + 20) + abs(share - 0.5) - min(length, 400) / 1000
            )
            if best is None or faults < best[0]:
                best = faults, box
    assert best is not None
    return best[1]


def crosses(way: Sequence[Point], box: Box) -> bool:
    """Whether a way enters a box."""
    return any(enters(start, end, box) for start, end in pairwise(way))


def enters(start: Point, end: Point, box: Box) -> bool:
    """Whether a line enters a box (Liang and Barsky 1984)."""
    low, high = 0.0, 1.0
    for axis, (least, most) in enumerate(((box.x, box.right), (box.y, box.bottom))):
        step = end[axis] - start[axis]
        if abs(step) < 1e-9:
            if not least < start[axis] < most:
                return False
            continue
        bounds = sorted(((least - start[axis]) / step, (most - start[axis]) / step))
        low, high = max(low, bounds[0]), min(high, bounds[1])
    return high - low > 1e-9


# --- straight and curved arrows, and notes ---


def straightened(spec: Spec, sizes: Sizes, drawn: Placed) -> dict[str, Route]:
    """The routes, with straight and curved ones as asked for where those are clear of nodes and labels."""
    edges = {edge.id: edge for edge in spec.edges if edge.kind != "elbow" and edge.source != edge.target}
    wished = {key: wished_routes(edge, spec, drawn) for key, edge in edges.items()}
    routes = {key: wished[key].pop(0) if wished.get(key) else route for key, route in drawn.routes.items()}
    shapes = {node.id: node.shape for node in spec.nodes}
    titles = group_titles(sizes, drawn.groups)
    # The labels of straight ones first find their places on their lines.
    for key, edge in edges.items():
        if edge.kind == "straight" and routes[key].label and wished[key]:
            places = [routes[key], *wished[key]]
            wished[key] = []
            routes[key] = next(
                (route for route in places if is_label_clear(key, route, routes, drawn, titles)), routes[key]
            )
    # One that gives way to its next may be in another one's way: asked again until all are clear.
    while unclear := next(
        (key for key, edge in edges.items()
         if routes[key] is not drawn.routes[key] and not is_clear(edge, routes, shapes, drawn, titles)), None,
    ):  # fmt: skip
        routes[unclear] = wished[unclear].pop(0) if wished[unclear] else drawn.routes[unclear]
    return routes


def wished_routes(edge: Edge, spec: Spec, drawn: Placed) -> list[Route]:
    """The straight or curved routes that would do what the spec asks for, the best first."""
    label = drawn.routes[edge.id].label
    if edge.kind == "curved":
        ways = curved_ways(drawn.routes[edge.id])
    elif way := straight_way_beside(edge, spec, drawn):
        # The label stands in the middle, or a little off where another one is there.
        ways = [way, *([way[0], toward(way[0], way[1], share), way[1]] for share in LABEL_SHARES if label)]
    else:
        ways = []
    return [Route(edge.kind, way, label and Box.around(middle_of(way), label.size)) for way in ways]


def straight_way_beside(edge: Edge, spec: Spec, drawn: Placed) -> list[Point]:
    """The straight way of an arrow, beside those of the others between its two nodes."""
    ends = {edge.source, edge.target}
    beside = [e.id for e in spec.edges if e.kind == "straight" and {e.source, e.target} == ends]
    heights = [label.height for key in beside if (label := drawn.routes[key].label)]
    apart = max(PORT_GAP, max(heights, default=0.0) + LABEL_GAP)
    by = (beside.index(edge.id) - (len(beside) - 1) / 2) * apart
    shapes = {node.id: node.shape for node in spec.nodes}
    return straight_way(
        drawn.nodes[edge.source],
        drawn.nodes[edge.target],
        shapes[edge.source],
        shapes[edge.target],
        by if edge.source == min(ends) else -by,
    )


def is_clear(
    edge: Edge,
    routes: Mapping[str, Route],
    shapes: Mapping[str, Shape],
    drawn: Placed,
    titles: Sequence[Box],
) -> bool:
    """Whether the edge's route meets no node, no label and no title, and its label no other arrow."""
    route = routes[edge.id]
    seen = along_curve(route.points) if edge.kind == "curved" else route.points
    others = [box for key, box in drawn.nodes.items() if key not in (edge.source, edge.target)]
    if edge.kind == "curved" and any(
        is_inside(shapes[key], drawn.nodes[key], point)
        for key in (edge.source, edge.target)
        for point in seen[1:-1]
    ):
        return False
    labels = [other.label for key, other in routes.items() if key != edge.id and other.label]
    return not (
        any(crosses(seen, grown(box, 6)) for box in others)
        or any(crosses(seen, box) for box in (*labels, *titles))
    ) and is_label_clear(edge.id, route, routes, drawn, titles)


def is_label_clear(
    key: str, route: Route, routes: Mapping[str, Route], drawn: Placed, titles: Sequence[Box]
) -> bool:
    """Whether the label that the edge would have on that route lies on nothing, and under no other arrow."""
    if route.label is None:
        return True
    rest = [other for name, other in routes.items() if name != key]
    boxes = [*drawn.nodes.values(), *titles, *(other.label for other in rest if other.label)]
    return not (
        any(touch(grown(route.label, 3), box) for box in boxes)
        or any(crosses(other.points, route.label) for other in rest)
    )


def straight_way(source: Box, target: Box, source_shape: str, target_shape: str, by: float) -> list[Point]:
    """A line between the outlines of two nodes, `by` pixels beside the one between their middles."""
    (x1, y1), (x2, y2) = source.center, target.center
    length = math.hypot(x2 - x1, y2 - y1)
    if not length:
        return []
    aside = -(y2 - y1) / length * by, (x2 - x1) / length * by
    start, end = (x1 + aside[0], y1 + aside[1]), (x2 + aside[0], y2 + aside[1])
    return [outline_hit(source_shape, source, start, end), outline_hit(target_shape, target, end, start)]


def outline_hit(shape: str, box: Box, start: Point, end: Point) -> Point:
    """Where the line from `start`, in the node, to `end`, outside it, leaves the outline; by bisection."""
    low, high = 0.0, 1.0
    for _ in range(40):
        share = (low + high) / 2
        low, high = (share, high) if is_inside(shape, box, toward(start, end, share)) else (low, share)
    return toward(start, end, low)


def is_inside(shape: str, box: Box, point: Point) -> bool:
    """Whether a point lies within the outline."""
    u = abs(point[0] - box.center[0]) / (box.width / 2 or 1)
    v = abs(point[1] - box.center[1]) / (box.height / 2 or 1)
    return u + v < 1 if shape == "diamond" else u * u + v * v < 1 if shape == "ellipse" else max(u, v) < 1


def curved_ways(route: Route) -> list[list[Point]]:
    """Points for a smooth arrow along an elbow's way, the best first; the label is at the middle one.

    Each leaves and arrives as the elbow does, at a right angle to the side: first one swing from end to
    end, then one that rounds the elbow's corners, and passes under its label.
    """
    points, label = route.points, route.label.center if route.label else None
    if len(points) == 2:
        return [[points[0], label or middle_of(points), points[1]]]
    rounded = rounded_corners(points, label)
    ways = [few_points(rounded, rounded.index(label) if label in rounded else half_way(rounded))]
    if swing := swing_way(points):
        ways.insert(0, few_points(swing, len(swing) // 2))
    return ways


def swing_way(points: Sequence[Point]) -> list[Point]:
    """One curve from end to end of an elbow that turns aside and back; empty for any other."""
    (x, y), (u, v) = points[0], points[-1]
    is_flat = y == points[1][1]
    if len(points) != 4 or is_flat != (points[2][1] == v):
        return []
    near, far = SWING_HANDLE, 1 - SWING_HANDLE
    if is_flat:
        handles = [(x + (u - x) * near, y), (x + (u - x) * far, v)]
    else:
        handles = [(x, y + (v - y) * near), (u, y + (v - y) * far)]
    return bezier([points[0], *handles, points[-1]])


def rounded_corners(points: Sequence[Point], touched: Point | None) -> list[Point]:
    """An elbow's way with its corners as round as can be; it touches each inner piece, and that point."""
    touches: list[Point] = []
    for k, (start, end) in enumerate(pairwise(points)):
        if touched and touched not in touches and on_piece(touched, start, end):
            touches.append(touched)
        else:
            touches.append(start if k == 0 else end if k == len(points) - 2 else middle_of((start, end)))
    way = [points[0]]
    for corner, (before, after) in zip(points[1:-1], pairwise(touches), strict=True):
        way += bezier([before, corner, after])
    return [point for k, point in enumerate([*way, points[-1]]) if k == 0 or point != way[k - 1]]


def bezier(controls: Sequence[Point]) -> list[Point]:
    """Points on a Bézier curve of any degree, close together, the middle one half way."""
    way = []
    for step in range(33):
        left = list(controls)
        while len(left) > 1:
            left = [toward(a, b, step / 32) for a, b in pairwise(left)]
        way += left
    return [controls[0], *way[1:-1], controls[-1]]


def few_points(way: Sequence[Point], middle: int) -> list[Point]:
    """Seven points of a fine way, the fourth that middle one: a curve through them is much the same."""
    return [*spaced(way[: middle + 1]), *spaced(way[middle:])[1:]]


def spaced(way: Sequence[Point]) -> list[Point]:
    """Both ends of a fine way and two points between them, closer where it bends."""
    reached = [0.0]
    for k, (start, end) in enumerate(pairwise(way)):
        bend = 0.0
        if k:
            before = math.atan2(start[1] - way[k - 1][1], start[0] - way[k - 1][0])
            bend = abs(math.remainder(math.atan2(end[1] - start[1], end[0] - start[0]) - before, math.tau))
        reached.append(reached[-1] + math.dist(start, end) + BEND_REACH * bend)
    ats = [bisect_left(reached, reached[-1] * k / 3) for k in (1, 2)]
    return [way[0], *(way[at] for at in ats), way[-1]]


def half_way(way: Sequence[Point]) -> int:
    """Which point of a fine way is nearest to its middle."""
    reached = [0.0, *accumulate(math.dist(start, end) for start, end in pairwise(way))]
    return bisect_left(reached, reached[-1] / 2)


def on_piece(point: Point, start: Point, end: Point) -> bool:
    return all(min(start[k], end[k]) - 1e-6 <= point[k] <= max(start[k], end[k]) + 1e-6 for k in (0, 1))


def toward(a: Point, b: Point, share: float) -> Point:
    return a[0] + share * (b[0] - a[0]), a[1] + share * (b[1] - a[1])


def middle_of(points: Sequence[Point]) -> Point:
    """The point of a straight or curved arrow at which Excalidraw draws the label."""
    if len(points) % 2:
        return points[len(points) // 2]
    first, second = points[len(points) // 2 - 1 : len(points) // 2 + 1]
    return (first[0] + second[0]) / 2, (first[1] + second[1]) / 2


def along_curve(points: Sequence[Point]) -> list[Point]:
    """Points on the smooth curve through all points (Catmull-Rom, as roughjs draws it)."""
    way: list[Point] = []
    padded = [points[0], *points, points[-1]]
    for k in range(1, len(padded) - 2):
        before, start, end, after = padded[k - 1 : k + 3]
        for step in range(12):
            t = step / 12
            way.append(
                tuple(  # type: ignore[arg-type]
                    (2 * start[n] + (end[n] - before[n]) * t
                     + (2 * before[n] - 5 * start[n] + 4 * end[n] - after[n]) * t * t
                     + (3 * start[n] - before[n] - 3 * end[n] + after[n]) * t * t * t) / 2
                    for n in (0, 1)
                )
            )  # fmt: skip
    return [*way, points[-1]]


def note_places(spec: Spec, sizes: Sizes, drawn: Placed) -> dict[str, Box]:
    """A place for each note: the given one, beside its node, or under the map."""
    places = {
        note.id: Box(*note.at, *sizes.notes[note.id]) for note in spec.notes if note.at is not None
    } | dict(drawn.notes)
    labels = [route.label for route in drawn.routes.values() if route.label]
    full = [*drawn.nodes.values(), *labels, *group_titles(sizes, drawn.groups)]
    for note in spec.notes:
        if note.near is None or note.id in places:
            continue
        node, size = drawn.nodes[note.near], sizes.notes[note.id]

        def fits(box: Box) -> bool:
            wide = grown(box, LABEL_GAP - 2)
            return not (
                any(touch(wide, other) for other in (*full, *places.values()))
                or any(crosses(route.points, wide) for route in drawn.routes.values())
                or any(touch(wide, other) and not contains(other, wide) for other in drawn.groups.values())
            )

        places[note.id] = nearest_place(
            Box(node.center[0] - size[0] / 2, node.bottom + LABEL_GAP, *size), fits
        )
    extent = extent_of(dataclasses.replace(drawn, notes=places))
    x, y = extent.x, extent.bottom + NODE_GAP
    for note in spec.notes:
        if note.id not in places:
            places[note.id] = Box(x, y, *sizes.notes[note.id])
            y += sizes.notes[note.id][1] + LABEL_GAP
    return {note.id: places[note.id] for note in spec.notes}


def contains(outer: Box, inner: Box) -> bool:
    """Whether all of one box lies in another."""
    return (
        outer.x <= inner.x
        and outer.y <= inner.y
        and inner.right <= outer.right
        and inner.bottom <= outer.bottom
    )


def extent_of(drawn: Placed) -> Box:
    """The box around a whole drawing."""
    boxes = [*drawn.nodes.values(), *drawn.groups.values(), *drawn.notes.values()]
    boxes += [Box(x, y, 0, 0) for route in drawn.routes.values() for x, y in route.points]
    boxes += [route.label for route in drawn.routes.values() if route.label]
    return around_boxes(boxes) if boxes else Box(0, 0, 0, 0)


# --- other engines, where they are installed ---

# What ELK is to know, from its own documentation: https://eclipse.dev/elk/reference/options.html
ELK_OPTIONS = {
    "elk.algorithm": "layered",
    "elk.hierarchyHandling": "INCLUDE_CHILDREN",
    "elk.edgeRouting": "ORTHOGONAL",
    "elk.json.edgeCoords": "ROOT",
    "elk.json.shapeCoords": "ROOT",
    "elk.spacing.nodeNode": str(NODE_GAP),
    "elk.spacing.edgeNode": str(LINE_GAP),
    "elk.layered.spacing.nodeNodeBetweenLayers": str(LAYER_GAP),
    "elk.layered.considerModelOrder.strategy": "NODES_AND_EDGES",
}

ELK_PROGRAM = """
const ELK = require("elkjs");
const graph = JSON.parse(require("fs").readFileSync(0, "utf8"));
new ELK().layout(graph).then((done) => process.stdout.write(JSON.stringify(done)));
"""


def elk(spec: Spec, sizes: Sizes) -> Placed:
    """The places that ELK finds, by Node and its package elkjs (in this folder, or on NODE_PATH)."""
    drawn = json.loads(run_engine("elk", ["node", "-e", ELK_PROGRAM], json.dumps(elk_graph(spec, sizes))))
    nodes: dict[str, Box] = {}
    groups: dict[str, Box] = {}
    routes: dict[str, Route] = {}
    ids = {f"e{i}": edge.id for i, edge in enumerate(spec.edges)}

    def read(part: dict[str, Any]) -> None:
        for child in part.get("children", ()):
            kind, key = child["id"][0], child["id"][1:]
            (groups if kind == "g" else nodes)[key] = Box(
                child["x"], child["y"], child["width"], child["height"]
            )
            read(child)
        for edge in part.get("edges", ()):
            section = edge["sections"][0]
            points = [section["startPoint"], *section.get("bendPoints", ()), section["endPoint"]]
            label = next(iter(edge.get("labels", ())), None)
            routes[ids[edge["id"]]] = Route(
                "elbow",
                without_needless_points([(point["x"], point["y"]) for point in points]),
                Box(label["x"], label["y"], label["width"], label["height"]) if label else None,
            )

    read(drawn)
    return joined(spec, [Placed(nodes, groups, routes, {})])


def elk_graph(spec: Spec, sizes: Sizes) -> dict[str, Any]:
    """The spec as ELK's JSON; ids of nodes begin with n, of groups with g, and edges are numbered."""

    def children(group: str | None) -> list[dict[str, Any]]:
        inside: list[dict[str, Any]] = [
            {"id": f"n{node.id}", "width": sizes.nodes[node.id][0], "height": sizes.nodes[node.id][1]}
            for node in spec.nodes
            if node.group == group
        ]
        for child in spec.groups:
            if child.group == group:
                width, height = sizes.group_labels.get(child.id, (0.0, 0.0))
                head = GROUP_PAD + (even(height + LABEL_GAP) if height else 0)
                padding = f"[top={head},left={GROUP_PAD},bottom={GROUP_PAD},right={GROUP_PAD}]"
                least = f"({width + 2 * LABEL_GAP},{head + GROUP_PAD})"
                options = {
                    **{key: value for key, value in ELK_OPTIONS.items() if "spacing" in key},
                    "elk.padding": padding,
                    "elk.nodeSize.constraints": "MINIMUM_SIZE",
                    "elk.nodeSize.minimum": least,
                }
                inside.append(
                    {"id": f"g{child.id}", "layoutOptions": options, "children": children(child.id)}
                )
        return inside

    edges = []
    for i, edge in enumerate(spec.edges):
        labels = []
        if edge.id in sizes.edge_labels:
            width, height = sizes.edge_labels[edge.id]
            inline = {"elk.edgeLabels.inline": "true"}
            labels = [{"text": edge.label, "width": width, "height": height, "layoutOptions": inline}]
        ends = {"sources": [f"n{edge.source}"], "targets": [f"n{edge.target}"]}
        edges.append({"id": f"e{i}", **ends, "labels": labels})
    options = {**ELK_OPTIONS, "elk.direction": spec.direction.upper()}
    return {"id": "map", "layoutOptions": options, "children": children(None), "edges": edges}


def dot(spec: Spec, sizes: Sizes) -> Placed:
    """The places that graphviz' dot finds for the nodes; the arrows go the way of the own engine.

    dot puts labels beside lines, and Excalidraw puts them on the lines.
    """
    nodes = dot_nodes(json.loads(run_engine("dot", ["dot", "-Tjson"], dot_source(spec, sizes))), spec, sizes)
    return drawn_around(spec, sizes, nodes)


# dot measures sizes in inches, and places in points of which 72 are an inch.
POINTS_PER_INCH = 72


def dot_source(spec: Spec, sizes: Sizes) -> str:
    """The spec in dot's language; nodes are n0, n1 …, groups are clusters, and a pixel is a point."""
    numbers = {node.id: f"n{i}" for i, node in enumerate(spec.nodes)}
    lines = [
        "digraph {",
        f"rankdir={'TB' if spec.direction == 'down' else 'LR'} splines=polyline",
        f"nodesep={NODE_GAP / POINTS_PER_INCH:.4f} ranksep={LAYER_GAP / POINTS_PER_INCH:.4f}",
        'node [shape=box fixedsize=true label=""]',
    ]

    def label(size: Size | None) -> str:
        if size is None:
            return '""'
        room = f'width="{math.ceil(size[0])}" height="{math.ceil(size[1])}"'
        return f'<<table border="0" fixedsize="true" {room}><tr><td></td></tr></table>>'

    def add(group: str | None) -> None:
        for node in spec.nodes:
            if node.group == group:
                width, height = (side / POINTS_PER_INCH for side in sizes.nodes[node.id])
                lines.append(f"{numbers[node.id]} [width={width:.4f} height={height:.4f}]")
        for i, child in enumerate(spec.groups):
            if child.group == group:
                lines.append(f"subgraph cluster_{i} {{ margin={GROUP_PAD} labeljust=l")
                lines.append(f"label={label(sizes.group_labels.get(child.id))}")
                add(child.id)
                lines.append("}")

    add(None)
    for i, edge in enumerate(spec.edges):
        text = f" label={label(sizes.edge_labels[edge.id])}" if edge.id in sizes.edge_labels else ""
        lines.append(f"{numbers[edge.source]} -> {numbers[edge.target]} [id=e{i}{text}]")
    return "\n".join([*lines, "}"])


def dot_nodes(drawn: Mapping[str, Any], spec: Spec, sizes: Sizes) -> dict[str, Box]:
    """The nodes of dot's JSON, whose y grows upwards from the bottom of the drawing."""
    top = float(drawn["bb"].split(",")[3])
    centers = {}
    for found in drawn["objects"]:
        if "pos" in found:
            x, y = map(float, found["pos"].split(","))
            centers[found["name"]] = x, top - y
    nodes = {}
    for i, node in enumerate(spec.nodes):
        nodes[node.id] = Box.around(centers[f"n{i}"], sizes.nodes[node.id])
    return nodes


def run_engine(name: str, command: Sequence[str], given: str) -> str:
    """What the program of an engine prints."""
    try:
        done = subprocess.run(command, input=given, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        raise DiagramError(
            f"layout engine {name}: no program {command[0]!r} here; leave --engine out"
        ) from None
    if done.returncode:
        lines = [line for line in done.stderr.splitlines() if "rror" in line] or ["it failed without a word"]
        raise DiagramError(f"layout engine {name}: {lines[0].strip()}")
    return done.stdout


ENGINES: Mapping[str, Callable[[Spec, Sizes], Placed]] = {"own": layered, "elk": elk, "dot": dot}


# ----------------------------------------------------------------------------------------------------
# Mermaid: a flowchart as a spec
# ----------------------------------------------------------------------------------------------------

# The subset of https://mermaid.js.org/syntax/flowchart.html that is read:
#   flowchart or graph with TB, TD, BT, LR or RL (BT is drawn downwards and RL to the right), a title in front
#   matter, comments, nodes of every shape in brackets or by name (`A@{ shape: cyl, label: "B" }`), subgraphs
#   in subgraphs, every kind of link with or without text, chains, `&`, and click with an address.
# What only says how things look (classDef, class, style, linkStyle, direction in a subgraph, :::name) is
# passed over. Links without a head become arrows, and heads that are crosses or circles ordinary ones.

MERMAID_SHAPES: Sequence[tuple[str, str, Shape]] = (
    ("(((", ")))", "ellipse"),
    ("((", "))", "ellipse"),
    ("([", "])", "ellipse"),
    ("[[", "]]", "rectangle"),
    ("[(", ")]", "ellipse"),
    ("{{", "}}", "diamond"),
    ("[/", "/]", "rectangle"),
    ("[/", "\\]", "rectangle"),
    ("[\\", "\\]", "rectangle"),
    ("[\\", "/]", "rectangle"),
    ("(", ")", "rectangle"),
    ("[", "]", "rectangle"),
    ("{", "}", "diamond"),
    (">", "]", "rectangle"),
)
# Shapes by name; every other one is a rectangle.
MERMAID_SHAPE_NAMES: Mapping[str, Shape] = {
    **dict.fromkeys(
        "circle circ dbl-circ double-circle sm-circ fr-circ stadium pill terminal".split(), "ellipse"
    ),
    **dict.fromkeys("cyl db database cylinder h-cyl das lin-cyl disk".split(), "ellipse"),
    **dict.fromkeys("diam decision diamond question hex hexagon prepare".split(), "diamond"),
    "text": "text",
}
MERMAID_FIELDS = re.compile(r"@\{((?:\"[^\"]*\"|[^}\"])*)\}")
MERMAID_FIELD = re.compile(r"(\w+)\s*:\s*(\"[^\"]*\"|[^,\s]+)")
MERMAID_ID = re.compile(r"[^\s\[\](){}<>|&;:\"'~=@-]+(?:-(?![-.=~>|])[^\s\[\](){}<>|&;:\"'~=@-]+)*")
MERMAID_LINK = re.compile(
    r"(?P<tail>[<xo]?)(?P<line>-{3,}|-{2}(?=[>xo])|={3,}|={2}(?=[>xo])|-\.+-|~{3,})(?P<head>[>xo]?)"
    r"(?:\s*\|(?P<text>[^|]*)\|)?"
)
# A text between the halves of a link: `-- text -->`.
MERMAID_TEXT_LINK = re.compile(
    r"(?P<tail>[<xo]?)(?P<line>--|==|-\.)\s*"
    r"(?P<text>(?:\"[^\"]*\"|.)+?)\s*(?:-{2,}|={2,}|\.+-)(?P<head>[>xo]?)"
)
MERMAID_IGNORED = re.compile(r"(classDef|class|style|linkStyle|direction|accTitle|accDescr)\b")


def spec_of_mermaid(text: str) -> dict[str, Any]:
    """A flowchart as a spec, in the form that its JSON file has."""
    return MermaidReader().read(text)


class MermaidReader:
    """What was read so far of one flowchart."""

    def __init__(self) -> None:
        self.spec: dict[str, Any] = {"direction": "down", "nodes": [], "groups": [], "edges": []}
        self.nodes: dict[str, dict[str, Any]] = {}
        self.open: list[str] = []
        self.place = ""

    def read(self, text: str) -> dict[str, Any]:
        lines = text.splitlines()
        begin = self.read_front_matter(lines)
        began = False
        for i, line in enumerate(lines[begin:], begin + 1):
            for statement in mermaid_statements(line):
                self.place = f"line {i}: {statement.strip()!r}"
                if began:
                    self.read_statement(statement.strip())
                else:
                    self.read_header(statement.strip())
                    began = True
        if not began:
            raise DiagramError("no flowchart: the first line of one is, for instance, `flowchart LR`")
        if self.open:
            raise DiagramError(f"subgraph {self.open[-1]!r} has no `end`")
        groups = {group["id"] for group in self.spec["groups"]}
        for edge in self.spec["edges"]:
            for end in (edge["from"], edge["to"]):
                if end in groups:
                    raise DiagramError(f"a link to subgraph {end!r}: arrows join nodes; name one in it")
        return {key: value for key, value in self.spec.items() if value}

    def read_front_matter(self, lines: Sequence[str]) -> int:
        """Take the title, and return how many lines the front matter has."""
        if not lines or lines[0].strip() != "---":
            return 0
        for i, line in enumerate(lines[1:], 2):
            if line.strip() == "---":
                return i
            if line.startswith("title:"):
                self.spec["title"] = mermaid_label(line.removeprefix("title:"))
        raise DiagramError("the front matter has no second `---`")

    def read_header(self, statement: str) -> None:
        found = re.fullmatch(r"(?:flowchart(?:-elk)?|graph)(?:\s+(TB|TD|BT|LR|RL))?", statement)
        if not found:
            raise DiagramError(f"{self.place}: only flowcharts are read (`flowchart LR` or `graph TD`)")
        self.spec["direction"] = "right" if found[1] in ("LR", "RL") else "down"

    def read_statement(self, statement: str) -> None:
        if MERMAID_IGNORED.match(statement):
            return
        if statement == "end":
            if not self.open:
                raise DiagramError(f"{self.place}: there is no subgraph to end")
            self.open.pop()
        elif statement.split(maxsplit=1)[0] == "subgraph":
            self.read_subgraph(statement.removeprefix("subgraph").strip())
        elif statement.split(maxsplit=1)[0] == "click":
            found = re.match(r"click\s+(\S+)\s+(?:href\s+)?\"([^\"]+)\"", statement)
            if found and found[1] in self.nodes:
                self.nodes[found[1]]["link"] = found[2]
        else:
            self.read_chain(statement)

    def read_subgraph(self, rest: str) -> None:
        found = re.fullmatch(r"([^\s\[\"]+)\s*\[(.*)\]", rest)
        label = mermaid_label(found[2] if found else rest)
        key = found[1] if found else label or f"subgraph{len(self.spec['groups']) + 1}"
        group = {"id": key, "label": label}
        if self.open:
            group["group"] = self.open[-1]
        self.spec["groups"].append(group)
        self.open.append(key)

    def read_chain(self, statement: str) -> None:
        """Nodes with links between them: `A & B --> C -- text --> D`."""
        before, at = self.read_nodes(statement, 0)
        while at < len(statement):
            link = MERMAID_LINK.match(statement, at) or MERMAID_TEXT_LINK.match(statement, at)
            if not link:
                raise DiagramError(f"{self.place}: what is {statement[at:]!r}?")
            after, at = self.read_nodes(statement, link.end())
            if link["line"].startswith("~"):
                continue  # an invisible link only moves nodes
            for source in before:
                for target in after:
                    edge: dict[str, Any] = {"from": source, "to": target}
                    if link["text"]:
                        edge["label"] = mermaid_label(link["text"])
                    if link["tail"]:
                        edge["both"] = True
                    if "." in link["line"]:
                        edge["dashed"] = True
                    self.spec["edges"].append(edge)
            before = after

    def read_nodes(self, statement: str, at: int) -> tuple[list[str], int]:
        """The nodes at a place, joined by `&`, and the place after them."""
        keys: list[str] = []
        while True:
            at = after_spaces(statement, at)
            found = MERMAID_ID.match(statement, at)
            if not found:
                raise DiagramError(f"{self.place}: a node is missing at {statement[at:]!r}")
            keys.append(found[0])
            at = self.read_node(found[0], statement, found.end())
            at = after_spaces(statement, at)
            if not statement.startswith("&", at):
                return keys, at
            at += 1

    def read_node(self, key: str, statement: str, at: int) -> int:
        """Take a node with its shape and label, if they are there; return the place after it."""
        node = self.nodes.get(key)
        if node is None:
            node = self.nodes[key] = {"id": key, "label": key}
            if self.open:
                node["group"] = self.open[-1]
            self.spec["nodes"].append(node)
        elif self.open and "group" not in node:
            node["group"] = self.open[-1]
        if named := MERMAID_FIELDS.match(statement, at):
            fields = dict(MERMAID_FIELD.findall(named[1]))
            node["shape"] = MERMAID_SHAPE_NAMES.get(fields.get("shape", ""), "rectangle")
            node["label"] = mermaid_label(fields.get("label", "")) or node["label"]
            return named.end()
        for opening, closing, shape in MERMAID_SHAPES:
            if statement.startswith(opening, at):
                label, end = mermaid_text(statement, at + len(opening), closing)
                if end:
                    node["label"] = label
                    node["shape"] = shape
                    at = end
                    break
        else:
            if statement[at : at + 1] in ("[", "(", "{"):
                raise DiagramError(f"{self.place}: the bracket of {key!r} is not closed")
        style = re.compile(r":::\w+").match(statement, at)
        return style.end() if style else at


def after_spaces(statement: str, at: int) -> int:
    while at < len(statement) and statement[at].isspace():
        at += 1
    return at


def mermaid_statements(line: str) -> list[str]:
    """The statements of a line, without comments; a semicolon in quotes or in an entity ends none."""
    line = re.sub(r"^\s*%%.*", "", line)
    parts = re.findall(r"(?:\"[^\"]*\"|#\w+;|&\w+;|[^;])+", line)
    return [part for part in parts if part.strip()]


def mermaid_text(statement: str, at: int, closing: str) -> tuple[str, int]:
    """The label up to a closing bracket, and the place after that; 0 when it is not there."""
    quoted = re.compile(r"\s*\"([^\"]*)\"\s*").match(statement, at)
    if quoted and statement.startswith(closing, quoted.end()):
        return mermaid_label(quoted[1]), quoted.end() + len(closing)
    end = statement.find(closing, at)
    return (mermaid_label(statement[at:end]), end + len(closing)) if end >= 0 else ("", 0)


def mermaid_label(text: str) -> str:
    """A label as people see it: without quotes, with its line breaks and its entities."""
    text = text.strip()
    if len(text) > 1 and text[0] == text[-1] == '"':
        text = text[1:-1]
    text = text.strip("`") if text.startswith("`") else text
    text = re.sub(r"<br\s*/?>|\\n", "\n", text, flags=re.I)
    text = re.sub(r"</?(?:b|i|em|strong|u|code|small|span)(?:\s[^>]*)?>|\*\*", "", text, flags=re.I)
    text = re.sub(r"#(\d{1,7});", r"&#\1;", text)
    return html.unescape(re.sub(r"(?<!&)#([a-zA-Z]\w*);", r"&\1;", text)).strip()


# ----------------------------------------------------------------------------------------------------
# Elements: what Excalidraw draws
# ----------------------------------------------------------------------------------------------------

Element = dict[str, Any]
Document = dict[str, Any]

DIGITS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
# What Excalidraw leaves free between an arrow's end and the outline of the shape it points at.
ARROW_GAP = 5
GROUP_LABEL_AT = (14, 10)
# Excalidraw's own 32 px would look like another kind of shape beside the nodes.
GROUP_RADIUS = 16
TITLE_GAP = 32


def draw(spec: Spec, theme: Theme, placed: Placed, folder: Path) -> Document:
    """The Excalidraw file of the map; images are read from the folder."""
    files: dict[str, object] = {}
    elements: list[Element] = []
    shapes: dict[str, Element] = {}
    nest = Nest.of(spec.groups)
    insides = Insides(nest, frozenset(group.id for group in spec.groups if group.frame))
    occupied = {group for node in spec.nodes for group in nest.around(node.group)}
    for group in spec.groups:
        if group.id in occupied:
            elements += draw_group(group, placed.groups[group.id], theme, insides)
    for node in spec.nodes:
        drawn = draw_node(node, placed.nodes[node.id], theme, insides, folder)
        shapes[node.id] = drawn[0]
        elements += drawn
        if node.shape == "image":
            files[drawn[0]["fileId"]] = picture_file(drawn[0]["fileId"], read_picture(node, folder))
    for note in spec.notes:
        elements += draw_note(note, placed.notes[note.id], theme)
    nodes = {node.id: node for node in spec.nodes}
    for edge in spec.edges:
        within = nest.common(nodes[edge.source].group, nodes[edge.target].group)
        frame = placed.groups.get(insides.frame(within) or "")
        elements += draw_edge(edge, placed.routes[edge.id], shapes, theme, insides, within, frame)
    if spec.title:
        elements.append(draw_title(spec.title, elements, theme))
    elements.sort(key=lambda element: element["index"])
    list_bound_elements(elements)
    for element in elements:
        element["customData"] = fingerprint(element)
    return document(elements, files, theme.background)


def document(elements: Sequence[Element], files: Mapping[str, object], background: str) -> Document:
    return {
        "type": "excalidraw",
        "version": 2,
        "source": "build_excalidraw.py",
        "elements": list(elements),
        "appState": {
            "gridSize": 20,
            "gridStep": 5,
            "gridModeEnabled": False,
            "viewBackgroundColor": background,
            "lockedMultiSelections": {},
        },
        "files": dict(files),
    }


@dataclass(frozen=True)
class Insides:
    """What Excalidraw is told of the groups and frames that an element is in."""

    nest: Nest
    frames: frozenset[str]

    def frame(self, group: str | None) -> str | None:
        """The frame around it; a frame is never inside of anything, so there is at most one."""
        return next((id_ for id_ in self.nest.around(group) if id_ in self.frames), None)

    def fields(self, group: str | None) -> dict[str, object]:
        """groupIds (what is selected together) and frameId of an element in that group."""
        frame = self.frame(group)
        return {
            "groupIds": [element_id(f"group {id_}") for id_ in self.nest.around(group) if id_ != frame],
            "frameId": element_id(f"group {frame}") if frame is not None else None,
        }

    def key(self, layer: str, name: str, group: str | None) -> str:
        """Where the element is in the drawing order, see order_key."""
        frame = self.frame(group)
        return order_key(layer, name) if frame is None else order_key("2", f"group {frame}", layer, name)


def order_key(*parts: str) -> str:
    """A key of Excalidraw's order of elements (a fractional index) of layers and names in turn.

    Layers, the lowest first: 0 the boxes of groups (by depth, 0A, 0B…), 2 a frame with what is in it, 4
    nodes, 6 notes, 8 arrows; z the frame itself, after what is in it. A name becomes six digits of its hash,
    so that a new element changes no other's key. "a" and a digit are the whole part of such a number, the
    rest its fraction; https://github.com/rocicorp/fractional-indexing has the rules.
    """
    return "a" + "".join(part if i % 2 == 0 else hash_digits(part) for i, part in enumerate(parts))


def label_key(container_key: str) -> str:
    """The key directly after the container's: no other key begins with the container's whole key."""
    return container_key + "V"


def hash_digits(name: str) -> str:
    """Six digits by the name's hash, the last of them not 0: a fraction must not end in 0."""
    value = hash_of(name)
    digits = DIGITS[1 + value % 61]
    value //= 61
    for _ in range(5):
        digits = DIGITS[value % 62] + digits
        value //= 62
    return digits


def hash_of(name: str) -> int:
    return int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "big")


def element_id(name: str) -> str:
    """An id that says what it is of, safe in a file name, a selector and an address: node-api-3f2a91c0."""
    readable = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[:40]
    return f"{readable}-{hash_of(name) & 0xFFFFFFFF:08x}"


def element(name: str, type_: str, box: Box, key: str, **fields: object) -> Element:
    """Every field that Excalidraw keeps for an element; the more special ones come as keywords."""
    return {
        "id": element_id(name),
        "type": type_,
        "x": quarter(box.x),
        "y": quarter(box.y),
        "width": quarter(box.width),
        "height": quarter(box.height),
        "angle": 0,
        "strokeColor": "#1e1e1e",
        "backgroundColor": "transparent",
        "fillStyle": "solid",
        "strokeWidth": 2,
        "strokeStyle": "solid",
        "roughness": 0,
        "opacity": 100,
        "groupIds": [],
        "frameId": None,
        "index": key,
        "roundness": None,
        "seed": hash_of(f"seed {name}") & 0x7FFFFFFF,
        "version": 1,
        "versionNonce": hash_of(f"nonce {name}") & 0x7FFFFFFF,
        "isDeleted": False,
        "boundElements": [],
        "updated": 1,
        "link": None,
        "locked": False,
        "customData": {"name": name},
        **fields,
    }


def name_of(element: Element) -> str:
    """What an element was drawn as here: "node api", "label of node api", "edge api -> queue"…"""
    return str(element["customData"]["name"])


def box_of(element: Element) -> Box:
    return Box(element["x"], element["y"], element["width"], element["height"])


def way_of(arrow: Element) -> list[Point]:
    return [(arrow["x"] + x, arrow["y"] + y) for x, y, *_ in arrow["points"]]


def quarter(value: float) -> float:
    """The nearest quarter of a px: sums of them are exact, and short in the file."""
    rounded = round(value * 4) / 4
    return int(rounded) if rounded == int(rounded) else rounded


def plain_numbers(value: Any) -> Any:
    """The JSON value with 1 in place of 1.0, as JavaScript writes numbers."""
    if isinstance(value, dict):
        return {key: plain_numbers(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain_numbers(item) for item in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def text_element(name: str, text: Text, words: str, at: Point, key: str, **fields: object) -> Element:
    """The text; where lines were broken, Excalidraw is told to go on breaking them at this width."""
    lines = "\n".join(text.lines)
    return element(
        name,
        "text",
        Box(at[0], at[1], text.width, text.height),
        key,
        **{
            "text": lines,
            "originalText": words,
            "fontSize": text.size,
            "fontFamily": text.font,
            "lineHeight": LINE_HEIGHTS[text.font],
            "textAlign": "left",
            "verticalAlign": "top",
            "containerId": None,
            "autoResize": lines == words or "containerId" in fields,
            **fields,
        },
    )


def draw_group(group: Group, box: Box, theme: Theme, insides: Insides) -> list[Element]:
    name = f"group {group.id}"
    color = color_of(group.color, theme.muted, theme, f"group {group.id!r}")
    if group.frame:
        key = order_key("2", name, "z")
        frame = element(name, "frame", box, key, strokeColor="#bbb")
        return [{**frame, "name": group.label or None}]
    depth = DIGITS[10 + len(insides.nest.around(group.id))]
    fields = insides.fields(group.id)
    outline = element(
        name,
        "rectangle",
        box,
        insides.key(f"0{depth}", name, group.id),
        strokeColor=color,
        backgroundColor=theme.group_fill,
        strokeWidth=1,
        strokeStyle="dashed" if theme.group_fill == "transparent" else "solid",
        roughness=theme.roughness,
        roundness={"type": 3, "value": GROUP_RADIUS},
        **fields,
    )
    if not group.label:
        return [outline]
    text = group_label(group, theme)
    at = box.x + GROUP_LABEL_AT[0], box.y + GROUP_LABEL_AT[1]
    key = label_key(str(outline["index"]))
    return [
        outline,
        text_element(f"label of {name}", text, group.label, at, key, strokeColor=color, **fields),
    ]


def draw_node(node: Node, box: Box, theme: Theme, insides: Insides, folder: Path) -> list[Element]:
    """The node's shape and, after it, its label."""
    name = f"node {node.id}"
    key = insides.key("4", name, node.group)
    fields = {**insides.fields(node.group), "link": node.link}
    color = color_of(node.color, theme.ink, theme, f"node {node.id!r}")
    font = FONTS[theme.font]
    if node.shape == "text":
        text = wrap(node.label, font, theme.font_size, box.width)
        return [text_element(name, text, node.label, (box.x, box.y), key, strokeColor=color, **fields)]
    if node.shape == "image":
        return draw_picture(node, box, theme, key, fields, folder)
    shape = element(
        name,
        node.shape,
        box,
        key,
        strokeColor=color,
        backgroundColor=theme.fill,
        strokeWidth=theme.stroke_width,
        roughness=theme.roughness,
        roundness={"rectangle": {"type": 3}, "diamond": {"type": 2}}.get(node.shape),
        **fields,
    )
    text = wrap(node.label, font, theme.font_size, label_room(node.shape, box.width))
    label = bound_label(shape, text, node.label, theme.ink)
    return [shape, label]


def bound_label(
    container: Element, text: Text, words: str, color: str, center: Point | None = None
) -> Element:
    """The text in the middle of its container, or around the point where an arrow carries it."""
    x, y = center or box_of(container).center
    return text_element(
        f"label of {name_of(container)}",
        text,
        words,
        (x - text.width / 2, y - text.height / 2),
        label_key(container["index"]),
        strokeColor=color,
        textAlign="center",
        verticalAlign="middle",
        containerId=container["id"],
        groupIds=container["groupIds"],
        frameId=container["frameId"],
    )


def draw_picture(
    node: Node, box: Box, theme: Theme, key: str, fields: Mapping[str, object], folder: Path
) -> list[Element]:
    """The image, and its label under it: Excalidraw binds no text to an image, so the two are a group."""
    name = f"node {node.id}"
    width, height = picture_size(node, folder)
    together = {
        **fields,
        "groupIds": [element_id(f"picture {node.id}"), *cast("list[str]", fields["groupIds"])],
    }
    image = element(
        name,
        "image",
        Box(box.center[0] - width / 2, box.y, width, height),
        key,
        strokeColor="transparent",
        status="saved",
        # The way Excalidraw names files, by their content.
        fileId=hashlib.sha1(read_picture(node, folder), usedforsecurity=False).hexdigest(),
        scale=[1, 1],
        crop=None,
        **(together if node.label else fields),
    )
    if not node.label:
        return [image]
    text = image_label(node, theme)
    at = box.center[0] - text.width / 2, box.y + height + BOUND_TEXT_PADDING
    color = color_of(node.color, theme.ink, theme, f"node {node.id!r}")
    label = text_element(
        f"label of {name}",
        text,
        node.label,
        at,
        label_key(key),
        strokeColor=color,
        textAlign="center",
        **together,
    )
    return [image, label]


def picture_file(file_id: str, content: bytes) -> dict[str, object]:
    mime = mime_type(content)
    data_url = f"data:{mime};base64,{base64.b64encode(content).decode()}"
    return {"mimeType": mime, "id": file_id, "dataURL": data_url, "created": 1}


def draw_note(note: Note, box: Box, theme: Theme) -> list[Element]:
    name = f"note {note.id}"
    text = note_text(note, theme)
    return [
        text_element(name, text, note.text, (box.x, box.y), order_key("6", name), strokeColor=theme.muted)
    ]


def draw_title(title: str, elements: Sequence[Element], theme: Theme) -> Element:
    """The title over the top left corner of everything else."""
    text = wrap(title, FONTS[theme.font], theme.title_size, UNBOUNDED)
    left = min((element["x"] for element in elements), default=0)
    top = min((element["y"] + lowest(element) for element in elements), default=0)
    at = left, top - TITLE_GAP - text.height
    return text_element("title", text, title, at, order_key("6", "title"), strokeColor=theme.ink)


def lowest(element: Element) -> float:
    """How far an element's drawing begins above its y: an arrow may go up from its first point."""
    return min((y for _, y in element.get("points", [])), default=0)


def draw_edge(
    edge: Edge,
    route: Route,
    shapes: Mapping[str, Element],
    theme: Theme,
    insides: Insides,
    within: str | None,
    frame: Box | None,
) -> list[Element]:
    """The arrow and, after it, its label; `within` is the group of both ends, `frame` that of their frame."""
    name = f"edge {edge.id}"
    source, target = shapes[edge.source], shapes[edge.target]
    outline_points = clip_ends(route.points, source, target)
    points = pull_back(outline_points, ARROW_GAP + theme.line_width / 2)
    if route.label is not None:
        points = with_middle(points, route.label.center)
    start = quarter(points[0][0]), quarter(points[0][1])
    relative = distinct([(quarter(x - start[0]), quarter(y - start[1])) for x, y in points])
    # A frame cuts off what sticks out of it, so an arrow that does is not its member.
    if frame is not None and not all(holds(frame, point) for point in points):
        within = None
    fields = insides.fields(within)
    color = color_of(edge.color, theme.line, theme, f"edge {edge.id!r}")
    elbowed = route.kind == "elbow"
    # An elbow arrow is drawn anew from the points of its bindings; the others aim at them, up to the outline.
    bound = points if elbowed else outline_points
    arrow = element(
        name,
        "arrow",
        Box(start[0], start[1], extent(x for x, _ in relative), extent(y for _, y in relative)),
        insides.key("8", name, within),
        strokeColor=color,
        strokeWidth=theme.line_width,
        strokeStyle="dashed" if edge.dashed else "solid",
        roughness=theme.roughness,
        roundness={"type": 2} if route.kind == "curved" else None,
        points=[list(point) for point in relative],
        # Excalidraw 0.18 adds this field to every arrow that has it not.
        lastCommittedPoint=None,
        startBinding=binding(source, bound[0]),
        endBinding=binding(target, bound[-1]),
        startArrowhead="arrow" if edge.both else None,
        endArrowhead="arrow",
        elbowed=elbowed,
        **(dict.fromkeys(ELBOW_FIELDS) if elbowed else {}),
        **fields,
    )
    if not edge.label:
        return [arrow]
    text = arrow_label(edge, theme)
    center = route.label.center if route.label is not None else middle_of(points)
    label = bound_label(arrow, text, edge.label, theme.muted if edge.color is None else color, center)
    return [arrow, label]


def binding(shape: Element, point: Point) -> dict[str, object]:
    """What holds an arrow's end to a shape: the point as a share of the shape's box."""
    ratios = [
        (point[0] - shape["x"]) / shape["width"],
        (point[1] - shape["y"]) / shape["height"],
    ]
    # Excalidraw moves ends off the exact middle, where its directions would be ambiguous.
    fixed_point = [0.5001 if abs(ratio - 0.5) < 1e-3 else round(ratio, 4) for ratio in ratios]
    # Excalidraw 0.18 goes by focus (0: at the middle) and gap; its next version drops them, and goes by mode.
    older = {"focus": 0, "gap": ARROW_GAP}
    return {"elementId": shape["id"], "fixedPoint": fixed_point, "mode": "orbit", **older}


def clip_ends(points: Sequence[Point], source: Element, target: Element) -> list[Point]:
    """The points with both ends on the outlines of the two shapes instead of on their boxes."""
    first = on_outline(points[1], points[0], source)
    last = on_outline(points[-2], points[-1], target)
    return [first, *points[1:-1], last]


def on_outline(before: Point, end: Point, shape: Element) -> Point:
    """Where the ray from `before` through `end` meets the shape; `end` itself where it misses it."""
    half_width, half_height = shape["width"] / 2, shape["height"] / 2
    center = shape["x"] + half_width, shape["y"] + half_height
    # In a space where the shape is a circle, a square on its corner or a square, with radius 1 around 0.
    x, y = (before[0] - center[0]) / half_width, (before[1] - center[1]) / half_height
    dx, dy = (end[0] - before[0]) / half_width, (end[1] - before[1]) / half_height
    if shape["type"] == "ellipse":
        a, b, c = dx * dx + dy * dy, 2 * (x * dx + y * dy), x * x + y * y - 1
        root = b * b - 4 * a * c
        hits = [(-b - math.sqrt(root)) / (2 * a)] if root >= 0 and a > 0 else []
    elif shape["type"] == "diamond":
        hits = hits_on_sides(x, y, dx, dy, ((1, 1), (1, -1), (-1, 1), (-1, -1)))
    else:
        hits = hits_on_sides(x, y, dx, dy, ((1, 0), (-1, 0), (0, 1), (0, -1)))
    nearest_hit = min((t for t in hits if t > 0), default=None)
    if nearest_hit is None:
        return end
    return toward(before, end, nearest_hit)


def hits_on_sides(x: float, y: float, dx: float, dy: float, sides: Sequence[tuple[int, int]]) -> list[float]:
    """Where the ray meets a side (normal · point = 1) at a point that is not beyond another side."""
    hits = []
    for nx, ny in sides:
        speed = nx * dx + ny * dy
        if speed < 0:
            t = (1 - nx * x - ny * y) / speed
            px, py = x + t * dx, y + t * dy
            if all(mx * px + my * py <= 1 + 1e-6 for mx, my in sides):
                hits.append(t)
    return hits


def pull_back(points: Sequence[Point], gap: float) -> list[Point]:
    """The points with both ends short of the shapes by the gap, where their segments are long enough."""
    first, last = shortened(points[1], points[0], gap), shortened(points[-2], points[-1], gap)
    if len(points) == 2 and math.dist(*points) < 4 * gap:
        return list(points)
    return [first, *points[1:-1], last]


def shortened(before: Point, end: Point, gap: float) -> Point:
    length = math.dist(before, end)
    share = max(0.0, 1 - gap / length) if length > 2 * gap else 1.0
    return toward(before, end, share)


def with_middle(points: Sequence[Point], center: Point) -> list[Point]:
    """The same way with points added so that the middle one is where the label is.

    Excalidraw draws an arrow's label at the middle point, or on the middle segment of an even number of
    points.
    """
    if math.dist(middle_of(points), center) < 1:
        return list(points)
    at = min(range(len(points) - 1), key=lambda i: math.dist(center, foot(center, points[i], points[i + 1])))
    middle = foot(center, points[at], points[at + 1])
    left, right = list(points[: at + 1]), list(points[at + 1 :])
    n_missing = len(right) - len(left)
    left += beside(middle, left[-1], n_missing)[::-1]
    right = beside(middle, right[0], -n_missing) + right
    return [*left, middle, *right]


def foot(point: Point, a: Point, b: Point) -> Point:
    """The point of the segment from a to b that is nearest."""
    length_squared = (b[0] - a[0]) ** 2 + (b[1] - a[1]) ** 2
    if length_squared == 0:
        return a
    share = ((point[0] - a[0]) * (b[0] - a[0]) + (point[1] - a[1]) * (b[1] - a[1])) / length_squared
    return toward(a, b, min(1.0, max(0.0, share)))


def beside(middle: Point, end: Point, n: int) -> list[Point]:
    """n points close to the middle on the way to the end; none for an n below 1.

    Not evenly: a head is drawn small on a short last segment.
    """
    share = min(4 / (math.dist(middle, end) or 1), 1 / (n + 1)) if n > 0 else 0
    return [
        (middle[0] + (end[0] - middle[0]) * share * i, middle[1] + (end[1] - middle[1]) * share * i)
        for i in range(1, n + 1)
    ]


def distinct(points: Sequence[Point]) -> list[Point]:
    """The points without repetitions, but never fewer than two."""
    kept = [point for i, point in enumerate(points) if i == 0 or point != points[i - 1]]
    return kept if len(kept) > 1 else [kept[0], (kept[0][0] + 1, kept[0][1])]


def extent(values: Iterable[float]) -> float:
    known = list(values)
    return max(known) - min(known)


def holds(box: Box, point: Point) -> bool:
    return box.x <= point[0] <= box.right and box.y <= point[1] <= box.bottom


def list_bound_elements(elements: Sequence[Element]) -> None:
    """Fills boundElements: every shape lists its label and the arrows bound to it, each arrow its label.

    Excalidraw does not repair a missing arrow here: it would stay where it is when its shape is dragged.
    """
    by_id = {element["id"]: element for element in elements}
    for element in elements:
        element["boundElements"] = []
    for element in elements:
        containers = [element.get("containerId")] if element["type"] == "text" else bound_ids(element)
        for container in dict.fromkeys(id_ for id_ in containers if id_ in by_id):
            by_id[container]["boundElements"].append({"type": element["type"], "id": element["id"]})


def bound_ids(element: Element) -> list[str]:
    """The ids of the shapes that an arrow is bound to."""
    bindings = [element.get("startBinding"), element.get("endBinding")]
    return [binding["elementId"] for binding in bindings if binding]


# ----------------------------------------------------------------------------------------------------
# Update: what a person changed in the file stays
# ----------------------------------------------------------------------------------------------------

# Every element drawn here carries in customData what it was drawn as, and a hash of each thing that a
# person may change; what no longer has that hash was changed by a person since.
STYLE = (
    "strokeColor backgroundColor fillStyle strokeWidth strokeStyle roughness opacity roundness fontSize "
    "fontFamily textAlign verticalAlign startArrowhead endArrowhead link locked"
).split()
ASPECTS: Mapping[str, Sequence[str]] = {
    "style": STYLE,
    "place": ("x", "y", "points"),
    "size": ("width", "height"),
    "words": ("originalText", "name"),
}
ELBOW_FIELDS = ("fixedSegments", "startIsSpecial", "endIsSpecial")
ARROW_PLACE = (
    *("x", "y", "width", "height", "roundness", "points", "startBinding", "endBinding", "elbowed"),
    *ELBOW_FIELDS,
)


def fingerprint(element: Element) -> dict[str, str]:
    """The element's name, and the hash of each aspect of it."""
    hashes = {aspect: aspect_hash(element, aspect) for aspect in ASPECTS}
    return {"name": name_of(element), **hashes}


def aspect_hash(element: Element, aspect: str) -> str:
    values = [element.get(key) for key in ASPECTS[aspect]]
    return short_hash(values)


def short_hash(values: Sequence[object]) -> str:
    return f"{hash_of(json.dumps(plain_numbers(values))) & 0xFFFFFF:06x}"


def is_edited(element: Element, aspect: str) -> bool:
    return bool(element["customData"].get(aspect) != aspect_hash(element, aspect))


def given(thing: Node | Edge) -> str:
    """A hash of what the spec alone decides: when that changes, it goes before what is in the file."""
    values = [thing.shape, thing.at, thing.size] if isinstance(thing, Node) else [thing.kind]
    return short_hash(values)


def note_given(drawing: Document, spec: Spec) -> None:
    """Writes down in each node and arrow what the spec, without a person's edits, gives for it."""
    hashes = {f"node {node.id}": given(node) for node in spec.nodes}
    hashes |= {f"edge {edge.id}": given(edge) for edge in spec.edges}
    for element in drawing["elements"]:
        name = name_of(element)
        if name in hashes:
            element["customData"]["given"] = hashes[name]


def drawn_elements(document: Document) -> dict[str, Element]:
    """The elements of a file that were drawn by this program, by name; a person's copy of one is not."""
    drawn = {}
    for element in document["elements"]:
        name = (element.get("customData") or {}).get("name")
        if isinstance(name, str) and element_id(name) == element["id"] and not element["isDeleted"]:
            drawn[name] = element
    return drawn


def with_edits(spec: Spec, file: Document) -> Spec:
    """The spec with the places, sizes and words that a person gave to things in the file.

    What the person left alone goes by the spec; without a place in the spec it stays where it was. Words
    that both the person and the spec changed are the spec's.
    """
    drawn = drawn_elements(file)
    return dataclasses.replace(
        spec,
        title=edited_words(drawn.get("title"), spec.title),
        nodes=[node_with_edits(node, drawn) for node in spec.nodes],
        groups=[
            dataclasses.replace(group, label=edited_words(drawn.get(words_name(group)), group.label))
            for group in spec.groups
        ],
        edges=[edge_with_edits(edge, drawn) for edge in spec.edges],
        notes=[
            dataclasses.replace(
                note,
                text=edited_words(drawn.get(words_name(note)), note.text),
                at=edited_place(drawn.get(words_name(note)), note.at),
            )
            for note in spec.notes
        ],
    )


def words_name(thing: Node | Group | Edge | Note) -> str:
    """The name of the element with the words of a thing: its label, or itself where it is all words."""
    if isinstance(thing, Node):
        return f"node {thing.id}" if thing.shape == "text" else f"label of node {thing.id}"
    if isinstance(thing, Group):
        return f"group {thing.id}" if thing.frame else f"label of group {thing.id}"
    return f"note {thing.id}" if isinstance(thing, Note) else f"label of edge {thing.id}"


def node_with_edits(node: Node, drawn: Mapping[str, Element]) -> Node:
    shape = drawn.get(f"node {node.id}")
    words = drawn.get(words_name(node))
    label = node.label
    if shape is None or shape["type"] != node.shape:
        return dataclasses.replace(node, label=edited_words(words, label))
    has_same_words = words is None or not has_new_words(words, label)
    is_as_before = has_same_words and shape["customData"].get("given") == given(node)
    size = (shape["width"], shape["height"]) if is_edited(shape, "size") or is_as_before else node.size
    at = edited_place(shape, node.at)
    if at is not None and node.shape == "image" and words is not None:
        # The node's box is that of image and label together, the wider of the two over its whole width.
        at = min(at[0], shape["x"] + shape["width"] / 2 - words["width"] / 2), at[1]
    node = dataclasses.replace(node, at=at, size=size, label=edited_words(words, label))
    if words is None or node.shape in ("text", "image") or words["fontFamily"] not in LINE_HEIGHTS:
        return node
    if is_edited(words, "style"):
        # A label that a person made larger needs more room than the theme's.
        node = dataclasses.replace(node, size=labelled_size(node, words["fontFamily"], words["fontSize"]))
    return node


def edge_with_edits(edge: Edge, drawn: Mapping[str, Element]) -> Edge:
    arrow, words = drawn.get(f"edge {edge.id}"), drawn.get(words_name(edge))
    way = Route(edge.kind, way_of(arrow), box_of(words) if words else None) if arrow else None
    return dataclasses.replace(edge, label=edited_words(words, edge.label), way=way)


def edited_place(element: Element | None, given: Point | None) -> Point | None:
    if element is None or (given is not None and not is_edited(element, "place")):
        return given
    return element["x"], element["y"]


def edited_words(element: Element | None, words: str) -> str:
    if element is None or not is_edited(element, "words") or has_new_words(element, words):
        return words
    return clean_text(element.get("originalText") or element.get("name") or "") or words


def has_new_words(element: Element, words: str) -> bool:
    """Whether the spec's words are others than those that the element was drawn with."""
    keys = {"originalText": None, "name": words} if element["type"] == "frame" else {"originalText": words}
    return bool(element["customData"].get("words") != aspect_hash(keys, "words"))


def overruled_words(spec: Spec, file: Document) -> list[str]:
    """A remark for each text that the spec and a person both changed."""
    labelled: list[Node | Group | Edge] = [*spec.nodes, *spec.groups, *spec.edges]
    words = {"title": spec.title}
    words |= {words_name(thing): thing.label for thing in labelled}
    words |= {words_name(note): note.text for note in spec.notes}
    return [
        f"{name}: the file's {element.get('originalText') or element.get('name')!r} is now {words[name]!r}"
        for name, element in drawn_elements(file).items()
        if name in words and is_edited(element, "words") and has_new_words(element, words[name])
    ]


def keep_edits(new: Document, file: Document) -> Document:
    """The new drawing with what a person changed in the file: colours, arrows' ways, their own elements."""
    drawn = drawn_elements(file)
    pairs = [
        (element, drawn[name_of(element)])
        for element in new["elements"]
        if drawn.get(name_of(element), {}).get("type") == element["type"]
    ]
    for element, old in pairs:
        keep_style(element, old)
    keep_group_boxes(pairs, new["elements"])
    keep_ways(pairs, new["elements"])
    keep_texts(pairs, new["elements"])
    clear_borders([e for e in new["elements"] if name_of(e) not in drawn], new["elements"])
    for element, old in pairs:
        for aspect in ASPECTS:
            # What is still as the person made it is their edit at the next update as well.
            if aspect_hash(element, aspect) == aspect_hash(old, aspect):
                element["customData"][aspect] = old["customData"][aspect]
    ours = {element["id"] for element in new["elements"]} | {element["id"] for element in drawn.values()}
    extras = [dict(e) for e in file["elements"] if e["id"] not in ours and not e["isDeleted"]]
    let_go(extras, new["elements"])
    follow_arrows(extras, new["elements"])
    elements = in_order(new["elements"], extras)
    list_bound_elements(elements)
    files = {e["fileId"]: file["files"][e["fileId"]] for e in extras if e["type"] == "image"} | new["files"]
    background = file["appState"].get("viewBackgroundColor")
    if background in {theme.background for theme in THEMES.values()} or not is_color(background):
        background = new["appState"]["viewBackgroundColor"]
    return document(elements, files, background)


def keep_style(element: Element, old: Element) -> None:
    element["angle"] = old["angle"]
    if is_edited(old, "style"):
        element.update({key: old[key] for key in STYLE if key in old and key in element})
    # From the inmost out: a group that a person made inside one of ours stays inside.
    n_inside = next((i for i, id_ in enumerate(old["groupIds"]) if is_group_of_ours(id_)), 0)
    theirs = [[id_ for id_ in ids if not is_group_of_ours(id_)]
              for ids in (old["groupIds"][:n_inside], old["groupIds"][n_inside:])]  # fmt: skip
    element["groupIds"] = [*theirs[0], *element["groupIds"], *theirs[1]]


def is_group_of_ours(group_id: str) -> bool:
    return re.fullmatch(r"(group|picture)-.*-[0-9a-f]{8}", group_id) is not None


Pairs = Sequence[tuple[Element, Element]]  # an element as it is drawn now, and as it is in the file


def keep_group_boxes(pairs: Pairs, elements: Sequence[Element]) -> None:
    """Leaves the boxes of groups as they are in the file while they are around their own members, alone."""
    nodes = [element for element in elements if name_of(element).startswith("node ")]
    # The inner ones first: the outer ones are around them.
    for element, old in reversed(pairs):
        if name_of(element).startswith("group "):
            members = [e for e in elements if e["type"] != "arrow" and is_member(e, element)]
            strangers = [node for node in nodes if not is_member(node, element)]
            box = box_of(old)
            if all(contains(box, box_of(member)) for member in members) and not any(
                touch(box, box_of(stranger)) for stranger in strangers
            ):
                element.update(x=box.x, y=box.y, width=box.width, height=box.height)


def is_member(element: Element, group: Element) -> bool:
    if element is group or name_of(element).startswith("label of group "):
        return False
    return group["id"] in element["groupIds"] or element["frameId"] == group["id"]


def keep_ways(pairs: Pairs, elements: Sequence[Element]) -> None:
    """Leaves arrows as they are in the file while their shapes are where they were.

    Those that a person bent go where the person wants; the others must not cross what is new.
    """
    old_boxes = {old["id"]: box_of(old) for _, old in pairs}
    new_boxes = {element["id"]: box_of(element) for element in elements}
    nodes = {e["id"]: box_of(e) for e in elements if name_of(e).startswith("node ")}
    for element, old in pairs:
        if element["type"] != "arrow" or bound_ids(element) != bound_ids(old):
            continue
        ends = bound_ids(old)
        way = way_of(old)
        is_there = all(id_ in old_boxes and is_alike(old_boxes[id_], new_boxes[id_]) for id_ in ends)
        if not (is_there and is_near(way[0], new_boxes[ends[0]]) and is_near(way[-1], new_boxes[ends[-1]])):
            continue
        is_clear = not any(crosses(way, box) for id_, box in nodes.items() if id_ not in ends)
        is_same_kind = element["customData"]["given"] == old["customData"].get("given")
        if is_edited(old, "place") or (is_clear and is_same_kind):
            for key in ELBOW_FIELDS:
                element.pop(key, None)
            element.update({key: old[key] for key in ARROW_PLACE if key in old})


def is_alike(one: Box, other: Box) -> bool:
    """Whether two boxes are the same, but for the rounding of what a person dragged."""
    return all(
        abs(a - b) < 0.5 for a, b in zip(dataclasses.astuple(one), dataclasses.astuple(other), strict=True)
    )


def is_near(end: Point, box: Box) -> bool:
    """Whether an arrow's end is still at its shape, or a label's height off, as under a picture."""
    x, y = max(box.x - end[0], end[0] - box.right, 0), max(box.y - end[1], end[1] - box.bottom, 0)
    return max(x, y) < 60


def keep_texts(pairs: Pairs, elements: Sequence[Element]) -> None:
    """Puts texts where they are in the file, as seen from what they belong to."""
    by_name = {name_of(element): element for element in elements}
    old_by_id = {element["id"]: old for element, old in pairs}
    for element, old in pairs:
        if element["type"] != "text":
            continue
        name = name_of(element)
        owner = by_name.get(name.removeprefix("label of ")) if name.startswith("label of ") else None
        if is_edited(old, "style"):
            refit(element, owner if element["containerId"] else None)
        if owner is None:
            others = [box_of(other) for other in elements if other is not element]
            if name == "title" and not any(touch(box_of(old), other) for other in others):
                element.update(x=old["x"], y=old["y"])
        elif owner["type"] == "arrow":
            keep_label_on_way(element, old, owner, old_by_id.get(owner["id"]))
        elif not element["containerId"] and owner["id"] in old_by_id:
            before = old_by_id[owner["id"]]
            element.update(x=owner["x"] + old["x"] - before["x"], y=owner["y"] + old["y"] - before["y"])


def clear_borders(news: Sequence[Element], elements: Sequence[Element]) -> None:
    """Moves notes that are new off the borders of groups, which may have stayed as they are in the file."""
    groups = [box_of(e) for e in elements if name_of(e).startswith("group ")]
    ways = [way_of(element) for element in elements if element["type"] == "arrow"]
    for note in news:
        if not name_of(note).startswith("note "):
            continue
        solid = [
            box_of(e)
            for e in elements
            if e is not note and e["type"] != "arrow" and not name_of(e).startswith("group ")
        ]

        def fits(box: Box, solid: Sequence[Box] = solid) -> bool:
            return is_clear_of_borders(box, groups) and not (
                any(touch(box, other) for other in solid) or any(crosses(way, box) for way in ways)
            )

        if not is_clear_of_borders(box_of(note), groups):
            place = nearest_place(box_of(note), fits)
            note.update(x=place.x, y=place.y)


def is_clear_of_borders(box: Box, groups: Sequence[Box]) -> bool:
    """Whether a box is in or beside each group, and on no border."""
    return all(contains(group, box) or not touch(group, box) for group in groups)


def keep_label_on_way(label: Element, old: Element, arrow: Element, old_arrow: Element | None) -> None:
    """Leaves the label where it is on an arrow that stayed; new words are around the same point."""
    if old_arrow is not None and (arrow["points"], arrow["x"], arrow["y"]) == (
        old_arrow["points"],
        old_arrow["x"],
        old_arrow["y"],
    ):
        center_on(label, box_of(old).center)


def center_on(element: Element, center: Point) -> None:
    box = Box.around(center, box_of(element).size)
    element.update(x=box.x, y=box.y)


def refit(element: Element, container: Element | None) -> None:
    """Breaks and measures a text again, in the font and size that a person chose for it."""
    is_boxed = container is not None and container["type"] != "arrow"
    room = label_room(container["type"], container["width"]) if container and is_boxed else WIDEST_NOTE
    if element["fontFamily"] not in LINE_HEIGHTS:
        return
    if container is None:
        room = UNBOUNDED if element["autoResize"] else max(room, element["width"])
    text = wrap(element["originalText"], element["fontFamily"], element["fontSize"], room)
    center = box_of(container).center if container and is_boxed else box_of(element).center
    element.update(text="\n".join(text.lines), width=text.width, height=text.height)
    element["lineHeight"] = LINE_HEIGHTS[text.font]
    if container is not None:
        center_on(element, center)


def let_go(extras: Sequence[Element], ours: Sequence[Element]) -> None:
    """Takes references to what is no longer in the drawing out of a person's own elements."""
    known = {element["id"] for element in [*ours, *extras]}
    labelled = {element["containerId"] for element in ours if element.get("containerId")}
    for element in extras:
        for key in ("startBinding", "endBinding"):
            if element.get(key) and element[key]["elementId"] not in known:
                element[key] = None
        for key in ("containerId", "frameId"):
            if element.get(key) is not None and element[key] not in known:
                element[key] = None
        # The arrow or shape that they wrote on has a label from the spec by now; theirs stands free.
        if element.get("containerId") in labelled:
            element["containerId"] = None


def follow_arrows(extras: Sequence[Element], ours: Sequence[Element]) -> None:
    """Puts what a person wrote on the spec's arrows onto their middle, where they lead elsewhere now."""
    arrows = {element["id"]: element for element in ours if element["type"] == "arrow"}
    for element in extras:
        arrow = arrows.get(element.get("containerId"))
        if arrow is not None and not touch(box_of(element), drawn_box(arrow)):
            center_on(element, middle_of(way_of(arrow)))


def in_order(ours: Sequence[Element], extras: Sequence[Element]) -> list[Element]:
    """All elements in drawing order: the extras at their place in the file as far as the rules allow."""
    labels = {element["containerId"]: element for element in [*extras, *ours] if element.get("containerId")}
    heads = [element for element in [*ours, *extras] if not element.get("containerId")]
    heads.sort(key=lambda element: element["index"] if is_order_key(element["index"]) else "zz")
    for member in [element for element in extras if element in heads and element.get("frameId")]:
        ids = [element["id"] for element in heads]
        if ids.index(member["frameId"]) < ids.index(member["id"]):
            heads.remove(member)
            heads.insert(ids.index(member["frameId"]), member)
    elements = [e for head in heads for e in (head, labels.get(head["id"])) if e is not None]
    our_ids = {element["id"] for element in ours}
    for i, element in enumerate(elements):
        if element["id"] not in our_ids:
            low = elements[i - 1]["index"] if i else ""
            high = next((e["index"] for e in elements[i + 1 :] if e["id"] in our_ids), "")
            key = element["index"]
            if not is_order_key(key) or key <= low or (high and key >= high):
                element["index"] = key_between(low, high)
    return elements


def key_between(low: str, high: str) -> str:
    """A key after low and before high ("": no bound); the whole part of low stays, its fraction grows."""
    if not low:
        low = whole_part_before(high)
    fraction = low[whole_length(low) :]
    bound = high[whole_length(low) :] if high.startswith(low[: whole_length(low)]) else ""
    return low[: whole_length(low)] + fraction_between(fraction, bound)


def whole_part_before(high: str) -> str:
    """The whole part of high where a fraction below high's is possible, else the whole part before it."""
    whole = high[: whole_length(high)] if high else "a0"
    return whole if high != whole else "Zz"


def fraction_between(low: str, high: str) -> str:
    """Digits after low and before high, both without a 0 at their end; "" for high is no bound."""
    if high:
        n_shared = next((i for i, digit in enumerate(high) if (low + "0" * len(high))[i] != digit), len(high))
        if n_shared:
            return high[:n_shared] + fraction_between(low[n_shared:], high[n_shared:])
    low_digit = DIGITS.index(low[0]) if low else 0
    high_digit = DIGITS.index(high[0]) if high else len(DIGITS)
    if high_digit - low_digit > 1:
        return DIGITS[(low_digit + high_digit) // 2]
    if len(high) > 1:
        return high[0]
    return DIGITS[low_digit] + fraction_between(low[1:], "")


# ----------------------------------------------------------------------------------------------------
# Check: is a file sound
# ----------------------------------------------------------------------------------------------------

TYPES = "rectangle ellipse diamond text arrow line image frame magicframe freedraw embeddable iframe".split()
BINDABLE = set(TYPES) - {"arrow", "line", "freedraw"}
ARROWHEADS = (
    "arrow bar dot circle circle_outline triangle triangle_outline diamond diamond_outline crowfoot_one "
    "crowfoot_many crowfoot_one_or_many cardinality_one cardinality_many cardinality_one_or_many "
    "cardinality_exactly_one cardinality_zero_or_one cardinality_zero_or_many"
).split()
# Excalidraw's fonts, with the three that it keeps for older files.
KNOWN_FONTS = (1, 2, 3, *LINE_HEIGHTS)
COMMON_FIELDS = (
    "x y width height angle strokeColor backgroundColor fillStyle strokeWidth strokeStyle roughness opacity "
    "groupIds frameId index roundness seed version versionNonce isDeleted boundElements updated link locked"
).split()
TYPE_FIELDS = {
    "text": (
        "text originalText fontSize fontFamily lineHeight textAlign verticalAlign containerId autoResize"
    ).split(),
    "arrow": "points startBinding endBinding startArrowhead endArrowhead elbowed".split(),
    "line": ["points"],
    "frame": ["name"],
    "image": "fileId status scale".split(),
}
NUMBERS = (
    "x y width height angle strokeWidth roughness opacity seed version versionNonce updated fontSize "
    "lineHeight"
).split()
CHOICES: Mapping[str, Sequence[object]] = {
    "fillStyle": ("solid", "hachure", "cross-hatch", "zigzag"),
    "strokeStyle": ("solid", "dashed", "dotted"),
    "textAlign": ("left", "center", "right"),
    "verticalAlign": ("top", "middle", "bottom"),
    "fontFamily": KNOWN_FONTS,
    "isDeleted": (True, False),
    "locked": (True, False),
    "elbowed": (True, False),
    "autoResize": (True, False),
    "status": ("pending", "saved", "error"),
    "startArrowhead": (None, *ARROWHEADS),
    "endArrowhead": (None, *ARROWHEADS),
}
# The last is what Excalidraw calls a picture of a kind that it does not know.
PICTURE_TYPES = (
    *("image/png", "image/jpeg", "image/gif", "image/webp", "image/svg+xml"),
    *("image/bmp", "image/x-icon", "image/avif", "image/jfif", "application/octet-stream"),
)
# Kerning makes a line narrower than the sum of its characters: "AVATAR To. Ty. WAVE" by 6 %, few by more.
NARROWEST = 0.85


def faults(file: object) -> list[str]:
    """What is wrong with an Excalidraw file, "ID: what" each; no entry: it opens as it was meant.

    That Excalidraw opens a file is not enough: it silently drops, clips or leaves behind what these rules
    name.
    """
    if not isinstance(file, dict):
        return ["file: is not a JSON object"]
    found = []
    if file.get("type") != "excalidraw":
        found.append(f'file: type is {file.get("type")!r}, not "excalidraw"')
    if file.get("version") != 2:
        found.append(f"file: version is {file.get('version')!r}, not 2")
    for key in ("appState", "files"):
        if not isinstance(file.get(key), dict):
            found.append(f"file: {key} is no object")
    background = (file.get("appState") or {}).get("viewBackgroundColor") if not found else "transparent"
    if not is_element_color(background):
        found.append(f"file: viewBackgroundColor is {background!r}, not a colour")
    elements = file.get("elements")
    if not isinstance(elements, list):
        return [*found, "file: elements is no list"]
    sound: list[Element] = []
    for i, element in enumerate(elements):
        wrong = field_faults(element, i)
        found += wrong
        if not wrong:
            sound.append(element)
    found += [
        f"{id_}: {n} elements have this id" for id_, n in Counter(map(id_of, elements)).items() if n > 1
    ]
    found += order_faults(elements)
    # How elements refer to each other is only asked of those that are there and sound in themselves.
    by_id = {element["id"]: element for element in sound if not element["isDeleted"]}
    position = {element["id"]: i for i, element in enumerate(sound)}
    broken = {repr(id_of(element)) for element in elements if id_of(element) not in position}
    files = file.get("files")
    for element in by_id.values():
        wrong = [
            *reference_faults(element, by_id),
            *frame_faults(element, by_id, position),
            *text_faults(element, by_id, position),
            *arrow_faults(element, by_id),
            *image_faults(element, files if isinstance(files, dict) else {}),
        ]
        # What hangs on a broken element is not a second fault.
        found += [
            f"{element['id']}: {what}"
            for what in wrong
            if broken.isdisjoint(re.findall(r"""'[^']*'|"[^"]*\"""", what))
        ]
    return [one_line(fault) for fault in found]


def one_line(fault: str) -> str:
    """The fault as a terminal shows it in one line, without the middle of a very long value."""
    line = "".join(c if c.isprintable() else ascii(c)[1:-1] for c in fault)
    return line if len(line) <= 300 else f"{line[:200]} … {line[-80:]}"


def id_of(element: object) -> object:
    id_ = element.get("id") if isinstance(element, dict) else None
    return id_ if isinstance(id_, str) else None


def field_faults(element: object, i: int) -> list[str]:
    """What is wrong with an element by itself."""
    if not isinstance(element, dict):
        return [f"elements[{i}]: is not an object"]
    id_ = element.get("id")
    if not isinstance(id_, str) or not id_:
        return [f"elements[{i}]: id is {id_!r}, not a text"]
    type_ = element.get("type")
    if type_ not in TYPES:
        return [f"{id_}: Excalidraw has no type {type_!r} and drops it{nearest(str(type_), TYPES)}"]
    wanted = [*COMMON_FIELDS, *TYPE_FIELDS.get(type_, ())]
    found = [f"{key} is missing" for key in wanted if key not in element]
    found += [
        f"{key} is {element[key]!r}, not a number"
        for key in NUMBERS
        if key in element and not is_number(element[key])
    ]
    found += [
        f"{key} is {element[key]!r}, not one of {', '.join(map(str, choices))}"
        for key, choices in CHOICES.items()
        if key in element and not is_choice(element[key], choices)
    ]
    found += [
        f"{key} is {element[key]!r}, not a colour"
        for key in ("strokeColor", "backgroundColor")
        if key in element and not is_element_color(element[key])
    ]
    if not found:
        found = range_faults(element) + list_faults(element)
    return [f"{id_}: {what}" for what in found]


def is_choice(value: object, choices: Sequence[object]) -> bool:
    """Whether it is one of them; 1 and true are two things here."""
    return any(value == choice and isinstance(value, bool) == isinstance(choice, bool) for choice in choices)


def range_faults(element: Element) -> list[str]:
    found = [
        f"{key} is {element[key]}, below 0"
        for key in ("width", "height", "strokeWidth", "roughness")
        if element[key] < 0
    ]
    if element["type"] not in ("arrow", "line", "freedraw") and 0 in (element["width"], element["height"]):
        found.append("has no size, and Excalidraw drops it")
    if not 0 <= element["opacity"] <= 100:
        found.append(f"opacity is {element['opacity']}, not 0 to 100")
    if max(abs(element[key]) for key in ("x", "y", "width", "height")) > 75_000:
        found.append("reaches further than 75,000 px, where Excalidraw drops it")
    if element["type"] == "text":
        found += [
            f"{key} is {element[key]}, not above 0" for key in ("fontSize", "lineHeight") if element[key] <= 0
        ]
    if abs(element["angle"]) > math.tau:
        found.append(f"angle is {element['angle']}, more than a turn: it is in radians")
    if element["link"] is not None and not is_kept_link(element["link"]):
        found.append(f"link {element['link']!r} is not one that Excalidraw opens")
    return found


def is_kept_link(link: object) -> bool:
    """Whether Excalidraw leaves the link as it is: any but scripts, data and what has quotes in it."""
    return isinstance(link, str) and not re.search(
        r'^\s|\s$|["\x00-\x1f\x7f]|^(javascript|vbscript|data):', link, re.IGNORECASE
    )


def list_faults(element: Element) -> list[str]:
    """Whether lists hold what they have to."""
    found = []
    if not isinstance(element["groupIds"], list) or not all(
        isinstance(id_, str) for id_ in element["groupIds"]
    ):
        found.append("groupIds is no list of texts")
    bound = element["boundElements"]
    if bound is not None and (
        not isinstance(bound, list)
        or not all(
            isinstance(b, dict) and isinstance(b.get("id"), str) and b.get("type") in ("text", "arrow")
            for b in bound
        )
    ):
        found.append("boundElements is no list of {type, id}")
    roundness = element["roundness"]
    if roundness is not None and not (isinstance(roundness, dict) and roundness.get("type") in (1, 2, 3)):
        found.append(f"roundness is {roundness!r}, not null or a type from 1 to 3")
    found += [
        f"{key} is {element[key]!r}, neither null nor an id"
        for key in ("frameId", "containerId")
        if element.get(key) is not None and not isinstance(element[key], str)
    ]
    if element["type"] == "frame" and not isinstance(element["name"], (str, NoneType)):
        found.append(f"name is {element['name']!r}, neither null nor a text")
    if element["type"] == "image":
        scale = element["scale"]
        if not isinstance(scale, list) or len(scale) != 2 or not all(is_number(s) and s for s in scale):
            found.append(f"scale is {scale!r}, not two numbers other than 0")
    if not isinstance(element.get("fixedSegments"), (list, NoneType)):
        found.append(f"fixedSegments is {element['fixedSegments']!r}, neither null nor a list")
    if "points" in element:
        found += points_faults(element)
    for key in ("startBinding", "endBinding"):
        if element.get(key) is not None:
            found += binding_faults(element, key)
    return found


def points_faults(element: Element) -> list[str]:
    points = element["points"]
    if not isinstance(points, list) or not all(
        isinstance(p, list) and len(p) >= 2 and is_number(p[0]) and is_number(p[1]) for p in points
    ):
        return ["points is no list of pairs of numbers"]
    if element["type"] == "freedraw":
        return []
    if len(points) < 2:
        return ["has fewer than two points, and Excalidraw drops it"]
    found = []
    if len(points) == 2 and points[0][:2] == points[1][:2]:
        return ["begins and ends at one point, and Excalidraw drops it"]
    if points[0][:2] != [0, 0]:
        found.append(f"its first point is {points[0]}, not [0, 0]")
    for key, axis in (("width", 0), ("height", 1)):
        size = extent(point[axis] for point in points)
        if abs(size - element[key]) > 0.5:
            found.append(f"{key} is {element[key]}, but its points take {size:g}")
    if element.get("elbowed") and any(
        abs(a[0] - b[0]) > 0.5 and abs(a[1] - b[1]) > 0.5 for a, b in pairwise(points)
    ):
        found.append("is an elbow arrow with a diagonal segment")
    return found


def binding_faults(element: Element, key: str) -> list[str]:
    held = element[key]
    if not isinstance(held, dict) or not isinstance(held.get("elementId"), str):
        return [f"{key} is {held!r}, not an object with an elementId"]
    point = held.get("fixedPoint")
    # Up to 0.17 a binding was elementId, focus and gap.
    if point is None and "mode" not in held and not element.get("elbowed") and is_number(held.get("focus")):
        return []
    if not isinstance(point, list) or len(point) != 2 or not all(map(is_number, point)):
        return [f"the fixedPoint of its {key} is {point!r}, not two numbers"]
    if max(abs(share - 0.5) for share in point) > 20:
        return [
            f"the fixedPoint of its {key} is {point}, far off the shape: it is a share of the shape's size"
        ]
    if 0.5 in point:
        return [f"the fixedPoint of its {key} has an exact 0.5, which Excalidraw changes to 0.5001"]
    if held.get("mode", "orbit") not in ("orbit", "inside", "skip"):
        return [f"the mode of its {key} is {held['mode']!r}, not orbit, inside or skip"]
    return []


def is_element_color(value: object) -> bool:
    """Any colour that CSS may know; Excalidraw takes what the browser takes."""
    return is_color(value) or (
        isinstance(value, str) and re.fullmatch(r"[a-z]+|(rgb|hsl)a?\([\d\s.,%/deg]+\)", value) is not None
    )


def order_faults(elements: Sequence[object]) -> list[str]:
    """Whether each key is one that Excalidraw takes, and larger than the key before it."""
    found = []
    before = ""
    for element in elements:
        key, id_ = (element.get("index"), element.get("id")) if isinstance(element, dict) else (None, None)
        if not isinstance(element, dict) or "index" not in element:
            continue
        if not is_order_key(key):
            found.append(f"{id_}: {order_key_fault(key)}")
            continue
        if key == before:
            found.append(f"{id_}: index {key!r} is also that of the element before")
        elif key < before:
            found.append(f"{id_}: index {key!r} sorts before {before!r} of the element before it")
        before = max(before, key)
    return found


def is_order_key(key: object) -> TypeGuard[str]:
    return not order_key_fault(key)


def order_key_fault(key: object) -> str:
    """What is wrong with a fractional index; the rules of https://github.com/rocicorp/fractional-indexing."""
    if not isinstance(key, str) or not key:
        return f"index is {key!r}, not a key like 'a0'"
    if not key[0].isalpha() or any(digit not in DIGITS for digit in key):
        return f"index {key!r} is not a letter with digits of 0-9, A-Z, a-z"
    n_whole = whole_length(key)
    if len(key) < n_whole:
        return f"index {key!r} is too short: after {key[0]!r} come {n_whole - 1} digits or more"
    if len(key) > n_whole and key.endswith("0"):
        return f"index {key!r} ends in 0, and Excalidraw takes no such fraction"
    if key == "A" + "0" * 26:
        return f"index {key!r} is the one below all others, which is no key"
    return ""


def whole_length(key: str) -> int:
    """How many characters of the key its whole part takes: a 2, b 3… and backwards Z 2, Y 3…"""
    return ord(key[0]) - ord("a") + 2 if key[0] >= "a" else ord("Z") - ord(key[0]) + 2


def reference_faults(element: Element, by_id: Mapping[str, Element]) -> list[str]:
    """Whether what boundElements lists is there and knows of it."""
    found = []
    listed = listed_ids(element)
    for id_, n in Counter(listed).items():
        other = by_id.get(id_)
        if n > 1:
            found.append(f"boundElements lists {id_!r} {n} times")
        if other is None:
            found.append(f"boundElements lists {id_!r}, which is not there, or is deleted")
        elif other["type"] == "text":
            if other["containerId"] != element["id"]:
                found.append(
                    f"boundElements lists the text {id_!r}, whose containerId is {other['containerId']!r}"
                )
        elif element["id"] not in bound_ids(other):
            found.append(f"boundElements lists the arrow {id_!r}, which is not bound to it")
    types = {bound["id"]: bound["type"] for bound in element["boundElements"] or ()}
    found += [
        f"boundElements calls {id_!r} {type_}, but it is {by_id[id_]['type']}"
        for id_, type_ in types.items()
        if id_ in by_id and by_id[id_]["type"] != type_
    ]
    if sum(id_ in by_id and by_id[id_]["type"] == "text" for id_ in listed) > 1:
        found.append("has more than one label")
    return found


def listed_ids(element: Element) -> list[str]:
    """The ids in an element's boundElements."""
    return [bound["id"] for bound in element["boundElements"] or ()]


def frame_faults(element: Element, by_id: Mapping[str, Element], position: Mapping[str, int]) -> list[str]:
    frame_id = element["frameId"]
    if frame_id is None:
        return []
    frame = by_id.get(frame_id)
    if frame is None:
        return [f"frameId names {frame_id!r}, which is not there, or is deleted"]
    if frame["type"] not in ("frame", "magicframe"):
        return [f"frameId names {frame_id!r}, which is a {frame['type']}"]
    if element["type"] in ("frame", "magicframe"):
        return [f"is a frame in the frame {frame_id!r}, which Excalidraw has not"]
    if position[element["id"]] > position[frame_id]:
        return [f"comes after its frame {frame_id!r}, and has to come before it"]
    return []


def text_faults(element: Element, by_id: Mapping[str, Element], position: Mapping[str, int]) -> list[str]:
    if element["type"] != "text":
        return []
    text = element["text"]
    if not isinstance(text, str) or not isinstance(element["originalText"], str):
        return ["text or originalText is no text"]
    if not text.strip():
        return ["its text is empty, and Excalidraw drops it"]
    found = []
    narrowest = narrowest_width(text, element["fontFamily"], element["fontSize"])
    if narrowest > element["width"] + 1:
        found.append(
            f"text {text[:30]!r} takes {narrowest:.0f} px and is clipped: width is {element['width']:g}"
        )
    height = (text.count("\n") + 1) * element["fontSize"] * element["lineHeight"]
    if height > element["height"] + 1:
        found.append(
            f"text of {text.count(chr(10)) + 1} lines takes {height:g} px: height is {element['height']:g}"
        )
    if element["originalText"] and "".join(element["originalText"].split()) != "".join(text.split()):
        found.append(f"originalText {element['originalText'][:30]!r} is other words than text {text[:30]!r}")
    container_id = element["containerId"]
    if container_id is None:
        return found
    container = by_id.get(container_id)
    if container is None:
        return [*found, f"containerId names {container_id!r}, which is not there, or is deleted"]
    if container["type"] not in ("rectangle", "ellipse", "diamond", "arrow"):
        return [*found, f"containerId names {container_id!r}, and a {container['type']} has no label"]
    if element["id"] not in listed_ids(container):
        found.append(f"its container {container_id!r} does not list it in boundElements")
    if position[element["id"]] != position[container_id] + 1:
        found.append(f"does not directly follow its container {container_id!r}")
    if container["type"] != "arrow":
        for key, what in (("width", "wide"), ("height", "high")):
            room = excalidraw_room(container["type"], container[key])
            if element[key] > room + 1:
                found.append(
                    f"is {element[key]:g} px {what}, but its container {container_id!r} has room "
                    f"for {room:.0f}"
                )
    # A curve reaches a little beyond its points.
    if not found and not container["angle"] and not touch(box_of(element), grown(drawn_box(container), 24)):
        found.append(f"stands outside its container {container_id!r}, and Excalidraw leaves it there")
    return found


def narrowest_width(text: str, font: int, size: float) -> float:
    """A width that the text surely takes; 0 in fonts that are not measured here."""
    widths = font_widths().get(font)
    if widths is None:
        return 0
    return max(sum(widths.get(c, 0) for c in line) for line in text.split("\n")) * size / 1000 * NARROWEST


def arrow_faults(element: Element, by_id: Mapping[str, Element]) -> list[str]:
    found = []
    for key in ("startBinding", "endBinding"):
        if not element.get(key):
            continue
        id_ = element[key]["elementId"]
        shape = by_id.get(id_)
        if element["type"] != "arrow":
            found.append(f"has a {key}, but only arrows are bound")
        elif shape is None:
            found.append(f"{key} names {id_!r}, which is not there, or is deleted")
        elif shape["type"] not in BINDABLE:
            found.append(f"{key} names {id_!r}, and nothing is bound to a {shape['type']}")
        elif element["id"] not in listed_ids(shape):
            found.append(
                f"{id_!r} does not list it in boundElements: it would stay behind when that is moved"
            )
    return found


def image_faults(element: Element, files: Mapping[str, object]) -> list[str]:
    if element["type"] != "image":
        return []
    file_id = element["fileId"]
    file = files.get(file_id) if isinstance(file_id, str) else None
    if not isinstance(file, dict):
        return [f"its file {file_id!r} is not in files"]
    if file.get("id") != file_id:
        return [f"its file {file_id!r} has the id {file.get('id')!r}"]
    mime, data = file.get("mimeType"), file.get("dataURL")
    start = f"data:{mime};base64,"
    if not isinstance(data, str) or not data.startswith(start):
        return [f"its file {file_id!r} has no dataURL of the type {mime!r}"]
    if mime not in PICTURE_TYPES:
        return [f"its file {file_id!r} is {mime!r}, no picture"]
    try:
        content = base64.b64decode(data[len(start) :], validate=True)
    except ValueError:
        return [f"the dataURL of its file {file_id!r} is not in Base64"]
    # The first five tell their kind by how they begin; a browser goes by that, not by the name.
    if not content or (mime in PICTURE_TYPES[:5] and mime_type(content) is None):
        return [f"its file {file_id!r} is called {mime!r}, but holds no picture"]
    return []


# ----------------------------------------------------------------------------------------------------
# Pictures: SVG and PNG
# ----------------------------------------------------------------------------------------------------

FONT_STACKS = {
    5: "Excalifont, 'Comic Neue', 'Segoe Print', 'Bradley Hand', cursive",
    6: "Nunito, 'Segoe UI', 'Helvetica Neue', Arial, 'Liberation Sans', sans-serif",
    8: "'Comic Shanns', Menlo, Consolas, 'DejaVu Sans Mono', monospace",
    9: "'Liberation Sans', Arial, Helvetica, sans-serif",
    10: "Assistant, 'Segoe UI', Arial, sans-serif",
}
# Where a line of text stands in its height: the ascent of these fonts is about 0.95 of their size.
BASELINE = 0.36
PICTURE_PADDING = 24
PNG_SCALE = 2
FRAME_FONT = 10


def draw_svg(file: Document) -> str:
    """The drawing as an SVG that any program shows, and that Excalidraw opens and edits as the drawing.

    The picture names fonts and has none in it, so a text is told the width that it was measured with: in
    any other font it is stretched or drawn together to fit.
    """
    shown = [element for element in file["elements"] if not element["isDeleted"]]
    box = picture_box(shown)
    labels = {element["containerId"]: element for element in shown if element.get("containerId")}
    parts = [svg_element(element, labels.get(element["id"]), file["files"], box) for element in shown]
    title = next((e["text"] for e in shown if (e.get("customData") or {}).get("name") == "title"), "")
    background = html.escape(file["appState"]["viewBackgroundColor"])
    lines = [
        '<svg xmlns="http://www.w3.org/2000/svg" version="1.1" '
        f'width="{box.width:g}" height="{box.height:g}" '
        f'viewBox="{box.x:g} {box.y:g} {box.width:g} {box.height:g}">',
        f"<title>{html.escape(title)}</title>" if title else "",
        embedded(file),
        f'<rect {svg_box(box)} rx="8" fill="{background}"/>',
        *parts,
        "</svg>",
    ]
    return "\n".join(line for line in lines if line) + "\n"


def picture_box(elements: Sequence[Element]) -> Box:
    """What all elements take, with a margin."""
    box = around_boxes([drawn_box(element) for element in elements] or [Box(0, 0, 1, 1)])
    pad = PICTURE_PADDING
    return Box(
        math.floor(box.x - pad),
        math.floor(box.y - pad),
        math.ceil(box.width + 2 * pad),
        math.ceil(box.height + 2 * pad),
    )


def drawn_box(element: Element) -> Box:
    """The element's box; that of an arrow begins where its points reach, a frame's with its name."""
    box = box_of(element)
    if element.get("points"):
        xs, ys = [p[0] for p in element["points"]], [p[1] for p in element["points"]]
        return Box(box.x + min(xs), box.y + min(ys), max(xs) - min(xs), max(ys) - min(ys))
    if element["type"] == "frame":
        return Box(box.x, box.y - 24, box.width, box.height + 24)
    if element["angle"]:
        reach = math.hypot(box.width, box.height)
        return Box.around(box.center, (reach, reach))
    return box


def embedded(file: Document) -> str:
    """The drawing itself in the form in which Excalidraw reads it back from an SVG.

    The bytes of the compressed JSON as characters, in JSON, in Base64: encodeSvgMetadata in
    packages/excalidraw/data/image.ts.
    """
    text = json.dumps(plain_numbers(file), ensure_ascii=False, separators=(",", ":"))
    packed = zlib.compress(text.encode(), 9)
    envelope = {
        "version": "1",
        "encoding": "bstring",
        "compressed": True,
        "encoded": packed.decode("latin-1"),
    }
    payload = base64.b64encode(json.dumps(envelope, ensure_ascii=False).encode("latin-1")).decode()
    return (
        "<!-- svg-source:excalidraw --><metadata><!-- payload-type:application/vnd.excalidraw+json -->"
        f"<!-- payload-version:2 --><!-- payload-start -->{payload}<!-- payload-end --></metadata>"
    )


def drawing_in_svg(svg: str) -> object:
    """The drawing that an .excalidraw.svg carries; DiagramError where it carries none."""
    match = re.search(r"<!-- payload-start -->\s*(.+?)\s*<!-- payload-end -->", svg, re.DOTALL)
    if match is None:
        raise DiagramError("carries no Excalidraw drawing between payload-start and payload-end")
    try:
        envelope = json.loads(base64.b64decode(match[1]).decode("latin-1"))
        packed = envelope["encoded"].encode("latin-1")
        return json.loads(zlib.decompress(packed) if envelope["compressed"] else packed)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError, zlib.error) as error:
        raise DiagramError("the drawing in it is cut off or damaged") from error


def svg_element(element: Element, label: Element | None, files: Mapping[str, Any], page: Box) -> str:
    """One element; a link becomes a link."""
    box = box_of(element)
    if element["type"] == "image":
        drawn = paint_image(element, box, files)
    elif element["type"] in SVG_PAINTERS:
        drawn = SVG_PAINTERS[element["type"]](element, box)
    else:
        return ""
    if element["type"] == "arrow" and label is not None:
        drawn = masked(drawn, element["id"], box_of(label), page)
    if element["angle"]:
        turn = f"rotate({math.degrees(element['angle']):g} {box.center[0]:g} {box.center[1]:g})"
        drawn = f'<g transform="{turn}">{drawn}</g>'
    if element["opacity"] != 100:
        drawn = f'<g opacity="{element["opacity"] / 100:g}">{drawn}</g>'
    if element["link"]:
        drawn = f'<a href="{html.escape(element["link"])}">{drawn}</a>'
    return drawn


def masked(drawn: str, id_: str, hole: Box, page: Box) -> str:
    """The arrow without the piece on which its label stands."""
    name = html.escape(f"mask-{id_}")
    gap = Box(hole.x - 4, hole.y, hole.width + 8, hole.height)
    return (
        f'<mask id="{name}" maskUnits="userSpaceOnUse" {svg_box(page)}><rect {svg_box(page)} fill="#fff"/>'
        f'<rect {svg_box(gap)} fill="#000"/></mask><g mask="url(#{name})">{drawn}</g>'
    )


def svg_box(box: Box) -> str:
    return f'x="{box.x:g}" y="{box.y:g}" width="{box.width:g}" height="{box.height:g}"'


def paint(element: Element, fill: bool = True) -> str:
    """The attributes of lines and areas."""
    width = element["strokeWidth"]
    dashes = {"dashed": f"8 {8 + width:g}", "dotted": f"1.5 {6 + width:g}"}.get(element["strokeStyle"])
    fill_color = element["backgroundColor"] if fill else "transparent"
    return " ".join(
        [
            f'fill="{"none" if fill_color == "transparent" else html.escape(fill_color)}"',
            f'stroke="{html.escape(element["strokeColor"])}" stroke-width="{width:g}"',
            'stroke-linecap="round" stroke-linejoin="round"',
            *([f'stroke-dasharray="{dashes}"'] if dashes else []),
        ]
    )


def paint_rectangle(element: Element, box: Box) -> str:
    widest = element["roundness"].get("value", 32) if element["roundness"] else 0
    radius = min(widest, min(box.width, box.height) / 4)
    return f'<rect {svg_box(box)} rx="{radius:g}" {paint(element)}/>'


def paint_ellipse(element: Element, box: Box) -> str:
    x, y = box.center
    return f'<ellipse cx="{x:g}" cy="{y:g}" rx="{box.width / 2:g}" ry="{box.height / 2:g}" {paint(element)}/>'


def paint_diamond(element: Element, box: Box) -> str:
    x, y = box.center
    corners = [(x, box.y), (box.right, y), (x, box.bottom), (box.x, y)]
    # A quarter of each half side is rounded, Excalidraw's proportional radius.
    share = 0.125 if element["roundness"] else 0
    path = [
        f"{'L' if i else 'M'} {point(toward(corner, corners[i - 1], share))} "
        f"Q {point(corner)} {point(toward(corner, corners[(i + 1) % 4], share))}"
        for i, corner in enumerate(corners)
    ]
    return f'<path d="{" ".join(path)} Z" {paint(element)}/>'


def paint_text(element: Element, box: Box) -> str:
    size, height = element["fontSize"], element["fontSize"] * element["lineHeight"]
    anchor, x = {
        "left": ("start", box.x),
        "center": ("middle", box.center[0]),
        "right": ("end", box.right),
    }[element["textAlign"]]
    first = box.y + height / 2 + BASELINE * size
    spans = [
        f'<tspan x="{x:g}" y="{first + i * height:.2f}"{fitted(line, element)}>{html.escape(line)}</tspan>'
        for i, line in enumerate(element["text"].split("\n"))
        if line.strip()
    ]
    stack = FONT_STACKS.get(element["fontFamily"], "sans-serif")
    return (
        f'<text font-family="{stack}" font-size="{size:g}" fill="{html.escape(element["strokeColor"])}" '
        f'text-anchor="{anchor}" xml:space="preserve">{"".join(spans)}</text>'
    )


def fitted(line: str, element: Element) -> str:
    """The width that the line was measured with; none where characters were only estimated."""
    widths = font_widths().get(element["fontFamily"], {})
    if any(character not in widths for character in line):
        return ""
    width = sum(widths[character] for character in line) * element["fontSize"] / 1000
    return f' textLength="{width:.1f}" lengthAdjust="spacingAndGlyphs"'


def paint_line(element: Element, box: Box) -> str:
    points = [(box.x + x, box.y + y) for x, y, *_ in element["points"]]
    if element.get("elbowed"):
        path = rounded_path(points, 16)
    elif element["roundness"]:
        path = curved_path(points)
    else:
        path = "M " + " L ".join(map(point, points))
    is_closed = points[0] == points[-1]
    lines = [f'<path d="{path}" {paint(element, fill=is_closed)}/>']
    solid = {**element, "strokeStyle": "solid"}
    for head, tip, before in (
        (element.get("startArrowhead"), points[0], points[1]),
        (element.get("endArrowhead"), points[-1], points[-2]),
    ):
        if head is not None:
            low, high = arrow_wings(tip, before)
            lines.append(
                f'<path d="M {point(low)} L {point(tip)} L {point(high)}" {paint(solid, fill=False)}/>'
            )
    return "".join(lines)


def arrow_wings(tip: Point, before: Point) -> tuple[Point, Point]:
    """The two ends of an arrowhead, 20 degrees off its line; shorter on a short line."""
    length = min(14.0, math.dist(tip, before) / 2)
    angle = math.atan2(before[1] - tip[1], before[0] - tip[0])
    low, high = angle - math.radians(20), angle + math.radians(20)
    return (
        (tip[0] + length * math.cos(low), tip[1] + length * math.sin(low)),
        (tip[0] + length * math.cos(high), tip[1] + length * math.sin(high)),
    )


def rounded_path(points: Sequence[Point], radius: float) -> str:
    path = f"M {point(points[0])}"
    for before, corner, after in zip(points, points[1:], points[2:], strict=False):
        reach = min(radius, math.dist(before, corner) / 2, math.dist(corner, after) / 2)
        start = toward(corner, before, reach / (math.dist(corner, before) or 1))
        end = toward(corner, after, reach / (math.dist(corner, after) or 1))
        path += f" L {point(start)} Q {point(corner)} {point(end)}"
    return path + f" L {point(points[-1])}"


def curved_path(points: Sequence[Point]) -> str:
    """A smooth line through the points, the Catmull-Rom curve that Excalidraw's roughjs draws."""
    path = f"M {point(points[0])}"
    for i in range(len(points) - 1):
        before, start, end = points[max(0, i - 1)], points[i], points[i + 1]
        after = points[min(len(points) - 1, i + 2)]
        one = start[0] + (end[0] - before[0]) / 6, start[1] + (end[1] - before[1]) / 6
        two = end[0] - (after[0] - start[0]) / 6, end[1] - (after[1] - start[1]) / 6
        path += f" C {point(one)} {point(two)} {point(end)}"
    return path


def point(at: Point) -> str:
    return f"{round(at[0], 2):g} {round(at[1], 2):g}"


def paint_frame(element: Element, box: Box) -> str:
    name = html.escape(element["name"] or "")
    stack = FONT_STACKS[FRAME_FONT]
    return (
        f'<rect {svg_box(box)} rx="8" fill="none" stroke="#bbb" stroke-width="2"/>'
        f'<text x="{box.x:g}" y="{box.y - 6:g}" font-family="{stack}" font-size="14" fill="#999">'
        f"{name}</text>"
    )


def paint_image(element: Element, box: Box, files: Mapping[str, Any]) -> str:
    file = files.get(element["fileId"])
    if file is None:
        return ""
    return f'<image {svg_box(box)} preserveAspectRatio="none" href="{html.escape(file["dataURL"])}"/>'


# Not what cannot be in a picture: the pages that Excalidraw shows within a drawing.
SVG_PAINTERS = {
    "rectangle": paint_rectangle,
    "ellipse": paint_ellipse,
    "diamond": paint_diamond,
    "text": paint_text,
    "arrow": paint_line,
    "line": paint_line,
    "freedraw": paint_line,
    "frame": paint_frame,
}


def png_commands(svg: Path, png: Path, width: int, height: int) -> dict[str, list[str]]:
    """The command line of each program that may be installed, the ones that fit text best first."""
    chromium = [
        "--headless",
        "--disable-gpu",
        # On a busy machine a picture was once taken before its lower part was drawn.
        "--run-all-compositor-stages-before-draw",
        "--hide-scrollbars",
        "--default-background-color=00000000",
        f"--force-device-scale-factor={PNG_SCALE}",
        f"--window-size={width},{height}",
        f"--screenshot={png}",
        # Chromium's sandbox does not work for root, as in containers; the page is one that was made here.
        *(["--no-sandbox"] if hasattr(os, "geteuid") and os.geteuid() == 0 else []),
        svg.absolute().as_uri(),
    ]
    return {
        "resvg": ["--zoom", str(PNG_SCALE), str(svg), str(png)],
        "chromium": chromium,
        "chromium-browser": chromium,
        "google-chrome": chromium,
        "inkscape": [f"--export-width={PNG_SCALE * width}", f"--export-filename={png}", str(svg)],
        "rsvg-convert": ["--zoom", str(PNG_SCALE), "--output", str(png), str(svg)],
    }


def write_png(file: Document, png: Path) -> str:
    """Draws the picture with the first program that is installed, and says which."""
    box = picture_box([element for element in file["elements"] if not element["isDeleted"]])
    with tempfile.TemporaryDirectory() as folder:
        svg = Path(folder) / "picture.svg"
        svg.write_text(draw_svg(file), encoding="utf-8")
        commands = png_commands(svg, png.absolute(), int(box.width), int(box.height))
        program = next((name for name in commands if shutil.which(name)), None)
        if program is None:
            raise DiagramError(f"{png}: no program to draw a PNG is installed ({', '.join(commands)})")
        run = subprocess.run(
            [program, *commands[program]], capture_output=True, text=True, check=False, timeout=120
        )
    if run.returncode or not png.exists():
        raise DiagramError(f"{png}: {program} failed: {(run.stderr or run.stdout).strip()[-300:]}")
    return program


# ----------------------------------------------------------------------------------------------------
# Command line
# ----------------------------------------------------------------------------------------------------


def build(spec: Spec, folder: Path, file: Document | None = None, engine: str = "own") -> Document:
    """The drawing of the spec, onto the file that a person edited where there is one.

    Raises DiagramError where the result is not sound, so that nothing unsound is ever written.
    """
    theme = theme_of(spec.theme)
    plain_spec = spec
    if file is not None:
        spec = with_edits(spec, file)
    placed = lay_out(spec, measure(spec, theme, folder), engine)
    drawing = draw(spec, theme, placed, folder)
    note_given(drawing, plain_spec)
    if file is not None:
        drawing = keep_edits(drawing, file)
    found = faults(drawing)
    if found:
        raise DiagramError("the drawing is not sound, and was not written:\n" + "\n".join(found))
    return drawing


def read_file(path: Path) -> object:
    """The drawing in an .excalidraw or .excalidraw.svg file, or the JSON in any other."""
    text = read_text(path)
    if path.suffix == ".svg":
        with errors_of(path):
            return drawing_in_svg(text)
    try:
        # A drawing is read as Excalidraw reads it, with the last of two.
        once = None if path.suffix == ".excalidraw" else with_keys_once
        with errors_of(path):
            return json.loads(text, object_pairs_hook=once)
    except json.JSONDecodeError as error:
        raise DiagramError(f"{path}:{error.lineno}: is not JSON: {error.msg}") from error
    except (ValueError, RecursionError) as error:
        raise DiagramError(f"{path}: is JSON with too many digits or levels to be read") from error


def read_text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise DiagramError(f"{path}: {getattr(error, 'strerror', None) or 'is not UTF-8'}") from error


def with_keys_once(pairs: Sequence[tuple[str, object]]) -> dict[str, object]:
    """A JSON object; DiagramError where it has a key twice, of which JSON would keep the last alone."""
    found = dict(pairs)
    if len(found) < len(pairs):
        key = next(key for key, n in Counter(key for key, _ in pairs).items() if n > 1)
        thing = f" of {found['id']!r}" if isinstance(found.get("id"), str) and key != "id" else ""
        raise DiagramError(f"the key {key!r}{thing} is given twice")
    return found


def mermaid_file(path: Path) -> dict[str, Any]:
    """The flowchart of a file as a spec."""
    text = read_text(path)
    with errors_of(path):
        return spec_of_mermaid(text)


@contextmanager
def errors_of(path: Path) -> Iterator[None]:
    """Says in errors which file they are about."""
    try:
        yield
    except DiagramError as error:
        raise DiagramError(f"{path}: {error}") from error


def to_json(drawing: Document) -> str:
    return json.dumps(plain_numbers(drawing), indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def write(drawing: Document, out: Path) -> None:
    """Writes the drawing in the format that the file's name ends in."""
    if out.suffix == ".png":
        program = write_png(drawing, out)
        print(f"{out} (drawn by {program})")
        return
    if out.suffix not in (".excalidraw", ".json", ".svg"):
        raise DiagramError(f"{out}: ends in none of .excalidraw, .excalidraw.svg, .png")
    out.write_text(draw_svg(drawing) if out.suffix == ".svg" else to_json(drawing), encoding="utf-8")
    print(out)


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description="Draws a map of a system as an Excalidraw file.",
        epilog="--update keeps what a person changed in the file: places, colours, words, own elements.",
    )
    job = parser.add_mutually_exclusive_group(required=True)
    job.add_argument("--spec", type=Path, metavar="S.json", help="draw this map")
    job.add_argument("--mermaid", type=Path, metavar="F.mmd", help="draw a flowchart, or print it as a spec")
    job.add_argument("--validate", type=Path, metavar="F", nargs="+", help="say what is wrong with files")
    parser.add_argument(
        "--out",
        type=Path,
        metavar="F",
        action="append",
        default=[],
        help=".excalidraw, .excalidraw.svg or .png",
    )
    parser.add_argument("--update", type=Path, metavar="F", help="keep what a person changed in this file")
    parser.add_argument("--engine", choices=list(ENGINES), default="own", help="what finds the places")
    parser.add_argument(
        "--theme", metavar="NAME", help=f"{', '.join(THEMES)} or a JSON file, instead of the spec's"
    )
    args = parser.parse_args(argv)
    try:
        if args.validate:
            return validate(args.validate)
        if args.mermaid:
            data = mermaid_file(args.mermaid)
            if not args.out and not args.update:
                print(json.dumps(data, indent=2, ensure_ascii=False))
                return 0
            return draw_files(data, args.mermaid, args.out, args.update, args.theme, args.engine)
        return draw_files(read_file(args.spec), args.spec, args.out, args.update, args.theme, args.engine)
    except DiagramError as error:
        print(error, file=sys.stderr)
        return 1
    except OSError as error:
        print(f"{error.filename}: {error.strerror}", file=sys.stderr)
        return 1


def validate(paths: Sequence[Path]) -> int:
    """Prints each fault of the files in one line; the exit status is 1 where there is one."""
    n_faults = 0
    for path in paths:
        try:
            found = [f"{path}: {fault}" for fault in faults(read_file(path))]
        except DiagramError as error:
            found = [str(error)]
        n_faults += len(found)
        print("\n".join(found or [f"{path}: sound"]))
    return 1 if n_faults else 0


def draw_files(
    data: object, source: Path, outs: Sequence[Path], update: Path | None, theme: str | None, engine: str
) -> int:
    """Draws the spec that came from `source` into each of the files; without one, into the updated one.

    Images are looked for from the folder of `source`.
    """
    with errors_of(source):
        spec = read_spec(data)
    if theme is not None:
        spec = dataclasses.replace(spec, theme=chosen_theme(theme))
    file = None
    if update is not None:
        found = faults(file := cast(Document, read_file(update)))
        if found:
            raise DiagramError("\n".join(f"{update}: {fault}" for fault in found))
        for remark in overruled_words(spec, file):
            print(remark, file=sys.stderr)
    outs = outs or ([update] if update else [])
    if not outs:
        raise DiagramError("--out F or --update F says where the drawing goes")
    with errors_of(source):
        drawing = build(spec, source.parent, file, engine)
    for out in outs:
        write(drawing, out)
    return 0


def chosen_theme(name: str) -> str | Mapping[str, object]:
    """The theme of that name, or the keys in the file of that name."""
    if name in THEMES:
        return name
    with errors_of(Path(name)):
        if not Path(name).exists():
            raise DiagramError(f"is no file, and none of the themes {', '.join(THEMES)}")
        keys = read_file(Path(name))
        if not isinstance(keys, dict):
            raise DiagramError("is no JSON object with keys of a theme")
        theme_of(keys)
    return keys


if __name__ == "__main__":
    # Labels and ids are of any script, also where the locale's encoding has other ideas.
    cast(io.TextIOWrapper, sys.stdout).reconfigure(encoding="utf-8", errors="backslashreplace")
    sys.exit(main())
