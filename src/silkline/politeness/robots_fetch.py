"""One attempt to read a robots.txt: what each way in which it may end means (RFC 9309, section 2.3.1).

    2xx                                    the file's rules
    4xx but 429, a 3xx that leads nowhere  no rules: everything is allowed (2.3.1.3)
    more redirects than are followed       likewise (2.3.1.2)
    5xx, 429, no answer, a broken one      nothing is allowed; tried again (2.3.1.4)
    the host cannot be reached at all      its pages could not, either: FetchError

429 asks to come more slowly, so that it is taken for the last but one, not for "no such file".
"""

from __future__ import annotations

import re
from collections.abc import Callable

import msgspec

from silkline.errors import (
    DecodeError,
    FetchError,
    FetchTimeout,
    ProtocolError,
    TooLargeError,
    TooManyRedirects,
)
from silkline.politeness.robots_known import Known
from silkline.politeness.robots_txt import MAX_BYTES, ROBOTS_PATH, read_robots_txt
from silkline.protocols import CallNext
from silkline.request import Request
from silkline.response import Response

DAY = 86_400.0
SHORTEST = 600.0
"""Seconds for which an answer counts: a day, unless Cache-Control says less (RFC 9309, section 2.4)."""

MAX_RETRY_AFTER = 3_600.0

BEGINNING = {"Range": f"bytes=0-{MAX_BYTES}", "Accept-Encoding": "identity"}
"""Asks for what is read of a file, and a byte more, which tells that it is cut."""

RetryAfter = Callable[[str], float | None]
"""Seconds that the value of a Retry-After header asks for."""

_UNREACHABLE = (FetchTimeout, ProtocolError, DecodeError, TooLargeError)
_max_age = re.compile(r"(?:^|[,\s])max-age\s*=\s*\"?(\d{1,9})", re.I).search
_at_once = re.compile(r"(?:^|[,\s])no-(?:store|cache)(?![\w-])", re.I).search


class Answer(msgspec.Struct, frozen=True):
    """seconds: for how long it counts. reached: whether it is an answer; if not, `seconds` is what the
    server asked for before it is tried again, 0 for nothing."""

    known: Known
    seconds: float
    reached: bool = True


def robots_url(host: str) -> str:
    """The URL of the robots.txt of a host, given as its politeness key (scheme://host:port)."""
    default = ":443" if host.startswith("https:") else ":80"
    return host.removesuffix(default) + ROBOTS_PATH


async def ask(fetch: CallNext, host: str, agent: str, retry_after: RetryAfter) -> Answer:
    """Fetch and read the host's robots.txt. Raises the FetchError of a host that cannot be reached."""
    url = robots_url(host)
    try:
        try:
            response = await fetch(Request(url))
        except TooLargeError:
            response = await fetch(Request(url, headers=BEGINNING))
    except TooManyRedirects as error:
        return Answer(Known(url, note=str(error)), DAY)
    except _UNREACHABLE as error:
        return Answer(Known(url, note=str(error)), 0.0, reached=False)
    except FetchError:
        raise
    status = response.status
    if status == 429 or not 200 <= status < 500:
        asked = retry_after(response.header("retry-after") or "") or 0.0
        return Answer(Known(url, note=f"HTTP status {status}"), min(asked, MAX_RETRY_AFTER), reached=False)
    if status >= 300:
        return Answer(Known(url, note=f"HTTP status {status}"), freshness(response))
    # The rules are those of the host that was asked, wherever it redirects to (section 2.3.1.2).
    return Answer(Known(url, read_robots_txt(response.body, agent, url)), freshness(response))


def freshness(response: Response) -> float:
    """For how many seconds the answer counts."""
    value = response.header("cache-control") or ""
    if _at_once(value):
        return SHORTEST
    match = _max_age(value)
    return max(SHORTEST, min(DAY, float(match[1]))) if match else DAY
