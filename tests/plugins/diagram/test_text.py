"""Texts are measured so that no editor clips them, and boxes are as large as their texts need."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

from plugins.diagram.skills.excalidraw.scripts.build_excalidraw import (
    FONTS,
    Element,
    Text,
    balanced,
    excalidraw_room,
    font_widths,
    line_width,
    main,
    proportions,
    split_graphemes,
    wrap,
)
from tests.plugins.diagram.maps import draw_map, named

NUNITO = FONTS["sans"]

LABELS = [
    "x",
    "API server",
    "Postgres primary database for accounts and sessions",
    "two\nlines",
    "a\n\nb",
    "mcp-server/src/rag/retrieve.ts and what follows",
    "日本語のラベルがここに長く続きます。とても長い",
    "🦀🦀 crabs 👩‍👩‍👧 family ❤️ 🇩🇪 1️⃣",
    "Привет, мир",
    "العربية",
    "x" * 200,
    "WWWWWWWWWWWWWWWWWWWWWW",
    "<b>&amp;</b> ]]> -->",
]


@pytest.mark.parametrize("font", FONTS.values())
def test_every_font_of_a_theme_is_measured(font: int) -> None:
    widths = font_widths()[font]
    assert all(200 <= widths[c] <= 1100 for c in "abcxyzABCXYZ0123456789.,;- ")


# What Chromium's canvas measured with the fonts of Excalidraw, at 20 px.
@pytest.mark.parametrize(
    ("text", "font", "measured"),
    [
        ("API server", 5, 105.70),
        ("AVATAR To. Ty. WAVE", 5, 220.12),
        ("fi ffl -> == fj", 5, 126.50),
        ("API server", 6, 94.28),
        ("WWWWWW", 6, 132.48),
        ("AVATAR To. Ty. WAVE", 6, 204.64),
        ("mcp-server/src/rag", 6, 168.38),
        ("Café “naïve” — x", 6, 150.62),
        ("Привет, мир", 6, 116.72),
        ("API server", 8, 110.00),
        ("fi ffl -> == fj", 8, 165.00),
        ("API server", 9, 93.36),
        ("AVATAR To. Ty. WAVE", 9, 199.29),
    ],
)
def test_a_line_is_as_wide_as_a_browser_draws_it_or_a_little_wider(
    text: str, font: int, measured: float
) -> None:
    assert measured <= line_width(text, font, 20) <= measured * 1.08


@pytest.mark.parametrize("character", ["🦀", "❤️", "🇩🇪", "👩‍👩‍👧", "1️⃣", "👍🏽"])
def test_an_emoji_is_at_least_as_wide_as_the_widest_font_draws_it(character: str) -> None:
    assert line_width(character, NUNITO, 20) >= 1.37 * 20


@pytest.mark.parametrize("character", ["日", "한", "。", "Ａ", "→", "ع"])
def test_what_the_fonts_lack_is_taken_to_be_wide(character: str) -> None:
    assert line_width(character, NUNITO, 20) >= (20 if character not in "→" else 10)


def test_marks_on_a_letter_take_no_width() -> None:
    assert line_width("e\u0301", NUNITO, 20) == line_width("e", NUNITO, 20)


@pytest.mark.parametrize("label", LABELS)
@pytest.mark.parametrize("widest", [1, 60, 200])
def test_no_line_is_wider_than_asked_for_unless_it_is_one_character(label: str, widest: float) -> None:
    for line in wrap(label, NUNITO, 18, widest).lines:
        assert line_width(line, NUNITO, 18) <= widest or len(split_graphemes(line)) == 1


@pytest.mark.parametrize("label", LABELS)
@pytest.mark.parametrize("widest", [1, 60, 200])
def test_wrapping_loses_no_character(label: str, widest: float) -> None:
    lines = wrap(label, NUNITO, 18, widest).lines
    assert "".join("".join(lines).split()) == "".join(label.split())


def test_lines_break_after_spaces_hyphens_and_slashes() -> None:
    text = wrap("well-known src/rag here", NUNITO, 18, 60)
    assert text.lines == ("well-", "known", "src/rag", "here")


def test_an_emoji_of_several_characters_is_not_torn_apart() -> None:
    family = "👩‍👩‍👧"
    assert split_graphemes(f"a{family}🇩🇪e\u0301👍🏽1️⃣") == ["a", family, "🇩🇪", "e\u0301", "👍🏽", "1️⃣"]


@pytest.mark.parametrize("label", LABELS)
def test_balanced_lines_are_no_more_than_greedy_ones_and_no_wider(label: str) -> None:
    greedy, even = wrap(label, NUNITO, 18, 320), balanced(label, NUNITO, 18, 320)
    assert len(even.lines) <= len(greedy.lines)
    assert even.width <= greedy.width


def test_a_long_name_breaks_where_its_parts_meet() -> None:
    name = "com.example.enterprise.service.impl.AbstractSingletonProxyFactoryBean"
    lines = balanced(name, NUNITO, 18, 200).lines
    assert "".join(lines) == name
    assert all(line.endswith(".") or name[name.index(line) + len(line)].isupper() for line in lines[:-1])


def test_a_long_word_leaves_no_single_letter_behind() -> None:
    lines = balanced("x" * 41, NUNITO, 18, 330).lines
    assert len(lines) == 2
    assert abs(len(lines[0]) - len(lines[1])) <= 1


def test_balanced_lines_are_of_nearly_one_length() -> None:
    assert balanced("one two three four five six", NUNITO, 18, 200).lines == (
        "one two three",
        "four five six",
    )


@pytest.mark.parametrize("shape", ["rectangle", "ellipse", "diamond"])
@pytest.mark.parametrize("size", [None, [40, 30], [300, 40]])
def test_a_label_is_inside_its_shape(tmp_path: Path, shape: str, size: list[int] | None) -> None:
    nodes = [{"id": label, "label": label, "shape": shape, "size": size} for label in LABELS]
    file = draw_map({"nodes": nodes}, tmp_path)
    for label in LABELS:
        container, text = named(file, f"node {label}"), named(file, f"label of node {label}")
        if size and size[0] == 300:
            assert container["width"] == 300
        assert text["width"] <= excalidraw_room(shape, container["width"])
        assert text["height"] <= room_height(container)
        assert text["x"] + text["width"] / 2 == pytest.approx(
            container["x"] + container["width"] / 2, abs=0.5
        )
        assert text["originalText"] == label


def room_height(shape: Element) -> float:
    """getBoundTextMaxHeight of Excalidraw."""
    height = float(shape["height"])
    inner = {"ellipse": height / math.sqrt(2), "diamond": height / 2}.get(shape["type"], height)
    return inner - 10 + 0.5


@pytest.mark.parametrize("size", [None, [40, 30]])
def test_text_alone_is_declared_as_large_as_it_is_drawn(tmp_path: Path, size: list[int] | None) -> None:
    nodes = [{"id": label, "label": label, "shape": "text", "size": size} for label in LABELS]
    for text in draw_map({"nodes": nodes}, tmp_path)["elements"]:
        drawn = Text(tuple(text["text"].split("\n")), text["fontSize"], text["fontFamily"])
        assert (text["width"], text["height"]) == (drawn.width, drawn.height)


def test_control_characters_and_halves_of_characters_are_left_out(tmp_path: Path) -> None:
    spec = tmp_path / "map.json"
    spec.write_text('{"nodes": [{"id": "a", "label": "one\\u0000\\ttwo\\r\\nthree\\ud800"}]}')
    out = tmp_path / "map.excalidraw"
    assert main(["--spec", str(spec), "--out", str(out)]) == 0
    label = json.loads(out.read_text("utf-8"))["elements"][1]
    assert label["originalText"] == "one two\nthree?"


@pytest.mark.parametrize(
    ("content", "size"),
    [
        (b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x40\0\0\0\x20", (64, 32)),
        (b"GIF89a\x40\0\x20\0", (64, 32)),
        (b"\xff\xd8\xff\xe0\0\x04ab\xff\xc0\0\x11\x08\0\x20\0\x40\x03", (64, 32)),
        (b'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 64 32.5"/>', (64, 32.5)),
        (b"RIFF\0\0\0\0WEBPVP8 ", (1, 1)),
        (b"\x89PNG", (1, 1)),
        (b"\xff\xd8\xff", (1, 1)),
        (b'<svg viewBox="0 0 0 0">', (1, 1)),
    ],
)
def test_the_proportions_of_a_picture_are_read_from_its_header(
    content: bytes, size: tuple[float, float]
) -> None:
    assert proportions(content) == size
