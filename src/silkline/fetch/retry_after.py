"""Retry-After: how long a server asks to be left alone (RFC 9110, section 10.2.3)."""

from __future__ import annotations

import re

from silkline.fetch.http_date import http_date

_SECONDS = re.compile(r"([+-]?)0*([0-9]+)")


def retry_after_seconds(value: str, now: float) -> float | None:
    """Seconds from `now` (Unix seconds) that a Retry-After value asks for; None if it makes no sense.

    Takes delta-seconds and all three date forms. What is negative or past is 0. Huge values are given as
    they are: the caller caps them.
    """
    text = value.strip().lower()
    if seconds := _SECONDS.fullmatch(text):
        return 0.0 if seconds[1] == "-" else float(seconds[2][:18])
    moment = http_date(text, now, lenient=True)
    return None if moment is None else max(0.0, moment - now)
