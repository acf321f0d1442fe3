"""A body on its way into a file: constant memory, resumed where it broke, whole or not there.

Until it is complete it is PATH.part; then it is made durable and renamed. Ranges follow RFC 9110: If-Range
with a strong validator (13.1.5), 206 with its Content-Range (14.4, 15.3.7), 416 (15.5.17).
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Sequence

import msgspec

from silkline.errors import ProtocolError, TooLargeError
from silkline.fetch.decode import NO_CODINGS
from silkline.fetch.partial import Origin, Part, boot, validator_of
from silkline.fetch.target import wire_url
from silkline.files import placed
from silkline.request import Request
from silkline.response import Response

MAX_RESUMES = 5
"""Times that one fetch asks for the rest, each time only if something had come."""

Headers = Sequence[tuple[bytes, bytes]]
_content_range = re.compile(rb"bytes (?:(\d{1,18})-(\d{1,18})|\*)/(\d{1,18}|\*)", re.I).fullmatch


class Stale(ProtocolError):
    """The server's answer does not continue what is there: it has to be fetched from its beginning."""


class Download:
    """What an engine needs to know of one transfer: `accept` the response's headers, then `write` its body.

    url: of the hop. max_save: bytes of the whole file, None for no limit.
    accepted: whether the last response's body is the file's. resumed: whether it is the rest of one.
    """

    def __init__(self, part: Part, url: str, max_save: int | None = None) -> None:
        self.accepted = False
        self.part = part
        self._url = url
        self._max_save = max_save
        self._asked = 0
        self._complete = False

    def request(self, request: Request) -> Request:
        """The request to send: for the rest where there is a beginning, and for the bytes as they are."""
        self.accepted = self._complete = False
        self._asked = 0
        names = {name.lower(): name for name in request.headers}
        headers = {**request.headers, names.get("accept-encoding", "Accept-Encoding"): "identity"}
        if "range" not in names and "if-range" not in names and self._resumable:
            self._asked = self.part.size
            headers |= {"Range": f"bytes={self._asked}-", "If-Range": self.part.origin.validator}
        return msgspec.structs.replace(request, headers=headers)

    def accept(self, status: int, headers: Headers) -> bool:
        """Whether the body is to be written here; the engine reads that of an error page itself.

        Raises Stale, TooLargeError and SaveError.
        """
        if self._asked and status == 206:
            self._continue(headers)
        elif self._asked and status == 416:
            self._expect_complete(headers)
        elif 200 <= status < 300:
            self._begin(status, headers)
        else:
            return False
        self.accepted = True
        return True

    def write(self, data: bytes) -> None:
        """Raises TooLargeError and SaveError."""
        if self._complete:
            return
        if self._max_save is not None and self.part.size + len(data) > self._max_save:
            raise self._too_large()
        self.part.write(data)

    def finish(self) -> None:
        """Raises ProtocolError where bytes are missing or too many."""
        total = self.part.origin.total
        if total is not None and self.part.size != total:
            raise Stale(f"{self.part.size} bytes came of a file that was to have {total}")

    @property
    def resumed(self) -> bool:
        return self._asked > 0

    @property
    def _resumable(self) -> bool:
        origin = self.part.origin
        return bool(self.part.size and origin.validator and origin.url == self._url)

    def _begin(self, status: int, headers: Headers) -> None:
        # A length says nothing about the decoded size, a range nothing about the bytes before it.
        plain = status == 200 and not _coded(headers)
        total = _length(headers) if plain else None
        if total is not None and self._max_save is not None and total > self._max_save:
            raise self._too_large()
        validator = validator_of(headers) if plain and _field(headers, b"accept-ranges") != b"none" else ""
        self.part.begin(Origin(self._url, validator, total, 0, boot()))

    def _continue(self, headers: Headers) -> None:
        origin = self.part.origin
        match = _content_range(_field(headers, b"content-range"))
        if match is None or match[1] is None or _coded(headers):
            raise Stale("the answer to a resumed transfer does not say which bytes it has")
        first, last = int(match[1]), int(match[2])
        total = None if match[3] == b"*" else int(match[3])
        tag = _field(headers, b"etag")
        if tag and origin.validator.startswith('"') and tag != origin.validator.encode("latin-1"):
            raise Stale("the file has changed since its transfer broke")
        other = total is not None and origin.total is not None and total != origin.total
        if first != self._asked or last < first or other:
            raise Stale(
                f"asked for the bytes from {self._asked} of {origin.total}, got {match[0].decode()!r}"
            )
        end = last + 1
        if (length := _length(headers)) is not None and length != end - first:
            raise Stale(f"{length} bytes are no {match[0].decode()!r}")
        if origin.total is None and total is not None:
            self.part.origin = msgspec.structs.replace(origin, total=total)

    def _expect_complete(self, headers: Headers) -> None:
        match = _content_range(_field(headers, b"content-range"))
        total = self.part.origin.total
        if match is None or total is None or match[3] != b"%d" % total or total != self.part.size:
            raise Stale("the server has no bytes where a transfer broke")
        self._complete = True

    def _too_large(self) -> TooLargeError:
        return TooLargeError(f"the file is over the limit of {self._max_save} bytes (max_save)")


Exchange = Callable[[Request, Download], Awaitable[Response]]
"""One hop of an engine; the body goes into the download if that accepts it."""


async def save(
    request: Request,
    exchange: Exchange,
    folder: str | None = None,
    max_save: int | None = None,
) -> Response:
    """The response to a request with `save_to`; its body is in the file `saved_to` if the status is 200-299.

    folder: see `files.placed`.

    Raises SaveError, and what `exchange` raises; what has come by then is resumed next time, if the server
    lets that be.
    """
    assert request.save_to is not None
    url = wire_url(request.url)
    part = Part(placed(request.save_to, folder))
    failure: BaseException | None = None
    try:
        response = await _attempts(request, Download(part, url, max_save), exchange)
        if response is None:
            raise ProtocolError("the server's answers do not fit together")
        if response.saved_to is not None:
            await part.publish()
        return response
    except BaseException as error:
        failure = error
        if isinstance(error, (Stale, TooLargeError)):
            part.discard()
        raise
    finally:
        part.close(failure)


async def _attempts(request: Request, download: Download, exchange: Exchange) -> Response | None:
    part = download.part
    for attempt in range(MAX_RESUMES + 1):
        before = part.size
        try:
            response = await exchange(download.request(request), download)
        except Stale:
            if attempt == MAX_RESUMES or not before:
                raise
            part.begin(Origin())
        except ProtocolError:
            if attempt == MAX_RESUMES or not part.origin.validator or part.size <= before:
                raise
        else:
            saved = str(part.path) if download.accepted else None
            status = 200 if saved and download.resumed else response.status
            return msgspec.structs.replace(response, request=request, status=status, saved_to=saved)
    return None


def _field(headers: Headers, wanted: bytes) -> bytes:
    for name, value in headers:
        if name.lower() == wanted:
            return value.strip(b" \t")
    return b""


def _length(headers: Headers) -> int | None:
    value = _field(headers, b"content-length")
    return int(value) if value.isdigit() and len(value) < 19 else None


def _coded(headers: Headers) -> bool:
    codings = _field(headers, b"content-encoding").decode("latin-1")
    return any(part.strip().lower() not in NO_CODINGS for part in codings.split(","))
