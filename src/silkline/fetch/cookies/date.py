"""Dates of cookies: RFC 6265bis section 5.1.1, which reads anything that ever stood in an Expires."""

from __future__ import annotations

import re
from datetime import UTC, datetime

_TOKEN = re.compile(r"[^\x09\x20-\x2f\x3b-\x40\x5b-\x60\x7b-\x7e]+")
_TIME = re.compile(r"(\d{1,2}):(\d{1,2}):(\d{1,2})(?!\d)", re.ASCII)
_DAY = re.compile(r"(\d{1,2})(?!\d)", re.ASCII)
_YEAR = re.compile(r"(\d{2,4})(?!\d)", re.ASCII)
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")


def cookie_date(text: str) -> float | None:
    """The moment in Unix seconds, always in UTC; None for what is no date."""
    clock: tuple[int, int, int] | None = None
    day: int | None = None
    month: int | None = None
    year: int | None = None
    for token in _TOKEN.findall(text):
        if clock is None and (match := _TIME.match(token)):
            clock = (int(match[1]), int(match[2]), int(match[3]))
        elif day is None and (match := _DAY.match(token)):
            day = int(match[1])
        elif month is None and token[:3].lower() in _MONTHS:
            month = _MONTHS.index(token[:3].lower()) + 1
        elif year is None and (match := _YEAR.match(token)):
            year = int(match[1])
    if clock is None or day is None or month is None or year is None:
        return None
    if 70 <= year <= 99:
        year += 1900
    elif year <= 69:
        year += 2000
    if year < 1601:
        return None
    try:
        return datetime(year, month, day, *clock, tzinfo=UTC).timestamp()
    except ValueError:
        return None
