"""Dates and times as PostgreSQL has them in binary, the first and last of Python's among them.

The driver's own way writes date.min and datetime.min as -infinity, and date.max and datetime.max as infinity.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from typing import Any

_FIRST = date(2000, 1, 1).toordinal()
_LOCAL = datetime(2000, 1, 1)
_UTC = datetime(2000, 1, 1, tzinfo=UTC)
_DAY = 86_400_000_000
_days = struct.Struct("!i").pack
_microseconds = struct.Struct("!q").pack


def _date(value: date) -> bytes:
    return _days(value.toordinal() - _FIRST)


def _timestamp(value: datetime) -> bytes:
    return _since(value.replace(tzinfo=None) - _LOCAL)


def _timestamptz(value: datetime) -> bytes:
    return _since((value if value.tzinfo else value.astimezone(UTC)) - _UTC)


def _since(span: timedelta) -> bytes:
    return _microseconds(span.days * _DAY + span.seconds * 1_000_000 + span.microseconds)


ENCODERS: dict[str, Callable[[Any], bytes]] = {
    "date": _date,
    "timestamp": _timestamp,
    "timestamptz": _timestamptz,
}
"""By the server's names of types."""
