"""The drawings, opened and edited in the real Excalidraw, as it is released and as its master is."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser

from plugins.diagram.skills.excalidraw.scripts.build_excalidraw import faults
from tests.plugins.diagram.browser.editor import (
    BUILDS,
    Editor,
    NoEditorError,
    bundled,
    clipped_texts,
    left_behind,
)
from tests.plugins.diagram.drawing import drawing, drawn_by_chance, drawn_example, svg_of

EXAMPLES = ["ralph-layout", "ralph-map", "request", "shapes"]


@pytest.fixture(scope="module", params=BUILDS)
def editor(request: pytest.FixtureRequest, browser: Browser) -> Iterator[Editor]:
    """One tab for all tests: files come and go in it. No test may leave an error in its console."""
    try:
        bundled()
    except NoEditorError as error:
        pytest.skip(str(error))
    editor = Editor(browser, request.param)
    yield editor
    editor.close()
    assert editor.problems == []


@pytest.mark.parametrize("name", EXAMPLES)
def test_opening_an_example_changes_nothing_and_clips_nothing(editor: Editor, name: str) -> None:
    text = drawn_example(name)
    assert editor.changes(text) == []
    assert clipped_texts(editor, text) == []


@pytest.mark.parametrize("seed", range(10))
def test_opening_any_drawing_changes_nothing_and_clips_nothing(editor: Editor, seed: int) -> None:
    text = drawn_by_chance(seed)
    assert editor.changes(text) == []
    assert clipped_texts(editor, text) == []


@pytest.mark.parametrize("name", EXAMPLES)
def test_a_picture_opens_as_the_drawing_that_it_shows(editor: Editor, name: str) -> None:
    text = drawn_example(name)
    assert editor.read(svg_of(text)) == editor.read(text)


SPEC: dict[str, Any] = {
    "nodes": [
        {"id": "left", "label": "left", "at": [0, 0]},
        {"id": "middle", "label": "middle", "at": [400, 0]},
        {"id": "right", "label": "right", "at": [800, 0]},
    ],
    "edges": [
        {"id": "in", "from": "left", "to": "middle", "label": "in"},
        {"id": "out", "from": "middle", "to": "right"},
    ],
}


@pytest.mark.parametrize("shape", ["rectangle", "ellipse", "diamond"])
@pytest.mark.parametrize("kind", ["elbow", "straight", "curved"])
def test_arrows_and_labels_follow_a_node_that_is_dragged(editor: Editor, kind: str, shape: str) -> None:
    spec = json.loads(json.dumps(SPEC))
    spec["nodes"][1]["shape"] = shape
    for edge in spec["edges"]:
        edge["kind"] = kind
    editor.show(drawing(spec))
    assert left_behind(editor) == []


def test_a_frame_carries_what_is_in_it(editor: Editor) -> None:
    spec = {
        "groups": [{"id": "f", "label": "frame", "frame": True}],
        "nodes": [{"id": "inner", "label": "inner", "group": "f"}, {"id": "outer", "label": "outer"}],
    }
    editor.show(drawing(spec))
    before = editor.scene()
    frame = next(e for e in before.values() if e["type"] == "frame")
    editor.drag((frame["x"], frame["y"] + frame["height"] / 2), (50, 80))
    after = editor.scene()
    shift = after[frame["id"]]["y"] - frame["y"]
    assert shift > 50
    for id_, element in before.items():
        expected = shift if frame["id"] in (id_, element["frameId"]) else 0
        assert after[id_]["y"] - element["y"] == pytest.approx(expected, abs=0.01)


def test_what_a_person_moved_and_saved_stays_when_the_spec_grows(editor: Editor) -> None:
    editor.show(drawing(SPEC))
    before = editor.scene()
    assert left_behind(editor) == []
    saved = editor.saved()
    assert faults(json.loads(saved)) == []
    spec = json.loads(json.dumps(SPEC))
    spec["nodes"].append({"id": "new", "label": "new"})
    spec["edges"].append({"from": "new", "to": "middle"})
    text = drawing(spec, edited=saved)
    after = {element["id"]: element for element in json.loads(text)["elements"]}
    moved = {id_ for id_, old in before.items() if (old["x"], old["y"]) != (after[id_]["x"], after[id_]["y"])}
    middle = next(e["containerId"] for e in before.values() if e.get("text") == "middle")
    assert middle in moved
    for element in json.loads(saved)["elements"]:
        if element["id"] in (middle, *(before.keys() - moved)):
            assert (element["x"], element["y"]) == (after[element["id"]]["x"], after[element["id"]]["y"])
    assert len(after) == len(before) + 3
    assert editor.changes(text) == []
