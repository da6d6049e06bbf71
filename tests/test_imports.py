"""pipeline -> handler.bundle <- plugins: what may import what, read off the source."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


def imported_modules(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: write the import in full"
            yield node.module or ""


@pytest.mark.parametrize(
    ("room", "forbidden"),
    [
        ("handler", ("pipeline", "plugins", "benchmarks", "tests")),
        ("pipeline", ("plugins", "benchmarks", "tests")),
        ("handler/bundle", ("handler.generate", "handler.answer", "handler.commands", "handler.settings")),
    ],
)
def test_a_room_imports_only_what_is_below_it(room: str, forbidden: tuple[str, ...]) -> None:
    wrong = [
        f"{path.relative_to(ROOT)} imports {module}"
        for path in (ROOT / room).rglob("*.py")
        for module in imported_modules(path)
        if any(module == name or module.startswith(f"{name}.") for name in forbidden)
    ]
    assert wrong == []


def test_the_pipeline_uses_nothing_of_the_handler_but_the_bundle() -> None:
    wrong = [
        f"{path.relative_to(ROOT)} imports {module}"
        for path in (ROOT / "pipeline").rglob("*.py")
        for module in imported_modules(path)
        if module.startswith("handler") and not module.startswith("handler.bundle")
    ]
    assert wrong == []


def test_onnx_runtime_is_loaded_where_it_is_told_to_keep_to_itself() -> None:
    folders = ("handler", "pipeline", "plugins", "benchmarks", "tests")
    files = {path for folder in folders for path in (ROOT / folder).rglob("*.py")}
    loading = {path for path in files for name in imported_modules(path) if name.startswith("onnxruntime")}
    assert loading == {ROOT / "handler" / "bundle" / "onnx.py", ROOT / "benchmarks" / "embedding.py"}


def test_the_task_graph_loads_nothing_slow() -> None:
    """A build with nothing to do has a second; numpy and onnxruntime alone take half of it."""
    slow = "{'numpy', 'onnxruntime', 'apsw', 'yaml', 'lxml'}"
    program = f"import dodo, sys; print(*sorted({slow} & set(sys.modules)))"
    loaded = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout
    assert loaded.split() == []
