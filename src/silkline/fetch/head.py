"""Header lines -> what a response starts with: status, version, header fields as raw bytes in order."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TypeVar, cast

import msgspec

T = TypeVar("T")

_SAID = {b"HTTP/1.1": "1.1", b"HTTP/1.0": "1.0", b"HTTP/2.0": "1.1"}
"""What a status line may begin with, and the version that is spoken: HTTP/2 has no such line, but programs
behind a server that speaks it write one."""

_MADE_UP = {b"HTTP/2": "2", b"HTTP/3": "3"}
"""The same for the lines that libcurl makes up where the protocol has none; they end with a space."""

is_token = re.compile(rb"[!#$%&'*+\-.^_`|~0-9A-Za-z]+").fullmatch
"""Whether it can be the name of a field (RFC 9110, sections 5.1 and 5.6.2)."""

_MAX_REMEMBERED = 4_096
_MAX_LINE = 256
_ENDS = frozenset({b"\r\n", b"\n"})
_SHORTEST = 5
"""Bytes of a line from which on there is more in it than its end."""
_OF_THE_BODY = frozenset({b"content-encoding", b"content-length", b"transfer-encoding"})
_OF_THE_PAGE = frozenset({b"etag", b"last-modified", b"location", b"set-cookie"})
"""Fields whose lines are hardly ever the same twice."""


class Head(msgspec.Struct, frozen=True):
    """The final response's status line and header fields; those of interim ones (1xx) are left out.

    codings: the values of Content-Encoding, which are among the fields too.
    length: the value of Content-Length; None where there is none, or more than one.
    mixed: there is a Transfer-Encoding, too, so that it is not clear where the body ends.
    """

    status: int
    version: str
    headers: tuple[tuple[bytes, bytes], ...]
    codings: Sequence[bytes] = ()
    length: bytes | None = None
    mixed: bool = False

    def first(self, name: bytes) -> bytes | None:
        """The value of the first field with that name, which is given in lower case."""
        return next((value for key, value in self.headers if key.lower() == name), None)


class HeadReader:
    """Takes header lines apart.

    It remembers lines and names: a server sends most of them again and again.
    """

    def __init__(self) -> None:
        self._status: dict[bytes, tuple[int, str]] = {}
        self._fields: dict[bytes, tuple[bytes, bytes]] = {}
        self._names: dict[bytes, tuple[bytes, bytes]] = {}

    def read(self, lines: Sequence[bytes]) -> Head | None:
        """The head in `lines`, which end with CRLF or LF; None where it is not complete or no HTTP."""
        status = self._status.get(lines[0]) if lines and lines[-1] in _ENDS else None
        if status is not None and status[0] >= 200:
            # Nearly always they are one head and nothing else.
            known = self._fields.get
            special: list[tuple[bytes, bytes]] = []
            fields = [known(line) or self._read_field(line, special) for line in lines[1:-1]]
            if None not in fields:
                return _head(*status, cast("list[tuple[bytes, bytes]]", fields), special)
        return self._read_any(lines)

    def _read_any(self, lines: Sequence[bytes]) -> Head | None:
        rest = iter(lines)
        for line in rest:
            status = self._status.get(line) or self._read_status(line)
            if status is None:
                return None
            special: list[tuple[bytes, bytes]] = []
            headers = self._read_fields(rest, special)
            if headers is None:
                return None
            if status[0] >= 200 or status[0] == 101:
                return _head(*status, headers, special)
        return None

    def _read_fields(
        self, rest: Iterator[bytes], special: list[tuple[bytes, bytes]]
    ) -> list[tuple[bytes, bytes]] | None:
        fields: list[tuple[bytes, bytes]] = []
        known = self._fields.get
        for line in rest:
            field = known(line)
            if field is None:
                if len(line) < _SHORTEST and not line.rstrip(b"\r\n"):
                    return fields
                field = self._read_field(line, special)
                if field is None:
                    continue
            fields.append(field)
        return None

    def _read_status(self, line: bytes) -> tuple[int, str] | None:
        said, _, rest = line.partition(b" ")
        code, *_ = rest.split(None, 1) or (b"",)
        version = _SAID.get(said) or (_MADE_UP.get(said) if rest == code + b" \r\n" else None)
        if version is None or len(code) != 3 or not code.isdigit():
            return None
        found = (int(code), version)
        _remember(self._status, line, found)
        return found

    def _read_field(self, line: bytes, special: list[tuple[bytes, bytes]]) -> tuple[bytes, bytes] | None:
        """None for a line whose name is none. special: gets the kind and value of a field that says how the
        body is coded or where it ends."""
        written, _, value = line.partition(b":")
        name, kind = self._names.get(written) or self._read_name(written)
        if not kind:
            return None
        field = (name, value.strip(b" \t\r\n"))
        # These are not remembered, so that they are seen here each time.
        if kind in _OF_THE_BODY:
            special.append((kind, field[1]))
        elif kind not in _OF_THE_PAGE:
            _remember(self._fields, line, field)
        return field

    def _read_name(self, written: bytes) -> tuple[bytes, bytes]:
        """The name, and in lower case; that is empty where it is none."""
        name = written.rstrip(b" \t")
        found = (name, name.lower() if is_token(name) else b"")
        _remember(self._names, written, found)
        return found


def _head(
    status: int,
    version: str,
    fields: Sequence[tuple[bytes, bytes]],
    special: Sequence[tuple[bytes, bytes]],
) -> Head:
    headers = tuple(fields)
    if len(special) == 1 and special[0][0] == b"content-length":
        return Head(status, version, headers, (), special[0][1])
    codings, lengths, transfers = [], [], 0
    for kind, value in special:
        if kind == b"content-length":
            lengths.append(value)
        elif kind == b"content-encoding":
            codings.append(value)
        else:
            transfers += 1
    length = lengths[0] if len(lengths) == 1 else None
    return Head(status, version, headers, codings, length, bool(lengths and transfers))


def _remember(known: dict[bytes, T], line: bytes, value: T) -> None:
    if len(line) <= _MAX_LINE:
        if len(known) >= _MAX_REMEMBERED:
            known.clear()
        known[line] = value
