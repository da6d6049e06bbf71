"""What is written is what Excalidraw keeps, the same for the same spec."""

from __future__ import annotations

import itertools
import json
import re
from pathlib import Path
from typing import Any

import pytest

from plugins.diagram.skills.excalidraw.scripts import build_excalidraw
from plugins.diagram.skills.excalidraw.scripts.build_excalidraw import (
    DiagramError,
    Document,
    Element,
    build,
    faults,
    main,
    on_outline,
    order_key_fault,
    read_spec,
)
from tests.plugins.diagram.maps import draw_map, everything, named


def test_a_map_with_one_of_everything_is_sound(tmp_path: Path) -> None:
    assert faults(draw_map(everything(), tmp_path)) == []


def test_every_element_has_the_fields_that_excalidraw_fills_in_otherwise(tmp_path: Path) -> None:
    common = set(build_excalidraw.COMMON_FIELDS) | {"id", "type", "customData"}
    for element in draw_map(everything(), tmp_path)["elements"]:
        assert common | set(build_excalidraw.TYPE_FIELDS.get(element["type"], ())) <= set(element)


def test_the_same_spec_gives_the_same_bytes(tmp_path: Path) -> None:
    one, other = draw_map(everything(), tmp_path), draw_map(everything(), tmp_path)
    assert build_excalidraw.to_json(one) == build_excalidraw.to_json(other)


def test_a_new_node_adds_its_elements_and_changes_no_others_id_seed_or_index(tmp_path: Path) -> None:
    spec = everything()
    before = draw_map(spec, tmp_path)
    spec["nodes"].insert(2, {"id": "new", "label": "New"})
    after = draw_map(spec, tmp_path)
    kept = {e["id"]: e for e in after["elements"]}
    for element in before["elements"]:
        same = kept.pop(element["id"])
        assert [element[k] for k in ("seed", "versionNonce", "index")] == [
            same[k] for k in ("seed", "versionNonce", "index")
        ]
    assert {e["customData"]["name"] for e in kept.values()} == {"node new", "label of node new"}


def test_a_changed_label_changes_only_the_lines_of_what_moves(tmp_path: Path) -> None:
    spec = everything()
    before = build_excalidraw.to_json(draw_map(spec, tmp_path)).splitlines()
    spec["nodes"][1]["label"] = "Heap!"
    after = build_excalidraw.to_json(draw_map(spec, tmp_path)).splitlines()
    changed = [(a, b) for a, b in itertools.zip_longest(before, after) if a != b]
    assert 0 < len(changed) <= 8


def test_keys_are_valid_and_ascend_in_the_order_of_the_elements(tmp_path: Path) -> None:
    keys = [e["index"] for e in draw_map(everything(), tmp_path)["elements"]]
    assert [order_key_fault(key) for key in keys] == [""] * len(keys)
    assert keys == sorted(set(keys))


@pytest.mark.parametrize(
    "key", ["a0", "az", "b00", "b10", "c000", "Zz", "Y00", "a0V", "a0z1", "zzzzzzzzzzzzzzzzzzzzzzzzzzz"]
)
def test_keys_of_the_fractional_indexing_library_are_valid(key: str) -> None:
    assert order_key_fault(key) == ""


@pytest.mark.parametrize(
    "key", [None, "", 1, "a", "a00", "a10", "a010", "b0", "0a", "a-1", "é0", "A" + "0" * 26]
)
def test_keys_that_excalidraw_rewrites_are_not_valid(key: object) -> None:
    assert order_key_fault(key) != ""


def test_arrows_and_shapes_know_each_other(tmp_path: Path) -> None:
    file = draw_map(everything(), tmp_path)
    by_id = {e["id"]: e for e in file["elements"]}
    arrows = [e for e in file["elements"] if e["type"] == "arrow"]
    assert len(arrows) == 7
    for arrow in arrows:
        for end in (arrow["startBinding"], arrow["endBinding"]):
            assert {"type": "arrow", "id": arrow["id"]} in by_id[end["elementId"]]["boundElements"]


def test_an_arrow_ends_near_the_outline_of_its_shapes_and_outside(tmp_path: Path) -> None:
    file = draw_map(everything(), tmp_path)
    by_id = {e["id"]: e for e in file["elements"]}
    for arrow in (e for e in file["elements"] if e["type"] == "arrow"):
        for end, binding in ((0, "startBinding"), (-1, "endBinding")):
            shape = by_id[arrow[binding]["elementId"]]
            x, y = arrow["x"] + arrow["points"][end][0], arrow["y"] + arrow["points"][end][1]
            assert distance_to_box(x, y, shape) <= 60
            assert not is_well_inside(x, y, shape)


def distance_to_box(x: float, y: float, shape: Element) -> float:
    right, bottom = shape["x"] + shape["width"], shape["y"] + shape["height"]
    return float(max(shape["x"] - x, x - right, shape["y"] - y, y - bottom, 0))


