"""What is wrong with a spec, a theme or their files is said by name and place, and nothing is drawn."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from plugins.diagram.skills.excalidraw.scripts.build_excalidraw import (
    DiagramError,
    main,
    read_spec,
    theme_of,
)
from tests.plugins.diagram.maps import draw_map


@pytest.mark.parametrize(
    ("spec", "says"),
    [
        ([], "the spec is list"),
        ({"node": []}, "unknown key 'node'; did you mean 'nodes'?"),
        ({"nodes": {}}, "nodes is {}, not a list"),
        ({"nodes": [{}]}, "nodes[0]: the id is missing"),
        ({"nodes": [{"id": 7}]}, "nodes[0]: id is 7, not a text"),
        ({"nodes": [{"id": "a", "lable": "A"}]}, "nodes[0]: unknown key 'lable'; did you mean 'label'?"),
        ({"nodes": [{"id": "a", "shape": "circle"}]}, "shape is 'circle', not one of rectangle, ellipse"),
        ({"nodes": [{"id": "a", "at": [1]}]}, "at is [1], not two numbers"),
        ({"nodes": [{"id": "a", "at": ["1", 2]}]}, "not two numbers"),
        ({"nodes": [{"id": "a", "at": [1e9, 0]}]}, "not within 50000 px"),
        ({"nodes": [{"id": "a", "size": [0, 9]}]}, "cannot be less than 1"),
        ({"nodes": [{"id": "a", "group": "g"}]}, "node 'a': group names 'g', but there is no such group"),
        ({"nodes": [{"id": "a", "link": "javascript:alert(1)"}]}, "link 'javascript:alert(1)'"),
        ({"nodes": [{"id": "a", "label": " "}]}, "the label is empty"),
        ({"nodes": [{"id": "a"}, {"id": "a"}]}, "2 nodes have the id 'a'"),
        ({"nodes": [{"id": "a", "shape": "image"}]}, 'shape "image" and "image": PATH'),
        (
            {"nodes": [{"id": "api"}], "edges": [{"from": "api", "to": "apo"}]},
            "edge 'api -> apo': to names 'apo'",
        ),
        ({"nodes": [{"id": "api"}], "edges": [{"from": "api", "to": "apo"}]}, "did you mean 'api'?"),
        ({"nodes": [{"id": "a"}], "edges": [{"from": "a"}]}, "edges[0]: needs both from and to"),
        (
            {"groups": [{"id": "g"}], "nodes": [{"id": "a"}], "edges": [{"from": "a", "to": "g"}]},
            "to names the group 'g'; arrows join nodes",
        ),
        (
            {"groups": [{"id": "f", "group": "g"}, {"id": "g", "group": "h"}, {"id": "h", "group": "g"}]},
            "group 'g' is inside itself: 'g' in 'h' in 'g'",
        ),
        ({"nodes": [{"id": "a", "at": [10**400, 0]}]}, "not two numbers"),
        ({"nodes": [{"id": "a", "link": "my file.md"}]}, "relative address without spaces"),
        (
            {"groups": [{"id": "g", "group": "h", "frame": True}, {"id": "h"}]},
            "a frame cannot be inside a group",
        ),
        ({"notes": [{"text": "x", "near": "a"}]}, "near names 'a'"),
        ({"notes": [""]}, "notes[0]: the text is empty"),
        ({"direction": "up"}, "direction is 'up', not one of right, down"),
        ({"theme": 3}, "theme is 3"),
    ],
)
def test_a_wrong_spec_is_refused_by_name_and_place(spec: object, says: str) -> None:
    with pytest.raises(DiagramError) as error:
        read_spec(spec)
    assert says in str(error.value)


@pytest.mark.parametrize(
    ("theme", "says"),
    [
        ("slat", "did you mean 'slate'?"),
        ({"base": "slate", "inks": "#fff"}, "unknown key 'inks'; did you mean 'ink'?"),
        ({"ink": "white"}, "not a colour"),
        ({"font": "Arial"}, "not one of hand, sans"),
        ({"font": ["sans"]}, "not one of hand, sans"),
        ({"base": ["slate"]}, "theme ['slate'] is not there"),
        ({"font_size": "18"}, "not a number"),
        ({"palette": {"red": "red"}}, "not names with their #rrggbb"),
    ],
)
def test_a_wrong_theme_is_refused(theme: Any, says: str) -> None:
    with pytest.raises(DiagramError) as error:
        theme_of(theme)
    assert says in str(error.value)


def test_an_unknown_colour_names_the_node_and_the_nearest(tmp_path: Path) -> None:
    with pytest.raises(DiagramError, match=r"node 'a': color 'gren'.*did you mean 'green'"):
        draw_map({"nodes": [{"id": "a", "color": "gren"}]}, tmp_path)


def test_an_image_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(DiagramError, match=r"node 'a': image .*gone\.png: No such file"):
        draw_map({"nodes": [{"id": "a", "image": "gone.png"}]}, tmp_path)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("{", "map.json:1: is not JSON"),
        ('{"nods": []}', "map.json: the spec: unknown key 'nods'; did you mean 'nodes'"),
        ('{"nodes": [{"id": "a", "color": "rde"}]}', "map.json: node 'a': color 'rde'"),
        (
            '{"nodes": [{"id": "a", "label": "x", "label": "y"}]}',
            "map.json: the key 'label' of 'a' is given twice",
        ),
        ('{"nodes": [], "nodes": []}', "map.json: the key 'nodes' is given twice"),
        (None, "map.json: No such file"),
    ],
)
def test_the_command_says_what_is_wrong(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], content: str | None, says: str
) -> None:
    spec = tmp_path / "map.json"
    if content is not None:
        spec.write_text(content)
    assert main(["--spec", str(spec), "--out", str(tmp_path / "o.excalidraw")]) == 1
    assert says in capsys.readouterr().err
    assert not (tmp_path / "o.excalidraw").exists()


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (None, "dark.json: is no file, and none of the themes slate, light, print"),
        ("[]", "dark.json: is no JSON object"),
        ('{"inks": "#000"}', "dark.json: theme: unknown key 'inks'; did you mean 'ink'?"),
    ],
)
def test_a_theme_that_cannot_be_read_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], content: str | None, says: str
) -> None:
    spec, theme, out = tmp_path / "map.json", tmp_path / "dark.json", tmp_path / "o.excalidraw"
    spec.write_text("{}")
    if content is not None:
        theme.write_text(content)
    assert main(["--spec", str(spec), "--theme", str(theme), "--out", str(out)]) == 1
    assert says in capsys.readouterr().err


def test_a_spec_that_begins_with_a_byte_order_mark_is_read(tmp_path: Path) -> None:
    spec, out = tmp_path / "map.json", tmp_path / "o.excalidraw"
    spec.write_text('{"nodes": [{"id": "a"}]}', encoding="utf-8-sig")
    assert main(["--spec", str(spec), "--out", str(out)]) == 0
