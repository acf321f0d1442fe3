"""What an answer may have at most, in every engine, and what is said of one that has more."""

from __future__ import annotations

from silkline.errors import ProtocolError, TooLargeError

MAX_INTERIM = 64
"""Answers with a status of 100-199 before the real one (RFC 9110, section 15.2)."""

MAX_FIELDS = 5_000
"""Of one header; as many as libcurl takes."""

ENDLESS = f"more than {MAX_INTERIM} interim answers"


def endless(origin: str) -> ProtocolError:
    return ProtocolError(f"the answer is not valid HTTP: {origin} ({ENDLESS})")


def headers_too_large(limit: int) -> TooLargeError:
    return TooLargeError(f"the headers are over the limit of {limit} bytes (max_headers)")


def too_many_headers() -> TooLargeError:
    return TooLargeError(f"the header has more than {MAX_FIELDS} fields")


def body_too_large(limit: int | None, setting: str) -> TooLargeError:
    return TooLargeError(f"the body is over the limit of {limit} bytes ({setting})")
