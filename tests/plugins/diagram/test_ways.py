"""Arrows lead where they are seen to be one each: straight, curved, around their own node, past others."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from itertools import pairwise

import pytest

from plugins.diagram.skills.excalidraw.scripts.build_excalidraw import (
    Point,
    Step,
    along_curve,
    channel_tracks,
    lay_out,
    middle_of,
    touch,
)
from tests.plugins.diagram.laid_out import SHAPES, faults, graph, placed


def test_two_arrows_between_one_pair_and_one_back_run_apart() -> None:
    data = graph("a b", "a b", "b a", edge={"label": "x"})
    spec, _, drawn = placed(data)
    assert faults(data) == {}, data
    assert len({tuple(drawn.routes[edge.id].points) for edge in spec.edges}) == 3


@pytest.mark.parametrize("direction", ["right", "down"])
def test_arrows_to_the_same_node_stand_beside_it_one_around_the_other(direction: str) -> None:
    data = graph("a a", "a a", "a b", "c b", edge={"label": "a label that is long"}, direction=direction)
    assert faults(data) == {}, data
    spec, _, drawn = placed(data)
    loops = [drawn.routes[edge.id] for edge in spec.edges if edge.source == edge.target]
    assert [len(loop.points) for loop in loops] == [4, 4]


def test_two_straight_arrows_between_one_pair_are_straight_with_their_labels() -> None:
    data = graph("a b", "b a", edge={"kind": "straight", "label": "asks"})
    assert faults(data) == {}, data
    assert [len(route.points) for route in placed(data)[2].routes.values()] == [2, 2]


def test_an_arrow_leaves_free_the_way_of_one_that_stays_as_it_was() -> None:
    places = {"a": {"at": [0, 0]}, "b": {"at": [400, 0]}}
    spec, sizes, drawn = placed(graph("a b", "a b", nodes=places))
    first, second = spec.edges
    way = drawn.routes[second.id]
    again = lay_out(
        dataclasses.replace(spec, edges=(dataclasses.replace(first, way=way), second)), sizes, "own"
    )
    assert again.routes[second.id].points != way.points


@pytest.mark.parametrize("direction", ["right", "down"])
@pytest.mark.parametrize("shape", SHAPES)
def test_arrows_to_a_node_whose_place_is_given_leave_it_and_each_other_free(
    direction: str, shape: str
) -> None:
    data = {
        "direction": direction,
        "nodes": [{"id": "a", "label": "a", "shape": shape, "at": [0, 0], "size": [100, 60]}],
        "edges": [{"from": "a", "to": "a", "label": "tries again every five minutes"}] * 2,
    }
    _, _, drawn = placed(data)
    first, second = drawn.routes.values()
    assert first.label
    assert second.label
    assert not touch(first.label, drawn.nodes["a"])
    assert not touch(first.label, second.label)
    assert first.points[0] != second.points[0]


@pytest.mark.parametrize("shape", ["rectangle", "ellipse", "diamond"])
def test_the_label_of_an_arrow_back_to_its_node_hides_none_of_its_corners(shape: str) -> None:
    _, _, drawn = placed(graph("a a", edge={"label": "again"}, nodes={"a": {"shape": shape}}))
    (loop,) = drawn.routes.values()
    assert loop.label
    assert loop.points[2][0] < loop.label.x - 10
    assert loop.label.right + 10 < loop.points[1][0]


def test_two_arrows_that_cross_between_the_same_lines_do_not_run_on_one() -> None:
    # The first leads from 0 to 100 and the second from 100 to 0: whichever turns first would meet the other.
    n_tracks, turns = channel_tracks([Step(0, 0, 0, 100), Step(1, 0, 100, 0)])
    assert n_tracks == 3
    assert sorted(len(way) for way in turns.values()) == [1, 2]
    assert [way[-1][1] for way in (turns[0, 0], turns[1, 0])] == [100, 0]


def test_a_straight_arrow_is_straight_where_it_is_free_and_an_elbow_where_a_node_is_in_its_way() -> None:
    across = {"a": [0, 0], "b": [300, 0], "c": [600, 0]}
    data = graph(
        "a b", "a c", nodes={key: {"at": at} for key, at in across.items()}, edge={"kind": "straight"}
    )
    spec, _, drawn = placed(data)
    assert [drawn.routes[edge.id].kind for edge in spec.edges] == ["straight", "elbow"]
    assert faults(data) == {}, data


def test_the_label_of_a_curved_arrow_is_at_its_middle_point() -> None:
    data = graph("a b", "a c", "a d", edge={"kind": "curved", "label": "calls"})
    _, _, drawn = placed(data)
    curved = [route for route in drawn.routes.values() if route.kind == "curved"]
    assert curved
    for route in curved:
        assert route.label is not None
        assert route.label.center == pytest.approx(middle_of(route.points))


def sharpest_turn(points: Sequence[Point]) -> float:
    """The widest angle, in degrees, between two neighbouring pieces of a curve as it is drawn."""
    directions = [math.atan2(b[1] - a[1], b[0] - a[0]) for a, b in pairwise(along_curve(points))]
    return max(abs(math.degrees(math.remainder(b - a, math.tau))) for a, b in pairwise(directions))


def test_a_curved_arrow_leaves_and_arrives_at_right_angles_without_a_hook() -> None:
    for direction, axis in (("right", 0), ("down", 1)):
        data = graph(
            "a hub", "b hub", "c hub", "hub x", "hub y", edge={"kind": "curved"}, direction=direction
        )
        _, _, drawn = placed(data)
        curved = [route.points for route in drawn.routes.values() if len(route.points) > 3]
        assert len(curved) >= 3
        for points in curved:
            assert sharpest_turn(points) < 15
            assert [point[axis] for point in points] == sorted(point[axis] for point in points)
            for end, inner in ((points[0], points[1]), (points[-1], points[-2])):
                assert abs(end[1 - axis] - inner[1 - axis]) < abs(end[axis] - inner[axis]) / 2


def test_an_arrow_is_curved_beside_a_diamond_too() -> None:
    data = graph(
        "a d", "d x", "d y", edge={"kind": "curved", "label": "if"}, nodes={"d": {"shape": "diamond"}}
    )
    _, _, drawn = placed(data)
    assert {route.kind for route in drawn.routes.values()} == {"curved"}
    assert faults(data) == {}, data


def test_arrows_share_the_sharp_tip_of_a_diamond_and_stand_apart_where_one_leaves_and_one_enters() -> None:
    nodes = {"d": {"shape": "diamond", "label": "is it near enough?"}}
    _, _, drawn = placed(graph("a d", "b d", "d x", "d y", nodes=nodes))
    box = drawn.nodes["d"]
    ends = [route.points[-1] for route in drawn.routes.values()][:2]
    starts = [route.points[0] for route in drawn.routes.values()][2:]
    assert (ends, starts) == ([(box.x, box.center[1])] * 2, [(box.right, box.center[1])] * 2)
    _, _, drawn = placed(graph("d x", "x d", nodes=nodes))
    assert len({route.points[k] for route, k in zip(drawn.routes.values(), (0, -1), strict=True)}) == 2


def test_the_label_of_a_straight_arrow_makes_way_for_another() -> None:
    places = {"a": [0, 0], "b": [600, 300], "c": [0, 300], "d": [600, 0]}
    data = graph(
        "a b",
        "c d",
        nodes={key: {"at": at} for key, at in places.items()},
        edge={"kind": "straight", "label": "a label"},
    )
    _, _, drawn = placed(data)
    assert [route.kind for route in drawn.routes.values()] == ["straight", "straight"]
    assert faults(data) == {}, data
