"""What the driver's errors mean to a delivery: wait, leave a row out, or stop."""

from __future__ import annotations

import re

import aiohttp
from clickhouse_connect.driver.exceptions import ClickHouseError, DataError, Error, OperationalError

from silkline.errors import RowsRefused, SinkAwayError, SinkError

AWAY = frozenset(
    {
        *(3, 159, 209, 210, 279, 425),  # UNEXPECTED_END_OF_FILE, timeouts, network, SYSTEM_ERROR
        *(
            201,
            202,
            203,
            236,
            241,
            252,
            439,
            745,
        ),  # quotas, too many queries, memory, parts, ABORTED, overload
        *(225, 242, 285, 286, 289, 319, 999),  # replicas and their keeper
        *(74, 75, 76, 243),  # files of the server, and NOT_ENOUGH_SPACE
        *(394, 473, 517),  # QUERY_WAS_CANCELLED, DEADLOCK_AVOIDED, CANNOT_ASSIGN_ALTER
    }
)
"""Codes of what servers can be expected to get over (src/Common/ErrorCodes.cpp of ClickHouse)."""

REFUSED = frozenset(
    {
        *(6, 25, 26, 27, 32, 33, 38, 41, 72, 117),  # text that is none of the column's type
        *(53, 69, 70, 131, 321, 349, 407),  # types, ranges, sizes, NULL
        *(376, 395, 467, 469, 675, 676, 691),  # UUID, throwIf, Bool, constraints, addresses, Enum
    }
)
"""The fault of a row."""

DENIED = frozenset({164, 192, 193, 194, 291, 497, 516})
"""READONLY, users, passwords and rights."""
UNKNOWN_DATABASE = 81
STALE = frozenset({8, 10, 16, 60})
"""The table is not what it was: a column that is not there, UNKNOWN_TABLE."""

_MESSAGE = re.compile(
    r".*DB::Exception: (.*?)(?:: \(in file/uri .*|: While executing .*| \(version .*| \(for url .*)?$"
)
_URL = re.compile(r" \(for url [^)]*\)$")
_GATEWAY = re.compile(r"HTTP status 5\d\d")


def meaning_of(name: str, error: Exception) -> SinkError | None:
    """The sinks' error in place of another one; None for what is no failure of the server. name: of the sink,
    as it may be shown."""
    text = one_line(error)
    code = error.code if isinstance(error, Error) else None
    if isinstance(error, TimeoutError):
        return SinkAwayError(f"{name} does not answer")
    if code in REFUSED or (isinstance(error, DataError) and code is None):
        return RowsRefused(text)
    if code in AWAY:
        return SinkAwayError(f"{name} is away: {text}")
    if code is not None:
        return SinkError(f"{name}: {text}{_advice(code)}")
    if isinstance(error.__cause__, (aiohttp.ClientSSLError, aiohttp.ClientConnectorCertificateError)):
        return SinkError(f"{name}: {text}; see the options ca_cert and verify")
    if isinstance(error, (OperationalError, OSError, aiohttp.ClientError)) or _GATEWAY.search(text):
        return SinkAwayError(f"{name} is away: {text}")
    return SinkError(f"{name}: {text}") if isinstance(error, (ClickHouseError, ValueError)) else None


def is_stale(error: SinkError) -> bool:
    """Whether it came of what was known of the table."""
    cause = error.__cause__
    return isinstance(cause, Error) and cause.code in STALE


def one_line(error: Exception) -> str:
    text = " ".join(str(error).split())
    match = _MESSAGE.search(text)
    return (match[1] if match else _URL.sub("", text))[:300] or type(error).__name__


def _advice(code: int) -> str:
    if code in DENIED:
        return "; check the user, the password and the rights"
    if code == UNKNOWN_DATABASE:
        return "; create it: CREATE DATABASE NAME"
    return "; nothing is lost, mend it and run the same command again"
