"""WARC 1.1 (ISO 28500:2017): every exchange as request and response records, to keep, and to parse again.

The bodies are those that were decoded from gzip & co. So `Content-Encoding`, `Transfer-Encoding` and
`Content-Length` of the server, which would be false of them, are kept as `X-Archive-Orig-...`.
"""

from __future__ import annotations

import io
import os
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from http import HTTPStatus
from typing import Any
from urllib.parse import urlsplit

import msgspec
from warcio.recordloader import ArcWarcRecord
from warcio.statusandheaders import StatusAndHeaders
from warcio.warcwriter import WARCWriter

from silkline.outcome import Item
from silkline.response import Hop, Response
from silkline.sinks.faultpoint import reach
from silkline.sinks.outputfile import Mark, OutputFile, name_of, starting
from silkline.version import __version__

VERSION = "WARC/1.1"
FORMER = "X-Archive-Orig-"
UNTRUE = frozenset({"content-encoding", "transfer-encoding", "content-length"})
"""Fields that speak of the body as it was transferred."""

UNCHANGED = "http://netpreserve.org/warc/1.1/revisit/server-not-modified"
PROTOCOLS = {"1.0": "http/1.0", "1.1": "http/1.1", "2": "h2", "3": "h3"}
"""Values of WARC-Protocol. The block itself is written as HTTP/1.1, which is what readers know."""

Field = tuple[str, str]


class Head(StatusAndHeaders):  # type: ignore[misc]
    """A start line and fields, written as the bytes that came, which may be other than ASCII."""

    def to_ascii_bytes(self, filter_func: Any = None) -> bytes:
        text: str = self.to_str(filter_func)
        return text.encode("latin-1", "replace") + b"\r\n"


class WarcSink:
    """Pages as WARC records, in the order in which they were committed; each record a gzip member of its own
    where the file's ending is .gz.

    The position is a JSON object: how many bytes count, and by what the file is known again.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.name = name_of(path)
        self._gzip = os.fspath(path).lower().endswith(".gz")
        self._file = OutputFile(path)
        self._found: tuple[str | None, Mark] | None = None

    def record(self, response: Response) -> Any:
        """The exchanges, to be written down where nobody waits for it."""
        return response.trail or (_only_hop(response),)

    def open(self, position: str | None) -> None:
        with starting():
            self._found = (position, self._resumed(position))

    def write(self, items: Sequence[Item], position: str | None) -> str:
        mark = self._mark(position)
        if not items:
            return _position(self._file.append(mark, b""))
        out = io.BytesIO()
        writer = WARCWriter(out, gzip=self._gzip, warc_version=VERSION)
        if not mark.at:
            writer.write_record(_about(writer, os.path.basename(self.name)))
        for item in items:
            for hop in item.data[self.name]:
                for record in records_of(writer, hop):
                    writer.write_record(record)
        return _position(self._file.append(mark, out.getvalue()))

    def finish(self, position: str | None) -> str:
        reach("before-finish")
        return self.write((), position)

    def close(self) -> None:
        self._file.close()

    def _resumed(self, position: str | None) -> Mark:
        if position is None:
            return self._file.create(Mark())
        return self._file.resume(_mark_at(position))

    def _mark(self, position: str | None) -> Mark:
        """What the position stands for; `open` may have found it in a file that was moved."""
        if self._found is not None and self._found[0] == position:
            return self._found[1]
        return self._resumed(None) if position is None else _mark_at(position)


def records_of(writer: WARCWriter, hop: Hop) -> Iterator[ArcWarcRecord]:
    """A response (or revisit) record, its request, and metadata; each names the first one."""
    date = datetime.fromtimestamp(hop.started, UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
    given = {"WARC-Date": date, "WARC-Protocol": PROTOCOLS.get(hop.http_version, hop.http_version)}
    response = _response(writer, hop, given)
    yield response
    about = {**given, "WARC-Concurrent-To": response.rec_headers.get_header("WARC-Record-ID")}
    yield writer.create_warc_record(
        hop.url,
        "request",
        payload=io.BytesIO(hop.sent_body or b""),
        length=len(hop.sent_body or b""),
        http_headers=Head(
            f"{hop.method} {_target(hop.url)} HTTP/1.1", _in_lines(hop.sent), is_http_request=True
        ),
        warc_headers_dict=about,
    )
    if hop.saved_to is not None:
        text = f"savedTo: {hop.saved_to}\r\n".encode()
        yield writer.create_warc_record(
            hop.url,
            "metadata",
            payload=io.BytesIO(text),
            length=len(text),
            warc_content_type="application/warc-fields",
            warc_headers_dict=about,
        )


def _response(writer: WARCWriter, hop: Hop, given: dict[str, str]) -> ArcWarcRecord:
    headers = {**given}
    if hop.peer:
        headers["WARC-IP-Address"] = hop.peer.rpartition(":")[0].strip("[]")
    kind = "response"
    if hop.status == HTTPStatus.NOT_MODIFIED:
        kind, headers["WARC-Profile"] = "revisit", UNCHANGED
    elif not hop.body and hop.method != "HEAD" and _length(hop) not in (None, "0"):
        headers["WARC-Truncated"] = "length"  # a redirect's body, or one that went to a file of its own
    status = Head(f"{hop.status} {_phrase(hop.status)}", _in_lines(_true(hop)), protocol="HTTP/1.1")
    return writer.create_warc_record(
        hop.url,
        kind,
        payload=io.BytesIO(hop.body),
        length=len(hop.body),
        http_headers=status,
        warc_headers_dict=headers,
    )


def _about(writer: WARCWriter, name: str) -> ArcWarcRecord:
    return writer.create_warcinfo_record(
        name,
        {
            "software": f"silkline/{__version__}",
            "format": "WARC File Format 1.1",
            "conformsTo": "http://iipc.github.io/warc-specifications/specifications/warc-format/warc-1.1/",
        },
    )


def _only_hop(response: Response) -> Hop:
    """For a fetcher that tells nothing of the wire."""
    request = response.request
    return Hop(
        url=response.url.partition("#")[0],
        method=request.method,
        sent=tuple(request.headers.items()),
        sent_body=request.body,
        started=datetime.now(UTC).timestamp() - response.timings.total,
        status=response.status,
        headers=response.headers,
        body=response.body,
        http_version=response.http_version,
        peer=response.peer,
        saved_to=response.saved_to,
    )


def _true(hop: Hop) -> list[Field]:
    fields = [(name.decode("latin-1"), value.decode("latin-1")) for name, value in hop.headers]
    named = [(FORMER + name if name.lower() in UNTRUE else name, value) for name, value in fields]
    return [*named, ("Content-Length", str(len(hop.body)))]


def _length(hop: Hop) -> str | None:
    named = (value for name, value in hop.headers if name.lower() == b"content-length")
    return next((value.decode("latin-1") for value in named), None)


def _in_lines(fields: Sequence[Field]) -> list[Field]:
    """What came over HTTP/2 has no lines, and might hold what ends one."""
    return [(name, value.replace("\r", " ").replace("\n", " ")) for name, value in fields]


def _target(url: str) -> str:
    parts = urlsplit(url)
    return (parts.path or "/") + (f"?{parts.query}" if parts.query else "")


def _phrase(status: int) -> str:
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return "Unknown"


def _mark_at(position: str) -> Mark:
    return msgspec.json.decode(position, type=Mark)


def _position(mark: Mark) -> str:
    return msgspec.json.encode(mark).decode()
