from __future__ import annotations

import pytest

from handler.limit import FixedWindow, client_key, short_client


class Clock:
    def __init__(self, now: float) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now


def scope(host: str | None) -> dict[str, object]:
    return {"client": None if host is None else (host, 1234)}


def test_a_client_has_so_many_requests_a_minute_and_is_told_when_the_next_begins() -> None:
    clock = Clock(600.0)
    window = FixedWindow(2, clock)
    assert [window.take("a"), window.take("a")] == [None, None]
    clock.now = 645.5
    assert window.take("a") == 15
    assert window.take("b") is None
    clock.now = 659.9999
    assert window.take("a") == 1
    clock.now = 660.0
    assert window.take("a") is None


def test_refused_requests_do_not_prolong_the_wait() -> None:
    clock = Clock(0.0)
    window = FixedWindow(1, clock)
    window.take("a")
    assert {window.take("a") for _ in range(1000)} == {60}
    clock.now = 60.0
    assert window.take("a") is None


def test_only_so_many_clients_are_remembered() -> None:
    clock = Clock(0.0)
    window = FixedWindow(1, clock, max_clients=100)
    for number in range(1000):
        assert window.take(str(number)) is None
    assert sum(window.take(str(number)) is None for number in range(900, 1000)) == 0
    assert window.take("0") is None


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("192.0.2.1", "192.0.2.2", False),
        ("2001:db8:1:2::1", "2001:db8:1:2:ffff::2", True),
        ("2001:db8:1:2::1", "2001:db8:1:3::1", False),
        ("::ffff:192.0.2.1", "192.0.2.1", True),
        ("::ffff:192.0.2.1", "::ffff:192.0.2.2", False),
        ("2001:db8::1%eth0", "2001:db8::2", True),
        ("not an address", "nor this", True),
    ],
)
def test_what_counts_as_one_client(one: str, other: str, same: bool) -> None:
    assert (client_key(scope(one)) == client_key(scope(other))) is same


@pytest.mark.parametrize(
    ("host", "short"),
    [
        ("192.0.2.77", "192.0.2.0/24"),
        ("2001:db8:1:2:3::4", "2001:db8:1::/48"),
        ("::ffff:192.0.2.77", "192.0.2.0/24"),
        ("x", "unknown"),
        (None, "unknown"),
    ],
)
def test_a_log_keeps_the_network_of_a_client_not_its_address(host: str | None, short: str) -> None:
    assert short_client(scope(host)) == short
