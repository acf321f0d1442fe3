"""Retry-After: how long a server asks to be left alone (RFC 9110, section 10.2.3)."""

from __future__ import annotations

import re
import time
from datetime import UTC, datetime

_SECONDS = re.compile(r"([+-]?)0*([0-9]+)")
_MONTHS = {
    name: number
    for number, name in enumerate(
        ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"), start=1
    )
}
_DAY, _MONTH, _CLOCK = (
    r"(?P<day>\d\d?)",
    r"(?P<month>[a-z]{3})",
    r"(?P<hour>\d\d):(?P<minute>\d\d):(?P<second>\d\d)",
)
_DATES = (
    re.compile(rf"[a-z]{{3}}, {_DAY} {_MONTH} (?P<year>\d{{4}}) {_CLOCK} (?:gmt|utc)", re.A),
    re.compile(rf"[a-z]{{6,9}}, {_DAY}-{_MONTH}-(?P<year>\d\d) {_CLOCK} (?:gmt|utc)", re.A),
    re.compile(rf"[a-z]{{3}} {_MONTH} +{_DAY} {_CLOCK} (?P<year>\d{{4}})", re.A),
)
"""IMF-fixdate, RFC 850 date, asctime date."""


def retry_after_seconds(value: str, now: float) -> float | None:
    """Seconds from `now` (Unix seconds) that a Retry-After value asks for; None if it makes no sense.

    Takes delta-seconds and all three date forms. What is negative or past is 0. Huge values are given as
    they are: the caller caps them.
    """
    text = value.strip().lower()
    if seconds := _SECONDS.fullmatch(text):
        return 0.0 if seconds[1] == "-" else float(seconds[2][:18])
    for form in _DATES:
        if match := form.fullmatch(text):
            moment = _moment(match, now)
            return None if moment is None else max(0.0, moment - now)
    return None


def _moment(match: re.Match[str], now: float) -> float | None:
    month = _MONTHS.get(match["month"], 0)
    year, day, hour, minute, second = (
        int(match[part]) for part in ("year", "day", "hour", "minute", "second")
    )
    if len(match["year"]) == 2:
        # A two-digit year more than 50 years ahead means the century before (RFC 9110, section 5.6.7).
        this_year = time.gmtime(now).tm_year
        year += this_year - this_year % 100
        if year > this_year + 50:
            year -= 100
    try:
        return datetime(year, month, day, hour, minute, min(second, 59), tzinfo=UTC).timestamp()
    except ValueError:
        return None
