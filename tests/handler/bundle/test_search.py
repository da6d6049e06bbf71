from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import get_args

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from handler.bundle.encoder import Encoder, Vector
from handler.bundle.gate import N_EVIDENCE, Gate
from handler.bundle.reader import Index
from handler.bundle.search import SearchResult, search
from handler.bundle.types import BundleError, Chunk, Mode
from pipeline.index import write_index
from tests.conftest import title_vectors

MODES: tuple[Mode, ...] = get_args(Mode)
MakeIndex = Callable[[Sequence[Chunk]], Index]

ODDITIES = [
    "multi-agent", "a'b", "memory:safe", 'say "hi', "(python", "foo AND bar(", "NOT", "status: done",
    "--error-on-warnings", "note%", "2026.4.10", "C++", "GB/s", "", " ", "the of and", "a\0b", "\ud800",
    "x" * 100_000, "x " * 100_000, "title:garden", "NEAR(a b, 5)", "^start", "pre*", "שָׁלוֹם", "東京", "ไทย",
]  # fmt: skip


class Fixed:
    """An encoder that has one vector for everything."""

    def __init__(self, vector: Vector) -> None:
        self.vector = vector

    def embed_query(self, text: str) -> Vector:
        return self.vector


def all_alike(index: Index) -> tuple[Fixed, Index]:
    """An encoder, and an index where all is as near as can be to each of its questions."""
    n_pages, dim = index.page_vectors.shape
    fixed = Fixed(np.eye(1, dim, dtype=np.float32)[0])
    pages = np.tile(fixed.vector, (n_pages, 1))
    chunks = np.tile(fixed.vector, (len(index), 1))
    return fixed, replace(index, vectors=chunks, page_vectors=pages, title_vectors=pages)


def chunk(name: str, text: str, collection: str = "notes", ordinal: int = 0) -> Chunk:
    return Chunk(f"https://x.org/{name}", name.title(), f"{name}.md", collection, (), "", ordinal, text)


@pytest.fixture
def make_index(tmp_path: Path, tiny_encoder: Encoder) -> MakeIndex:
    def make(chunks: Sequence[Chunk]) -> Index:
        vectors = np.array([tiny_encoder.embed_passage(each.text[:500]) for each in chunks])
        write_index(
            tmp_path / "rag.db", chunks, vectors, title_vectors(tiny_encoder, chunks), tiny_encoder.spec
        )
        return Index.open(tmp_path / "rag.db")

    return make


@pytest.fixture(scope="module")
def shared_index(tmp_path_factory: pytest.TempPathFactory, tiny_encoder: Encoder) -> Index:
    """Searched by tests that ask many questions of one index."""
    chunks = [chunk(f"p{i}", f"The garden pond, word{i % 9}. café 東京", "large") for i in range(40)]
    chunks += [chunk("mine", "A garden.", "small"), chunk("mine", "The café.", "small", ordinal=1)]
    path = tmp_path_factory.mktemp("shared") / "rag.db"
    vectors = np.array([tiny_encoder.embed_passage(each.text) for each in chunks])
    write_index(path, chunks, vectors, title_vectors(tiny_encoder, chunks), tiny_encoder.spec)
    return Index.open(path)


def names(result: SearchResult) -> list[str]:
    return [hit.chunk.url.removeprefix("https://x.org/") for hit in result.hits]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("question", ODDITIES, ids=range(len(ODDITIES)))
def test_no_question_is_an_error(
    make_index: MakeIndex, tiny_encoder: Encoder, question: str, mode: Mode
) -> None:
    index = make_index([chunk("garden", "Tomatoes want sun."), chunk("server", "Restart the server.")])
    search(index, tiny_encoder, question, mode=mode)


