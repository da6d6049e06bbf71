"""A drawing that a person edited is drawn anew, and what they did stays."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest

from plugins.diagram.skills.excalidraw.scripts.build_excalidraw import (
    THEMES,
    Document,
    Element,
    box_of,
    contains,
    faults,
    key_between,
    main,
    order_key_fault,
    overruled_words,
    read_spec,
    to_json,
    touch,
)
from tests.plugins.diagram.maps import draw_map, everything, named
from tests.plugins.diagram.random_specs import random_spec


@pytest.fixture
def file(tmp_path: Path) -> Document:
    return draw_map(everything(), tmp_path)


def drawn_by_hand(type_: str, id_: str, index: str, **fields: Any) -> Element:
    """An element as the editor writes it."""
    common = {
        "id": id_, "type": type_, "x": 900, "y": 900, "width": 100, "height": 50, "angle": 0,
        "strokeColor": "#1e1e1e", "backgroundColor": "transparent", "fillStyle": "solid", "strokeWidth": 2,
        "strokeStyle": "solid", "roughness": 1, "opacity": 100, "groupIds": [], "frameId": None,
        "index": index, "roundness": None, "seed": 5, "version": 9, "versionNonce": 7, "isDeleted": False,
        "boundElements": [], "updated": 1780000000000, "link": None, "locked": False,
    }  # fmt: skip
    return {**common, **fields}


def test_an_unchanged_file_is_written_again_to_the_byte(file: Document, tmp_path: Path) -> None:
    assert to_json(draw_map(everything(), tmp_path, file)) == to_json(file)


@pytest.mark.parametrize("seed", [0, 1, 11, 16])
def test_an_unchanged_file_of_any_spec_is_written_again_to_the_byte(seed: int, tmp_path: Path) -> None:
    spec = random_spec(seed)
    file = draw_map(spec, tmp_path)
    assert to_json(draw_map(spec, tmp_path, file)) == to_json(file)


def test_numbers_as_javascript_writes_them_are_no_edits(file: Document, tmp_path: Path) -> None:
    rewritten = json.loads(json.dumps(file), parse_int=float)
    assert to_json(draw_map(everything(), tmp_path, rewritten)) == to_json(file)


def test_places_stay_when_the_spec_grows(file: Document, tmp_path: Path) -> None:
    spec = everything()
    spec["nodes"].insert(0, {"id": "first", "label": "First"})
    spec["edges"].append({"from": "first", "to": "api"})
    new = draw_map(spec, tmp_path, file)
    for node in everything()["nodes"]:
        before, after = named(file, f"node {node['id']}"), named(new, f"node {node['id']}")
        assert (before["x"], before["y"]) == (after["x"], after["y"])


def test_a_node_that_was_dragged_stays_with_its_label(file: Document, tmp_path: Path) -> None:
    for name in ("node words", "node logo", "label of node logo"):
        named(file, name)["x"] -= 400
    new = draw_map(everything(), tmp_path, file)
    for name in ("node words", "node logo", "label of node logo"):
        assert named(new, name)["x"] == named(file, name)["x"]
    assert faults(new) == []


def test_a_node_that_was_dragged_stays_though_the_spec_gives_another_place(tmp_path: Path) -> None:
    spec = {"nodes": [{"id": "a", "at": [0, 0]}, {"id": "b", "at": [500, 0]}]}
    file = draw_map(spec, tmp_path)
    named(file, "node a").update(x=40, y=300)
    spec["nodes"][0]["at"], spec["nodes"][1]["at"] = [10, 10], [600, 0]
    new = draw_map(spec, tmp_path, file)
    assert [named(new, "node a")[k] for k in "xy"] == [40, 300]
    # The one that nobody dragged goes where the spec now says.
    assert [named(new, "node b")[k] for k in "xy"] == [600, 0]


def test_a_node_that_was_made_larger_stays_large(tmp_path: Path) -> None:
    file = draw_map({"nodes": [{"id": "a"}]}, tmp_path)
    named(file, "node a").update(width=400, height=200)
    new = draw_map({"nodes": [{"id": "a", "label": "more words"}]}, tmp_path, file)
    assert [named(new, "node a")[k] for k in ("width", "height")] == [400, 200]


def test_a_node_is_as_large_as_the_spec_says_when_that_changes(tmp_path: Path) -> None:
    file = draw_map({"nodes": [{"id": "a", "size": [300, 100]}]}, tmp_path)
    new = draw_map({"nodes": [{"id": "a", "size": [200, 80]}]}, tmp_path, file)
    assert [named(new, "node a")[k] for k in ("width", "height")] == [200, 80]
    without = draw_map({"nodes": [{"id": "a"}]}, tmp_path, new)
    assert (
        named(without, "node a")["width"]
        == named(draw_map({"nodes": [{"id": "a"}]}, tmp_path), "node a")["width"]
    )


def test_an_arrow_is_of_the_kind_that_the_spec_says_when_that_changes(tmp_path: Path) -> None:
    spec = {"nodes": [{"id": "a"}, {"id": "b"}], "edges": [{"from": "a", "to": "b", "kind": "straight"}]}
    file = draw_map(spec, tmp_path)
    spec["edges"][0]["kind"] = "elbow"
    assert named(draw_map(spec, tmp_path, file), "edge a -> b")["elbowed"]


def test_a_larger_font_of_a_person_stays_and_its_text_is_measured_anew(
    file: Document, tmp_path: Path
) -> None:
    names = ("label of node api", "title", "note note 1", "label of edge api -> queue")
    for name in names:
        named(file, name)["fontSize"] = 30
    new = draw_map(everything(), tmp_path, file)
    for name in names:
        text = named(new, name)
        assert text["fontSize"] == 30
        assert text["height"] == 37.5 * len(text["text"].split("\n"))


def test_a_new_label_in_a_larger_font_of_a_person_has_room(file: Document, tmp_path: Path) -> None:
    named(file, "label of node api")["fontSize"] = 40
    spec = everything()
    spec["nodes"][0]["label"] = "API servers of both regions"
    new = draw_map(spec, tmp_path, file)
    assert named(new, "label of node api")["fontSize"] == 40
    assert named(new, "label of node api")["height"] < named(new, "node api")["height"]


def test_colours_and_strokes_of_a_person_stay_when_the_theme_changes(file: Document, tmp_path: Path) -> None:
    named(file, "node api").update(strokeColor="#ff0000", backgroundColor="#ffeeee", strokeStyle="dotted")
    named(file, "edge api -> queue").update(strokeColor="#00ff00", strokeWidth=4)
    new = draw_map({**everything(), "theme": "light"}, tmp_path, file)
    api = named(new, "node api")
    assert (api["strokeColor"], api["backgroundColor"], api["strokeStyle"]) == (
        "#ff0000",
        "#ffeeee",
        "dotted",
    )
    assert named(new, "edge api -> queue")["strokeWidth"] == 4
    assert named(new, "node ready")["strokeColor"] == THEMES["light"].ink
    assert new["appState"]["viewBackgroundColor"] == THEMES["light"].background


def test_a_canvas_of_a_persons_own_colour_stays(file: Document, tmp_path: Path) -> None:
    file["appState"]["viewBackgroundColor"] = "#abcdef"
    assert draw_map(everything(), tmp_path, file)["appState"]["viewBackgroundColor"] == "#abcdef"


def test_an_edit_is_kept_again_and_again(file: Document, tmp_path: Path) -> None:
    named(file, "node api").update(strokeColor="#ff0000", x=-900)
    named(file, "label of node queue").update(text="Heap", originalText="Heap")
    once = draw_map(everything(), tmp_path, file)
    assert to_json(draw_map(everything(), tmp_path, once)) == to_json(once)
    assert named(once, "label of node queue")["text"] == "Heap"


def test_words_of_a_person_stay_until_the_spec_says_others(file: Document, tmp_path: Path) -> None:
    names = (
        "title",
        "label of node api",
        "label of edge api -> queue",
        "note note 1",
        "label of group inner",
    )
    for name in names:
        named(file, name).update(text="Mine", originalText="Mine")
    named(file, "group frame")["name"] = "Mine"
    new = draw_map(everything(), tmp_path, file)
    for name in names:
        assert named(new, name)["originalText"] == "Mine"
    assert named(new, "group frame")["name"] == "Mine"
    spec = everything()
    spec["nodes"][0]["label"] = "Gateway"
    assert named(draw_map(spec, tmp_path, new), "label of node api")["text"] == "Gateway"
    assert overruled_words(read_spec(spec), new) == ["label of node api: the file's 'Mine' is now 'Gateway'"]


def test_a_new_note_stands_on_no_border_of_a_group_that_a_person_made_larger(tmp_path: Path) -> None:
    spec: dict[str, Any] = {"groups": [{"id": "g", "label": "G"}], "nodes": [{"id": "a", "group": "g"}]}
    file = draw_map(spec, tmp_path)
    named(file, "group g")["height"] += 35
    spec["notes"] = [{"text": "Started by hand.", "near": "a"}]
    updated = draw_map(spec, tmp_path, file)
    group, note = (box_of(named(updated, name)) for name in ("group g", "note note 1"))
    assert group == box_of(named(file, "group g"))
    assert contains(group, note) or not touch(group, note)


def test_what_is_gone_from_the_spec_is_gone_from_the_file(file: Document, tmp_path: Path) -> None:
    spec = everything()
    spec["nodes"] = [node for node in spec["nodes"] if node["id"] != "replica"]
    spec["edges"] = [edge for edge in spec["edges"] if edge["to"] != "replica"]
    names = [e["customData"]["name"] for e in draw_map(spec, tmp_path, file)["elements"]]
    assert not [name for name in names if "replica" in name]


def test_groups_of_a_person_stay_inside_and_around_those_of_the_spec(file: Document, tmp_path: Path) -> None:
    for name in ("node api", "node words"):
        element = named(file, name)
        element["groupIds"] = ["inside", *element["groupIds"], "around"]
    new = draw_map(everything(), tmp_path, file)
    for name in ("node api", "node words"):
        assert named(new, name)["groupIds"] == named(file, name)["groupIds"]


def test_what_a_person_deleted_comes_back_while_the_spec_has_it(file: Document, tmp_path: Path) -> None:
    gone = {named(file, name)["id"] for name in ("node api", "label of node api")}
    ends = ("startBinding", "endBinding")
    file["elements"] = [element for element in file["elements"] if element["id"] not in gone]
    for element in file["elements"]:
        # As the editor does: the arrows of what is deleted stay, and hold on to nothing.
        element.update({end: None for end in ends if (element.get(end) or {}).get("elementId") in gone})
    assert faults(file) == []
    new = draw_map(everything(), tmp_path, file)
    api = named(new, "node api")["id"]
    assert named(new, "label of node api")["containerId"] == api
    assert named(new, "edge api -> queue")["startBinding"]["elementId"] == api
    assert box_of(named(new, "node queue")) == box_of(named(file, "node queue"))


def test_a_persons_own_elements_stay_with_their_bindings(file: Document, tmp_path: Path) -> None:
    box = drawn_by_hand("rectangle", "mine", "b00", boundElements=[{"type": "text", "id": "words"}])
    words = drawn_by_hand(
        "text", "words", "b01", text="by hand", originalText="by hand", fontSize=20, fontFamily=5,
        lineHeight=1.25, textAlign="center", verticalAlign="middle", containerId="mine", autoResize=True,
        width=80, height=25,
    )  # fmt: skip
    arrow = drawn_by_hand(
        "arrow", "pointing", "b02", points=[[0, 0], [100, 50]], startArrowhead=None, endArrowhead="arrow",
        elbowed=False, startBinding={"elementId": "mine", "fixedPoint": [0, 0.2], "mode": "orbit"},
        endBinding={"elementId": named(file, "node api")["id"], "fixedPoint": [1, 0.2], "mode": "orbit"},
    )  # fmt: skip
    file["elements"] += [box, words, arrow]
    for bound in (named(file, "node api"), box):
        bound["boundElements"].append({"type": "arrow", "id": "pointing"})
    assert faults(file) == []
    new = draw_map(everything(), tmp_path, file)
    assert [e for e in new["elements"] if e["id"] in ("mine", "words", "pointing")] == [box, words, arrow]
    assert {"type": "arrow", "id": "pointing"} in named(new, "node api")["boundElements"]
    # The node they point at leaves the spec: the arrow lets go of it.
    spec = everything()
    spec["nodes"], spec["edges"] = spec["nodes"][1:], spec["edges"][1:5]
    without = draw_map(spec, tmp_path, new)
    assert next(e for e in without["elements"] if e["id"] == "pointing")["endBinding"] is None


def test_a_copy_of_a_node_is_a_persons_own_element(file: Document, tmp_path: Path) -> None:
    copied = {**copy.deepcopy(named(file, "node words")), "id": "copied", "index": "b00", "boundElements": []}
    file["elements"].append(copied)
    new = draw_map(everything(), tmp_path, file)
    assert new["elements"][-1] == copied


def test_a_label_that_a_person_put_on_an_arrow_stays_after_it(file: Document, tmp_path: Path) -> None:
    arrow = named(file, "edge queue -> ready")
    words = drawn_by_hand(
        "text", "words", "zz", text="mine", originalText="mine", fontSize=20, fontFamily=5,
        lineHeight=1.25, textAlign="center", verticalAlign="middle", containerId=arrow["id"], autoResize=True,
        width=60, height=25, x=arrow["x"], y=arrow["y"],
    )  # fmt: skip
    words["index"] = arrow["index"] + "V"
    arrow["boundElements"].append({"type": "text", "id": "words"})
    file["elements"].insert(file["elements"].index(arrow) + 1, words)
    assert faults(file) == []
    assert [e["id"] for e in draw_map(everything(), tmp_path, file)["elements"]] == [
        e["id"] for e in file["elements"]
    ]
    # The arrow leads elsewhere: their label goes with it.
    moved = copy.deepcopy(file)
    for name in ("node ready", "label of node ready", "node queue", "label of node queue"):
        named(moved, name)["y"] += 700
    label = next(e for e in draw_map(everything(), tmp_path, moved)["elements"] if e["id"] == "words")
    assert label["y"] > words["y"] + 500
    # The spec gives that arrow a label of its own: theirs is not lost, it stands free.
    spec = everything()
    spec["edges"][1]["label"] = "spec's"
    new = draw_map(spec, tmp_path, file)
    assert next(e for e in new["elements"] if e["id"] == "words")["containerId"] is None


def test_an_element_in_a_frame_stays_before_the_frame(file: Document, tmp_path: Path) -> None:
    frame = named(file, "group frame")
    mine = drawn_by_hand(
        "ellipse", "mine", key_between(file["elements"][0]["index"], ""), frameId=frame["id"]
    )
    file["elements"].append({**mine, "index": "zzz"})
    new = draw_map(everything(), tmp_path, file)
    ids = [e["id"] for e in new["elements"]]
    assert ids.index("mine") < ids.index(frame["id"])


def test_the_way_of_an_arrow_that_a_person_bent_stays_while_its_ends_do(
    file: Document, tmp_path: Path
) -> None:
    arrow = named(file, "edge queue -> ready")
    bent = [[0, 0], [30, -80], arrow["points"][-1]]
    ys = [y for _, y in bent]
    arrow.update(
        points=bent, height=max(ys) - min(ys), width=max(30, arrow["points"][-1][0]), roundness={"type": 2}
    )
    assert faults(file) == []
    assert named(draw_map(everything(), tmp_path, file), "edge queue -> ready")["points"] == bent
    named(file, "node ready")["y"] += 400
    assert named(draw_map(everything(), tmp_path, file), "edge queue -> ready")["points"] != bent


@pytest.mark.parametrize("build", ["release", "master"])
def test_what_somebody_drew_and_wrote_in_excalidraw_stays(build: str, tmp_path: Path) -> None:
    edited = Path(__file__).parents[2] / "data" / "diagram" / f"edited-in-{build}.excalidraw"
    file = json.loads(edited.read_text("utf-8"))
    spec = {
        "nodes": [{"id": "a", "label": "Alpha"}, {"id": "b"}, {"id": "c"}],
        "edges": [{"from": "a", "to": "b"}, {"from": "b", "to": "c"}],
    }
    new = draw_map(spec, tmp_path, file)
    assert named(new, "label of node a")["originalText"] == "Alpha and a good many more words by hand"
    kept = {e["id"]: e for e in new["elements"]}
    by_hand = [e for e in file["elements"] if not e.get("customData")]
    assert len(by_hand) == 7
    for element in by_hand:
        same = kept[element["id"]]
        assert {k: same[k] for k in same if k != "boundElements"} == {
            k: element[k] for k in element if k != "boundElements"
        }
    assert named(new, "node c")["type"] == "rectangle"


def update_command(file: Document, folder: Path) -> tuple[int, Path]:
    """Runs the script on the whole map and that file: its exit status, and where the file is."""
    spec, out = folder / "map.json", folder / "map.excalidraw"
    spec.write_text(json.dumps(everything()))
    out.write_text(json.dumps(file))
    return main(["--spec", str(spec), "--update", str(out)]), out


def test_the_command_updates_the_file_in_place(
    file: Document, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    named(file, "node api")["strokeColor"] = "#ff0000"
    status, out = update_command(file, tmp_path)
    assert status == 0
    assert capsys.readouterr().out == f"{out}\n"
    assert named(json.loads(out.read_text()), "node api")["strokeColor"] == "#ff0000"


def test_a_file_that_is_broken_is_not_updated(
    file: Document, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    named(file, "node api")["x"] = "100"
    status, out = update_command(file, tmp_path)
    assert status == 1
    assert "x is '100', not a number" in capsys.readouterr().err
    assert json.loads(out.read_text()) == file


@pytest.mark.parametrize(
    ("low", "high"),
    [
        ("", ""), ("a0", ""), ("az", ""), ("", "a0"), ("", "a0V"), ("a0", "a1"), ("a0", "a01"), ("a0", "a0V"),
        ("a0z", "a1"), ("a4xyz123", "a4xyz123V"), ("a4abc", "a4abd"), ("a0", "a001"), ("a0zz", ""),
        ("b00", "b01"),
    ],
)  # fmt: skip
def test_a_key_between_two_is_valid_and_between_them(low: str, high: str) -> None:
    key = low
    for _ in range(40):
        between = key_between(key, high)
        assert order_key_fault(between) == ""
        assert key < between
        assert not high or between < high
        key = between
    key = high
    for _ in range(40):
        between = key_between(low, key)
        assert low < between
        assert not key or between < key
        key = between
