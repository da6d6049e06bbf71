from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from handler.bundle.encoder import Encoder
from handler.bundle.reader import Index
from handler.bundle.search import search
from handler.bundle.types import Chunk
from pipeline.calibrate import KEPT, Sample, calibrate, fit_gate, format_calibration, read_off_topic
from pipeline.index import write_index
from pipeline.questions import Question
from tests.conftest import title_vectors

WORDS = (
    *("garden", "pond", "tomato", "piano", "studio", "song", "server", "nginx"),
    *("restart", "algae", "summer", "water", "sun", "july", "record"),
)


@pytest.fixture
def index(tmp_path: Path, tiny_encoder: Encoder) -> Index:
    chunks = [
        Chunk(
            f"https://x.org/{a}-{b}", f"{a} {b}", f"{a}-{b}.md", "notes", (), "", 0, f"The {a} and the {b}."
        )
        for a in WORDS
        for b in WORDS
    ]
    vectors = np.array([tiny_encoder.embed_passage(chunk.text) for chunk in chunks])
    write_index(tmp_path / "rag.db", chunks, vectors, title_vectors(tiny_encoder, chunks), tiny_encoder.spec)
    return Index.open(tmp_path / "rag.db")


def questions(n: int) -> list[Question]:
    return [
        Question(str(i), f"the {WORDS[i % 15]} and the {WORDS[i % 14]}?", ("https://x.org/",))
        for i in range(n)
    ]


def test_the_built_in_questions_are_many_and_all_different() -> None:
    texts = read_off_topic()
    assert len(texts) >= 300
    assert len({text.casefold() for text in texts}) == len(texts)


def test_few_questions_leave_the_default_gate(index: Index, tiny_encoder: Encoder) -> None:
    asked = [*questions(5), Question("off", "who won the cup?", ())]
    gate = calibrate(index, tiny_encoder, asked)
    assert not gate.calibrated
    assert format_calibration(gate, asked) == (
        "the gate is the model's default: it has 5 questions to be fitted to, and takes 20; "
        "write what your readers ask into a questions.jsonl beside a site.toml"
    )


def test_a_calibrated_gate_keeps_what_it_promises(index: Index, tiny_encoder: Encoder) -> None:
    gate = calibrate(index, tiny_encoder, [*questions(60), Question("off", "who won the cup?", ())])
    assert gate.calibrated
    assert gate.false_refusals is not None
    assert gate.false_refusals <= 1 - KEPT + 1 / 60
    assert re.fullmatch(
        r"the gate lets 9\d% of 60 questions pass, and \d\.\d% of those that the sites do not answer",
        format_calibration(gate, questions(60)),
    )
    kept = [search(index, tiny_encoder, each.text, gate=gate).gate.accepted for each in questions(60)]
    assert np.mean(kept) >= KEPT - 0.05
    refused = [not search(index, tiny_encoder, text, gate=gate).gate.accepted for text in read_off_topic()]
    assert np.mean(refused) >= 0.9


def test_equal_questions_make_an_equal_gate(index: Index, tiny_encoder: Encoder) -> None:
    assert calibrate(index, tiny_encoder, questions(30)) == calibrate(index, tiny_encoder, questions(30))


def test_rates_are_measured_on_questions_left_out_of_the_fit() -> None:
    random = np.random.default_rng(3)
    good = Sample(random.normal(size=(100, 6)), random.normal(size=(100, 300)))
    bad = Sample(random.normal(size=(200, 6)), random.normal(size=(200, 300)))
    gate = fit_gate(good, bad)  # nothing tells the two apart, though 306 weights would fit them all
    assert gate.false_answers is not None
    assert gate.false_answers > 0.8
