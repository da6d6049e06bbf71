"""What ships: one folder with the handler, a bundle and the versions that it runs with, and nothing else.

Everything is named by what it is, not by what it is not: a key, a `.env` or an editor's leftover that lies
among the handler's files is of no kind that ships.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

from handler.bundle.layout import FILES, SUMS
from handler.bundle.sums import check_sums, file_sha256
from handler.bundle.types import BundleError
from pipeline.settings import ROOT

KINDS = frozenset({".css", ".html", ".js", ".md", ".py", ".sql"})
# The local chat and the MCP server answer from private pages too, on the owner's machine: the chat, and all
# that only these two import.
LOCAL = re.compile(r"handler/(local/|generate/(ollama\w*|marks)\.py|bundle/(joined|live)\.py)")
HIDDEN = re.compile(r"/\.")
NOTICES = ("LICENSE", "NOTICE.md")
PERSONA = "handler/persona.md"
REQUIREMENTS = "requirements.txt"
BUNDLE = "bundle"
# 2020-01-01. Equal content has equal times, so that a copy of it is the same to the byte, times included.
MTIME_S = 1_577_836_800


def package(
    bundle: Path,
    out: Path,
    private: frozenset[str] = frozenset(),
    persona: Path | None = None,
    root: Path = ROOT,
) -> str:
    """Assembles the package of a bundle in the folder `out`, and returns its version.

    The version is 12 hex digits made from the content alone. `private` names the collections that may ship
    although they are not public, `persona` a file in the place of the handler's own. Raises BundleError when
    the bundle is damaged or holds other collections that are not public.
    """
    check_sums(bundle)
    _check_private(bundle, private)
    new = out.with_name(f".{out.name}-new")
    shutil.rmtree(new, ignore_errors=True)
    bundle_files = ((f"{BUNDLE}/{name}", bundle / name) for name in (*FILES, SUMS))
    for name, source in (*program_files(persona, root), *bundle_files):
        target = new / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, target)
    _write_sums(new)
    _settle(new)
    shutil.rmtree(out, ignore_errors=True)
    new.rename(out)
    return package_version(out)


def program_files(persona: Path | None = None, root: Path = ROOT) -> Iterator[tuple[str, Path]]:
    """Every file that ships beside the bundle: its name in the package, and where it is now."""
    for path in (root / "handler").rglob("*"):
        name = path.relative_to(root).as_posix()
        if path.suffix in KINDS and path.is_file() and not HIDDEN.search(name) and not LOCAL.match(name):
            yield name, persona if persona and name == PERSONA else path
    yield from ((name, root / name) for name in NOTICES)
    yield REQUIREMENTS, root / "requirements" / "serve.txt"


def package_version(folder: Path) -> str:
    """The version of a package that stands in a folder."""
    return file_sha256(folder / SUMS)[:12]


def requirements_version(folder: Path) -> str:
    """12 hex digits that change when a package is to be installed that was not, or in another version."""
    return file_sha256(folder / REQUIREMENTS)[:12]


def _check_private(bundle: Path, accepted: frozenset[str]) -> None:
    from handler.bundle.manifest import read_manifest  # numpy; the task graph only wants the names above

    manifest = read_manifest(bundle)
    private = sorted(set(manifest.collections) - set(manifest.public_collections) - accepted)
    if private:
        raise BundleError(
            f"{bundle} holds pages of {', '.join(private)}, which collections.toml does not call public: "
            f"build without them, or say RALPH_ACCEPT_PRIVATE={','.join(private)} to ship them all the same"
        )


def _write_sums(folder: Path) -> None:
    """SHA256SUMS over all the files of a package, in the format of sha256sum(1); its own digest is theirs."""
    names = sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())
    lines = [f"{file_sha256(folder / name)}  {name}\n" for name in names]
    (folder / SUMS).write_text("".join(lines), encoding="ascii")


def _settle(folder: Path) -> None:
    """The same modes and times whatever the umask is and whenever it is; folders after what is in them."""
    for path in sorted([folder, *folder.rglob("*")], reverse=True):
        path.chmod(0o755 if path.is_dir() else 0o644)
        os.utime(path, (MTIME_S, MTIME_S))
