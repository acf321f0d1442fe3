"""429 without Retry-After."""

from __future__ import annotations

from silkline.politeness.busy import LONGEST, BusyHosts


def test_repeated_429_doubles_the_block_and_a_success_resets_it() -> None:
    hosts, now, blocks = BusyHosts(), 100.0, []
    for _ in range(11):
        blocks.append(hosts.busy("a", now, now + 0.1))
        now += 0.1 + blocks[-1]
    assert blocks == [1, 2, 4, 8, 16, 32, 64, 128, 256, LONGEST, LONGEST]
    hosts.answered("a", now)
    assert not hosts
    assert hosts.busy("a", now, now) == 1.0


def test_the_rest_of_the_same_crowd_counts_once_and_its_successes_do_not() -> None:
    hosts = BusyHosts()
    assert [hosts.busy("a", 0.0, 0.5) for _ in range(8)] == [1.0] + [0.0] * 7
    hosts.answered("a", 0.2)
    assert hosts.busy("a", 1.6, 1.7) == 2.0
    assert hosts.busy("b", 1.6, 1.7) == 1.0
