from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from pipeline.deploy import targets
from pipeline.deploy.step import DeployError
from pipeline.settings import TARGETS, read_deploy_settings

SETTINGS = read_deploy_settings({})


def test_every_target_that_can_be_named_can_be_deployed_to() -> None:
    assert all(callable(getattr(targets, f"deploy_{name}")) for name in TARGETS)


@pytest.mark.parametrize(
    ("deploy", "name", "value"),
    [
        (targets.deploy_lambda, "RALPH_LAMBDA_BUCKET", ""),
        (targets.deploy_container, "RALPH_IMAGE", "A B"),
    ],
)
def test_a_wrong_setting_ends_a_deployment_by_its_name(
    deploy: Callable[..., None], name: str, value: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, value)
    with pytest.raises(DeployError, match=f"^{name}: "):
        deploy(SETTINGS, tmp_path, dry_run=False)
