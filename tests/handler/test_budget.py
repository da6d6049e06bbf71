from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from handler.budget import DAY_S, FILE, Budget

NOON = 20_000 * DAY_S + DAY_S / 2


class Clock:
    def __init__(self) -> None:
        self.now = NOON

    def __call__(self) -> float:
        return self.now


def test_what_is_spent_is_spent_until_midnight(tmp_path: Path) -> None:
    clock = Clock()
    budget = Budget(1_000, tmp_path / "state", clock)
    first = budget.reserve(600)
    assert first
    budget.settle(first, 1_000)
    assert budget.reserve(1) is None
    assert budget.seconds_left() == DAY_S / 2
    clock.now += DAY_S / 2 - 0.5
    assert budget.reserve(1) is None
    assert budget.seconds_left() == 1
    clock.now += 0.5
    assert budget.reserve(1)


def test_what_a_question_did_not_cost_can_be_spent_again(tmp_path: Path) -> None:
    budget = Budget(100, tmp_path, Clock())
    reservation = budget.reserve(9_000)
    assert reservation
    assert budget.reserve(1) is None
    budget.settle(reservation, 40)
    assert budget.reserve(1)


def test_many_at_once_cannot_all_pass_on_the_same_last_tokens(tmp_path: Path) -> None:
    budgets = [Budget(1_000, tmp_path, Clock()) for _ in range(4)]
    with ThreadPoolExecutor(8) as pool:
        passed = list(pool.map(lambda i: budgets[i % 4].reserve(100), range(64)))
    assert sum(each is not None for each in passed) == 10


def test_an_answer_that_ends_after_midnight_is_paid_by_the_day_that_asked(tmp_path: Path) -> None:
    clock = Clock()
    budget = Budget(100, tmp_path, clock)
    reservation = budget.reserve(10)
    assert reservation
    clock.now += DAY_S
    budget.settle(reservation, 500)
    assert budget.reserve(1)
    clock.now -= DAY_S
    assert budget.reserve(1) is None


def test_a_new_process_goes_on_counting(tmp_path: Path) -> None:
    budget = Budget(100, tmp_path, Clock())
    assert budget.shared
    assert budget.reserve(100)
    assert Budget(100, tmp_path, Clock()).reserve(1) is None


@pytest.mark.parametrize("state", ["a file in the way", "a damaged database", "no folder can be made"])
def test_where_nothing_can_be_written_a_process_counts_for_itself(tmp_path: Path, state: str) -> None:
    folder = tmp_path / "state"
    if state == "a file in the way":
        folder.write_text("x")
    elif state == "a damaged database":
        folder.mkdir()
        (folder / FILE).write_text("this is no database at all" * 100)
    else:
        folder = Path("/proc/ralph")
    budget = Budget(100, folder, Clock())
    assert not budget.shared
    assert budget.reserve(100)
    assert budget.reserve(1) is None
