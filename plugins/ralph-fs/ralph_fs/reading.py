"""Files as an answer holds them: text, whole or some lines, or bytes as base64; never more than fits."""

from __future__ import annotations

from ralph_fs.opening import open_file
from ralph_fs.roots import Place

MAX_ANSWER_BYTES = 64 * 1024


def read_text(place: Place) -> str:
    with open_file(place) as (fd, _):
        import os

        return os.read(fd, MAX_ANSWER_BYTES).decode()
