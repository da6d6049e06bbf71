"""Two indexes that are asked as one."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from handler.bundle.encoder import Encoder
from handler.bundle.joined import join
from handler.bundle.reader import Index
from handler.bundle.search import search
from handler.bundle.types import BundleError
from tests.conftest import PAGES, MakeBundle

FIRST = {name: text for name, text in PAGES.items() if name.startswith("notes/")}
SECOND = {name: text for name, text in PAGES.items() if name.startswith("diary/")}
QUESTIONS = ["garden", "Who restarts the server?", "a secret about a pond", "Is there a piano?"]


@pytest.fixture
def indexes(make_bundle: MakeBundle, tmp_path: Path) -> list[Index]:
    """The index of all pages, of the notes, and of the diary."""
    opened = []
    for n, pages in enumerate((PAGES, FIRST, SECOND)):
        path = tmp_path / f"{n}.db"
        path.write_bytes((make_bundle(pages) / "rag.db").read_bytes())
        opened.append(Index.open(path))
    return opened


@pytest.mark.parametrize("question", QUESTIONS)
def test_they_find_what_one_index_of_all_finds(
    indexes: list[Index], tiny_encoder: Encoder, question: str
) -> None:
    one, first, second = indexes
    hits = search(join(first, second), tiny_encoder, question).hits
    expected = search(one, tiny_encoder, question).hits
    assert {hit.chunk for hit in hits} == {hit.chunk for hit in expected}
    by_chunk = {hit.chunk: hit for hit in expected}
    for hit in hits:
        # The words of a chunk count against the mean length of those in its own index.
        assert hit.cosine == pytest.approx(by_chunk[hit.chunk].cosine, abs=1e-5)
        assert hit.bm25 == pytest.approx(by_chunk[hit.chunk].bm25, rel=0.2)


def test_a_collection_may_be_in_both(indexes: list[Index], tiny_encoder: Encoder) -> None:
    one, _, second = indexes
    both = join(one, second)
    assert len(both.rows_in("diary")) == 2 * len(second)
    found = search(both, tiny_encoder, "secret", collections=["diary"]).hits
    assert {hit.chunk.collection for hit in found} == {"diary"}


def test_a_misspelt_word_is_known_to_either(indexes: list[Index], tiny_encoder: Encoder) -> None:
    _, first, second = indexes
    for question, word in (("tomatos", "Tomatoes"), ("secrte", "secret")):
        (best, *_) = search(join(first, second), tiny_encoder, question, mode="keyword").hits
        assert word in best.chunk.text


def test_an_empty_one_adds_nothing(
    indexes: list[Index], make_bundle: MakeBundle, tiny_encoder: Encoder
) -> None:
    empty = Index.open(make_bundle({}) / "rag.db")
    assert join(indexes[0], empty) is join(empty, indexes[0]) is indexes[0]


def test_different_models_do_not_go_together(indexes: list[Index]) -> None:
    with pytest.raises(BundleError, match="different embedding models"):
        join(indexes[1], replace(indexes[2], model="another"))