@pytest.mark.parametrize(
    ("question", "text"),
    [
        ("multi-agent", "A multi-agent system."),
        ("a'b", "Write a'b here."),
        ("memory:safe", "It is memory:safe."),
        ('say "hi', 'They say "hi" to it.'),
        ("(python", "Written (python only) by hand."),
        ("foo AND bar(", "Call foo and bar() of it."),
        ("status: done", "It has the status: done."),
        ("NOT a pond", "It is not a pond."),
        ("--error-on-warnings", "Pass --error-on-warnings to it."),
        ("2026.4.10", "Released as 2026.4.10 today."),
        ("C++", "Written in C++ by hand."),
        (".NET", "It runs on .NET only."),
        ("GB/s", "A throughput of 3 GB/s."),
        ("note%", "The pattern note% matches."),
        ("京都", "私は京都に住む。"),
        ("充電", "iPhoneの充電方法"),
        ("iPhone", "新しいiPhoneの話"),
        ("ภาษา", "นี่คือภาษาไทย"),
        ("שלום", "הוא אמר שָׁלוֹם"),
        ("محمد", "قال مُحَمَّد"),
        ("한국", "한국어를 배운다"),
    ],
)
def test_words_are_found_as_they_stand(
    make_index: MakeIndex, tiny_encoder: Encoder, question: str, text: str
) -> None:
    others = [
        chunk("c", "Written in C or C# only."),
        chunk("net", "The net, 4 and 10 of 2026."),
        chunk("k", "東と都"),
    ]
    result = search(make_index([*others, chunk("target", text)]), tiny_encoder, question, mode="keyword")
    assert names(result)[0] == "target"
    assert result.hits[0].chunk.text == text
    assert result.hits[0].keyword_rank == 1


def test_bm25_is_that_of_the_books_with_titles_counted_twice(
    make_index: MakeIndex, tiny_encoder: Encoder
) -> None:
    """Robertson and Zaragoza 2009, with FTS5's k1 and b, and Lucene's idf."""
    texts = {str(i): "garden " * (i % 4) + "pond " * (i % 3) + f"word{i}" for i in range(12)}
    texts["pond"] = "nothing else"
    index = make_index([chunk(name, text) for name, text in texts.items()])
    tokens = {name: [name, *text.split()] for name, text in texts.items()}
    average = sum(map(len, tokens.values())) / len(tokens)
    expected = dict.fromkeys(texts, 0.0)
    for term in ("garden", "pond"):
        df = sum(term in words for words in tokens.values())
        idf = math.log(1 + (len(tokens) - df + 0.5) / (df + 0.5))
        for name, words in tokens.items():
            tf = words.count(term) + (name == term)
            expected[name] += idf * tf * 2.2 / (tf + 1.2 * (0.25 + 0.75 * len(words) / average))
    result = search(index, tiny_encoder, "garden pond", mode="keyword", top_k=100)
    found = {hit.chunk.path.removesuffix(".md"): hit.bm25 for hit in result.hits}
    assert found == pytest.approx({name: score for name, score in expected.items() if score}, rel=1e-5)


def test_words_side_by_side_count_more_than_apart(make_index: MakeIndex, tiny_encoder: Encoder) -> None:
    apart = chunk("apart", "The pond is large. Other things stand here too, and a garden.")
    beside = chunk("beside", "The garden pond is large. Other things stand here too, and a.")
    others = [chunk(f"other{i}", f"Nothing of the kind stands in text {i}.") for i in range(20)]
    result = search(make_index([apart, beside, *others]), tiny_encoder, "garden pond")
    assert names(result)[0] == "beside"


def test_a_sentence_that_is_pasted_is_found_where_it_stands(make_index: MakeIndex) -> None:
    sentence = "Today the old koi swam to the house"
    about = chunk(
        "about", "The old koi swam. Koi swam today. Old koi, old house. The koi house, a koi pond." * 3
    )
    link = chunk("link", f"Read [{sentence}](told) about the old koi and its house, where koi swam today.")
    told = chunk(
        "told",
        "It rained. Today the [old koi](koi) `swam` to THE house! All of us saw that it did, and told it. "
        * 2,
    )
    fixed, index = all_alike(make_index([about, link, told]))

    def first(question: str) -> str:
        return search(index, fixed, question).hits[0].chunk.title

    assert first(f"{sentence}.") == "Told"
    assert first("today the *old* koi swam to the `house`") == "Told"
    assert first("Today the old koi ? - ? - ?") != "Told"  # not six words
    assert first("Where is the house that the old koi swam to today?") != "Told"


