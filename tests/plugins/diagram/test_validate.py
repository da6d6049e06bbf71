"""Files that are broken by hand in one way each, and the one line that says so."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from plugins.diagram.skills.excalidraw.scripts.build_excalidraw import Document, Element, faults, main
from tests.plugins.diagram.maps import draw_map, everything, named

# A map of two nodes on which somebody drew with every tool, in Excalidraw 0.18.1 and in its master.
EDITED = Path(__file__).parents[2] / "data" / "diagram"


def sets(name: str, key: str, value: object) -> Callable[[Document], str]:
    """Breaks one field of the element of that name; the fault is expected under its id."""

    def change(file: Document) -> str:
        element = named(file, name)
        element[key] = value
        return str(element["id"])

    return change


def without(name: str, key: str) -> Callable[[Document], str]:
    def change(file: Document) -> str:
        element = named(file, name)
        del element[key]
        return str(element["id"])

    return change


def unlists(name: str, listed: str) -> Callable[[Document], str]:
    """Takes the second element out of the first one's boundElements."""

    def change(file: Document) -> str:
        element, other = named(file, name), named(file, listed)
        element["boundElements"] = [b for b in element["boundElements"] if b["id"] != other["id"]]
        return str(other["id"])

    return change


def lists(name: str, *more: object) -> Callable[[Document], str]:
    def change(file: Document) -> str:
        element = named(file, name)
        element["boundElements"] += more
        return str(element["id"])

    return change


def binds(name: str, **fields: object) -> Callable[[Document], str]:
    def change(file: Document) -> str:
        element = named(file, name)
        element["startBinding"].update(fields)
        return str(element["id"])

    return change


def moves(name: str, before: str) -> Callable[[Document], str]:
    """Moves an element in front of another, and gives all of them their keys anew."""

    def change(file: Document) -> str:
        elements: list[Element] = file["elements"]
        element = named(file, name)
        keys = [e["index"] for e in elements]
        elements.remove(element)
        elements.insert(elements.index(named(file, before)), element)
        for e, key in zip(elements, keys, strict=True):
            e["index"] = key
        return str(element["id"])

    return change


def swaps_keys(file: Document) -> str:
    one, other = file["elements"][3:5]
    one["index"], other["index"] = other["index"], one["index"]
    return str(other["id"])


def doubles_a_key(file: Document) -> str:
    one, other = file["elements"][3:5]
    other["index"] = one["index"]
    return str(other["id"])


def doubles_an_id(file: Document) -> str:
    file["elements"].append({**named(file, "note note 1"), "index": "zzzzzzzzzzzzzzzzzzzzzzzzzzz"})
    return str(named(file, "note note 1")["id"])


def binds_to_nothing(file: Document) -> str:
    element = named(file, "edge api -> queue")
    element["endBinding"]["elementId"] = "gone"
    return unlists("node queue", "edge api -> queue")(file)


def makes_an_elbow_diagonal(file: Document) -> str:
    element = named(file, "edge api -> queue")
    element["points"] = [[0, 0], [element["width"], element["height"] + 30]]
    element["height"] += 30
    return str(element["id"])


def changes_the_picture(**fields: str) -> Callable[[Document], str]:
    def change(file: Document) -> str:
        next(iter(file["files"].values())).update(fields)
        return str(named(file, "node logo")["id"])

    return change


def deletes(name: str, hanging: str) -> Callable[[Document], str]:
    """Marks one element as deleted; the fault is expected under the id of the other, which needs it."""

    def change(file: Document) -> str:
        named(file, name)["isDeleted"] = True
        return str(named(file, hanging)["id"])

    return change


def flattens_a_shape(file: Document) -> str:
    named(file, "node api")["height"] = 20
    return str(named(file, "label of node api")["id"])


def shrinks_an_arrow_to_a_point(file: Document) -> str:
    element = named(file, "edge api -> queue")
    element.update(points=[[0, 0], [0, 0]], width=0, height=0)
    return str(element["id"])


def has_a_name_of_two_lines(file: Document) -> str:
    named(file, "note note 1").update(id="of two\nlines", x="0")
    return "of two\\nlines"


def takes_the_file_away(file: Document) -> str:
    file["files"] = {}
    return str(named(file, "node logo")["id"])


def swaps_two_labels(file: Document) -> str:
    one, other = named(file, "label of node api"), named(file, "label of node queue")
    one["containerId"], other["containerId"] = other["containerId"], one["containerId"]
    return str(one["id"])


