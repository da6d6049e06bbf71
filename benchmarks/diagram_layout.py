"""How well maps are laid out, beside ELK and graphviz: python -m benchmarks.diagram_layout [SPEC.json …].

Every map is laid out by the own engine, by ELK (elkjs, installed into build/benchmarks by npm) and by dot,
with the same sizes of nodes and labels; dot's own lines and labels are read from its JSON. Without specs:
the examples, and one map of 60 nodes in 8 groups.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import random
import shutil
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import astuple, dataclass, fields
from itertools import combinations, pairwise
from pathlib import Path
from typing import Any

from plugins.diagram.skills.excalidraw.scripts import build_excalidraw as diagram
from plugins.diagram.skills.excalidraw.scripts.build_excalidraw import (
    Box,
    Placed,
    Point,
    Route,
    Sizes,
    Spec,
)

REPOSITORY = Path(__file__).resolve().parent.parent
EXAMPLES = REPOSITORY / "plugins/diagram/examples"
ELK = REPOSITORY / "build/benchmarks/elkjs"
ELK_VERSION = "0.12.1"


@dataclass(frozen=True)
class Score:
    """Faults of a drawing, and what it costs to read. All are better when lower."""

    overlaps: int  # nodes on nodes, nodes beyond their group, groups on nodes or groups that are not theirs
    through: int  # arrows through nodes
    labels_hit: int  # labels of arrows and groups on nodes, on other labels, or with an arrow through them
    shared: int  # pairs of arrows that run on one line
    crossings: int
    bends: int
    length: int  # of all arrows, in pixels
    area: int  # in thousands of square pixels


def score(spec: Spec, sizes: Sizes, drawn: Placed) -> Score:
    """The faults and costs of one drawing."""
    ways = {edge.id: shown(drawn.routes[edge.id]) for edge in spec.edges}
    extent = diagram.extent_of(drawn)
    return Score(
        overlaps=count_overlaps(spec, drawn),
        through=sum(
            any(
                diagram.crosses(ways[edge.id], diagram.grown(box, -2)) for box in obstacles(spec, edge, drawn)
            )
            for edge in spec.edges
        ),
        labels_hit=count_labels_hit(sizes, drawn, ways),
        shared=sum(runs_on(one, two) for one, two in combinations(ways.values(), 2)),
        crossings=sum(count_crossings(one, two) for one, two in combinations(ways.values(), 2)),
        bends=sum(len(route.points) - 2 for route in drawn.routes.values() if route.kind == "elbow"),
        length=round(sum(way_length(way) for way in ways.values())),
        area=round(extent.width * extent.height / 1000),
    )


def shown(route: Route) -> Sequence[Point]:
    return diagram.along_curve(route.points) if route.kind == "curved" else route.points


def obstacles(spec: Spec, edge: diagram.Edge, drawn: Placed) -> list[Box]:
    """What an arrow must not enter: other nodes, and its own ends beyond their outline."""
    shapes = {node.id: node.shape for node in spec.nodes}
    boxes = [box for key, box in drawn.nodes.items() if key not in (edge.source, edge.target)]
    for key in (edge.source, edge.target):
        box = drawn.nodes[key]
        if shapes[key] in ("ellipse", "diamond"):
            by = 0.5 if shapes[key] == "diamond" else 0.3
            box = (
                Box(*box.center, 0, 0) if by == 0.5 else diagram.grown(box, -by * min(box.width, box.height))
            )
        boxes.append(box)
    return boxes


def count_overlaps(spec: Spec, drawn: Placed) -> int:
    """Pairs that share an area and should not, and nodes or groups that stick out of their group."""
    nest = diagram.Nest.of(spec.groups)
    owners = {node.id: node.group for node in spec.nodes} | {group.id: group.group for group in spec.groups}
    count = sum(diagram.touch(one, two) for one, two in combinations(drawn.nodes.values(), 2))
    for node in spec.nodes:
        around = nest.around(node.group)
        for key, box in drawn.groups.items():
            if key in around:
                count += not diagram.contains(diagram.grown(box, 0.5), drawn.nodes[node.id])
            else:
                count += diagram.touch(box, drawn.nodes[node.id])
    for one, two in combinations(drawn.groups, 2):
        if two in nest.around(one) or one in nest.around(two):
            inner, outer = (one, two) if two in nest.around(owners[one]) else (two, one)
            count += not diagram.contains(diagram.grown(drawn.groups[outer], 0.5), drawn.groups[inner])
        else:
            count += diagram.touch(drawn.groups[one], drawn.groups[two])
    return count


def count_labels_hit(sizes: Sizes, drawn: Placed, ways: Mapping[str, Sequence[Point]]) -> int:
    """Labels that something lies on."""
    labels = {key: route.label for key, route in drawn.routes.items() if route.label}
    titles = diagram.group_titles(sizes, drawn.groups)
    count = 0
    for key, label in labels.items():
        others = [other for name, other in labels.items() if name != key]
        hit = any(diagram.touch(label, box) for box in (*drawn.nodes.values(), *others, *titles))
        hit = hit or any(diagram.crosses(way, label) for name, way in ways.items() if name != key)
        count += hit
    for title in titles:
        hit = any(diagram.touch(title, box) for box in drawn.nodes.values())
        count += hit or any(diagram.crosses(way, title) for way in ways.values())
    return count


def count_crossings(one: Sequence[Point], two: Sequence[Point]) -> int:
    """Points at which two ways cross."""
    return sum(cross(a, b, c, d) for a, b in pairwise(one) for c, d in pairwise(two))


def cross(a: Point, b: Point, c: Point, d: Point) -> bool:
    """Whether two lines cross at an inner point of both."""

    def side(p: Point, q: Point, r: Point) -> float:
        return (q[0] - p[0]) * (r[1] - p[1]) - (q[1] - p[1]) * (r[0] - p[0])

    return side(a, b, c) * side(a, b, d) < -1e-6 and side(c, d, a) * side(c, d, b) < -1e-6


def runs_on(one: Sequence[Point], two: Sequence[Point]) -> bool:
    """Whether two ways run on one line, or nearly so, for more than a few pixels.

    Arrows that leave a diamond's tip, or enter it, are one line there.
    """
    for a, b in pairwise(one):
        for c, d in pairwise(two):
            if a == c == one[0] == two[0] or b == d == one[-1] == two[-1]:
                continue
            for axis in (0, 1):
                if a[axis] == b[axis] and c[axis] == d[axis] and abs(a[axis] - c[axis]) < 2:
                    low, high = sorted((a[1 - axis], b[1 - axis]))
                    other_low, other_high = sorted((c[1 - axis], d[1 - axis]))
                    if min(high, other_high) - max(low, other_low) > 4:
                        return True
    return False


def way_length(way: Sequence[Point]) -> float:
    return sum(math.dist(a, b) for a, b in pairwise(way))


def dot_drawing(spec: Spec, sizes: Sizes) -> Placed:
    """What dot itself draws: its polylines, and its labels beside them."""
    drawn = json.loads(diagram.run_engine("dot", ["dot", "-Tjson"], diagram.dot_source(spec, sizes)))
    top = float(drawn["bb"].split(",")[3])
    groups: dict[str, Box] = {}
    for found in drawn["objects"]:
        if found["name"].startswith("cluster_"):
            left, bottom, right, high = map(float, found["bb"].split(","))
            key = spec.groups[int(found["name"].removeprefix("cluster_"))].id
            groups[key] = Box(left, top - high, right - left, high - bottom)
    routes: dict[str, Route] = {}
    for found in drawn["edges"]:
        edge = spec.edges[int(found["id"].removeprefix("e"))]
        numbers = [part.split(",") for part in found["pos"].split()]
        tip = [
            (float(x), float(y)) for mark, x, y in (part for part in numbers if len(part) == 3) if mark == "e"
        ]
        spline = [(float(part[0]), float(part[1])) for part in numbers if len(part) == 2]
        points = [(x, top - y) for x, y in [*spline[::3], *tip]]  # every third is on the line
        label = None
        if edge.id in sizes.edge_labels:
            x, y = map(float, found["lp"].split(","))
            label = Box.around((x, top - y), sizes.edge_labels[edge.id])
        routes[edge.id] = Route("elbow", diagram.without_needless_points(points), label)
    return Placed(diagram.dot_nodes(drawn, spec, sizes), groups, routes, {})


def map_of_sixty() -> dict[str, Any]:
    """A system of 60 parts in 8 groups, two of them in others, as a map of services would have."""
    chance = random.Random(60)
    groups = [{"id": f"g{i}", "label": f"Area {i}"} for i in range(8)]
    groups[2]["group"] = "g1"
    groups[6]["group"] = "g5"
    owners = [i * 8 // 60 for i in range(60)]
    shapes = ("rectangle",) * 5 + ("ellipse", "diamond")
    nodes = [
        {"id": f"n{i}", "label": f"{chance.choice(('Service', 'Store', 'Queue', 'Worker pool'))} {i}",
         "group": f"g{owners[i]}", "shape": chance.choice(shapes)}
        for i in range(60)
    ]  # fmt: skip
    for i in (0, 30, 59):
        del nodes[i]["group"]
    edges: list[dict[str, str]] = []
    for i in range(1, 60):
        before = [j for j in range(i) if owners[j] == owners[i]] or [chance.randrange(i)]
        edges.append({"from": f"n{chance.choice(before[-3:])}", "to": f"n{i}"})
    for _ in range(24):
        i = chance.randrange(50)
        edges.append({"from": f"n{i}", "to": f"n{min(59, i + chance.randrange(2, 14))}"})
    edges.append({"from": "n40", "to": "n12"})
    for edge in edges[::3]:
        edge["label"] = chance.choice(("calls", "reads", "publishes", "writes to"))
    return {"title": "Sixty", "groups": groups, "nodes": nodes, "edges": edges}


def install_elk() -> bool:
    """Whether ELK is there, installed by npm when it was not."""
    if shutil.which("npm") is None or shutil.which("node") is None:
        return False
    if not (ELK / "node_modules/elkjs").is_dir():
        ELK.mkdir(parents=True, exist_ok=True)
        command = ["npm", "install", "--prefix", str(ELK), "--no-audit", "--no-fund", f"elkjs@{ELK_VERSION}"]
        subprocess.run(command, check=True, capture_output=True)
    os.environ["NODE_PATH"] = str(ELK / "node_modules")
    return True


def main(arguments: Sequence[str] | None = None) -> int:
    """Print one table: a line for each map and engine."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("specs", nargs="*", type=Path, metavar="SPEC.json")
    paths = parser.parse_args(arguments).specs
    maps = {path.name: json.loads(path.read_text(encoding="utf-8")) for path in paths}
    if not paths:
        for path in sorted(EXAMPLES.glob("*.spec.json")):
            maps[path.name.removesuffix(".spec.json")] = json.loads(path.read_text(encoding="utf-8"))
        maps["60 nodes"] = map_of_sixty()
        maps["60 nodes, down"] = {**map_of_sixty(), "direction": "down"}
    engines: dict[str, Callable[[Spec, Sizes], Placed]] = {"own": diagram.lay_out}
    if install_elk():
        engines["ELK"] = diagram.elk
    if shutil.which("dot"):
        engines["dot"] = dot_drawing
    names = [field.name for field in fields(Score)]
    print(f"{'map':24}{'engine':8}" + "".join(f"{name:>11}" for name in names) + f"{'seconds':>9}")
    for name, data in maps.items():
        spec = diagram.read_spec(data)
        sizes = diagram.measure(spec, diagram.theme_of(spec.theme), EXAMPLES)
        for engine, place in engines.items():
            begin = time.perf_counter()
            drawn = place(spec, sizes)
            seconds = time.perf_counter() - begin
            numbers = "".join(f"{value:>11,}" for value in astuple(score(spec, sizes, drawn)))
            print(f"{name[:23]:24}{engine:8}{numbers}{seconds:9.2f}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
