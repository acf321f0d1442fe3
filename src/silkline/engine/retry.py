"""Which failures are worth another visit, and when. This is the whole table; nothing else decides.

    cause                      verdict
    dns connect timeout        retry    the network may recover
    protocol                   retry    server disconnected, connection reset, message cut short
    proxy fetch                retry    fetch: an error that no other cause names
    banned                     retry    another session or proxy may get the page
    http_408 425 429 500       retry    RFC 9110 15.5.9, RFC 8470, RFC 6585, RFC 9110 15.6: the server may
    http_502 503 504           retry    answer later
    retry_asked                retry    the handler raised Retry
    http_* (404, 410, ...)     dead     the server has answered
    tls decode too_large       dead     the next try would meet the same
    too_many_redirects         dead
    blocked bad_url not_cached dead
    save                       dead     the file cannot be written
    robots                     dead
    robots_unreachable         retry while robots.txt may come back; then dead
    handler item selector      dead     a fault of the program or the page; the traceback is kept
    content label internal     dead
    bad_task visit_timeout     dead     a request that cannot be kept; a handler that never ends

The wait is exponential with full jitter: a random time up to base * 2^retry_count, at most `cap`.
A Retry-After of the server (on any retried status) or of the handler wins over it; one of the server's that
is 0, negative or in the past says nothing.

A 429, or a 503 with a Retry-After, speaks of the host. It costs the page no retry as long as the host has
answered well within the last minute (`politeness/busy.py`), SPARED_AT_MOST times: a page that is always
refused must end. The host's blocks make such pages wait, so that their own backoff only grows by `base`
each time.
"""

from __future__ import annotations

import random

from silkline.errors import FetchError, HandlerError, Retry, RobotsUnreachable, SilklineError, StatusError
from silkline.outcome import Dead, RetryLater
from silkline.request import Request

RETRIED_CAUSES = frozenset(
    {"dns", "connect", "timeout", "protocol", "proxy", "banned", "fetch", "retry_asked"}
)
RETRIED_STATUSES = frozenset({408, 425, 429, 500, 502, 503, 504})
BUSY_STATUSES = frozenset({429, 503})
"""With a Retry-After these speak for the whole host, not for one URL (RFC 6585 4, RFC 9110 15.6.4)."""

MAX_RETRY_AFTER = 3_600.0
"""Seconds; a server may not put a crawl to sleep for longer."""

SPARED_AT_MOST = 30
"""Refusals of a busy host that cost a page no retry."""

MAX_ERROR_LENGTH = 8_000


class RetryPolicy:
    """retries: visits after the first one. base, cap: seconds of the backoff."""

    def __init__(self, retries: int = 3, *, base: float = 1.0, cap: float = 300.0) -> None:
        self.retries = retries
        self.base = base
        self.cap = cap

    def verdict(self, error: SilklineError, request: Request, *, spared: bool = False) -> RetryLater | Dead:
        """Another visit or a dead letter for what happened to `request`. spared: its host is busy, and that
        says nothing against the page."""
        text = _text_of(error)
        if isinstance(error, FetchError) and not error.costs_retry:
            return RetryLater(asked_wait(error) or 0.0, error.cause, text, costs_retry=False)
        if spared and self.retries and request.spared < SPARED_AT_MOST and host_block(error) != 0.0:
            wait = random.uniform(0.0, min(self.cap, self.base * (1 + request.spared)))
            return RetryLater(max(wait, asked_wait(error) or 0.0), error.cause, text, costs_retry=False)
        if not is_retried(error) or request.retry_count >= self.retries:
            return Dead(error.cause, text)
        asked = asked_wait(error)
        return RetryLater(self._backoff(request.retry_count) if asked is None else asked, error.cause, text)

    def _backoff(self, retry_count: int) -> float:
        return random.uniform(0.0, min(self.cap, self.base * 2.0 ** min(retry_count, 60)))


def is_retried(error: SilklineError) -> bool:
    if isinstance(error, StatusError):
        return error.status in RETRIED_STATUSES
    if isinstance(error, RobotsUnreachable):
        return error.retry_after is not None
    return error.cause in RETRIED_CAUSES


def asked_wait(error: SilklineError) -> float | None:
    """Seconds that the server or the handler asked for, bounded; None if neither did. No wait at all is
    something that a handler may ask for, but not a server that has just refused."""
    wanted = error.after if isinstance(error, Retry) else getattr(error, "retry_after", None)
    if wanted is None:
        return None
    if wanted > 0:  # NaN is not: it would wait for ever
        return min(wanted, MAX_RETRY_AFTER)
    return None if isinstance(error, StatusError) else 0.0


def host_block(error: SilklineError) -> float | None:
    """Seconds for which the whole host should be left alone; 0 for not at all; None where it is busy and does
    not say for how long (a 503 without Retry-After may be one page's)."""
    if isinstance(error, StatusError) and error.status in BUSY_STATUSES:
        asked = asked_wait(error)
        if asked is None and error.status == 429:
            return None
        return asked or 0.0
    return 0.0


def _text_of(error: SilklineError) -> str:
    text = (
        f"{error}\n{error.traceback}" if isinstance(error, HandlerError) and error.traceback else str(error)
    )
    return text if len(text) <= MAX_ERROR_LENGTH else text[:MAX_ERROR_LENGTH] + " …"
