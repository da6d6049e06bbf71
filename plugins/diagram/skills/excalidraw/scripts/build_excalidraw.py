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

import dataclasses
import difflib
import functools
import json
import math
import re
import struct
import unicodedata
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, TypeGuard, cast

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


def read_spec(data: object) -> Spec:
    """The map that a JSON value describes; DiagramError names the first thing that is wrong and its place."""
    spec = Fields(data, "the spec", "title theme direction nodes groups edges notes")
    theme = spec.value("theme", "slate")
    if not isinstance(theme, (str, dict)):
        raise DiagramError(f"the spec: theme is {theme!r}, not a name or an object")
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
        raise DiagramError(f"node {id_!r}: link {node.link!r} is no http, https, mailto or relative address")
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
        seen, parent = {group.id}, group.group
        while parent is not None:
            if parent in seen:
                raise DiagramError(f"group {group.id!r} is inside itself, by way of {parent!r}")
            seen.add(parent)
            parent = parents[parent]


def nearest(word: str, known: Sequence[str]) -> str:
    """What a person may have meant, to end an error with."""
    close = difflib.get_close_matches(word, known, n=1, cutoff=0.5)
    if close:
        return f"; did you mean {close[0]!r}?"
    return f"; there are {', '.join(map(repr, known[:12]))}" if known else ""


def is_number(value: object) -> TypeGuard[float]:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)


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
    "light": Theme(
        "#ffffff", "#1e293b", "#475569", "#64748b", "#ffffff", "#f5f7fa", line_width=1.5, palette=ON_LIGHT
    ),
    "print": Theme("#ffffff", "#000000", "#000000", "#444444", stroke_width=1.5, line_width=1),
}


def theme_of(choice: str | Mapping[str, object]) -> Theme:
    """The theme of that name, or {"base": name, key: value…} with the given keys in place of its own."""
    overrides = {"base": choice} if isinstance(choice, str) else dict(choice)
    base = overrides.pop("base", "slate")
    if base not in THEMES:
        raise DiagramError(f"theme {base!r} is not there{nearest(str(base), list(THEMES))}")
    theme = THEMES[str(base)]
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
        if value not in FONTS:
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
PADDING_X = 18
PADDING_Y = 14
BOUND_TEXT_PADDING = 5
SMALLEST_NODE = (120, 60)
WIDEST_LABEL = {"rectangle": 200, "ellipse": 170, "diamond": 140, "text": 260, "image": 160}
WIDEST_ARROW_LABEL = 150
WIDEST_NOTE = 240
IMAGE_SIDE = 80

# Wide enough for what the fonts lack and a machine's own fonts draw: Segoe UI Emoji, the widest in use,
# takes 1.37 of the font size, Chinese and Japanese characters exactly 1.
EMOJI_WIDTH = 1400
WIDE_WIDTH = 1010
OTHER_WIDTH = 1150

# The browser adds kerning to the advance widths; over the fonts here that never made a line more than
# 1 % wider.
KERNING = 1.01


@dataclass(frozen=True)
class Sizes:
    """How much room each thing takes, by its id. An edge or a group without a label has no entry."""

    nodes: Mapping[str, Size]
    edge_labels: Mapping[str, Size] = field(default_factory=dict)
    group_labels: Mapping[str, Size] = field(default_factory=dict)
    notes: Mapping[str, Size] = field(default_factory=dict)


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
    small = functools.partial(wrap, font=FONTS[theme.font], size=theme.small_size)
    labels = {edge.id: small(edge.label, widest=WIDEST_ARROW_LABEL) for edge in spec.edges if edge.label}
    titles = {group.id: small(group.label, widest=10_000) for group in spec.groups if group.label}
    notes = {note.id: small(note.text, widest=WIDEST_NOTE) for note in spec.notes}
    return Sizes(
        nodes={node.id: node_size(node, theme, folder) for node in spec.nodes},
        edge_labels={id_: (text.width, text.height) for id_, text in labels.items()},
        group_labels={id_: (text.width, text.height) for id_, text in titles.items()},
        notes={id_: (text.width, text.height) for id_, text in notes.items()},
    )


def node_size(node: Node, theme: Theme, folder: Path) -> Size:
    """The size of the node with its label: the given one, or taller where the label would not fit in."""
    if node.shape == "image":
        return image_node_size(node, theme, folder)
    font, size = FONTS[theme.font], theme.font_size
    if node.size is not None:
        width, height = node.size
        text = wrap(node.label, font, size, label_room(node.shape, width))
        return width, max(height, smallest_height(node.shape, text.height))
    text = balanced(node.label, font, size, WIDEST_LABEL[node.shape])
    if node.shape == "text":
        return text.width, text.height
    scale = {"rectangle": 1.0, "ellipse": math.sqrt(2), "diamond": 2.0}[node.shape]
    padding = {"rectangle": PADDING_X, "ellipse": PADDING_X - 6, "diamond": 8}[node.shape]
    width = scale * (text.width + 2 * padding)
    height = max(smallest_height(node.shape, text.height), scale * (text.height + PADDING_Y))
    # Sizes on a grid, so that neighbours with labels of nearly one length are of one size.
    return max(SMALLEST_NODE[0], 20 * math.ceil(width / 20)), max(
        SMALLEST_NODE[1], 10 * math.ceil(height / 10)
    )


def label_room(shape: str, width: float) -> float:
    """The width that a label may take inside a shape, Excalidraw's own padding and a little more kept free.

    The rule is the one of getBoundTextMaxWidth in Excalidraw.
    """
    inner = {"ellipse": width / math.sqrt(2), "diamond": width / 2}.get(shape, width)
    if shape == "text":
        return inner
    return max(1, inner - 2 * BOUND_TEXT_PADDING - min(2 * (PADDING_X - BOUND_TEXT_PADDING - 5), 0.1 * inner))


def smallest_height(shape: str, text_height: float) -> float:
    inner = text_height + 2 * BOUND_TEXT_PADDING
    return {"text": text_height, "ellipse": inner * math.sqrt(2), "diamond": inner * 2}.get(shape, inner)


def wrap(text: str, font: int, size: float, widest: float) -> Text:
    """The text broken into lines of at most that width: after spaces and hyphens, else inside a word.

    The order in which Excalidraw breaks lines, so that it breaks them alike when a person edits the text.
    """
    lines: list[str] = []
    for paragraph in text.split("\n"):
        line = ""
        for piece in re.findall(r"\s+|[^\s-]*-+(?!\s)|[^\s-]+-*", paragraph):
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
    """As much of the line as fits, at least one character."""
    head = ""
    for grapheme in split_graphemes(line):
        if head and line_width(head + grapheme, font, size) > widest:
            break
        head += grapheme
    return head


def balanced(text: str, font: int, size: float, widest: float) -> Text:
    """The text in as few lines as that width allows, and the lines as even as that number allows."""
    best = wrap(text, font, size, widest)
    low, high = 1, math.ceil(widest)
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
