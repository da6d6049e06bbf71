"""Two indexes asked as one, beside one index of all, and beside merging the lists of two searches.

    python -m benchmarks.joined --bundle DIR --data DIR

DIR is a bundle of the sites til and davidawindham.com, such as benchmarks.retrieval leaves in
build/benchmarks/retrieval/MODEL/til/build/current. Its pages are parted: in random halves; a tenth beside the
rest; and, for each of some questions, the pages that answer it with five others beside all the rest, as it is
with a young local index. Prints hit@1, hit@6 and MRR@10, and how many questions the gate lets pass.
"""

from __future__ import annotations

import argparse
import random
import tempfile
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from itertools import zip_longest
from pathlib import Path

import numpy as np

from benchmarks.retrieval import DEPTH, Task, til_tasks
from handler.bundle.encoder import Encoder, ModelSpec, Vector
from handler.bundle.gate import Gate
from handler.bundle.joined import join
from handler.bundle.manifest import read_manifest
from handler.bundle.passage import title_text
from handler.bundle.reader import Index
from handler.bundle.search import Hit, search
from handler.bundle.types import Chunk
from pipeline.calibrate import calibrate
from pipeline.index import title_texts, write_index

Lists = Sequence[Sequence[Hit]]
# Pages beside those that answer, in the smallest second index; and questions, each of which takes a second.
N_OTHERS = 5
N_QUESTIONS = 60


def take_turns(lists: Lists) -> list[Hit]:
    """The first of each list, the second of each, and so on: what reciprocal ranks come to."""
    return [hit for hits in zip_longest(*lists) for hit in hits if hit is not None]


def by_score(lists: Lists) -> list[Hit]:
    """By the fused score, in standard deviations of the cosines of each index."""
    return sorted(take_turns(lists), key=lambda hit: -hit.score)


def by_cosine(lists: Lists) -> list[Hit]:
    """By what means the same in both, and leaves out the words."""
    return sorted(take_turns(lists), key=lambda hit: -hit.cosine)


MERGES: dict[str, Callable[[Lists], list[Hit]]] = {
    "lists in turns": take_turns,
    "lists by score": by_score,
    "lists by cosine": by_cosine,
}


class Questions:
    """Embeds each question once."""

    def __init__(self, encoder: Encoder) -> None:
        self._encoder = encoder
        self._vectors: dict[str, Vector] = {}

    def embed_query(self, text: str) -> Vector:
        """(dim,) float32, unit length."""
        if text not in self._vectors:
            self._vectors[text] = self._encoder.embed_query(text)
        return self._vectors[text]


class Corpus:
    """A bundle that can be parted."""

    def __init__(self, bundle: Path, folder: Path) -> None:
        self.spec = ModelSpec.from_dict(read_manifest(bundle).model)
        encoder = Encoder.load(bundle, self.spec, threads=2)
        self.index = Index.open(bundle / "rag.db")
        self.questions = Questions(encoder)
        self.gate = calibrate(self.index, encoder, [])
        self.chunks = self.index.chunks(range(len(self.index)))
        self.pages = sorted({chunk.url for chunk in self.chunks})
        self._title_vectors = {
            title_text(chunk.title): self.index.title_vectors[page - 1]
            for chunk, page in zip(self.chunks, self.index.page_numbers, strict=True)
        }
        self._folder = folder

    def part(self, pages: set[str]) -> tuple[Index, Index]:
        """The index of all other pages, and that of these."""
        return self._index(lambda url: url not in pages), self._index(lambda url: url in pages)

    def _index(self, is_in: Callable[[str], bool]) -> Index:
        rows = [row for row, chunk in enumerate(self.chunks) if is_in(chunk.url)]
        path = self._folder / "part.db"
        chunks = [self.chunks[row] for row in rows]
        titles = np.array([self._title_vectors[text] for text in title_texts(chunks)])
        write_index(path, chunks, self.index.vectors[rows], titles, self.spec)
        return Index.open(path)


class Score:
    """The ranks of right pages, and the gate's verdicts, of one way to search."""

    def __init__(self) -> None:
        self.ranks: list[float] = []
        self.passed: list[bool] = []

    def add(self, hits: Iterable[Hit], is_right: Callable[[Chunk], bool], passed: bool) -> None:
        """Counts the answer of one question."""
        urls = dict.fromkeys(hit.chunk.url for hit in hits)
        chunks = {hit.chunk.url: hit.chunk for hit in hits}
        right = (rank for rank, url in enumerate([*urls][:DEPTH], start=1) if is_right(chunks[url]))
        self.ranks.append(next(right, float("inf")))
        self.passed.append(passed)

    def __str__(self) -> str:
        hit_1, hit_6 = (sum(rank <= n for rank in self.ranks) / len(self.ranks) for n in (1, 6))
        mrr = sum(1 / rank for rank in self.ranks) / len(self.ranks)
        passed = sum(self.passed) / len(self.passed)
        return f"hit@1 {hit_1:.3f}  hit@6 {hit_6:.3f}  MRR {mrr:.3f}  passed {passed:.1%}"


def main() -> None:
    """Prints a table for each way to part the pages."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--bundle", type=Path, required=True)
    parser.add_argument("--data", type=Path, required=True)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        corpus = Corpus(arguments.bundle.resolve(), Path(folder))
        draw = random.Random(1)
        halves = corpus.part(set(draw.sample(corpus.pages, len(corpus.pages) // 2)))
        tenth = corpus.part(set(draw.sample(corpus.pages, len(corpus.pages) // 10)))
        for task in til_tasks(arguments.data):
            show(corpus, task, "halves", lambda _: halves)
            show(corpus, task, "a tenth", lambda _: tenth)
            some = replace(task, questions=dict([*task.questions.items()][:N_QUESTIONS]))
            show(corpus, some, f"the answer and {N_OTHERS} pages", lambda right: few(corpus, right))


def few(corpus: Corpus, right: set[str]) -> tuple[Index, Index]:
    """The right pages and some others, beside all the rest."""
    return corpus.part(right | set(random.Random(len(right)).sample(corpus.pages, N_OTHERS)))


def show(corpus: Corpus, task: Task, name: str, part: Callable[[set[str]], tuple[Index, Index]]) -> None:
    """One table: every way to search two indexes, and one of all."""
    scores = {way: Score() for way in ("one index", "joined", *MERGES)}
    for key, text in task.questions.items():
        grades = task.grades[key]

        def is_right(chunk: Chunk, grades: object = grades) -> bool:
            assert isinstance(grades, dict)
            return bool(grades.get(chunk.url, grades.get(chunk.path)))

        parts = part({chunk.url for chunk in corpus.chunks if is_right(chunk)})
        for way, index in (("one index", corpus.index), ("joined", join(*parts))):
            scores[way].add(found(corpus, index, text), is_right, passes(corpus, index, text, corpus.gate))
        lists = [found(corpus, index, text) for index in parts]
        passed = any(passes(corpus, index, text, corpus.gate) for index in parts)
        for way, merge in MERGES.items():
            scores[way].add(merge(lists), is_right, passed)
    print(f"{task.name}, {len(task.questions)} questions; second index: {name}")
    for way, score in scores.items():
        print(f"  {way:15}  {score}", flush=True)


def found(corpus: Corpus, index: Index, text: str) -> tuple[Hit, ...]:
    """The best hits, ungated."""
    return search(index, corpus.questions, text, top_k=DEPTH).hits


def passes(corpus: Corpus, index: Index, text: str, gate: Gate) -> bool:
    """The gate's verdict."""
    return search(index, corpus.questions, text, top_k=1, gate=gate).gate.accepted


if __name__ == "__main__":
    main()
