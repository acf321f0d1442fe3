"""aiohttp's parser of answers, as forgiving as the standard lets it be and as libcurl is.

It is stricter with single bytes than any browser; and it loses an answer that is whole if something else is
behind it, in what came together. Where it fails before it has given the answer, the answer is looked at again
here: what costs more happens to broken answers only.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from aiohttp.base_protocol import BaseProtocol
from aiohttp.http_exceptions import BadStatusLine, HttpProcessingError, LineTooLong
from aiohttp.http_parser import RawResponseMessage
from aiohttp.streams import StreamReader

from silkline.fetch.head import is_token

Fed = tuple[Sequence[tuple[RawResponseMessage, StreamReader]], bool, bytes]
"""Messages that began, whether the protocol was switched, and what belongs to the new one."""


class AnswerParser(Protocol):
    def feed_data(self, data: bytes) -> Fed: ...

    def feed_eof(self) -> Any: ...

    def pause_reading(self) -> None: ...


MakeParser = Callable[[Any], AnswerParser]
"""`make(protocol)`: a parser that pauses this protocol when it has too much."""

_line_end = re.compile(rb"\r?\n")
_header_end = re.compile(rb"\r?\n\r?\n").search
_BLANKS = b" \t"
_dangerous = re.compile(rb"\0|\r(?!\n)").search
"""What makes a header none (RFC 9110, section 5.5): one program reads on where another one ends."""


class ForgivingParser:
    """Takes the answer to one request apart.

    protocol: its connection. make: makes the parsers that do the work. most: bytes that a header may have.
    end: called where more comes than the answer, so that nothing else may use the connection.
    """

    __slots__ = ("_end", "_flaw", "_given", "_head", "_make", "_most", "_parser", "_protocol")

    def __init__(
        self,
        parser: AnswerParser,
        protocol: BaseProtocol,
        make: MakeParser,
        most: int,
        end: Callable[[], None],
    ) -> None:
        self._parser = parser
        self._protocol = protocol
        self._make = make
        self._most = most
        self._end = end
        self._head = b""
        self._given = False
        self._flaw: HttpProcessingError | None = None

    def feed_data(self, data: bytes) -> Fed:
        """Raises HttpProcessingError."""
        if self._given:
            return self._parser.feed_data(data)
        if not self._head and data[:1] in (b"\r", b"\n"):
            raise BadStatusLine("an empty line in place of the status line")
        self._head = head = self._head + data
        try:
            if self._flaw is not None:
                raise self._flaw
            fed = self._parser.feed_data(data)
        except HttpProcessingError as error:
            if len(head) <= self._most and head.startswith(b"HTTP/") and _header_end(head) is None:
                # Once all of the header is there it can be looked at; the traceback would have this parser.
                self._flaw = error.with_traceback(None)
                return (), False, b""
            again = self._again(head)
            if again is None:
                raise
            self._given = True
            self._head = b""
            return again
        if fed[0]:
            if head[head.find(b"\n") + 1] in _BLANKS:
                # Such lines are no fields (RFC 9112, section 2.2).
                fed = self._again(head) or fed
            self._given = fed[0][-1][0].code >= 200
            self._head = b""
        elif len(head) > self._most:
            raise LineTooLong(head[:100], self._most)
        return fed

    def feed_eof(self) -> Any:
        return None if self._flaw is not None and not self._given else self._parser.feed_eof()

    def pause_reading(self) -> None:
        self._parser.pause_reading()

    def _again(self, data: bytes) -> Fed | None:
        """What can be had of an answer that was refused; None for nothing."""
        tidied = tidy(data)
        if tidied is None:
            return None
        if tidied != data:
            parser = self._make(self._protocol)
            try:
                fed = parser.feed_data(tidied)
            except HttpProcessingError:
                pass
            else:
                self._parser = parser
                return fed
        return self._first_of(tidied)

    def _first_of(self, data: bytes) -> Fed | None:
        """The answer at the beginning of `data`, if it is whole: what follows it is nobody's (RFC 9112,
        section 6.3), neither a part of it nor another answer."""
        good, bad = 0, len(data)
        while bad - good > 1:
            middle = (good + bad) // 2
            try:
                self._make(BaseProtocol(self._protocol._loop)).feed_data(data[:middle])
            except HttpProcessingError:
                bad = middle
            else:
                good = middle
        parser = self._make(self._protocol)
        messages, _, _ = parser.feed_data(data[:good])
        if not messages or messages[-1][0].code < 200 or not messages[-1][1].is_eof():
            return None
        self._parser = parser
        self._end()
        return messages, False, b""


def tidy(data: bytes) -> bytes | None:
    """An answer's beginning without what its header is better read without; None where that is no header.

    Fields whose names are none are dropped, space between a name and its colon too; a length that is said
    more than once, and the same each time, is said once (RFC 9110, section 8.6).
    """
    done = b""
    while data.startswith(b"HTTP/"):
        end = _header_end(data)
        if end is None or _dangerous(data, 0, end.start()):
            return None
        lines = _line_end.split(data[: end.start()])
        done += b"\r\n".join(_tidied(lines)) + b"\r\n\r\n"
        data = data[end.end() :]
        if lines[0].partition(b" ")[2].lstrip(b" ")[:1] != b"1":
            return done + data
    return None


def _tidied(lines: Sequence[bytes]) -> list[bytes]:
    kept = [lines[0]]
    length: bytes | None = None
    dropping = True  # what goes on with the status line
    for line in lines[1:]:
        if line[:1] in (b" ", b"\t"):  # goes on with the one before (RFC 9112, section 5.2)
            if not dropping:
                kept.append(line)
            continue
        name, colon, value = line.partition(b":")
        name = name.rstrip(b" \t")
        dropping = bool(colon) and not is_token(name)
        if dropping:
            continue
        if name.lower() == b"content-length":
            said = {part.strip(b" \t") for part in value.split(b",")}
            if said == {length}:
                continue
            if length is None and len(said) == 1:
                (length,) = said
                value = b" " + length
        kept.append(name + colon + value if colon else line)
    return kept
