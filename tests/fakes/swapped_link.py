"""A name that is a folder inside and a link to the outside in turns, while somebody goes through it."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

INSIDE = "what stands inside"


@contextmanager
def swapped_link(root: Path) -> Iterator[None]:
    """Has a thread swap what `door` is in the root: a folder with a secret.txt, and a link to ../outside."""
    door, inside, way_out = root / "door", root / "inside", root / "way-out"
    inside.mkdir()
    (inside / "secret.txt").write_text(INSIDE)
    way_out.symlink_to("../outside")
    done = threading.Event()

    def swap() -> None:
        while not done.is_set():
            for target in (inside, way_out):
                target.rename(door)
                door.rename(target)

    swapper = threading.Thread(target=swap)
    swapper.start()
    try:
        yield
    finally:
        done.set()
        swapper.join()