def is_well_inside(x: float, y: float, shape: Element) -> bool:
    u = abs(x - shape["x"] - shape["width"] / 2) / (shape["width"] / 2)
    v = abs(y - shape["y"] - shape["height"] / 2) / (shape["height"] / 2)
    return bool({"ellipse": u * u + v * v, "diamond": u + v}.get(shape["type"], max(u, v)) < 0.95)


@pytest.mark.parametrize(
    ("shape", "before", "end", "meets"),
    [
        ("rectangle", (-50, 20), (0, 20), (0, 20)),
        ("ellipse", (-50, 20), (0, 20), (0, 20)),
        ("ellipse", (50, -30), (50, 0), (50, 0)),
        ("diamond", (-50, 10), (0, 10), (25, 10)),
        ("diamond", (150, 30), (100, 30), (75, 30)),
        ("ellipse", (-10, -5), (0, -5), (0, -5)),
    ],
)
def test_a_ray_stops_at_the_outline(shape: str, before: Any, end: Any, meets: Any) -> None:
    box: Element = {"type": shape, "x": 0, "y": 0, "width": 100, "height": 40}
    assert on_outline(before, end, box) == pytest.approx(meets)


def test_elbow_arrows_have_no_diagonal_segment(tmp_path: Path) -> None:
    for arrow in draw_map(everything(), tmp_path)["elements"]:
        if arrow.get("elbowed"):
            assert all(a[0] == b[0] or a[1] == b[1] for a, b in itertools.pairwise(arrow["points"]))


def test_the_label_of_an_arrow_is_at_the_arrows_middle_point(tmp_path: Path) -> None:
    file = draw_map(everything(), tmp_path)
    by_id = {e["id"]: e for e in file["elements"]}
    labels = [e for e in file["elements"] if e["customData"]["name"].startswith("label of edge")]
    assert len(labels) == 4
    for label in labels:
        arrow = by_id[label["containerId"]]
        x, y = build_excalidraw.middle_of([(p[0], p[1]) for p in arrow["points"]])
        center = label["x"] + label["width"] / 2 - arrow["x"], label["y"] + label["height"] / 2 - arrow["y"]
        assert center == pytest.approx((x, y), abs=1.5)


def test_labels_follow_their_containers_directly(tmp_path: Path) -> None:
    elements = draw_map(everything(), tmp_path)["elements"]
    for before, element in itertools.pairwise(elements):
        if element.get("containerId"):
            assert before["id"] == element["containerId"]


def test_a_frame_comes_after_what_is_in_it(tmp_path: Path) -> None:
    file = draw_map(everything(), tmp_path)
    ids = [e["id"] for e in file["elements"]]
    frame = named(file, "group frame")
    members = [e["id"] for e in file["elements"] if e["frameId"] == frame["id"]]
    assert {named(file, "node db")["id"], named(file, "label of node db")["id"]} <= set(members)
    assert all(ids.index(member) < ids.index(frame["id"]) for member in members)


def test_what_is_in_nested_groups_is_selected_with_them_innermost_first(tmp_path: Path) -> None:
    file = draw_map(everything(), tmp_path)
    inner, outer = named(file, "group inner"), named(file, "group outer")
    assert named(file, "node api")["groupIds"] == [inner["id"], outer["id"]]
    assert named(file, "node ready")["groupIds"] == [outer["id"]]
    # What lies under the other is drawn first.
    assert outer["index"] < inner["index"] < named(file, "node api")["index"]


def test_an_image_carries_its_file_and_its_label_below(tmp_path: Path) -> None:
    file = draw_map(everything(), tmp_path)
    image, label = named(file, "node logo"), named(file, "label of node logo")
    assert file["files"][image["fileId"]]["dataURL"].startswith("data:image/png;base64,")
    assert label["y"] >= image["y"] + image["height"]
    assert image["groupIds"] == label["groupIds"] != []


def test_given_places_and_sizes_are_kept(tmp_path: Path) -> None:
    spec = everything()
    spec["nodes"][5].update(at=[-700, 50.5])
    spec["nodes"].append({"id": "there", "label": "There", "at": [-700, -90], "size": [200, 90]})
    file = draw_map(spec, tmp_path)
    assert [named(file, "node words")[k] for k in ("x", "y")] == [-700, 50.5]
    assert [named(file, "node there")[k] for k in ("x", "y", "width", "height")] == [-700, -90, 200, 90]


@pytest.mark.parametrize(
    "id_", ['say "so"', "it's", "<b>", "a/b", "日本", "🦀", "__proto__", "-", " spaced out "]
)
def test_any_id_gives_a_plain_element_id(tmp_path: Path, id_: str) -> None:
    spec = {"nodes": [{"id": id_}, {"id": "other"}], "edges": [{"from": id_, "to": "other"}]}
    file = draw_map(spec, tmp_path)
    assert all(re.fullmatch(r"[a-z0-9-]+", e["id"]) for e in file["elements"])
    assert len({e["id"] for e in file["elements"]}) == 5


