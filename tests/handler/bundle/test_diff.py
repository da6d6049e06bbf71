from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from handler.bundle.diff import PageChange, diff, format_diff
from handler.bundle.types import BundleError

MakeBundle = Callable[..., Path]

OLD = {
    "notes/a.md": "A\n\nTomatoes want sun.",
    "notes/b.md": "B\n\nThe piano.",
    "notes/c.md": "C\n\nThe pond.",
}
NEW = {
    "notes/a.md": "A\n\nTomatoes want sun.",
    "notes/b.md": "B\n\nThe song.",
    "notes/d.md": "D\n\nThe server.",
}


def evaluation(hit_at_6: float, refused: float | None = 0.9) -> dict[str, object]:
    hybrid = {"hit_at_1": 0.5, "hit_at_6": hit_at_6, "mrr": 0.6}
    return {"modes": {"hybrid": hybrid}, "kept": 0.95, "refused": refused}


def test_pages_and_chunks_that_came_went_or_changed_are_listed(make_bundle: MakeBundle) -> None:
    difference = diff(make_bundle(OLD), make_bundle(NEW))
    assert difference.added == ("https://example.org/notes/d",)
    assert difference.removed == ("https://example.org/notes/c",)
    assert difference.changed == (PageChange("https://example.org/notes/b", n_added=1, n_removed=1),)
    assert (difference.n_chunks_added, difference.n_chunks_removed) == (2, 2)


def test_a_bundle_does_not_differ_from_itself(make_bundle: MakeBundle) -> None:
    bundle = make_bundle(OLD, evaluation=evaluation(0.9))
    difference = diff(bundle, bundle)
    assert (difference.added, difference.removed, difference.changed, difference.worse) == ((), (), (), ())


@pytest.mark.parametrize(
    ("new", "worse"),
    [
        (evaluation(0.9), ()),
        (evaluation(0.95), ()),
        (evaluation(0.8), ("hybrid hit@6 fell from 0.900 to 0.800",)),
        (evaluation(0.9, refused=0.7), ("questions refused fell from 0.900 to 0.700",)),
        (evaluation(0.9, refused=None), ("questions refused is not measured any more",)),
    ],
)
def test_worse_recall_or_refusal_is_said(
    make_bundle: MakeBundle, new: dict[str, object], worse: tuple[str, ...]
) -> None:
    difference = diff(make_bundle(OLD, evaluation=evaluation(0.9)), make_bundle(OLD, evaluation=new))
    assert difference.worse == worse
    assert all(sentence in format_diff(difference) for sentence in worse)


def test_figures_stand_side_by_side(make_bundle: MakeBundle) -> None:
    text = format_diff(diff(make_bundle(OLD, evaluation=evaluation(0.9)), make_bundle(NEW)))
    line = next(line for line in text.splitlines() if line.startswith("hybrid hit_at_6"))
    assert line.split()[-2:] == ["0.900", "-"]


def test_what_is_no_bundle_cannot_be_compared(make_bundle: MakeBundle, tmp_path: Path) -> None:
    bundle = make_bundle(OLD)
    with pytest.raises(BundleError, match="is no bundle"):
        diff(bundle, tmp_path / "nowhere")
    shutil.copytree(bundle, tmp_path / "half")
    (tmp_path / "half" / "manifest.json").unlink()
    with pytest.raises(BundleError, match="is no bundle"):
        diff(bundle, tmp_path / "half")


def test_a_damaged_database_cannot_be_compared(make_bundle: MakeBundle) -> None:
    bundle = make_bundle(OLD)
    damaged = bundle.with_name("damaged")
    shutil.copytree(bundle, damaged)
    content = (damaged / "rag.db").read_bytes()
    (damaged / "rag.db").write_bytes(content[:100] + b"\xff" * (len(content) - 100))
    with pytest.raises(BundleError, match=r"rag\.db"):
        diff(bundle, damaged)


@pytest.mark.parametrize(
    "wrong", [{"modes": []}, {"modes": {"hybrid": {"hit_at_1": "high"}}}, {"kept": "most"}]
)
def test_figures_that_are_none_cannot_be_compared(make_bundle: MakeBundle, wrong: dict[str, object]) -> None:
    bundle = make_bundle(OLD, evaluation=wrong)
    with pytest.raises(BundleError, match="evaluation"):
        diff(bundle, bundle)
