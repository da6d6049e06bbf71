from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
MODEL = ROOT / "tests" / "data" / "model"
EMBED = f"""
from pathlib import Path
from handler.bundle.encoder import Encoder
from pipeline.model import read_spec
Encoder.load(Path({str(MODEL)!r}), read_spec(Path({str(MODEL)!r}))).embed_query("tomatoes")
"""


def argv_and_environ(home: Path) -> tuple[list[str], dict[str, str]]:
    return [sys.executable, "-c", EMBED], {"PATH": os.environ["PATH"], "HOME": str(home)}


def test_embedding_leaves_nothing_in_the_home_folder(tmp_path: Path) -> None:
    argv, environ = argv_and_environ(tmp_path)
    subprocess.run(argv, cwd=ROOT, env=environ, check=True)
    assert list(tmp_path.rglob("*")) == []


@pytest.mark.skipif(not shutil.which("strace"), reason="needs strace (Debian: strace)")
def test_embedding_connects_to_nothing(tmp_path: Path) -> None:
    argv, environ = argv_and_environ(tmp_path)
    trace = tmp_path / "trace"
    command = ["strace", "-f", "-qq", "-e", "trace=connect,sendto,sendmsg", "-o", str(trace), *argv]
    if subprocess.run([*command[:-1], ""], cwd=ROOT, env=environ, capture_output=True).returncode:
        pytest.skip("strace may not trace here")
    subprocess.run(command, cwd=ROOT, env=environ, check=True)
    calls = [line for line in trace.read_text().splitlines() if "(" in line]
    assert calls == []
