from __future__ import annotations

from silkline.frontier.rules import crash_backoff, without_repeats
from silkline.request import Request


def test_crashes_wait_longer_and_longer_up_to_a_minute_and_a_half() -> None:
    assert [crash_backoff(deliveries, 7) for deliveries in (1, 2)] == [0.0, 0.0]
    waits = [crash_backoff(deliveries, 7) for deliveries in range(3, 40)]
    assert waits == sorted(waits)
    assert 0.5 <= waits[0] < 1.5
    assert waits[-1] <= 90.0


def test_requests_lost_together_come_back_apart() -> None:
    waits = {crash_backoff(3, token) for token in range(100, 200)}
    assert len(waits) == 100
    assert max(waits) - min(waits) > 0.9


def test_of_the_gets_of_a_url_the_first_is_left_and_all_that_may_be_other_requests() -> None:
    first, again = Request("https://a.example/"), Request("https://a.example/", priority=5)
    others = [
        Request("https://a.example/", key="monday"),
        Request("https://a.example/", method="HEAD"),
        Request("https://a.example/", method="POST", body=b"x"),
        Request("https://a.example/b"),
    ]
    given = [others[0], first, again, *others, others[3]]
    assert list(without_repeats(given)) == [others[0], first, *others]