def test_what_a_link_says_counts_for_the_page_that_it_leads_to(
    make_index: MakeIndex, tiny_encoder: Encoder
) -> None:
    hub = "- [Koi pond](pond)\n- [Heron](heron.md)"
    index = make_index(
        [chunk("hub", hub), chunk("water", "Beside the house lies a koi pond, small and deep.")]
    )

    def found(question: str) -> list[str]:
        hits = search(index, tiny_encoder, question, mode="keyword").hits
        return [hit.chunk.title for hit in hits]

    assert found("koi pond") == ["Water", "Hub"]
    assert found("heron") == ["Hub"]


def test_stopwords_alone_are_no_keyword(make_index: MakeIndex, tiny_encoder: Encoder) -> None:
    index = make_index([chunk("the", "The and of to be or not.")])
    assert search(index, tiny_encoder, "what is the", mode="keyword").hits == ()


def test_a_misspelt_word_is_found(make_index: MakeIndex, tiny_encoder: Encoder) -> None:
    index = make_index([chunk("figma", "Figma runs in the browser."), chunk("garden", "Tomatoes want sun.")])
    assert names(search(index, tiny_encoder, "broswer", mode="keyword")) == ["figma"]


def test_each_page_stands_once_with_its_best_chunk(make_index: MakeIndex, tiny_encoder: Encoder) -> None:
    chunks = [chunk("garden", f"The garden, part {i}.", ordinal=i) for i in range(30)]
    chunks[7] = replace(chunks[7], text="The garden has a pond.")
    index = make_index([*chunks, chunk("server", "Restart the server.")])
    result = search(index, tiny_encoder, "garden pond", top_k=2)
    assert names(result) == ["garden", "server"]
    assert result.hits[0].chunk.ordinal == 7
    some = search(index, tiny_encoder, "garden pond", top_k=9, chunks_per_page=3)
    assert Counter(names(some)) == {"garden": 3, "server": 1}
    assert len(search(index, tiny_encoder, "garden pond", top_k=9, chunks_per_page=None).hits) == 9


def test_of_pages_with_one_text_each_chunk_stands_once(make_index: MakeIndex, tiny_encoder: Encoder) -> None:
    index = make_index(
        [chunk(name, f"Part {i} of the pond.", ordinal=i) for name in ("long/a", "a") for i in range(4)]
    )
    found = search(index, tiny_encoder, "pond", chunks_per_page=None)
    assert sorted((hit.chunk.url, hit.chunk.ordinal) for hit in found.hits) == [
        ("https://x.org/a", ordinal) for ordinal in range(4)
    ]


def test_one_text_under_three_urls_is_one_result(make_index: MakeIndex, tiny_encoder: Encoder) -> None:
    text = "Tomatoes want sun and water."
    index = make_index(
        [chunk("tag/tomato", text), chunk("t", text), chunk("archive/7", text), chunk("b", "Sun.")]
    )
    for mode in MODES:
        assert names(search(index, tiny_encoder, "tomatoes water", mode=mode))[0] == "t"
        assert (
            len({"t", "tag/tomato", "archive/7"} & set(names(search(index, tiny_encoder, "sun", mode=mode))))
            == 1
        )


@pytest.mark.parametrize("mode", MODES)
def test_a_repeated_text_keeps_the_score_that_ranked_it(
    make_index: MakeIndex, tiny_encoder: Encoder, mode: Mode
) -> None:
    text = "Tomatoes want sun."
    others = [chunk(f"other{i}", f"The pond, part {i}.") for i in range(9)]
    index = make_index([chunk("garden-pond", text), chunk("t", text), *others])
    result = search(index, tiny_encoder, "garden pond sun", mode=mode, page="https://x.org/garden-pond")
    assert "t" in names(result)
    scores = [hit.score for hit in result.hits]
    assert scores == sorted(scores, reverse=True)


def test_near_identical_pages_are_both_findable(make_index: MakeIndex, tiny_encoder: Encoder) -> None:
    text = "Restart the {} server with systemctl when the service is down."
    index = make_index([chunk("nginx", text.format("nginx")), chunk("apache", text.format("apache"))])
    for name in ("nginx", "apache"):
        result = search(index, tiny_encoder, f"restart {name} server")
        assert names(result)[0] == name
        assert len(result.hits) == 2


