from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import pytest

from handler.bundle.typed import typed
from handler.bundle.types import BundleError


@dataclass(frozen=True)
class Pond:
    name: str
    depth: float
    fish: tuple[str, ...]
    note: str | None


POND = {"name": "north", "depth": 2, "fish": ["carp"], "note": None}


@pytest.mark.parametrize(
    ("kind", "value", "expected"),
    [
        (int, 3, 3),
        (float, 3, 3.0),
        (float | None, None, None),
        (float | None, 0.5, 0.5),
        (Literal["cls", "mean"], "mean", "mean"),
        (tuple[float, ...], [1, 2.5], (1.0, 2.5)),
        (dict[str, int], {"a": 1}, {"a": 1}),
        (Any, ["any"], ["any"]),
        (Pond, POND, Pond("north", 2.0, ("carp",), None)),
    ],
)
def test_json_becomes_the_type_that_is_meant(kind: object, value: object, expected: object) -> None:
    assert typed(kind, value, "it") == expected


@pytest.mark.parametrize(
    ("kind", "value", "where"),
    [
        (int, True, "it: True is not of type int"),
        (int, 1.0, "it: 1.0"),
        (bool, "no", "it: 'no'"),
        (float, True, "it: True is not a number"),
        (float, float("nan"), "it: nan"),
        (float | None, "1", "it: '1'"),
        (Literal["cls", "mean"], "max", "it: 'max'"),
        (tuple[float, ...], [0, "x"], r"it\[1\]: 'x'"),
        (tuple[str, ...], "carp", "it: 'carp'"),
        (dict[str, int], {"a": None}, "it.a: None"),
        (Pond, [], "it: .* is not a table"),
        (Pond, {**POND, "depth": "deep"}, "it.depth: 'deep'"),
        (Pond, {**POND, "colour": "green"}, "it.colour is unknown"),
        (Pond, {"name": "north"}, "it.depth is missing"),
    ],
)
def test_what_is_of_another_type_is_refused_by_its_place(kind: object, value: object, where: str) -> None:
    with pytest.raises(BundleError, match=where):
        typed(kind, value, "it")
