"""Files by their names."""

from __future__ import annotations

from collections.abc import Sequence

from ralph_fs.globs import Glob
from ralph_fs.refusal import shown
from ralph_fs.roots import Place
from ralph_fs.walking import Walk

MAX_FOUND = 500


def find_files(place: Place, glob: Glob, exclude: Sequence[Glob]) -> str:
    """A line for each file and folder beneath whose path fits, as the client can name it in another call."""

    def is_excluded(names: tuple[str, ...]) -> bool:
        return any(other.matches(names) for other in exclude)

    walk = Walk(place, lambda entry: glob.may_match_beneath(entry.names) and not is_excluded(entry.names))
    lines: list[str] = []
    notes: list[str] = []
    for entry in walk:
        if not glob.matches(entry.names) or is_excluded(entry.names):
            continue
        if len(lines) == MAX_FOUND:
            notes.append(f"[only the first {MAX_FOUND}; narrow the pattern]")
            break
        path = shown(place.beneath(*entry.names).shown)
        lines.append(f"{path}/" if entry.kind == "folder" else path)
    if note := walk.note():
        notes.append(f"[{note}]")
    return "\n".join([*(lines or ["[nothing fits]"]), *notes])
