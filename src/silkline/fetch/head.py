"""Header lines -> what a response starts with: status, version, header fields as raw bytes in order."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple, TypeVar

T = TypeVar("T")

_MAX_REMEMBERED = 4_096
_MAX_LINE = 256
_OF_THE_PAGE = frozenset({b"content-length", b"etag", b"last-modified", b"location", b"set-cookie"})
"""Fields whose lines are hardly ever the same twice."""


class Head(NamedTuple):
    """The final response's status line and header fields; those of interim ones (1xx) are left out.

    codings: the values of Content-Encoding, which are among the fields too.
    """

    status: int
    version: str
    headers: tuple[tuple[bytes, bytes], ...]
    codings: Sequence[bytes] = ()

    def first(self, name: bytes) -> bytes | None:
        """The value of the first field with that name, which is given in lower case."""
        return next((value for key, value in self.headers if key.lower() == name), None)


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
            codings: list[bytes] = []
            headers = self._read_fields(rest, codings)
            if headers is None:
                return None
            if status[0] >= 200 or status[0] == 101:
                return Head(status[0], status[1], headers, codings)
        return None

    def _read_fields(
        self, rest: Iterator[bytes], codings: list[bytes]
    ) -> tuple[tuple[bytes, bytes], ...] | None:
        fields: list[tuple[bytes, bytes]] = []
        known = self._fields.get
        for line in rest:
            field = known(line)
            if field is None:
                if not line.rstrip(b"\r\n"):
                    return tuple(fields)
                field = self._read_field(line, codings)
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

    def _read_field(self, line: bytes, codings: list[bytes]) -> tuple[bytes, bytes]:
        name, _, value = line.partition(b":")
        field = (name.rstrip(b" \t"), value.strip(b" \t\r\n"))
        kind = field[0].lower()
        if kind == b"content-encoding":
            codings.append(field[1])  # and not remembered, so that it is seen here each time
        elif kind not in _OF_THE_PAGE:
            _remember(self._fields, line, field)
        return field


def _remember(known: dict[bytes, T], line: bytes, value: T) -> None:
    if len(line) <= _MAX_LINE:
        if len(known) >= _MAX_REMEMBERED:
            known.clear()
        known[line] = value
