"""HTTP dates (RFC 9110, section 5.6.7)."""

from __future__ import annotations

import re
import time
from datetime import UTC, datetime

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
    re.compile(rf"[a-z]{{3}}, {_DAY} {_MONTH} (?P<year>\d{{4}}) {_CLOCK} (?P<zone>gmt|utc)", re.A),
    re.compile(rf"[a-z]{{6,9}}, {_DAY}-{_MONTH}-(?P<year>\d\d) {_CLOCK} (?P<zone>gmt|utc)", re.A),
    re.compile(rf"[a-z]{{3}} {_MONTH} +{_DAY} {_CLOCK} (?P<year>\d{{4}})", re.A),
)
"""IMF-fixdate, RFC 850 date, asctime date."""


def http_date(value: str, now: float, *, lenient: bool = False) -> float | None:
    """The moment in Unix seconds; None for what is no HTTP date. Takes all three forms, in any case.

    now: Unix seconds, for years of two digits. lenient: "UTC" stands for "GMT", as some servers write it.
    """
    text = value.strip().lower()
    for form in _DATES:
        if match := form.fullmatch(text):
            if not lenient and match.groupdict().get("zone") == "utc":
                return None
            return _moment(match, now)
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
