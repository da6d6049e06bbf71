"""What is in a folder."""

from __future__ import annotations

from ralph_fs.opening import names_in, open_folder
from ralph_fs.refusal import shown
from ralph_fs.roots import Place


def list_folder(place: Place) -> str:
    with open_folder(place) as fd:
        return "\n".join(shown(name) for name in sorted(names_in(fd)))
