"""How long a search takes, beside the same search written as plain SQL over FTS5 and vec0.

    python -m benchmarks.search_time [--chunks 100000] [--bundle build/current]

Synthetic chunks have random unit vectors and words by Zipf's law. Questions have two to eight words and,
except with a bundle, vectors made beforehand: embedding one takes some milliseconds more.
"""

from __future__ import annotations

import argparse
import math
import re
import resource
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import apsw
import numpy as np

from handler.bundle.bundle import Bundle
from handler.bundle.database import open_database
from handler.bundle.encoder import ModelSpec, Vector
from handler.bundle.fusion import RRF_K
from handler.bundle.gate import Gate
from handler.bundle.reader import Index
from handler.bundle.search import search
from handler.bundle.types import Chunk
from pipeline.calibrate import DEFAULT_GATES, read_off_topic
from pipeline.index import title_texts, write_index

DIM = 384
N_WORDS = 50_000
WORDS_A_CHUNK = 120
N_QUESTIONS = 200
RIVAL_DEPTH = 30
SPEC = ModelSpec("synthetic", DIM, 512, "cls", "", "", "", "")


class Prepared:
    """An encoder whose vectors were made before."""

    def __init__(self, vectors: dict[str, Vector]) -> None:
        self._vectors = vectors

    def embed_query(self, text: str) -> Vector:
        """The vector made for the text."""
        return self._vectors[text]


def main() -> None:
    """Prints one line for each search that was timed."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--chunks", type=int, default=100_000, help="how many synthetic chunks")
    parser.add_argument("--bundle", type=Path, help="time this bundle too, embedding included")
    arguments = parser.parse_args()
    if arguments.bundle:
        time_bundle(arguments.bundle)
    with tempfile.TemporaryDirectory() as folder:
        time_synthetic(Path(folder) / "rag.db", arguments.chunks)


def time_bundle(folder: Path) -> None:
    """The whole search in a real bundle, with questions that few sites answer."""
    bundle = Bundle.open(folder)
    bundle = replace(bundle, gate=open_gate(bundle.gate))
    print_times(f"{len(bundle.index)} chunks of {folder}, with embedding", bundle.search, read_off_topic())
    print_memory()


def time_synthetic(path: Path, n_chunks: int) -> None:
    """The search without embedding, and its rival, on synthetic chunks."""
    random = np.random.default_rng(11)
    words = zipf_words(random, n_chunks * WORDS_A_CHUNK).reshape(n_chunks, WORDS_A_CHUNK)
    chunks = [
        Chunk(
            f"https://x.org/{i // 8}",
            f"Page {i // 8}",
            f"{i // 8:07}.md",
            "x",
            (),
            "",
            i % 8,
            " ".join(map(word, row)),
        )
        for i, row in enumerate(words)
    ]
    titles = title_texts(chunks)
    write_index(path, chunks, unit_vectors(random, n_chunks), unit_vectors(random, len(titles)), SPEC)
    del chunks, words
    questions = [
        " ".join(map(word, zipf_words(random, int(n)).tolist()))
        for n in random.integers(2, 9, size=N_QUESTIONS)
    ]
    encoder = Prepared(dict(zip(questions, unit_vectors(random, N_QUESTIONS), strict=True)))

    start = time.perf_counter()
    index = Index.open(path)
    print(f"{n_chunks} chunks opened in {time.perf_counter() - start:.2f} s")
    gate = open_gate(DEFAULT_GATES["bge-small-en-v1.5"])
    ask = lambda question: search(index, encoder, question, gate=gate)  # noqa: E731
    print_times("search, every question new", ask, questions)
    print_times("search, the same questions again", ask, questions)
    print_memory()
    connection = open_database(path)
    sql = lambda question: plain_sql(connection, encoder.embed_query(question), question)  # noqa: E731
    print_times("plain SQL: FTS5 OR vec0, reciprocal ranks", sql, questions)


def open_gate(gate: Gate) -> Gate:
    """The gate with all of its work to do and no question refused: what is refused is not ranked."""
    return replace(gate, threshold=-math.inf)


def plain_sql(connection: apsw.Connection, query: Vector, question: str) -> list[int]:
    """The best chunk ids by reciprocal rank of one FTS5 and one vec0 query."""
    terms = " OR ".join(f'"{term}"' for term in re.findall(r"\w+", question))
    legs = [
        connection.execute(
            "SELECT rowid FROM chunk_fts WHERE chunk_fts MATCH ? ORDER BY rank LIMIT ?", (terms, RIVAL_DEPTH)
        ),
        connection.execute(
            "SELECT chunk FROM chunk_vec WHERE embedding MATCH ? AND k = ?", (query.tobytes(), RIVAL_DEPTH)
        ),
    ]
    scores: dict[int, float] = {}
    for leg in legs:
        for rank, (chunk_id,) in enumerate(leg, start=1):
            scores[int(str(chunk_id))] = scores.get(int(str(chunk_id)), 0.0) + 1 / (RRF_K + rank)
    return sorted(scores, key=lambda chunk_id: -scores[chunk_id])[:6]


def print_times(label: str, ask: Callable[[str], object], questions: Sequence[str]) -> None:
    """One line with the median and the 95th percentile."""
    times_ms = []
    for question in questions:
        start = time.perf_counter()
        ask(question)
        times_ms.append(1000 * (time.perf_counter() - start))
    print(f"{label}: p50 {np.percentile(times_ms, 50):.1f} ms, p95 {np.percentile(times_ms, 95):.1f} ms")


def print_memory() -> None:
    """The most memory that the process ever had, the making of a synthetic index included, and now."""
    peak_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    now_mb = int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize() / 2**20
    print(f"memory: {now_mb:.0f} MB now, {peak_mb:.0f} MB at most")


def word(number: int) -> str:
    """A word that no stemmer changes and no stopword list knows."""
    return f"w{number}x"


def zipf_words(random: np.random.Generator, n: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """(n,) word numbers from 0; the word of rank r is as likely as 1 / r."""
    return np.floor(N_WORDS ** random.random(n)).astype(np.int64) - 1


def unit_vectors(random: np.random.Generator, n: int) -> Vector:
    """(n, DIM) float32, unit rows, in no direction more than in another."""
    vectors = random.standard_normal((n, DIM), dtype=np.float32)
    return np.asarray(vectors / np.linalg.norm(vectors, axis=1, keepdims=True), np.float32)


if __name__ == "__main__":
    main()
