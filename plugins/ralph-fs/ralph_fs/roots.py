"""Which allowed folder a client's path lies in, by its spelling alone; nothing is opened here."""

from __future__ import annotations

import os
import sys
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass

from ralph_fs.refusal import RefusedError, shown
from ralph_fs.settings import Settings

_FOLDS_CASE = ("darwin", "win32")
# Far beyond what people have; it keeps the work of one call in bounds.
MAX_DEPTH = 128
_MAX_PATH_BYTES = 4096  # PATH_MAX of Linux


@dataclass(frozen=True, slots=True)
class Place:
    """What a client's path means: `parts` beneath the folder `root`, without `.` and `..`.

    `shown` is the client's own spelling. No parts: the allowed folder itself.
    """

    root: str
    parts: tuple[str, ...]
    shown: str

    def beneath(self, *names: str) -> Place:
        """The place of something in this folder, spelled as the client would."""
        prefix = "" if self.shown in (".", "./") else self.shown.rstrip("/") + "/"
        return Place(self.root, (*self.parts, *names), prefix + "/".join(names))


@dataclass(frozen=True, slots=True)
class Scope:
    """The allowed folders: `roots` are pairs of parts, as paths may begin, and the real folder.

    `base` are the parts that relative paths continue. `fold` makes spellings of one name equal. `kept` are
    folders, folded, that no call may move or delete, nor one that holds them.
    """

    roots: tuple[tuple[tuple[str, ...], str], ...]
    base: tuple[str, ...]
    fold: Callable[[str], str]
    kept: frozenset[tuple[str, ...]]

    def place(self, path: str) -> Place:
        """Where a client's path lies. Raises RefusedError when that is outside, or when it is no path.

        `..` takes away the part before it, as in URLs, so that a path means the same whatever links there
        are. Whether a symbolic link leads out is for the kernel to say, when the place is opened.
        """
        _check(path)
        parts = self._parts(path)
        folded = self._folded_parts(parts)
        for prefix, root in self.roots:
            if folded[: len(prefix)] == prefix:
                if len(parts) - len(prefix) > MAX_DEPTH:
                    raise RefusedError(f"{shown(path)}: lies more than {MAX_DEPTH} folders deep")
                return Place(root, parts[len(prefix) :], path)
        way_out = "" if path.startswith("/") or self._holds(self.base) else "; write an absolute path"
        raise RefusedError(f"{shown(path)}: lies outside of the allowed folders{way_out}")

    def removable(self, path: str) -> Place:
        """As `place`, of what may be moved and deleted: no allowed folder, and nothing that holds one."""
        place = self.place(path)
        folded = self._folded_parts(self._parts(path))
        if any(kept[: len(folded)] == folded for kept in self.kept):
            raise RefusedError(f"{shown(path)}: is an allowed folder or holds one, and stays where it is")
        return place

    @property
    def kept_folders(self) -> set[str]:
        """The paths of what is kept: a link on the way there makes another spelling, of the same folder."""
        return {"/" + "/".join(parts[:n]) for parts in self.kept for n in range(1, len(parts) + 1)}

    def _parts(self, path: str) -> tuple[str, ...]:
        return _collapsed(path, () if path.startswith("/") else self.base)

    def _folded_parts(self, parts: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(map(self.fold, parts))

    def _holds(self, parts: tuple[str, ...]) -> bool:
        folded = self._folded_parts(parts)
        return any(folded[: len(prefix)] == prefix for prefix, _ in self.roots)


def read_scope(settings: Settings, platform: str = sys.platform) -> Scope:
    """The scope of the settings. A folder is found by its own spelling and by that of its real path."""
    fold = _folded if platform in _FOLDS_CASE else str
    pairs = {
        (tuple(map(fold, _collapsed(spelling, ()))), os.path.realpath(folder))
        for folder in settings.allowed_dirs
        for spelling in (str(folder), os.path.realpath(folder))
    }
    # The widest first: a link from one folder to another inside of it then stays beneath.
    roots = tuple(sorted(pairs, key=lambda pair: len(pair[1])))
    base = _collapsed(os.path.realpath(settings.root_dir), ())
    spelled = _collapsed(str(settings.root_dir), ())
    kept = {prefix for prefix, _ in roots} | {tuple(map(fold, parts)) for parts in (base, spelled)}
    return Scope(roots, base, fold, frozenset(kept))


def _check(path: str) -> None:
    if not path:
        raise RefusedError("the path is empty; write . for the folder that relative paths start in")
    if "\0" in path:
        raise RefusedError(f"{shown(path)}: a path holds no NUL")
    if "\\" in path:
        raise RefusedError(f"{shown(path)}: write / between names, not \\")
    if path.lower().startswith("file:"):
        raise RefusedError(f"{shown(path)}: write a path, not an address")
    if path == "~" or path.startswith("~/"):
        raise RefusedError(f"{shown(path)}: ~ stands for nothing here; write the path")
    try:
        n_bytes = len(os.fsencode(path))
    except UnicodeEncodeError:
        raise RefusedError(f"{shown(path)}: is no Unicode text") from None
    if n_bytes > _MAX_PATH_BYTES:
        raise RefusedError(f"{shown(path)}: the path is too long")


def _collapsed(path: str, base: tuple[str, ...]) -> tuple[str, ...]:
    parts = list(base)
    for part in path.split("/"):
        if part == "..":
            del parts[-1:]
        elif part not in ("", "."):
            parts.append(part)
    return tuple(parts)


def _folded(name: str) -> str:
    return unicodedata.normalize("NFC", name).casefold()
