"""Header lines -> what a response starts with: status, version, header fields as raw bytes in order."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple, TypeVar

T = TypeVar("T")

_MAX_REMEMBERED = 4_096
_MAX_LINE = 256


class Head(NamedTuple):
    """The final response's status line and header fields; those of interim ones (1xx) are left out."""

    status: int
    version: str
    headers: tuple[tuple[bytes, bytes], ...]

    def values(self, name: bytes) -> list[bytes]:
        """Of all fields with that name, which is given in lower case."""
        size = len(name)
        return [value for key, value in self.headers if len(key) == size and key.lower() == name]


class HeadReader:
    """Takes header lines apart.

    It remembers lines: a server sends most of them again and again.
    """

    def __init__(self) -> None:
        self._status: dict[bytes, tuple[int, str]] = {}
        self._fields: dict[bytes, tuple[bytes, bytes]] = {}

    def read(self, lines: Sequence[bytes]) -> Head | None:
        """The head in `lines`, which end with CRLF or LF; None where it is not complete or no HTTP."""
        rest = iter(lines)
        for line in rest:
            status = self._status.get(line) or self._read_status(line)
            if status is None:
                return None
            headers = self._read_fields(rest)
            if headers is None:
                return None
            if status[0] >= 200 or status[0] == 101:
                return Head(*status, headers)
        return None

    def _read_fields(self, rest: Iterator[bytes]) -> tuple[tuple[bytes, bytes], ...] | None:
        fields: list[tuple[bytes, bytes]] = []
        known = self._fields.get
        for line in rest:
            field = known(line)
            if field is None:
                if not line.rstrip(b"\r\n"):
                    return tuple(fields)
                field = self._read_field(line)
            fields.append(field)
        return None

    def _read_status(self, line: bytes) -> tuple[int, str] | None:
        version, _, rest = line.partition(b" ")
        code = rest.lstrip(b" ")[:3]
        if not version.startswith(b"HTTP/") or not code.isdigit():
            return None
        found = (int(code), version[5:].decode("latin-1"))
        _remember(self._status, line, found)
        return found

    def _read_field(self, line: bytes) -> tuple[bytes, bytes]:
        name, _, value = line.partition(b":")
        field = (name.rstrip(b" \t"), value.strip(b" \t\r\n"))
        _remember(self._fields, line, field)
        return field


def _remember(known: dict[bytes, T], line: bytes, value: T) -> None:
    if len(line) <= _MAX_LINE:
        if len(known) >= _MAX_REMEMBERED:
            known.clear()
        known[line] = value