def hangs_a_label_on_text(file: Document) -> str:
    named(file, "label of node api")["containerId"] = named(file, "node words")["id"]
    return unlists("node api", "label of node api")(file)


# What is done to a sound file, and what the validator has to say of it.
BROKEN: dict[str, tuple[Callable[[Document], str], str]] = {
    "a coordinate is text": (sets("node api", "x", "100"), "x is '100', not a number"),
    "a coordinate is nothing": (sets("node api", "y", None), "y is None, not a number"),
    "a coordinate is not a number": (sets("node api", "y", float("nan")), "y is nan, not a number"),
    "a number is true": (sets("node api", "opacity", True), "opacity is True, not a number"),
    "a width is negative": (sets("node words", "width", -5), "width is -5, below 0"),
    "a shape has no height": (sets("node queue", "height", 0), "has no size"),
    "a place is out of reach": (sets("note note 1", "x", 1e6), "further than 75,000 px"),
    "an opacity is too high": (sets("node api", "opacity", 900), "opacity is 900, not 0 to 100"),
    "a field is missing": (without("node api", "seed"), "seed is missing"),
    "a text has no container field": (without("label of node api", "containerId"), "containerId is missing"),
    "a type is unknown": (sets("node api", "type", "rectagle"), "did you mean 'rectangle'?"),
    "an id is missing": (sets("note note 1", "id", ""), "id is '', not a text"),
    "an id is there twice": (doubles_an_id, "2 elements have this id"),
    "a fill style is unknown": (sets("node api", "fillStyle", "dots"), "fillStyle is 'dots', not one of"),
    "a colour is none": (sets("node api", "strokeColor", "#12345"), "strokeColor is '#12345', not a colour"),
    "roundness is a number": (sets("node api", "roundness", 8), "roundness is 8, not null"),
    "groupIds is a text": (sets("node api", "groupIds", "g"), "groupIds is no list"),
    "a link is a script": (sets("node api", "link", "javascript:alert(1)"), "link 'javascript:alert(1)'"),
    "a link has quotes": (
        sets("node api", "link", 'https://example.org/"'),
        "is not one that Excalidraw opens",
    ),
    "an index is missing": (sets("node api", "index", None), "index is None, not a key"),
    "an index is padded with zeros": (sets("node api", "index", "a0000"), "ends in 0"),
    "an index is too short": (sets("node api", "index", "c0"), "too short"),
    "an index is there twice": (doubles_a_key, "is also that of the element before"),
    "indices do not ascend": (swaps_keys, "sorts before"),
    "a container does not list its label": (unlists("node api", "label of node api"), "does not list it"),
    "an arrow does not list its label": (
        unlists("edge api -> queue", "label of edge api -> queue"),
        "does not list it",
    ),
    "a shape does not list its arrow": (unlists("node api", "edge api -> queue"), "would stay behind"),
    "a shape lists what is not there": (lists("node api", {"id": "gone", "type": "arrow"}), "lists 'gone'"),
    "a shape lists things without ids": (lists("node api", {"type": "arrow"}), "no list of {type, id}"),
    "a label's container is not there": (sets("label of node api", "containerId", "gone"), "names 'gone'"),
    "two labels are swapped": (swaps_two_labels, "does not list it"),
    "a label hangs on a text": (hangs_a_label_on_text, "a text has no label"),
    "a label does not follow its container": (
        moves("label of node api", "title"),
        "does not directly follow",
    ),
    "a binding names nothing": (binds_to_nothing, "endBinding names 'gone', which is not there"),
    "a binding has no point": (binds("edge api -> queue", fixedPoint=None), "is None, not two numbers"),
    "a binding's point is in px": (
        binds("edge api -> queue", fixedPoint=[100, 30]),
        "share of the shape's size",
    ),
    "a binding's point is an exact half": (binds("edge api -> queue", fixedPoint=[1, 0.5]), "0.5001"),
    "a binding's mode is unknown": (binds("edge api -> queue", mode="near"), "not orbit, inside or skip"),
    "a binding is a text": (
        sets("edge api -> queue", "endBinding", "queue"),
        "not an object with an elementId",
    ),
    "an elbow arrow goes diagonally": (makes_an_elbow_diagonal, "diagonal segment"),
    "an arrow has one point": (sets("edge api -> queue", "points", [[0, 0]]), "fewer than two points"),
    "an arrow does not begin at 0": (
        sets("edge api -> api", "points", [[5, 5], [9, 5]]),
        "its first point is",
    ),
    "an arrow's size is not that of its points": (
        sets("edge api -> api", "width", 900),
        "but its points take",
    ),
    "an arrow's points are objects": (sets("edge api -> api", "points", [{"x": 0}] * 2), "no list of pairs"),
    "an arrowhead is unknown": (sets("edge api -> api", "endArrowhead", "arow"), "endArrowhead is 'arow'"),
    "a frame is not there": (sets("node words", "frameId", "gone"), "frameId names 'gone'"),
    "a frame is no frame": (
        lambda file: sets("node words", "frameId", named(file, "node api")["id"])(file),
        "which is a rectangle",
    ),
    "a frame comes before what is in it": (moves("label of node db", "title"), "comes after its frame"),
    "a font is unknown": (sets("node words", "fontFamily", 4), "fontFamily is 4, not one of"),
    "a text is clipped": (sets("node words", "width", 40), "is clipped"),
    "a text is too high": (sets("label of node db", "height", 20), "lines takes"),
    "a label is wider than its room": (sets("label of node api", "width", 400), "has room for"),
    "a text is empty": (sets("node words", "text", " "), "is empty, and Excalidraw drops it"),
    "an image has no file": (takes_the_file_away, "is not in files"),
    "a file has no data": (changes_the_picture(dataURL=""), "has no dataURL"),
    "a file is no picture": (
        changes_the_picture(mimeType="text/html", dataURL="data:text/html;base64,AAAA"),
        "is 'text/html', no picture",
    ),
    "a file is not in Base64": (changes_the_picture(dataURL="data:image/png;base64,@"), "is not in Base64"),
    "a file only says that it is a picture": (
        changes_the_picture(dataURL="data:image/png;base64,aGVsbG8="),
        "called 'image/png', but holds no picture",
    ),
    "an image is scaled to nothing": (sets("node logo", "scale", [0, 0]), "scale is [0, 0], not two numbers"),
    "a label's shape is deleted": (deletes("node api", "label of node api"), "not there, or is deleted"),
    "a shape's label is deleted": (deletes("label of node api", "node api"), "not there, or is deleted"),
    "an arrow's shape is deleted": (deletes("node api", "edge api -> queue"), "not there, or is deleted"),
    "a frame is deleted": (deletes("group frame", "node db"), "not there, or is deleted"),
    "a frame's name is a number": (sets("group frame", "name", 5), "name is 5, neither null nor a text"),
    "a label is far off its shape": (sets("label of node api", "x", 9000), "stands outside its container"),
    "a label is far off its arrow": (
        sets("label of edge api -> queue", "y", 9000),
        "stands outside its container",
    ),
    "a label is higher than its shape": (flattens_a_shape, "px high, but its container"),
    "a text was written over": (sets("label of node api", "originalText", "other"), "is other words than"),
    "an angle is in degrees": (sets("node api", "angle", 90), "more than a turn: it is in radians"),
    "an arrow is a point": (shrinks_an_arrow_to_a_point, "begins and ends at one point"),
    "an elbow arrow's segments are a text": (
        sets("edge api -> queue", "fixedSegments", "x"),
        "neither null nor a list",
    ),
    "a number has hundreds of digits": (sets("node api", "x", 10**400), "not a number"),
    "a value is a whole book": (sets("node api", "x", "q" * 100_000), "not a number"),
    "an id is of two lines": (has_a_name_of_two_lines, "not a number"),
}


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> str:
    return json.dumps(draw_map(everything(), tmp_path_factory.mktemp("map")))


