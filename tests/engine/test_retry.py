"""The retry table and its waits."""

from __future__ import annotations

import msgspec
import pytest

from silkline.engine.retry import MAX_RETRY_AFTER, SPARED_AT_MOST, RetryPolicy, asked_wait, host_block
from silkline.errors import (
    BadUrlError,
    BannedError,
    BlockedError,
    ConnectError,
    DecodeError,
    DnsError,
    FetchError,
    FetchTimeout,
    HandlerError,
    ItemError,
    NoProxyError,
    ProtocolError,
    ProxyError,
    Retry,
    SilklineError,
    StatusError,
    TlsError,
    TooLargeError,
    TooManyRedirects,
)
from silkline.outcome import Dead, RetryLater
from silkline.request import Request

FIRST = Request("https://shop.example/")

RETRIED: list[SilklineError] = [
    DnsError("x"),
    ConnectError("x"),
    FetchTimeout("x", "connect"),
    ProtocolError("x"),
    ProxyError("x"),
    BannedError("x"),
    FetchError("x"),
    Retry(),
    *(StatusError(status) for status in (408, 425, 429, 500, 502, 503, 504)),
]
FINAL: list[SilklineError] = [
    TlsError("x"),
    DecodeError("x"),
    TooLargeError("x"),
    TooManyRedirects("x"),
    BlockedError("x"),
    BadUrlError("x"),
    HandlerError("x"),
    ItemError("x"),
    *(StatusError(status) for status in (304, 400, 401, 403, 404, 410, 418, 451, 501, 505)),
]


@pytest.mark.parametrize("error", RETRIED, ids=lambda e: e.cause)
def test_what_may_pass_is_retried(error: SilklineError) -> None:
    verdict = RetryPolicy(3).verdict(error, FIRST)
    assert isinstance(verdict, RetryLater)
    assert verdict.cause == error.cause


@pytest.mark.parametrize("error", FINAL, ids=lambda e: e.cause)
def test_what_is_answered_is_final(error: SilklineError) -> None:
    verdict = RetryPolicy(3).verdict(error, FIRST)
    assert verdict == Dead(error.cause, str(error))


@pytest.mark.parametrize(("done", "expected"), [(0, RetryLater), (2, RetryLater), (3, Dead), (4, Dead)])
def test_retries_are_used_up(done: int, expected: type) -> None:
    request = Request("https://shop.example/", retry_count=done)
    assert isinstance(RetryPolicy(3).verdict(ConnectError("refused"), request), expected)


def test_no_retries_means_one_visit() -> None:
    assert isinstance(RetryPolicy(0).verdict(ConnectError("refused"), FIRST), Dead)


@pytest.mark.parametrize(
    ("retry_count", "bound"), [(0, 1.0), (1, 2.0), (4, 16.0), (12, 300.0), (5_000, 300.0)]
)
def test_backoff_is_jittered_over_its_whole_range_and_capped(retry_count: int, bound: float) -> None:
    policy = RetryPolicy(10_000)
    request = Request("https://shop.example/", retry_count=retry_count)
    waits = [policy.verdict(ConnectError("x"), request).after for _ in range(400)]  # type: ignore[union-attr]
    assert 0.0 <= min(waits) < bound * 0.1
    assert bound * 0.9 < max(waits) <= bound


@pytest.mark.parametrize(
    "error", [StatusError(503, retry_after=7.0), Retry(after=7.0)], ids=["server", "handler"]
)
def test_the_asked_wait_wins(error: SilklineError) -> None:
    assert RetryPolicy(3).verdict(error, FIRST) == RetryLater(7.0, error.cause, str(error))


def test_a_server_cannot_put_a_crawl_to_sleep_for_ever() -> None:
    verdict = RetryPolicy(3).verdict(StatusError(429, retry_after=1e12), FIRST)
    assert isinstance(verdict, RetryLater)
    assert verdict.after == MAX_RETRY_AFTER


@pytest.mark.parametrize("after", [float("nan"), -1.0, float("-inf")])
def test_a_wait_that_is_none_is_no_wait(after: float) -> None:
    assert RetryPolicy(3).verdict(Retry(after=after), FIRST).after == 0.0  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("error", "seconds"),
    [
        (StatusError(429, retry_after=5.0), 5.0),
        (StatusError(503, retry_after=5.0), 5.0),
        (StatusError(503), 0.0),
        (StatusError(429), None),
        (StatusError(429, retry_after=0.0), None),
        (StatusError(429, retry_after=-3.0), None),
        (StatusError(429, retry_after=float("nan")), None),
        (StatusError(503, retry_after=0.0), 0.0),
        (StatusError(500, retry_after=5.0), 0.0),
        (ConnectError("x"), 0.0),
        (Retry(after=5.0), 0.0),
    ],
)
def test_only_a_busy_server_blocks_its_host(error: SilklineError, seconds: float | None) -> None:
    assert host_block(error) == seconds


def test_a_handler_error_keeps_its_traceback_within_bounds() -> None:
    verdict = RetryPolicy(3).verdict(HandlerError("boom", "Traceback …\n" + "x" * 100_000), FIRST)
    assert isinstance(verdict, Dead)
    assert verdict.error.startswith("boom\nTraceback")
    assert len(verdict.error) < 10_000


@pytest.mark.parametrize("retry_count", [0, 3, 50])
def test_a_time_without_proxies_costs_no_retry(retry_count: int) -> None:
    request = msgspec.structs.replace(FIRST, retry_count=retry_count)
    verdict = RetryPolicy(3).verdict(NoProxyError("none works", 12.5), request)
    assert verdict == RetryLater(12.5, "proxy", "none works", costs_retry=False)
    assert isinstance(RetryPolicy(0).verdict(ProxyError("refused"), request), Dead)


@pytest.mark.parametrize("status", [429, 503, 500])
@pytest.mark.parametrize("after", [0.0, -1.0, float("nan")])
def test_a_retry_after_that_names_no_wait_leaves_the_backoff_as_it_is(status: int, after: float) -> None:
    request = Request("https://shop.example/", retry_count=2)
    policy, error = RetryPolicy(3), StatusError(status, retry_after=after)
    assert max(policy.verdict(error, request).after for _ in range(200)) > 2.0  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("error", "spared"),
    [
        (StatusError(429), True),
        (StatusError(429, retry_after=0.0), True),
        (StatusError(429, retry_after=5.0), True),
        (StatusError(503, retry_after=5.0), True),
        (StatusError(503), False),
        (StatusError(500, retry_after=5.0), False),
        (ConnectError("refused"), False),
    ],
)
def test_what_a_busy_host_refuses_costs_no_retry(error: SilklineError, spared: bool) -> None:
    used_up = msgspec.structs.replace(FIRST, retry_count=3)
    verdict = RetryPolicy(3).verdict(error, used_up, spared=True)
    assert isinstance(verdict, RetryLater) == spared
    if isinstance(verdict, RetryLater):
        assert not verdict.costs_retry
        assert verdict.after >= (asked_wait(error) or 0.0)
    assert isinstance(RetryPolicy(3).verdict(error, used_up), Dead)


def test_a_page_is_not_spared_for_ever_nor_where_there_are_no_retries() -> None:
    often = Request("https://shop.example/", spared=SPARED_AT_MOST)
    verdict = RetryPolicy(3).verdict(StatusError(429), often, spared=True)
    assert isinstance(verdict, RetryLater)
    assert verdict.costs_retry
    assert isinstance(RetryPolicy(0).verdict(StatusError(429), FIRST, spared=True), Dead)