def test_ids_that_read_alike_are_told_apart(tmp_path: Path) -> None:
    file = draw_map({"nodes": [{"id": "a b"}, {"id": "a-b"}, {"id": "A b"}]}, tmp_path)
    assert len({e["id"] for e in file["elements"]}) == 6


def test_two_arrows_between_one_pair_and_a_cycle_and_a_loop_are_all_drawn(tmp_path: Path) -> None:
    edges = [
        {"from": "a", "to": "b"},
        {"from": "a", "to": "b"},
        {"from": "b", "to": "a"},
        {"from": "a", "to": "a"},
    ]
    file = draw_map({"nodes": [{"id": "a"}, {"id": "b"}], "edges": edges}, tmp_path)
    arrows = [e for e in file["elements"] if e["type"] == "arrow"]
    assert len({json.dumps([a["x"], a["y"], a["points"]]) for a in arrows}) == 4


def test_200_nodes_are_drawn(tmp_path: Path) -> None:
    nodes = [{"id": f"n{i}", "label": f"node {i}"} for i in range(200)]
    edges = [{"from": f"n{i // 3}", "to": f"n{i}"} for i in range(1, 200)]
    assert len(draw_map({"nodes": nodes, "edges": edges}, tmp_path)["elements"]) == 599


def test_an_empty_map_is_a_sound_file(tmp_path: Path) -> None:
    assert draw_map({}, tmp_path)["elements"] == []


def test_themes_set_the_colours_and_keys_override_them(tmp_path: Path) -> None:
    slate = draw_map({"nodes": [{"id": "a"}]}, tmp_path)
    assert slate["appState"]["viewBackgroundColor"] == build_excalidraw.THEMES["slate"].background
    assert {e["backgroundColor"] for e in slate["elements"]} == {"transparent"}
    theme = {"base": "print", "ink": "#112233", "font": "hand", "palette": {"brand": "#00ff00"}}
    own = draw_map({"theme": theme, "nodes": [{"id": "a"}, {"id": "b", "color": "brand"}]}, tmp_path)
    assert named(own, "node a")["strokeColor"] == "#112233"
    assert named(own, "node b")["strokeColor"] == "#00ff00"
    assert named(own, "label of node a")["fontFamily"] == 5


def test_every_theme_knows_the_same_colours(tmp_path: Path) -> None:
    for theme in build_excalidraw.THEMES:
        for color in build_excalidraw.ON_LIGHT:
            draw_map({"theme": theme, "nodes": [{"id": "a", "color": color}]}, tmp_path)


THEME_FILES = Path(build_excalidraw.__file__).parents[1] / "themes"


@pytest.mark.parametrize("path", sorted(THEME_FILES.glob("*.json")), ids=lambda path: path.stem)
def test_a_theme_file_draws_a_map(path: Path, tmp_path: Path) -> None:
    theme = json.loads(path.read_text())
    file = draw_map({**everything(), "theme": theme}, tmp_path)
    assert file["appState"]["viewBackgroundColor"] == theme["background"]


def test_an_unsound_drawing_is_not_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(build_excalidraw, "FARTHEST_PX", 10**9)
    spec = read_spec({"nodes": [{"id": "a", "at": [10**6, 0]}]})
    with pytest.raises(DiagramError, match="not sound, and was not written:\nnode-a"):
        build(spec, tmp_path)


def test_the_command_writes_what_it_validates(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    draw_map(everything(), tmp_path)
    spec, out = tmp_path / "map.json", tmp_path / "map.excalidraw"
    spec.write_text(json.dumps(everything()))
    assert main(["--spec", str(spec), "--out", str(out), "--theme", "light"]) == 0
    assert main(["--validate", str(out)]) == 0
    assert capsys.readouterr().out == f"{out}\n{out}: sound\n"
    file: Document = json.loads(out.read_text())
    assert file["appState"]["viewBackgroundColor"] == "#ffffff"


@pytest.mark.parametrize("kind", ["elbow", "straight", "curved"])
@pytest.mark.parametrize("at", [[0, 0], [10, 0], [40, 20], [150, 70]])
def test_nodes_that_are_put_onto_each_other_have_sound_arrows(
    tmp_path: Path, at: list[int], kind: str
) -> None:
    nodes = [
        {"id": "a", "at": [0, 0], "size": [400, 300]},
        {"id": "b", "at": at},
        {"id": "c", "at": [900, 700]},
    ]
    edges = [{"from": a, "to": b, "kind": kind, "label": "x"} for a, b in ("ab", "ba", "cb", "bc")]
    assert faults(draw_map({"nodes": nodes, "edges": edges}, tmp_path)) == []
