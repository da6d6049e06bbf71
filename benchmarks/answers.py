"""Whether the words that answer a question are among what an answer is made of, and among what it quotes.

    python -m benchmarks.answers --bundle DIR --data DIR [--set til_questions|squad2_A]

The questions are about the sites til and dw-posts, and each has its evidence: words of a page that answer it.
Those of SQuAD, of which every sixth is asked, have some wordings of the answer. The bundle is the one that
`python -m benchmarks.retrieval --sets til` (or `squad2_A`) leaves in build/benchmarks.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from statistics import mean

from benchmarks.retrieval import read_json_lines
from handler.bundle.bundle import Bundle
from handler.generate.extractive import best_quotes

SQUAD_STEP = 6
# Of the words of an evidence that has left some out, or is part of a table.
ENOUGH = 0.9


def main() -> None:
    """Prints one line for each bound of chunks a page."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--bundle", type=Path, required=True)
    parser.add_argument("--data", type=Path, required=True, help="folder of the question sets")
    parser.add_argument("--set", choices=EVIDENCE, default="til_questions")
    arguments = parser.parse_args()
    bundle = Bundle.open(arguments.bundle.resolve())
    evidence = EVIDENCE[arguments.set](arguments.data / arguments.set)
    print(
        f"{len(evidence)} questions, chunks a page: has the evidence in six chunks, quotes, the first quote"
    )
    for chunks_per_page in (1, 2, 3, None):
        n_chunks = n_quotes = n_first = 0
        lengths = []
        for question, wordings in evidence.items():
            found = bundle.search(question, gated=False, chunks_per_page=chunks_per_page)
            quotes = [quote.text for quote in best_quotes(question, found.hits, bundle.encoder, found.vector)]
            n_chunks += is_in(wordings, [hit.chunk.text for hit in found.hits])
            n_quotes += is_in(wordings, quotes)
            n_first += is_in(wordings, quotes[:1])
            lengths.append(sum(map(len, quotes)))
        bound = chunks_per_page or "all"
        print(
            f"  {bound:>3}  {n_chunks} {n_quotes} {n_first}, {mean(lengths):.0f} characters quoted",
            flush=True,
        )


def til_evidence(folder: Path) -> dict[str, list[str]]:
    """The questions that the two sites answer, each with the words that answer it."""
    rows = read_json_lines(folder / "questions.jsonl")
    return {row["text"]: [row["evidence"]] for row in rows if row["expected"]}


def squad_evidence(folder: Path) -> dict[str, list[str]]:
    """Some of the questions of SQuAD, each with the wordings of its answer."""
    answers = {row["id"]: row["answers"] for row in read_json_lines(folder / "answers.jsonl")}
    rows = [*read_json_lines(folder / "queries.jsonl")][::SQUAD_STEP]
    return {row["text"]: answers[row["id"]] for row in rows}


EVIDENCE = {"til_questions": til_evidence, "squad2_A": squad_evidence}


def is_in(wordings: Iterable[str], texts: Sequence[str]) -> bool:
    """Whether one of the wordings stands in the texts, in a row or nearly all of its words."""
    found = _words("\n".join(texts))
    in_a_row, distinct = f" {' '.join(found)} ", {*found}
    return any(
        f" {' '.join(wanted)} " in in_a_row or len({*wanted} & distinct) >= ENOUGH * len({*wanted})
        for wanted in map(_words, wordings)
    )


def _words(text: str) -> list[str]:
    return re.findall(r"\w+", text.lower())


if __name__ == "__main__":
    main()
