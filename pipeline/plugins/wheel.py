"""The wheel that a plugin brings: the modules of its server, and those of the clone that they import.

It is written here and not by a build backend so that the same tree makes the same bytes on every machine: it
is committed, beside the plugin that runs it, and a test compares it with the tree. Its members are not
compressed: compressed bytes differ between versions of zlib, and git packs better what it can see into.

Format: https://packaging.python.org/en/latest/specifications/binary-distribution-format/
"""

from __future__ import annotations

import ast
import base64
import hashlib
import io
import tomllib
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pipeline.settings import ROOT

_DATE = (1980, 1, 1, 0, 0, 0)
_DATA = (".sql", ".toml", ".json", ".jsonl")
# Where the settings of an installed copy look for the collections, which a clone has among its sites.
_COLLECTIONS = ("pipeline/collections.toml", "sites/collections.toml")


def wheel_name(project: Mapping[str, Any]) -> str:
    """The file name of the wheel of a [project] table."""
    return f"{_distribution(project)}-{project['version']}-py3-none-any.whl"


def make_wheel(plugin: Path, root: Path = ROOT) -> tuple[str, bytes]:
    """The file name and the bytes of a plugin's wheel.

    `plugin` has a pyproject.toml and a package of its name; what this imports of `root` comes with it.
    """
    project = tomllib.loads((plugin / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    sources = imported_files(_distribution(project), (plugin, root))
    if "pipeline/settings.py" in sources:
        name, source = _COLLECTIONS
        sources[name] = root / source
    files = {name: path.read_bytes() for name, path in sources.items()}
    info = f"{_distribution(project)}-{project['version']}.dist-info"
    files |= {
        f"{info}/METADATA": _metadata(project).encode(),
        f"{info}/WHEEL": b"Wheel-Version: 1.0\nGenerator: ralph\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{info}/licenses/LICENSE": (root / "LICENSE").read_bytes(),
    }
    record = f"{info}/RECORD"
    lines = [f"{name},sha256={_digest(data)},{len(data)}\n" for name, data in sorted(files.items())]
    files[record] = ("".join(lines) + f"{record},,\n").encode()
    return wheel_name(project), _zip(files)


def imported_files(package: str, folders: tuple[Path, ...]) -> dict[str, Path]:
    """Every module of a package, every module of the folders that these import, and the data of all of them.

    By the name in a wheel, sorted. An import counts wherever it stands, in a function too. Data are files
    beside a module that names them in a string.
    """
    found: dict[str, Path] = {}
    (home,) = (folder / package for folder in folders if (folder / package).is_dir())
    modules = [
        ".".join(path.relative_to(home.parent).with_suffix("").parts) for path in sorted(home.rglob("*.py"))
    ]
    while modules:
        located = _locate(modules.pop(), folders)
        if located is None or located[0] in found:
            continue
        name, path = located
        found[name] = path
        tree = ast.parse(path.read_bytes())
        modules += _imports(tree)
        modules += [package.replace("/", ".") for package in _parents(name)]
        found |= _data(name, path, tree)
    return dict(sorted(found.items()))


def _locate(module: str, folders: tuple[Path, ...]) -> tuple[str, Path] | None:
    for folder in folders:
        for name in (f"{module.replace('.', '/')}.py", f"{module.replace('.', '/')}/__init__.py"):
            if (folder / name).is_file():
                return name, folder / name
    return None


def _imports(tree: ast.Module) -> Iterator[str]:
    """The modules that a module may import; `from a import b` may mean the module a.b."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def _parents(name: str) -> Iterator[str]:
    parts = name.split("/")[:-1]
    yield from ("/".join(parts[:length]) for length in range(1, len(parts) + 1))


def _data(name: str, path: Path, tree: ast.Module) -> Iterator[tuple[str, Path]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.endswith(_DATA):
            beside = path.with_name(Path(node.value).name)
            if beside.is_file():
                yield f"{name.rpartition('/')[0]}/{beside.name}", beside


def _distribution(project: Mapping[str, Any]) -> str:
    return str(project["name"]).replace("-", "_")


def _metadata(project: Mapping[str, Any]) -> str:
    lines = [
        "Metadata-Version: 2.4",
        f"Name: {project['name']}",
        f"Version: {project['version']}",
        f"Summary: {project['description']}",
        f"License-Expression: {project['license']}",
        "License-File: LICENSE",
        f"Requires-Python: {project['requires-python']}",
        *(f"Requires-Dist: {dependency}" for dependency in project["dependencies"]),
    ]
    return "\n".join(lines) + "\n"


def _digest(data: bytes) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()


def _zip(files: Mapping[str, bytes]) -> bytes:
    """The members in the order of their names, RECORD last, as the format asks for."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:
        for name in sorted(files, key=lambda name: (".dist-info/" in name, name.endswith("/RECORD"), name)):
            info = zipfile.ZipInfo(name, _DATE)
            info.create_system = 3  # Unix, on every machine: it is what gives the modes a meaning
            info.external_attr = 0o100644 << 16
            archive.writestr(info, files[name])
    return buffer.getvalue()