@pytest.mark.parametrize("mode", MODES)
def test_a_filter_does_not_starve_a_small_collection(
    make_index: MakeIndex, tiny_encoder: Encoder, mode: Mode
) -> None:
    large = [chunk(f"p{i}", f"The garden pond number {i}.", "large") for i in range(300)]
    index = make_index([*large, chunk("mine", "A garden.", "small")])
    assert names(search(index, tiny_encoder, "garden pond", collections=["small"], mode=mode)) == ["mine"]
    found = search(index, tiny_encoder, "garden pond", collections=["large"], mode=mode, top_k=400)
    assert "mine" not in names(found)
    assert search(index, tiny_encoder, "garden", collections=["none"], mode=mode).hits == ()
    assert search(index, tiny_encoder, "garden", collections=[], mode=mode).hits == ()


def test_the_current_page_wins_among_equals(make_index: MakeIndex, tiny_encoder: Encoder) -> None:
    index = make_index([chunk(f"p{i}", f"The garden pond, entry {i}.") for i in range(9)])
    for page in ("https://x.org/p4", "https://x.org/p4/", "https://x.org/p4?a=1#top"):
        assert names(search(index, tiny_encoder, "garden pond", page=page))[0] == "p4"
    assert search(index, tiny_encoder, "garden pond", page="https://elsewhere.org/").hits


def test_of_two_chunks_that_say_the_same_the_one_that_says_more_wins(make_index: MakeIndex) -> None:
    long = "How the pond is filled: " + "with a bucket, and then another. " * 12
    other = chunk("short", "And so on, and so forth, and all that. " * 9, ordinal=1)
    index = make_index([chunk("short", "## The pond"), other, chunk("long", long)])
    fixed, same = all_alike(index)
    far = np.where(np.arange(3)[:, np.newaxis] == 2, -fixed.vector, fixed.vector)  # of the other one
    assert names(search(replace(same, vectors=far), fixed, "which")) == ["long", "short"]
    # Who has no more to say loses nothing by it.
    index = make_index([chunk("a", "## The pond"), chunk("b", long)])
    fixed, same = all_alike(index)
    assert names(search(same, fixed, "which")) == ["a", "b"]


def test_a_title_speaks_for_its_page_and_never_against_it(make_index: MakeIndex) -> None:
    index = make_index([chunk(f"p{i}", f"The pond, entry {i}.") for i in range(3)])
    fixed, same = all_alike(index)
    like, unlike = fixed.vector, -fixed.vector
    titled = replace(same, title_vectors=np.array([unlike, unlike, like]))
    assert names(search(titled, fixed, "which"))[0] == "p0"  # no title fits better than the texts
    texts = np.tile(np.roll(like, 1), (3, 1))
    titled = replace(titled, vectors=texts, page_vectors=texts)
    assert names(search(titled, fixed, "which")) == ["p2", "p0", "p1"]


def test_the_gate_sees_nothing_of_chunks_that_are_not_asked(
    shared_index: Index, tiny_encoder: Encoder
) -> None:
    every_word = Gate(threshold=0.9, weights=(0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0))
    ask = partial(search, shared_index, tiny_encoder, "pond", gate=every_word)
    assert ask(collections=["large"]).gate.accepted
    assert not ask(collections=["small"]).gate.accepted


def test_a_vector_that_does_not_fit_is_an_error(make_index: MakeIndex) -> None:
    index = make_index([chunk("garden", "Tomatoes want sun.")])
    dim = index.vectors.shape[1]
    for wrong in (np.zeros(dim + 1), np.zeros(dim), np.ones(dim), np.full(dim, np.nan)):
        with pytest.raises(BundleError, match="vector has the"):
            search(index, Fixed(wrong.astype(np.float32)), "garden")


