"""The picture shows what the drawing has, and carries the drawing itself."""

from __future__ import annotations

import json
import re
import shutil
import struct
from pathlib import Path
from xml.etree import ElementTree

import pytest

from plugins.diagram.skills.excalidraw.scripts.build_excalidraw import (
    DiagramError,
    Document,
    curved_path,
    draw_svg,
    drawing_in_svg,
    faults,
    main,
    picture_box,
    png_commands,
    rounded_path,
)
from tests.plugins.diagram.maps import draw_map, everything, named

SVG = "{http://www.w3.org/2000/svg}"
# A text with everything that could end an attribute, an element, a comment or the metadata early.
HARD = "\"<b>' &amp; --> ]]> </svg> \\ 日本 🦀"


@pytest.fixture
def file(tmp_path: Path) -> Document:
    return draw_map(everything(), tmp_path)


def test_the_picture_carries_the_drawing(file: Document) -> None:
    assert drawing_in_svg(draw_svg(file)) == file


def test_the_same_drawing_gives_the_same_picture(file: Document) -> None:
    assert draw_svg(file) == draw_svg(json.loads(json.dumps(file)))


def test_texts_are_escaped_and_come_back_whole(tmp_path: Path) -> None:
    spec = {
        "title": HARD,
        "nodes": [{"id": HARD, "label": HARD, "link": "https://example.org/?a=1&b='2'"}, {"id": "b"}],
        "edges": [{"from": HARD, "to": "b", "label": HARD}],
    }
    file = draw_map(spec, tmp_path)
    svg = draw_svg(file)
    assert drawing_in_svg(svg) == file
    root = ElementTree.fromstring(svg)
    words = "".join("".join(text.itertext()) for text in root.iter(f"{SVG}text"))
    assert re.sub(r"\s", "", HARD) in re.sub(r"\s", "", words)
    assert [link.get("href") for link in root.iter(f"{SVG}a")] == ["https://example.org/?a=1&b='2'"]


def test_every_element_is_in_the_picture(file: Document) -> None:
    root = ElementTree.fromstring(draw_svg(file))
    n_lines = sum(e["text"].count("\n") + 1 for e in file["elements"] if e["type"] == "text")
    assert len(list(root.iter(f"{SVG}tspan"))) == n_lines
    assert len(list(root.iter(f"{SVG}ellipse"))) == 1
    assert len(list(root.iter(f"{SVG}image"))) == 1
    assert len(list(root.iter(f"{SVG}mask"))) == sum("label" in edge for edge in everything()["edges"])


def test_nothing_is_outside_the_picture(file: Document) -> None:
    box = picture_box(file["elements"])
    for element in file["elements"]:
        for x, y in element.get("points", [[0, 0], [element["width"], element["height"]]]):
            assert box.x < element["x"] + x < box.right
            assert box.y < element["y"] + y < box.bottom


def test_lines_are_told_the_width_that_they_were_measured_with(tmp_path: Path) -> None:
    file = draw_map({"nodes": [{"id": "a", "label": "API server"}]}, tmp_path)
    (span,) = ElementTree.fromstring(draw_svg(file)).iter(f"{SVG}tspan")
    assert float(span.attrib["textLength"]) <= named(file, "label of node a")["width"]


def test_lines_with_estimated_characters_are_drawn_as_wide_as_they_are(tmp_path: Path) -> None:
    file = draw_map({"nodes": [{"id": "a", "label": "日本"}]}, tmp_path)
    assert "textLength" not in draw_svg(file)


def test_the_picture_asks_nothing_of_the_network(file: Document) -> None:
    svg = draw_svg(file)
    assert not re.search(
        r'(src|url|@import|href)\s*[=(:]\s*["\']?(https?:)?//', svg.replace("https://example.org/api", "")
    )
    assert "<script" not in svg


def test_elements_of_a_person_are_drawn_as_well(file: Document) -> None:
    line = {**named(file, "edge words -> logo"), "id": "mine", "type": "line", "angle": 0.5, "opacity": 40}
    line.update(startBinding=None, endBinding=None, elbowed=False, endArrowhead=None, strokeStyle="dotted")
    sketch = {**line, "type": "freedraw", "id": "sketch", "points": [[0, 0, 0.5], [5, 5, 0.5]]}
    page = {**named(file, "node api"), "id": "page", "type": "embeddable"}
    file["elements"] += [line, sketch, page]
    root = ElementTree.fromstring(draw_svg(file))
    assert len([g for g in root.iter(f"{SVG}g") if g.get("opacity") == "0.4"]) == 2


@pytest.mark.parametrize(
    "svg",
    [
        "<svg/>",
        "<!-- payload-start -->x<!-- payload-end -->",
        "<!-- payload-start -->e30=<!-- payload-end -->",
    ],
)
def test_a_picture_without_a_drawing_is_said_to_be_one(svg: str) -> None:
    with pytest.raises(DiagramError, match=r"carries no|cut off or damaged"):
        drawing_in_svg(svg)


def test_a_picture_is_validated_as_the_drawing_in_it(
    file: Document, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "map.excalidraw.svg"
    path.write_text(draw_svg(file), encoding="utf-8")
    assert main(["--validate", str(path)]) == 0
    assert capsys.readouterr().out == f"{path}: sound\n"


def test_a_picture_that_a_person_edited_is_updated(file: Document, tmp_path: Path) -> None:
    spec, path = tmp_path / "map.json", tmp_path / "map.excalidraw.svg"
    named(file, "node api")["strokeColor"] = "#ff0000"
    spec.write_text(json.dumps(everything()))
    path.write_text(draw_svg(file), encoding="utf-8")
    assert main(["--spec", str(spec), "--update", str(path)]) == 0
    new = drawing_in_svg(path.read_text(encoding="utf-8"))
    assert isinstance(new, dict)
    assert named(new, "node api")["strokeColor"] == "#ff0000"
    assert faults(new) == []


def test_corners_of_elbows_are_round_and_short_segments_stay_within_themselves() -> None:
    path = rounded_path([(0, 0), (100, 0), (100, 10), (200, 10)], 16)
    assert path == "M 0 0 L 95 0 Q 100 0 100 5 L 100 5 Q 100 10 105 10 L 200 10"


def test_a_curve_goes_through_its_points() -> None:
    path = curved_path([(0, 0), (50, 60), (100, 0)])
    assert path.startswith("M 0 0 C")
    assert path.split(" C ")[1].endswith("50 60")
    assert path.endswith("100 0")


@pytest.mark.skipif(
    not any(map(shutil.which, png_commands(Path("a"), Path("b"), 1, 1))),
    reason="no program to draw a PNG is installed",
)
def test_a_png_is_twice_the_size_of_the_picture(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    spec, png = tmp_path / "map.json", tmp_path / "map.png"
    spec.write_text('{"nodes": [{"id": "a"}]}')
    assert main(["--spec", str(spec), "--out", str(png)]) == 0
    box = picture_box(draw_map({"nodes": [{"id": "a"}]}, tmp_path)["elements"])
    assert struct.unpack(">II", png.read_bytes()[16:24]) == (2 * box.width, 2 * box.height)
    assert "drawn by" in capsys.readouterr().out


def test_without_a_program_for_it_there_is_no_png_and_a_word_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", "")
    spec = tmp_path / "map.json"
    spec.write_text('{"nodes": [{"id": "a"}]}')
    assert main(["--spec", str(spec), "--out", str(tmp_path / "map.png")]) == 1
    assert "no program to draw a PNG is installed (resvg, chromium" in capsys.readouterr().err
