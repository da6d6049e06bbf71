from __future__ import annotations

import io
import itertools

from pipeline.progress import LINE_EVERY_S, no_progress, plain_lines, show_progress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_items_pass_unchanged() -> None:
    assert list(no_progress(range(5), 5)) == list(range(5))
    assert list(show_progress("embed", "chunks", io.StringIO())(range(5), 5)) == list(range(5))


def test_a_short_run_leaves_no_line_in_a_log() -> None:
    log = io.StringIO()
    list(show_progress("embed", "chunks", log)(range(1000), 1000))
    assert log.getvalue() == ""


def test_a_long_run_says_its_rate_and_time_left_now_and_then() -> None:
    log = io.StringIO()
    clock = itertools.count(0, LINE_EVERY_S / 10)
    list(plain_lines(range(100), 100, "embed", "chunks", log, lambda: float(next(clock))))
    lines = log.getvalue().splitlines()
    assert len(lines) == 10
    assert lines[0] == "embed: 10/100 chunks, 0.3 chunks/s, 04:30 left"
    assert lines[-1].startswith("embed: 100/100 chunks")


def test_a_terminal_gets_a_bar_with_rate_and_time_left() -> None:
    terminal = Terminal()
    assert list(show_progress("embed", "chunks", terminal)(range(3), 3)) == [0, 1, 2]
    assert "embed: 100%" in terminal.getvalue()
    assert "chunks/s" in terminal.getvalue()


def test_nothing_to_do_shows_nothing_even_on_a_terminal() -> None:
    terminal = Terminal()
    assert list(show_progress("embed", "chunks", terminal)([], 0)) == []
    assert terminal.getvalue() == ""
