"""Whether the words that answer a question are among what an answer is made of, and among what it quotes.

    python -m benchmarks.answers --bundle DIR --data DIR

The questions are about the sites til and dw-posts, and each has its evidence: words of a page that answer it.
The bundle is the one that `python -m benchmarks.retrieval --sets til` leaves in build/benchmarks.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterable
from pathlib import Path
from statistics import mean

from benchmarks.retrieval import read_json_lines
from handler.bundle.bundle import Bundle
from handler.generate.extractive import best_quotes

# Of the words of an evidence that has left some out, or is part of a table.
ENOUGH = 0.9


def main() -> None:
    """Prints one line for each bound of chunks a page."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--bundle", type=Path, required=True)
    parser.add_argument("--data", type=Path, required=True, help="folder of the question sets")
    arguments = parser.parse_args()
    bundle = Bundle.open(arguments.bundle.resolve())
    rows = read_json_lines(arguments.data / "til_questions" / "questions.jsonl")
    evidence = {row["text"]: row["evidence"] for row in rows if row["expected"]}
    print(f"{len(evidence)} questions, chunks a page: has the evidence in its six chunks, in its quotes")
    for chunks_per_page in (1, 2, 3, None):
        n_chunks = n_quotes = 0
        lengths = []
        for question, words in evidence.items():
            found = bundle.search(question, gated=False, chunks_per_page=chunks_per_page)
            quotes = best_quotes(question, found.hits, bundle.encoder, found.vector)
            n_chunks += is_in(words, (hit.chunk.text for hit in found.hits))
            n_quotes += is_in(words, (quote.text for quote in quotes))
            lengths.append(sum(len(quote.text) for quote in quotes))
        bound = chunks_per_page or "all"
        print(f"  {bound:>3}  {n_chunks} {n_quotes}, {mean(lengths):.0f} characters quoted", flush=True)


def is_in(evidence: str, texts: Iterable[str]) -> bool:
    """Whether the evidence stands in the texts, in a row or nearly all of its words."""
    text = "\n".join(texts)
    wanted, found = _words(evidence), _words(text)
    share = len({*wanted} & {*found}) / len({*wanted})
    return " ".join(wanted) in " ".join(found) or share >= ENOUGH


def _words(text: str) -> list[str]:
    return re.findall(r"\w+", text.lower())


if __name__ == "__main__":
    main()