def test_the_file_that_is_broken_below_is_sound(sound: str) -> None:
    assert faults(json.loads(sound)) == []


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_file_is_named_in_a_line_with_its_element(sound: str, name: str) -> None:
    breaks, says = BROKEN[name]
    file: Document = json.loads(sound)
    id_ = breaks(file)
    found = faults(file)
    assert [fault for fault in found if says in fault and fault.startswith(id_ and f"{id_}: ")], found
    assert all("\n" not in fault and len(fault) <= 300 for fault in found)


@pytest.mark.parametrize("name", BROKEN)
def test_one_mistake_is_not_told_as_many(sound: str, name: str) -> None:
    file: Document = json.loads(sound)
    BROKEN[name][0](file)
    # The most: two labels in each other's place are each in the wrong list, place and order.
    assert 1 <= len(faults(file)) <= 8


@pytest.mark.parametrize(
    ("file", "says"),
    [
        ([], "file: is not a JSON object"),
        ({}, "file: type is None"),
        ({"type": "excalidraw", "version": 1}, "file: version is 1, not 2"),
        ({"type": "excalidraw", "version": 2}, "file: elements is no list"),
        ({"elements": [], "appState": []}, "file: appState is no object"),
        ({"elements": [7]}, "elements[0]: is not an object"),
        ({"elements": [{"id": ["a"]}]}, "elements[0]: id is ['a'], not a text"),
    ],
)
def test_what_is_no_drawing_at_all_is_said(file: object, says: str) -> None:
    assert any(fault.startswith(says) for fault in faults(file))


