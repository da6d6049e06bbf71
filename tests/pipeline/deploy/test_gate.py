"""What a bundle is compared with may be no manifest of this program."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from handler.bundle.layout import MANIFEST
from pipeline.deploy.gate import check_not_worse
from pipeline.deploy.step import DeployError


@pytest.fixture
def bundle(make_bundle: Callable[..., Path]) -> Path:
    return make_bundle({"notes/a.md": "A\n\nTomatoes want sun."}, evaluation={"kept": 0.9})


def deployed_with(bundle: Path, **fields: Any) -> str:
    """The manifest of a bundle with other fields."""
    return json.dumps(json.loads((bundle / MANIFEST).read_text(encoding="utf-8")) | fields)


def test_where_nothing_is_deployed_there_is_nothing_to_compare_with(bundle: Path) -> None:
    check_not_worse("", bundle, None)


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"format_version": 99}, "bundle format 99"),
        ({"evaluation": {"kept": "0.9"}}, "evaluation.kept"),
        ({"evaluation": {"modes": {"hybrid": None}}}, "evaluation.modes.hybrid"),
        ({"evaluation": {"kept": float("nan")}}, "evaluation.kept"),
        ({"model": None}, "model"),
    ],
)
def test_a_deployed_bundle_that_cannot_be_compared_with_is_replaced_only_when_told_by_name(
    fields: dict[str, Any], reason: str, bundle: Path
) -> None:
    deployed = deployed_with(bundle, **fields)
    with pytest.raises(
        DeployError, match=rf"cannot be compared .*{reason}.*RALPH_ACCEPT_WORSE={bundle.name}"
    ):
        check_not_worse(deployed, bundle, None)
    check_not_worse(deployed, bundle, bundle.name)


def test_a_deployed_manifest_that_was_cut_off_is_told(bundle: Path) -> None:
    with pytest.raises(DeployError, match="cannot be compared"):
        check_not_worse(deployed_with(bundle)[:-9], bundle, None)
