"""Progress of a long stage: a bar with rate and time left on a terminal, elsewhere a line now and then."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Protocol, TextIO, TypeVar

from tqdm import tqdm

T = TypeVar("T")

# A log that somebody reads later: an hour's build leaves a hundred-odd lines.
LINE_EVERY_S = 30.0


class Progress(Protocol):
    """Hands the items on, one by one, and shows how far they are. `total` is how many there will be."""

    def __call__(self, items: Iterable[T], total: int) -> Iterable[T]: ...


def show_progress(label: str, unit: str, stream: TextIO | None = None) -> Progress:
    """Progress on a stream, standard error by default: `embed: 120/4000 chunks, 20.1 chunks/s, 3:13 left`."""
    target = sys.stderr if stream is None else stream

    def show(items: Iterable[T], total: int) -> Iterable[T]:
        if total and target.isatty():
            return tqdm(items, desc=label, total=total, unit=f" {unit}", file=target, dynamic_ncols=True)
        return plain_lines(items, total, label, unit, target)

    return show


def no_progress(items: Iterable[T], total: int) -> Iterable[T]:  # noqa: ARG001
    """The items, and nothing shown."""
    return items


def plain_lines(
    items: Iterable[T],
    total: int,
    label: str,
    unit: str,
    stream: TextIO,
    clock: Callable[[], float] = time.monotonic,
) -> Iterator[T]:
    """The items; a line on the stream after each LINE_EVERY_S, and one at the end of a run that had any."""
    start = last = clock()
    done = 0
    for done, item in enumerate(items, start=1):
        yield item
        now = clock()
        if now - last >= LINE_EVERY_S or (done == total and last > start):
            last = now
            print(_line(label, unit, done, total, now - start), file=stream, flush=True)


def _line(label: str, unit: str, done: int, total: int, elapsed_s: float) -> str:
    rate = done / elapsed_s
    left = tqdm.format_interval((total - done) / rate)
    return f"{label}: {done}/{total} {unit}, {rate:.1f} {unit}/s, {left} left"