@pytest.mark.parametrize("value", [None, 1, -1.5, "x", [], {}, [[]], [None], {"type": 1}, True])
def test_no_value_of_any_field_makes_the_validator_fail(sound: str, value: object) -> None:
    file: Document = json.loads(sound)
    of_each_type = {element["type"]: i for i, element in enumerate(file["elements"])}
    for i in of_each_type.values():
        element = file["elements"][i]
        for key in element:
            file["elements"][i] = {**element, key: value}
            faults(file)
        file["elements"][i] = element
    for key in file:
        faults({**file, key: value})


@pytest.mark.parametrize("build", ["release", "master"])
def test_a_file_that_excalidraw_itself_saved_is_sound(build: str) -> None:
    assert faults(json.loads((EDITED / f"edited-in-{build}.excalidraw").read_text("utf-8"))) == []


@pytest.mark.parametrize("link", ["obsidian://open?vault=a", "[[A note]]", "tel:12", "#there", "docs/a.md"])
def test_a_link_of_any_kind_that_excalidraw_keeps_is_sound(sound: str, link: str) -> None:
    file: Document = json.loads(sound)
    named(file, "node api")["link"] = link
    assert faults(file) == []


def test_deleted_elements_are_not_asked_what_they_refer_to(sound: str) -> None:
    file: Document = json.loads(sound)
    for element in file["elements"]:
        element["isDeleted"] = True
    named(file, "label of node api")["containerId"] = "gone"
    assert faults(file) == []


def test_arrows_of_older_files_have_no_fixed_point_and_are_sound(sound: str) -> None:
    file: Document = json.loads(sound)
    arrow = named(file, "edge queue -> ready")
    for end in ("startBinding", "endBinding"):
        arrow[end] = {"elementId": arrow[end]["elementId"], "focus": 0.1, "gap": 4}
    assert faults(file) == []


def test_the_command_ends_in_1_and_names_the_file(
    sound: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file: Document = json.loads(sound)
    id_ = sets("node api", "x", "100")(file)
    path = tmp_path / "broken.excalidraw"
    path.write_text(json.dumps(file))
    assert main(["--validate", str(path)]) == 1
    assert capsys.readouterr().out == f"{path}: {id_}: x is '100', not a number\n"


SVG = "<svg><!-- payload-start -->{}<!-- payload-end --></svg>"


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("a.excalidraw", b"", ":1: is not JSON"),
        ("a.excalidraw", b"{\n]", ":2: is not JSON"),
        ("a.excalidraw", b"\x89PNG\r\n\x1a\n", ": is not UTF-8"),
        ("a.excalidraw", "{}".encode("utf-16"), ": is not UTF-8"),
        ("a.excalidraw", b"[" * 200_000, ": is JSON with too many digits or levels"),
        ("a.excalidraw", b"9" * 5000, ": is JSON with too many digits or levels"),
        ("a.excalidraw.svg", b"<svg/>", ": carries no Excalidraw drawing"),
        ("a.excalidraw.svg", SVG.format("@@").encode(), ": the drawing in it is cut off or damaged"),
        ("a.excalidraw.svg", SVG.format("WzFd").encode(), ": the drawing in it is cut off or damaged"),
    ],
)
def test_a_file_that_cannot_be_read_is_named_in_a_line_and_the_next_is_read_all_the_same(
    name: str, content: bytes, says: str, sound: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, other = tmp_path / name, tmp_path / "sound.excalidraw"
    path.write_bytes(content)
    other.write_text(sound, encoding="utf-8-sig")
    assert main(["--validate", str(path), str(other)]) == 1
    first, second = capsys.readouterr().out.splitlines()
    assert first.startswith(f"{path}{says}")
    assert second == f"{other}: sound"
