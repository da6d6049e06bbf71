from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.split import cut_text, tail_of

TEXT = st.text(st.sampled_from("ab.! \n。「」e\u0301👍🏽\u200d東"), max_size=200)


@settings(deadline=None, derandomize=True, database=None)
@given(text=TEXT, room=st.integers(1, 30), cap=st.integers(1, 60))
def test_pieces_are_short_enough_and_together_the_text(text: str, room: int, cap: int) -> None:
    pieces = list(cut_text(text, room, cap))
    assert all(len(piece) <= (cap if i else room) for i, (_, piece) in enumerate(pieces))
    assert "".join(gap + piece for gap, piece in pieces).split() == text.split()


@pytest.mark.parametrize(
    ("text", "pieces"),
    [
        ("One two. Three four five", ["One two.", "Three four", "five"]),
        ('She: "no." And left', ['She: "no."', "And left"]),
        ("one two\nthree four", ["one two", "three four"]),
        ("one two three four", ["one two", "three four"]),
        ("これは。あれは「それ」。どれか", ["これは。あれは「それ」。", "どれか"]),
        ("minified(code,and=more)", ["minified(", "code,and=", "more)"]),
        ("abcdefghijklmnop", ["abcdefghijkl", "mnop"]),
        ("👍🏽" * 8, ["👍🏽" * 6, "👍🏽" * 2]),
        ("a\u0301" * 8, ["a\u0301" * 6, "a\u0301" * 2]),
        ("a" + "\u0301" * 15, ["a" + "\u0301" * 11, "\u0301" * 4]),
        ("    indented = code + more", ["    indented", "= code +", "more"]),
        ("short", ["short"]),
        ("", [""]),
    ],
)
def test_text_is_cut_at_the_best_border_there_is(text: str, pieces: list[str]) -> None:
    assert [piece for _, piece in cut_text(text, 12, 12)] == pieces


def test_a_tail_begins_with_a_sentence_a_line_or_a_word() -> None:
    assert tail_of("One two. Three four. Five six seven.", 30) == "Three four. Five six seven."
    assert tail_of("- one two\n- three four\n- five", 21) == "- three four\n- five"
    assert tail_of("one two three four five", 10) == "four five"
    assert tail_of("これは。あれは。どれか", 8) == "あれは。どれか"
    assert tail_of("endless" * 20, 50) == ""
    assert tail_of("short", 50) == "short"