def test_ranks_start_at_one_in_each_leg(make_index: MakeIndex, tiny_encoder: Encoder) -> None:
    index = make_index([chunk("garden", "The garden pond."), chunk("server", "Restart the server.")])
    best, other = search(index, tiny_encoder, "garden pond").hits
    assert (best.vector_rank, best.keyword_rank) == (1, 1)
    assert (other.vector_rank, other.keyword_rank, other.bm25) == (2, None, 0)
    assert best.score > other.score
    assert best.cosine == pytest.approx(
        float(index.vectors[0] @ tiny_encoder.embed_query("garden pond")), abs=1e-5
    )


WORDS = [
    "garden", "pond", "gardn", "AND", "NOT", '"', "(", "*", "שָׁלוֹם", "東京", "café", "cafe\u0301", "\ud800",
    "\0", "🙂\u200d🔥", "\u202e", "C++", ".net", "a-b", "word7", "\u0301",
]  # fmt: skip
QUESTIONS = st.text(max_size=99) | st.lists(st.sampled_from(WORDS), max_size=12).map(" ".join)


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    question=QUESTIONS,
    mode=st.sampled_from(MODES),
    top_k=st.integers(1, 99),
    chunks_per_page=st.sampled_from([1, 2, None]),
    collections=st.none() | st.sets(st.sampled_from(["large", "small", "none"])),
    page=st.none() | st.sampled_from(["https://x.org/p3", "https://x.org/mine", "\ud800"]),
)
def test_hits_of_any_question_are_in_order_all_different_and_of_the_asked_collections(
    shared_index: Index,
    tiny_encoder: Encoder,
    question: str,
    mode: Mode,
    top_k: int,
    chunks_per_page: int | None,
    collections: set[str] | None,
    page: str | None,
) -> None:
    hits = search(
        shared_index,
        tiny_encoder,
        question,
        mode=mode,
        top_k=top_k,
        chunks_per_page=chunks_per_page,
        collections=collections,
        page=page,
    ).hits
    assert len(hits) <= top_k
    assert len({(hit.chunk.url, hit.chunk.ordinal) for hit in hits}) == len(hits)
    assert {hit.chunk.collection for hit in hits} <= (collections or ({"large", "small"}))
    assert not (collections == set() and hits)
    assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)
    per_page = Counter(hit.chunk.url for hit in hits)
    assert not chunks_per_page or all(n <= chunks_per_page for n in per_page.values())
    if chunks_per_page is None and mode in ("vector", "keyword"):
        ranks = [hit.vector_rank if mode == "vector" else hit.keyword_rank for hit in hits]
        assert ranks == sorted(rank for rank in ranks if rank)


def test_a_refused_question_has_a_reason_and_no_hits(make_index: MakeIndex, tiny_encoder: Encoder) -> None:
    index = make_index([chunk("garden", "Tomatoes want sun.")])
    result = search(index, tiny_encoder, "garden", gate=Gate(threshold=99, weights=(1.0,) * N_EVIDENCE))
    assert result.hits == ()
    assert not result.gate.accepted
    assert "below" in result.gate.reason


def test_many_threads_that_ask_at_once_find_what_one_finds(
    make_index: MakeIndex, tiny_encoder: Encoder, tmp_path: Path
) -> None:
    index = make_index([chunk(f"p{i}", f"garden pond word{i}") for i in range(50)])
    questions = [*(f"word{i} garden" for i in range(50)), "gardne", "pnod wrod7"]
    fresh = Index.open(tmp_path / "rag.db")
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(partial(search, fresh, tiny_encoder), questions))
    assert found == [search(index, tiny_encoder, question) for question in questions]
    assert [names(result)[0] for result in found[:50]] == [f"p{i}" for i in range(50)]


def test_a_bundle_whose_file_is_gone_is_searched_on_in_any_thread(
    make_index: MakeIndex, tiny_encoder: Encoder, tmp_path: Path
) -> None:
    index = make_index([chunk("garden", "Tomatoes want sun."), chunk("server", "Restart the server.")])
    found = names(search(index, tiny_encoder, "tomatoes"))
    (tmp_path / "rag.db").unlink()
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(lambda: names(search(index, tiny_encoder, "restart tomatoes"))).result()
        assert pool.submit(lambda: names(search(index, tiny_encoder, "tomatoes"))).result() == found
