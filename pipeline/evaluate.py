"""How well an index answers the sites' own questions, beside the plain searches it has to beat."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import get_args

from handler.bundle.counted import counted
from handler.bundle.gate import Gate
from handler.bundle.reader import Index
from handler.bundle.search import QueryEncoder, search
from handler.bundle.types import Mode
from pipeline.questions import Question

MODES: tuple[Mode, ...] = get_args(Mode)
# Where an answer counts as found: what a reader is shown.
TOP_K = 6


@dataclass(frozen=True, slots=True)
class Recall:
    """How high the first acceptable page stands, over the answerable questions; all in [0, 1]."""

    hit_at_1: float
    hit_at_6: float
    mrr: float


@dataclass(frozen=True, slots=True)
class Evaluation:
    """The figures of one index. `modes` are measured without the gate.

    `kept` is the share of answerable questions that pass the gate, `refused` the share of the others that
    do not; None where there was no question of the kind.
    """

    n_answerable: int
    n_refusals: int
    modes: dict[Mode, Recall]
    kept: float | None
    refused: float | None


def evaluate(
    index: Index,
    encoder: QueryEncoder,
    gate: Gate,
    questions: Sequence[Question],
    progress: Callable[[Sequence[Question]], Iterable[Question]] = iter,
) -> Evaluation:
    """The figures for questions whose answers are known; without questions there are no modes."""
    cached = _Remembering(encoder)
    ranks: dict[Mode, list[int | None]] = {mode: [] for mode in MODES}
    accepted: dict[bool, list[bool]] = {True: [], False: []}
    for question in progress(questions):
        result = search(index, cached, question.text, gate=gate)
        accepted[bool(question.expected)].append(result.gate.accepted)
        for mode in MODES if question.expected else ():
            hits = search(index, cached, question.text, mode=mode, top_k=TOP_K).hits
            ranks[mode].append(first_rank([hit.chunk.url for hit in hits], question.expected))
    return Evaluation(
        n_answerable=len(accepted[True]),
        n_refusals=len(accepted[False]),
        modes={mode: recall(found) for mode, found in ranks.items() if found},
        kept=_share(accepted[True]),
        refused=_share([not each for each in accepted[False]]),
    )


def misplaced(index: Index, questions: Iterable[Question]) -> list[str]:
    """A sentence for each expected address that is no page of the index, which no search can find.

    It says where that is written, and names the page whose address differs by the slash at its end.
    """
    known = index.page_number_by_url
    by_stem = {url.rstrip("/"): url for url in known}
    wrong = [(question.where, url) for question in questions for url in question.expected if url not in known]
    return [
        f"{where}: {url} is expected, and is no page of this bundle"
        + (f"; {by_stem[stem]} is" if (stem := url.rstrip("/")) in by_stem else "")
        for where, url in wrong
    ]


def first_rank(urls: Sequence[str], expected: Iterable[str]) -> int | None:
    """The rank, from 1, of the first URL that was expected, or None."""
    wanted = set(expected)
    return next((rank for rank, url in enumerate(urls, start=1) if url in wanted), None)


def recall(ranks: Sequence[int | None]) -> Recall:
    """The figures of some first ranks, of which there is at least one."""
    return Recall(
        hit_at_1=round(sum(rank == 1 for rank in ranks) / len(ranks), 4),
        hit_at_6=round(sum(rank is not None and rank <= 6 for rank in ranks) / len(ranks), 4),
        mrr=round(sum(1 / rank for rank in ranks if rank) / len(ranks), 4),
    )


def write_evaluation(evaluation: Evaluation, path: Path) -> None:
    """Writes the figures as JSON."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(asdict(evaluation), indent=1) + "\n", encoding="utf-8")


def read_evaluation(path: Path) -> Evaluation:
    """The figures that write_evaluation wrote."""
    table = json.loads(path.read_text(encoding="utf-8"))
    return Evaluation(**{**table, "modes": {mode: Recall(**row) for mode, row in table["modes"].items()}})


def format_evaluation(evaluation: Evaluation, questions: Sequence[Path]) -> str:
    """The figures as a table for a terminal. `questions` are the files that those of each site stand in."""
    if not evaluation.n_answerable and not evaluation.n_refusals:
        return f"no questions to measure with; write some into {' or '.join(map(str, questions))}"
    lines = [f"{counted(evaluation.n_answerable, 'answerable question')}, {evaluation.n_refusals} to refuse"]
    if evaluation.modes:
        lines.append(f"{'':10}{'hit@1':>8}{'hit@6':>8}{'MRR':>8}")
    for mode, found in evaluation.modes.items():
        lines.append(f"{mode:10}{found.hit_at_1:8.3f}{found.hit_at_6:8.3f}{found.mrr:8.3f}")
    if evaluation.kept is not None:
        lines.append(f"gate: {evaluation.kept:.1%} of the answerable questions pass")
    if evaluation.refused is not None:
        lines.append(f"gate: {evaluation.refused:.1%} of the others are refused")
    return "\n".join(lines)


def _share(flags: Sequence[bool]) -> float | None:
    return round(sum(flags) / len(flags), 4) if flags else None


class _Remembering:
    """An encoder that embeds each question once, however many modes it is asked in."""

    def __init__(self, encoder: QueryEncoder) -> None:
        self.embed_query = cache(encoder.embed_query)
