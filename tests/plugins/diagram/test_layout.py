"""Maps are laid out without faults: nothing on anything else, arrows around nodes, given places kept."""

from __future__ import annotations

import itertools
import json
import random
import shutil
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from benchmarks.diagram_layout import ELK, map_of_sixty, score
from plugins.diagram.skills.excalidraw.scripts.build_excalidraw import (
    Arc,
    Box,
    DiagramError,
    contains,
    extent_of,
    grown,
    network_simplex,
    on_piece,
    touch,
)
from tests.plugins.diagram.drawing import EXAMPLES
from tests.plugins.diagram.laid_out import SHAPES, faults, graph, placed
from tests.plugins.diagram.random_specs import random_spec


@st.composite
def maps(draw: st.DrawFn, kinds: tuple[str, ...] = ("elbow",)) -> dict[str, Any]:
    """Any graph: cycles, loops, parallel arrows, groups in groups, empty ones, nodes without arrows."""
    n_groups = draw(st.integers(0, 4))
    groups = []
    for i in range(n_groups):
        group = {"id": f"g{i}", "label": draw(st.sampled_from(["", "Area", "A longer name of a group"]))}
        parent = draw(st.sampled_from([None, *(f"g{j}" for j in range(i))]))
        groups.append(group | ({"group": parent} if parent else {}))
    n_nodes = draw(st.integers(1, 14))
    nodes = []
    for i in range(n_nodes):
        node = {
            "id": f"n{i}",
            "label": "word " * draw(st.integers(1, 4)),
            "shape": draw(st.sampled_from(SHAPES)),
        }
        owner = draw(st.sampled_from([None, *(f"g{j}" for j in range(n_groups))]))
        nodes.append(node | ({"group": owner} if owner else {}))
    ends = st.integers(0, n_nodes - 1).map(lambda i: f"n{i}")
    edges = draw(
        st.lists(
            st.fixed_dictionaries(
                {
                    "from": ends,
                    "to": ends,
                    "label": st.sampled_from(["", "", "calls", "writes and reads"]),
                    "kind": st.sampled_from(kinds),
                    "both": st.booleans(),
                }
            ),
            max_size=20,
        )
    )
    notes = [{"text": "a note", "near": near} for near in draw(st.lists(ends, max_size=3))]
    direction = draw(st.sampled_from(["right", "down"]))
    return {"direction": direction, "groups": groups, "nodes": nodes, "edges": edges, "notes": notes}


# No shrinking: a failure says its map, and the suite ends in time.
quickly = settings(
    phases=[Phase.explicit, Phase.generate],
    max_examples=120,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow],
)


@quickly
@given(maps())
def test_no_map_has_overlaps_arrows_through_nodes_or_covered_labels(data: dict[str, Any]) -> None:
    assert faults(data) == {}, data


@quickly
@given(maps(("straight", "curved", "elbow")))
def test_straight_and_curved_arrows_lead_through_no_node_and_no_label_either(data: dict[str, Any]) -> None:
    found = faults(data)
    found.pop("shared", None)
    assert found == {}


@quickly
@given(maps())
def test_elbows_are_parallel_to_the_axes_and_their_labels_lie_on_them(data: dict[str, Any]) -> None:
    spec, _, drawn = placed(data)
    for edge in spec.edges:
        route = drawn.routes[edge.id]
        assert all(a[0] == b[0] or a[1] == b[1] for a, b in pairwise(route.points))
        ends = zip((edge.source, edge.target), (route.points[0], route.points[-1]), strict=True)
        assert all(contains(grown(drawn.nodes[key], 0.01), Box(*point, 0, 0)) for key, point in ends)
        assert bool(route.label) == bool(edge.label)
        if route.label:
            assert any(on_piece(route.label.center, a, b) for a, b in pairwise(route.points))


