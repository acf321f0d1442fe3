"""What the cache reads of header fields: lists, directives, ages."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

Headers = tuple[tuple[bytes, bytes], ...]
Directives = Mapping[str, str | None]

MAX_DELTA = 2**31
"""Seconds; what is more counts as this (RFC 9111, section 1.2.2)."""

_DIRECTIVE = re.compile(
    r"""([!#$%&'*+.^_`|~0-9A-Za-z-]++)(?:=(?:"((?:[^"\\]|\\.)*+)"|([^\s,"]*+)))?[^,"]*+(?:"[^"]*+"?[^,"]*+)*+"""
)
_SECONDS = re.compile(r"[0-9]+").fullmatch


def values(headers: Headers, name: bytes) -> list[str]:
    """All values of a field, one for each line, in order."""
    return [value.decode("latin-1").strip() for key, value in headers if key.lower() == name]


def first(headers: Headers, name: bytes) -> str | None:
    for key, value in headers:
        if key.lower() == name:
            return value.decode("latin-1").strip()
    return None


def tokens(lines: Iterable[str]) -> list[str]:
    """The members of a list of names (Vary, Connection), in lower case."""
    return [token for line in lines for part in line.split(",") if (token := part.strip().lower())]


def directives(lines: Iterable[str]) -> Directives:
    """Cache-Control (RFC 9111, section 5.2), names in lower case; of several the first counts (4.2.1)."""
    found: dict[str, str | None] = {}
    for match in _DIRECTIVE.finditer(",".join(lines)):
        name, quoted, bare = match.groups()
        found.setdefault(name.lower(), quoted if quoted is not None else bare)
    return found


def seconds(value: str | None) -> int | None:
    """delta-seconds; None for what is none."""
    if value is None or not _SECONDS(value):
        return None
    digits = value.lstrip("0") or "0"
    return min(int(digits), MAX_DELTA) if len(digits) <= 10 else MAX_DELTA


def age_value(headers: Headers) -> int:
    """The Age field, 0 for none or an invalid one; of several the first counts (RFC 9111, section 5.1)."""
    value = first(headers, b"age")
    return (seconds(value.partition(",")[0].strip()) or 0) if value else 0
