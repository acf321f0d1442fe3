"""429 without Retry-After."""

from __future__ import annotations

from silkline.politeness.busy import LONGEST, PATIENCE, BusyHosts


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


def test_a_block_that_the_host_asks_for_is_kept_and_not_doubled() -> None:
    hosts = BusyHosts()
    assert [hosts.busy("a", at, at + 0.1, 5.0) for at in (0.0, 0.01, 6.0)] == [5.0] * 3
    assert hosts.busy("a", 7.0, 7.1) == 0.0  # within that block
    assert hosts.busy("a", 12.0, 12.1) == 1.0


def test_a_host_is_to_blame_until_it_has_said_nothing_else_for_long() -> None:
    hosts = BusyHosts()
    assert hosts.spares("a", 100.0)
    hosts.busy("a", 100.0, 100.1)
    assert hosts.spares("a", 100.0 + PATIENCE - 1.0)
    hosts.busy("a", 150.0, 150.1)
    assert not hosts.spares("a", 100.0 + PATIENCE)
    assert hosts.spares("b", 100.0 + PATIENCE)


def test_a_good_answer_of_the_same_crowd_shows_that_the_host_still_answers() -> None:
    hosts = BusyHosts()
    hosts.busy("a", 100.0, 100.1)
    hosts.busy("a", 150.0, 150.1)
    hosts.answered("a", 150.05)
    assert hosts.spares("a", 150.0 + PATIENCE)
    assert hosts.busy("a", 170.0, 170.1) == 4.0  # the doubling goes on