@quickly
@given(maps(), st.randoms(use_true_random=False))
def test_given_places_are_kept_and_the_rest_goes_around_them(
    data: dict[str, Any], chance: random.Random
) -> None:
    _, sizes, free = placed(data)
    data["groups"] = []
    for node in data["nodes"]:
        node.pop("group", None)
    given_places = {}
    for i, node in enumerate(data["nodes"]):
        if chance.random() < 0.5:
            given_places[node["id"]] = (float(400 * (i % 4)), float(300 * (i // 4)))
            node["at"] = list(given_places[node["id"]])
    spec, sizes, drawn = placed(data)
    assert {key: (drawn.nodes[key].x, drawn.nodes[key].y) for key in given_places} == given_places
    found = score(spec, sizes, drawn)
    assert (found.overlaps, found.through) == (0, 0)
    assert free.nodes.keys() == drawn.nodes.keys()


def test_the_same_spec_gives_the_same_places() -> None:
    assert placed(map_of_sixty()) == placed(map_of_sixty())


@pytest.mark.parametrize("direction", ["right", "down"])
def test_sixty_nodes_in_groups_have_no_faults_and_few_crossings(direction: str) -> None:
    spec, sizes, drawn = placed({**map_of_sixty(), "direction": direction})
    found = score(spec, sizes, drawn)
    assert (found.overlaps, found.through, found.labels_hit, found.shared) == (0, 0, 0, 0)
    assert found.crossings <= 26  # ELK 24, dot 37; see benchmarks/README.md


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.spec.json")), ids=lambda path: path.name)
def test_the_examples_have_no_faults(path: Path) -> None:
    assert faults(json.loads(path.read_text(encoding="utf-8"))) == {}


def test_specs_by_chance_have_no_faults_where_no_place_is_given() -> None:
    specs = {seed: random_spec(seed) for seed in range(30)}
    free = {seed: spec for seed, spec in specs.items() if not any("at" in node for node in spec["nodes"])}
    assert len(free) > 10
    assert {seed: faults(spec) for seed, spec in free.items()} == {seed: {} for seed in free}


def test_two_hundred_nodes_have_no_faults() -> None:
    chance = random.Random(200)
    nodes = [{"id": f"n{i}", "label": f"Node {i}", "group": f"g{i // 20}"} for i in range(200)]
    edges = [{"from": f"n{max(0, i - chance.randrange(1, 6))}", "to": f"n{i}"} for i in range(1, 200)]
    edges += [{"from": f"n{chance.randrange(200)}", "to": f"n{chance.randrange(200)}"} for _ in range(60)]
    for edge in edges[::4]:
        edge["label"] = "calls"
    groups = [{"id": f"g{i}", "label": f"Group {i}"} for i in range(10)]
    assert faults({"nodes": nodes, "edges": edges, "groups": groups}) == {}


def test_arrows_lead_right_or_down_and_only_one_of_a_cycle_leads_back() -> None:
    for direction, axis in (("right", 0), ("down", 1)):
        _, _, drawn = placed(graph("a b", "b c", "c a", direction=direction))
        places = [drawn.nodes[key].center[axis] for key in "abc"]
        assert places == sorted(places)
        assert places[0] < places[1] < places[2]


def test_a_chain_is_one_straight_line() -> None:
    _, _, drawn = placed(graph("a b", "b c", "c d", edge={"label": "then"}))
    assert len({box.center[1] for box in drawn.nodes.values()}) == 1
    assert all(len(route.points) == 2 for route in drawn.routes.values())


@pytest.mark.parametrize("direction", ["right", "down"])
@pytest.mark.parametrize("label", ["", "then"])
def test_a_chain_of_forty_is_wrapped_into_rows_in_its_order(direction: str, label: str) -> None:
    data = graph(*(f"s{i} s{i + 1}" for i in range(39)), direction=direction, edge={"label": label})
    assert faults(data) == {}, data
    _, _, drawn = placed(data)
    extent = extent_of(drawn)
    assert 1 / 3 < extent.width / extent.height < 3
    places = [drawn.nodes[f"s{i}"].center for i in range(40)]
    in_order = [(y, x) if direction == "right" else (x, y) for x, y in places]
    assert in_order == sorted(in_order)


def test_a_group_holds_what_is_in_it_and_no_stranger() -> None:
    data = graph(
        "a b",
        "b c",
        "a x",
        "x c",
        groups=[{"id": "g", "label": "A group with a name that is longer than all in it"}],
        nodes={"a": {"group": "g"}, "c": {"group": "g"}},
    )
    _, sizes, drawn = placed(data)
    box = drawn.groups["g"]
    assert contains(box, drawn.nodes["a"])
    assert contains(box, drawn.nodes["c"])
    assert not touch(box, drawn.nodes["b"])
    assert not touch(box, drawn.nodes["x"])
    assert box.width >= sizes.group_labels["g"][0]


@pytest.mark.parametrize("direction", ["right", "down"])
def test_the_title_of_a_frame_stands_above_it_and_takes_no_room_inside(direction: str) -> None:
    groups = [{"id": "g", "label": "a group"}, {"id": "f", "label": "a frame", "frame": True}]
    nodes = {"a": {"group": "g"}, "b": {"group": "f"}, "c": {"group": "f"}, "d": {"group": "f"}}
    data = graph("a b", "a x", "x c", "b d", "c d", groups=groups, nodes=nodes, direction=direction)
    assert faults(data) == {}, data
    _, _, drawn = placed(data)
    frame = drawn.groups["f"]
    assert min(drawn.nodes[key].y for key in "bcd") - frame.y == 24
    assert not any(touch(Box(frame.x, frame.y - 24, 60, 24), box) for box in drawn.nodes.values())


def test_a_group_that_one_arrow_leads_back_to_is_not_stretched_for_it() -> None:
    groups = [{"id": "first", "label": "first"}, {"id": "second", "label": "second"}]
    nodes = {key: {"group": "first"} for key in "abc"} | {key: {"group": "second"} for key in "xyz"}
    data = graph("a b", "b x", "a y", "x y", "y z", "z c", groups=groups, nodes=nodes)
    _, _, drawn = placed(data)
    assert drawn.groups["first"].right < drawn.groups["second"].x


def test_an_empty_group_has_its_place() -> None:
    data = graph("a b", groups=[{"id": "g", "label": "nothing here"}])
    assert faults(data) == {}, data
    assert placed(data)[2].groups["g"].height > 0


def test_nodes_without_arrows_make_columns_not_one_long_row() -> None:
    nodes = [{"id": f"n{i}", "label": f"n{i}"} for i in range(20)]
    _, _, drawn = placed({"nodes": nodes})
    assert len({box.center[0] for box in drawn.nodes.values()}) in range(3, 6)


def test_parts_that_nothing_joins_stand_in_rows_about_as_wide_as_a_page() -> None:
    for direction in ("right", "down"):
        data = graph(*(f"a{i} b{i}" for i in range(12)), direction=direction)
        assert faults(data) == {}, data
        _, _, drawn = placed(data)
        extent = extent_of(drawn)
        assert 1 < extent.width / extent.height < 2.5
        starts = [(drawn.nodes[f"a{i}"].y, drawn.nodes[f"a{i}"].x) for i in range(12)]
        assert starts == sorted(starts)


def test_a_node_that_many_arrows_meet_grows_so_that_they_stay_apart() -> None:
    _, _, drawn = placed(graph(*(f"n{i} hub" for i in range(12))))
    ends = sorted(route.points[-1][1] for route in drawn.routes.values())
    assert min(b - a for a, b in pairwise(ends)) >= 10


def test_a_node_with_a_given_size_does_not_grow() -> None:
    data = graph(*(f"n{i} hub" for i in range(12)), nodes={"hub": {"size": [120, 60]}})
    assert placed(data)[2].nodes["hub"].height == 60


def test_a_node_beside_a_given_place_has_room_for_the_arrow_to_itself() -> None:
    data = graph("a a", "a b", direction="down", nodes={"b": {"at": [0, 0]}}, edge={"label": "tries again"})
    data["nodes"].append({"id": "c", "at": [260, -200]})
    assert faults(data) == {}, data


def test_a_new_node_goes_beside_its_neighbour_without_moving_what_was_placed() -> None:
    places = {"a": [0, 0], "b": [400, 0], "c": [800, 0]}
    data = graph("a b", "b c", "b new", nodes={key: {"at": at} for key, at in places.items()})
    spec, sizes, drawn = placed(data)
    assert [(drawn.nodes[key].x, drawn.nodes[key].y) for key in places] == [(0, 0), (400, 0), (800, 0)]
    assert 400 < drawn.nodes["new"].x < 1000
    assert abs(drawn.nodes["new"].y) < 300
    assert faults(data) == {}, data
    assert sizes.nodes.keys() == {node.id for node in spec.nodes}


def test_nodes_that_lie_on_each_other_by_given_places_are_still_joined() -> None:
    data = graph("a b", nodes={"a": {"at": [0, 0]}, "b": {"at": [10, 10]}})
    assert len(placed(data)[2].routes) == 1


def test_notes_lie_on_nothing() -> None:
    data = graph("a b", "a c", "a a", edge={"label": "x"})
    data["notes"] = [{"text": "beside a", "near": "a"}, {"text": "beside b", "near": "b"}, "under the map"]
    for at in (None, [0, 0]):
        if at:
            data["nodes"][0]["at"] = at
        _, _, drawn = placed(data)
        labels = [route.label for route in drawn.routes.values() if route.label]
        others = [*drawn.nodes.values(), *labels]
        for one, two in itertools.combinations(drawn.notes.values(), 2):
            assert not touch(one, two)
        assert not any(touch(note, other) for note in drawn.notes.values() for other in others)


def least_by_trying(count: int, arcs: list[Arc]) -> int:
    """The least cost over all small integers."""
    costs = [
        sum(weight * (y[head] - y[tail]) for tail, head, _, weight in arcs)
        for y in itertools.product(range(5), repeat=count)
        if all(y[head] - y[tail] >= length for tail, head, length, _ in arcs)
    ]
    return min(costs)


@quickly
@given(
    st.lists(
        st.tuples(st.integers(0, 4), st.integers(0, 4), st.integers(0, 1), st.integers(0, 3)), max_size=9
    )
)
def test_ranks_cost_no_more_than_the_best_of_all(found: list[Arc]) -> None:
    # Arcs upwards only, so that there is no cycle, and a chain that connects all.
    arcs = [(min(a, b), max(a, b), length, weight) for a, b, length, weight in found if a != b]
    arcs += [(i, i + 1, 0, 0) for i in range(4)]
    y = network_simplex(5, arcs)
    assert all(y[head] - y[tail] >= length for tail, head, length, _ in arcs)
    assert sum(weight * (y[head] - y[tail]) for tail, head, _, weight in arcs) == least_by_trying(5, arcs)


@pytest.mark.skipif(shutil.which("dot") is None, reason="graphviz is not installed")
def test_dot_finds_the_places_where_it_is_installed() -> None:
    spec, sizes, drawn = placed({**map_of_sixty(), "direction": "down"}, "dot")
    assert (score(spec, sizes, drawn).overlaps, score(spec, sizes, drawn).through) == (0, 0)


@pytest.mark.skipif(
    shutil.which("node") is None or not (ELK / "node_modules/elkjs").is_dir(),
    reason="Node or elkjs is not installed (python -m benchmarks.diagram_layout installs elkjs)",
)
def test_elk_finds_the_places_where_it_is_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NODE_PATH", str(ELK / "node_modules"))
    spec, sizes, drawn = placed(map_of_sixty(), "elk")
    assert (score(spec, sizes, drawn).overlaps, score(spec, sizes, drawn).through) == (0, 0)


def test_an_engine_that_is_not_installed_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    with pytest.raises(DiagramError, match="layout engine dot: no program 'dot' here"):
        placed(graph("a b"), "dot")


def test_an_unknown_engine_is_named_with_the_known_ones() -> None:
    with pytest.raises(DiagramError, match="no layout engine 'neato'; there are own, elk, dot"):
        placed(graph("a b"), "neato")
