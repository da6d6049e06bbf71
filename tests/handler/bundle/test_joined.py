"""Two indexes that are asked as one."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from handler.bundle.bundle import Bundle
from handler.bundle.encoder import Encoder
from handler.bundle.joined import Joined, join, without
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


def test_a_collection_may_be_in_both(
    indexes: list[Index], make_bundle: MakeBundle, tiny_encoder: Encoder
) -> None:
    other = Index.open(make_bundle({"diary/other.md": "# Other\n\nAnother secret.\n"}) / "rag.db")
    both = join(indexes[0], other)
    assert len(both.rows_in("diary")) == len(indexes[0].rows_in("diary")) + 1
    found = search(both, tiny_encoder, "secret", collections=["diary"]).hits
    assert {hit.chunk.collection for hit in found} == {"diary"}
    assert len(found) == 2


def test_of_an_address_in_both_the_second_ones_page_is_there_alone(
    indexes: list[Index], make_bundle: MakeBundle, tiny_encoder: Encoder
) -> None:
    one, first, second = indexes
    (url,) = second.page_number_by_url
    edited = Index.open(make_bundle({"diary/secret.md": "# Edited\n\nThe zebra is new.\n"}) / "rag.db")
    assert [*edited.page_number_by_url] == [url]
    both = join(one, edited)
    assert both.page_number(url) == len(first.page_vectors) + 1
    assert len(both) == len(first) + len(edited)
    texts = [chunk.text for chunk in both.chunks(range(len(both)))]
    assert "zebra" in texts[-1]
    assert not any("secret" in text for text in texts)


@pytest.mark.parametrize("question", QUESTIONS)
def test_a_copy_of_an_index_adds_nothing(indexes: list[Index], tiny_encoder: Encoder, question: str) -> None:
    one = indexes[0]
    assert search(join(one, one), tiny_encoder, question) == search(one, tiny_encoder, question)


@pytest.mark.parametrize("question", QUESTIONS)
def test_what_is_left_out_is_not_found_and_the_rest_as_if_it_had_never_been(
    indexes: list[Index], tiny_encoder: Encoder, question: str
) -> None:
    one, first, second = indexes
    rest = without(one, [one.page_number_by_url[url] for url in second.page_number_by_url])
    assert rest.chunks(range(len(rest))) == first.chunks(range(len(first)))
    assert rest.page_number_by_url == first.page_number_by_url
    assert {name: rows.tolist() for name, rows in rest.collections.items()} == {
        name: rows.tolist() for name, rows in first.collections.items()
    }
    found, expected = (search(index, tiny_encoder, question).hits for index in (rest, first))
    by_chunk = {hit.chunk: hit for hit in expected}
    assert {hit.chunk for hit in found} == {*by_chunk}
    for hit in found:
        assert hit.cosine == pytest.approx(by_chunk[hit.chunk].cosine, abs=1e-5)
        # The words count against the mean length of all chunks, those too that are left out.
        assert hit.bm25 == pytest.approx(by_chunk[hit.chunk].bm25, rel=0.2)


def test_where_the_canonical_page_is_left_out_the_next_one_with_its_text_takes_over(
    make_bundle: MakeBundle,
) -> None:
    pages = {f"notes/{name}.md": "# Pond\n\nThe pond has algae.\n" for name in ("a", "bb", "ccc")}
    index = Index.open(make_bundle(pages) / "rag.db")
    assert index.canonical_numbers.tolist() == [1, 1, 1]
    assert without(index, [1]).canonical_numbers.tolist() == [1, 1]
    assert without(index, [2]).canonical_numbers.tolist() == [1, 1]
    assert without(index, [1, 2]).canonical_numbers.tolist() == [1]


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


def test_a_place_that_cannot_be_looked_at_is_refused_and_one_with_nothing_there_is_not(
    sample_bundle: Path, tmp_path: Path
) -> None:
    bundle = Bundle.open(sample_bundle)
    assert Joined(tmp_path / "none.db").with_bundle(bundle) is bundle
    with pytest.raises(BundleError, match=r"none\.db cannot be read: No such file"):
        Joined(tmp_path / "none.db", required=True).with_bundle(bundle)
    with pytest.raises(BundleError, match="cannot be read: File name too long"):
        Joined(tmp_path / ("x" * 300)).with_bundle(bundle)


def test_different_models_do_not_go_together(indexes: list[Index]) -> None:
    with pytest.raises(BundleError, match="different embedding models"):
        join(indexes[1], replace(indexes[2], model="another"))
