from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handler.bundle.encoder import Encoder
from pipeline.tokens import token_counter

TEXTS = st.text(max_size=60) | st.text(alphabet="ab .,[]#'\n\t\r\f\x1c\x85\xa0é中", max_size=60)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "\n\n",
        "Tomatoes want sun, and water; don't they?\n\n- one\n\t- two",
        "a\fb \x1c c\x85d\x00e",
        "[MASK] and [mask] and [ MASK ]",
        "庭にトマトを植える。" * 20,
        "naïve Ångström e\u0301 \u200b ﬁ İ",
        "x" * 300 + " " + "é" * 300,
        "half a character: \ud800",
    ],
)
def test_counts_are_those_of_the_tokenizer(text: str, tiny_encoder: Encoder) -> None:
    assert token_counter(tiny_encoder)(text) == tiny_encoder.count_tokens(text)


@given(st.lists(TEXTS, min_size=1, max_size=4))
def test_counts_are_those_of_the_tokenizer_for_any_texts_one_after_another(
    tiny_encoder: Encoder, texts: list[str]
) -> None:
    count = token_counter(tiny_encoder)
    assert [count(text) for text in texts] == [tiny_encoder.count_tokens(text) for text in texts]


@pytest.mark.parametrize("prefix", ["passage: ", "passage:"])
def test_the_prefix_of_a_passage_counts_too(prefix: str, tiny_encoder: Encoder) -> None:
    spec = replace(tiny_encoder.spec, passage_prefix=prefix)
    encoder = Encoder(tiny_encoder._session, tiny_encoder._tokenizer, spec)
    for text in ("", "garden", "gardens and ponds"):
        assert token_counter(encoder)(text) == encoder.count_tokens(text)
