from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from silkline.errors import BadUrlError
from silkline.frontier.rules import crash_backoff, host_key
from silkline.url import host_of

urls = st.builds(
    "".join,
    st.lists(
        st.sampled_from(
            [
                "http:",
                "https:",
                "HTTP:",
                "/",
                "//",
                "\\",
                "a",
                "b.example",
                ":80",
                ":8080",
                "?",
                "#",
                "@",
                "\t",
                "..",
                "%2f",
                "[::1]",
            ]
        ),
        min_size=1,
        max_size=9,
    ),
)


@given(st.lists(urls, min_size=1, max_size=4))
def test_the_remembered_host_is_always_the_real_one(several: list[str]) -> None:
    for url in [*several, *several]:
        try:
            expected: str | None = host_of(url)
        except (BadUrlError, ValueError):
            expected = None
        try:
            found: str | None = host_key(url)
        except (BadUrlError, ValueError):
            found = None
        assert found == expected


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
