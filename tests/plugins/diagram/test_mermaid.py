"""Mermaid flowcharts become specs: the subset that is read, and errors that name the line."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from plugins.diagram.skills.excalidraw.scripts import build_excalidraw
from plugins.diagram.skills.excalidraw.scripts.build_excalidraw import (
    DiagramError,
    main,
    read_spec,
    spec_of_mermaid,
)


def edges(text: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = spec_of_mermaid("flowchart LR\n" + text).get("edges", [])
    return found


@pytest.mark.parametrize(
    ("header", "direction"),
    [("flowchart LR", "right"), ("graph TD", "down"), ("graph TB", "down"), ("flowchart RL", "right"),
     ("flowchart BT", "down"), ("flowchart", "down")],
)  # fmt: skip
def test_the_direction_is_the_nearest_that_there_is(header: str, direction: str) -> None:
    assert spec_of_mermaid(f"{header}\na --> b")["direction"] == direction


@pytest.mark.parametrize(
    ("node", "shape", "label"),
    [
        ("a[Text here]", "rectangle", "Text here"),
        ("a(Round)", "rectangle", "Round"),
        ("a([Stadium])", "ellipse", "Stadium"),
        ("a((Circle))", "ellipse", "Circle"),
        ("a(((Double)))", "ellipse", "Double"),
        ("a[(Store)]", "ellipse", "Store"),
        ("a[[Subroutine]]", "rectangle", "Subroutine"),
        ("a{Is it?}", "diamond", "Is it?"),
        ("a{{Hexagon}}", "diamond", "Hexagon"),
        ("a>Flag]", "rectangle", "Flag"),
        ("a[/Slanted/]", "rectangle", "Slanted"),
        ('a["brackets (in) [quotes]; and more"]', "rectangle", "brackets (in) [quotes]; and more"),
        ("a[two<br/>lines]", "rectangle", "two\nlines"),
        ('a["#quot;quoted#quot; &amp; #9829;"]', "rectangle", '"quoted" & ♥'),
        ('a["`**bold** text`"]', "rectangle", "bold text"),
        ("a[styled]:::important", "rectangle", "styled"),
    ],
)
def test_shapes_and_labels(node: str, shape: str, label: str) -> None:
    (found,) = spec_of_mermaid(f"flowchart LR\n{node}")["nodes"]
    assert found == {"id": "a", "label": label, "shape": shape}


@pytest.mark.parametrize(
    ("link", "more"),
    [
        ("-->", {}),
        ("---", {}),
        ("---->", {}),
        ("==>", {}),
        ("--o", {}),
        ("-.->", {"dashed": True}),
        ("-..->", {"dashed": True}),
        ("<-->", {"both": True}),
        ("-->|yes|", {"label": "yes"}),
        ('-->|"a, b"|', {"label": "a, b"}),
        ("-- yes, well-known -->", {"label": "yes, well-known"}),
        ("== thick ==>", {"label": "thick"}),
        ("-. maybe .->", {"label": "maybe", "dashed": True}),
    ],
)
def test_links(link: str, more: dict[str, Any]) -> None:
    assert edges(f"a {link} b") == [{"from": "a", "to": "b"} | more]


def test_chains_and_lists_of_nodes() -> None:
    found = [(edge["from"], edge["to"]) for edge in edges("a & b --> c[See] --> d; d-->my-node")]
    assert found == [("a", "c"), ("b", "c"), ("c", "d"), ("d", "my-node")]


def test_an_invisible_link_draws_nothing() -> None:
    assert edges("a ~~~ b") == []


def test_subgraphs_hold_the_nodes_named_first_in_them() -> None:
    spec = spec_of_mermaid(
        "flowchart TD\n"
        "  a --> b\n"
        "  subgraph out [Outer]\n"
        "    direction LR\n"
        "    b\n"
        '    subgraph "In quotes"\n'
        "      c --> b\n"
        "    end\n"
        "  end\n"
    )
    assert spec["groups"] == [
        {"id": "out", "label": "Outer"},
        {"id": "In quotes", "label": "In quotes", "group": "out"},
    ]
    owners = {node["id"]: node.get("group") for node in spec["nodes"]}
    assert owners == {"a": None, "b": "out", "c": "In quotes"}


def test_titles_addresses_comments_and_styles() -> None:
    spec = spec_of_mermaid(
        "---\ntitle: The map\n---\n%% a comment\nflowchart LR\n  a --> b\n  classDef x fill:#fff\n"
        '  style a stroke:#000\n  linkStyle 0 stroke:red\n  click a "https://example.org/a" "tip"\n'
    )
    assert spec["title"] == "The map"
    assert spec["nodes"][0]["link"] == "https://example.org/a"
    assert [node["id"] for node in spec["nodes"]] == ["a", "b"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "no flowchart"),
        ("sequenceDiagram\nA->>B: hi", "line 1: 'sequenceDiagram': only flowcharts"),
        ("flowchart LR\na --> ", "line 2: 'a -->': a node is missing"),
        ("flowchart LR\na[open --> b", "line 2: .*the bracket of 'a' is not closed"),
        ("flowchart LR\na ?? b", r"line 2: .*what is '\?\? b'"),
        ("flowchart LR\nsubgraph x\na", "subgraph 'x' has no `end`"),
        ("flowchart LR\na\nend", "line 3: 'end': there is no subgraph to end"),
        ("flowchart LR\nsubgraph x\na\nend\nb --> x", "a link to subgraph 'x'"),
        ("---\ntitle: x\nflowchart LR", "the front matter has no second"),
    ],
)
def test_what_is_not_read_is_said_with_its_line(text: str, message: str) -> None:
    with pytest.raises(DiagramError, match=message):
        spec_of_mermaid(text)


def test_a_flowchart_is_printed_as_a_spec_or_drawn(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    chart = tmp_path / "chart.mmd"
    chart.write_text("flowchart LR\n  a[One] -->|next| b{Two?}\n", encoding="utf-8")
    assert main(["--mermaid", str(chart)]) == 0
    spec = read_spec(json.loads(capsys.readouterr().out))
    assert [node.label for node in spec.nodes] == ["One", "Two?"]
    assert main(["--mermaid", str(chart), "--out", str(tmp_path / "chart.excalidraw")]) == 0
    assert main(["--validate", str(tmp_path / "chart.excalidraw")]) == 0


def test_the_printed_spec_is_utf_8_whatever_the_locale(tmp_path: Path) -> None:
    chart = tmp_path / "chart.mmd"
    chart.write_text("graph LR\n a[日本] --> b", encoding="utf-8")
    printed = subprocess.run(
        [sys.executable, "-I", build_excalidraw.__file__, "--mermaid", str(chart)],
        env={"LC_ALL": "en_US.ISO-8859-1"},
        capture_output=True,
        check=True,
    ).stdout
    assert json.loads(printed)["nodes"][0]["label"] == "日本"


def test_shapes_by_name_are_read_with_their_labels() -> None:
    spec = spec_of_mermaid(
        'flowchart LR\n A@{ shape: cyl, label: "A } b" } --> B@{shape: decision}\n C@{ shape: bolt }'
    )
    assert [(node["id"], node["label"], node["shape"]) for node in spec["nodes"]] == [
        ("A", "A } b", "ellipse"),
        ("B", "B", "diamond"),
        ("C", "C", "rectangle"),
    ]


@pytest.mark.parametrize(
    ("label", "seen"),
    [
        ("#9829; #quot;", '♥ "'),
        ("#9999999; x", "\ufffd x"),
        ("#99999999999;", "#99999999999;"),
        ("C#;", "C#;"),
    ],
)
def test_entities_of_mermaid_are_characters(label: str, seen: str) -> None:
    assert spec_of_mermaid(f'flowchart LR\n A["{label}"]')["nodes"][0]["label"] == seen
