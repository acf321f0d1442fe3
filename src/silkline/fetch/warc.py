"""A fetcher that answers from WARC files: a crawl is parsed again without a network."""

from __future__ import annotations

import contextlib
import hashlib
import io
import os
import sqlite3
import tempfile
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from silkline.errors import ConfigError, DecodeError, NotCachedError, TooLargeError
from silkline.fetch.redirect import follow
from silkline.fetch.target import wire_url
from silkline.files import placed, write_whole
from silkline.request import Request
from silkline.response import Response

FORMER = b"x-archive-orig-"
MAX_BODY = 32 * 1024 * 1024
WEB = ("http://", "https://")
READ = 1_048_576
MAGIC = b"\x1f\x8b"
WORD = b"WARC/"

INDEX = """
CREATE TABLE page (url TEXT, file INTEGER, at INTEGER, ok INTEGER, id TEXT, beside TEXT);
CREATE TABLE asked (id TEXT, beside TEXT, method TEXT, sent BLOB);
"""
ANSWERS = """
CREATE INDEX asked_id ON asked (id);
CREATE INDEX asked_beside ON asked (beside);
CREATE TABLE answer (
    url TEXT, method TEXT, sent BLOB, file INTEGER, at INTEGER, ok INTEGER, PRIMARY KEY (url, method, sent)
);
INSERT OR REPLACE INTO answer
    SELECT url, coalesce(one.method, other.method, ''), coalesce(one.sent, other.sent, x''), file, at, ok
    FROM page LEFT JOIN asked AS one ON one.beside = page.id
    LEFT JOIN asked AS other ON other.id = page.beside
    ORDER BY file, at;
"""
"""Of a request and its response one names the other, programs differ in which, and in which comes first. A
response that no request is known for has the method '', and answers a GET where no other does."""

FOUND = """
SELECT file, at FROM answer WHERE url = :url AND (
    method = :method AND sent = :sent
    OR method = 'GET' AND sent = x'' AND :method = 'HEAD'
    OR method = '' AND :method IN ('GET', 'HEAD')
) ORDER BY method = :method DESC, method = 'GET' DESC LIMIT 1
"""
LISTED = """
SELECT url FROM answer WHERE ok AND sent = x'' AND (method = 'GET' OR method = '' AND NOT EXISTS (
    SELECT 1 FROM answer AS known WHERE known.url = answer.url AND known.method = 'GET' AND known.sent = x''
)) ORDER BY file, at
"""


class WarcFetcher:
    """Answers from the response records of WARC files (1.0 and 1.1, also packed), by URL, method and body;
    of several the last counts. Where no request record tells of a response, it is one to a GET. Redirects are
    followed as in a crawl.

    The index is a temporary file: memory does not grow with the archive. max_redirects, max_body: as in a
    crawl; bytes. `warnings`: a line for each record that is not all there, which is left out.
    """

    def __init__(
        self, *paths: str | os.PathLike[str], max_redirects: int = 10, max_body: int = MAX_BODY
    ) -> None:
        """Reads the files once. Raises ConfigError for one that cannot be read or is no WARC file, and where
        the package for it is missing."""
        self._paths = [Path(path) for path in paths]
        self._max_redirects = max_redirects
        self._max_body = max_body
        self._folder = tempfile.TemporaryDirectory(prefix="silkline-warc-")
        self._connection: tuple[int, sqlite3.Connection] | None = None
        self.warnings: list[str] = []
        # The reader of archives writes what it thinks of damage to the terminal.
        with contextlib.closing(self._connected()) as index, contextlib.redirect_stderr(io.StringIO()):
            index.execute("PRAGMA synchronous = OFF")
            index.executescript(INDEX)
            for number, path in enumerate(self._paths):
                pages = 0
                for record in _records(path, self.warnings):
                    if isinstance(record, _Asked):
                        index.execute("INSERT INTO asked VALUES (?, ?, ?, ?)", record)
                        continue
                    index.execute(
                        "INSERT INTO page VALUES (?, ?, ?, ?, ?, ?)", (record.url, number, *record[1:])
                    )
                    pages += 1
                if not pages:
                    cut = [warning for warning in self.warnings if warning.startswith(f"{path} ")]
                    why = cut[0] if cut else "is it a WARC file of a crawl?"
                    raise ConfigError(f"{path} has no pages in it: {why}")
            index.executescript(ANSWERS)
            index.commit()
        self._connection = None

    def urls(self) -> Iterator[str]:
        """The URLs of all pages that a GET gets with a status of success, in the order in which they were
        archived."""
        with contextlib.closing(self._connected()) as index:
            self._connection = None
            for (url,) in index.execute(LISTED):
                yield url

    async def fetch(self, request: Request) -> Response:
        """Raises NotCachedError for what is not in the files, and what following redirects raises."""
        return await follow(self._answered, request, self._max_redirects)

    async def close(self) -> None:
        if self._connection is not None:
            self._connection[1].close()
            self._connection = None

    async def _answered(self, request: Request) -> Response:
        method, sent = request.method.upper(), _digest(io.BytesIO(request.body or b""))
        wanted = {"url": wire_url(request.url), "method": method, "sent": sent}
        found = self._connected().execute(FOUND, wanted).fetchone()
        if found is None:
            what = request.url[:200] if method == "GET" else f"{method[:20]} {request.url[:200]}"
            raise NotCachedError(f"{what} is not in the archive, and nothing is fetched")
        response = _response_at(self._paths[found[0]], found[1], request, self._max_body)
        if request.save_to is None or not 200 <= response.status < 300:
            return response
        path = placed(request.save_to)
        write_whole(path, response.body)
        return msgspec.structs.replace(response, body=b"", saved_to=str(path))

    def _connected(self) -> sqlite3.Connection:
        """This process's own connection: one must not be carried over a fork."""
        if self._connection is None or self._connection[0] != os.getpid():
            path = os.path.join(self._folder.name, "index.db")
            self._connection = (os.getpid(), sqlite3.connect(path))
        return self._connection[1]


class _Page(NamedTuple):
    """A response record; ok: whether the status is one of success. beside: the record that it names."""

    url: str
    at: int
    ok: bool
    id: str
    beside: str


class _Asked(NamedTuple):
    """A request record; sent: digest of the body, b"" for none."""

    id: str
    beside: str
    method: str
    sent: bytes


def _records(path: Path, warnings: list[str]) -> Iterator[_Page | _Asked]:
    """Each whole response and request record of a file."""
    iterator = _reader()
    records: Any = None
    end, short = 0, False
    try:
        with path.open("rb") as file:
            records = iterator(file)
            for record in records:
                odd = records.err_count
                sent = _digest(record.raw_stream) if record.rec_type == "request" else b""
                at = records.get_record_offset()
                end = at + records.get_record_length()
                length = record.rec_headers.get_header("Content-Length") or ""
                left = getattr(record.raw_stream, "limit", 1) or not length.strip().isdecimal()
                if left or records.err_count > odd:
                    warnings.append(_told(path, at, followed=not left))
                    short = True
                    continue
                if (found := _found(record, at, sent)) is not None:
                    yield found
        if end and not short and _rest(path, end).strip():
            warnings.append(_told(path, end))
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror}") from error
    except ConfigError:
        raise
    except Exception as error:  # whatever is in there, it is no archive
        at = 0 if records is None else records.offset
        if at and _ends_in_head(path, at):
            warnings.append(_told(path, at))
            return
        why = f"what is at byte {at:,} is no record"
        if "non-chunked" in str(error):
            why = f"its records are not compressed one by one; mend it with: warcio recompress {path} NEW"
        raise ConfigError(f"{path} is no sound WARC file: {why}") from error


def _found(record: Any, at: int, sent: bytes) -> _Page | _Asked | None:
    """What counts of a record, if anything."""
    fields, head = record.rec_headers, record.http_headers
    if head is None:
        return None
    names = fields.get_header("WARC-Record-ID") or "", fields.get_header("WARC-Concurrent-To") or ""
    if record.rec_type == "request":
        return _Asked(*names, head.protocol.upper(), sent)
    url = fields.get_header("WARC-Target-URI") or ""
    if record.rec_type == "response" and url.startswith(WEB):
        with contextlib.suppress(Exception):  # no URL that could be asked for
            return _Page(wire_url(url), at, head.get_statuscode().startswith("2"), *names)
    return None


def _digest(stream: Any) -> bytes:
    digest, size = hashlib.sha1(usedforsecurity=False), 0
    while data := stream.read(READ):
        digest.update(data)
        size += len(data)
    return digest.digest() if size else b""


def _told(path: Path, at: int, followed: bool = False) -> str:
    """What is said of a record that is not all there; followed: by something that is no record. Raises
    ConfigError where it hides what follows."""
    with path.open("rb") as file:
        file.seek(at)
        if file.read(2) == MAGIC:
            file.seek(at)
            member = zlib.decompressobj(31)
            try:
                while not member.eof and (data := file.read(READ)):
                    while data and not member.eof:
                        member.decompress(data, READ)
                        data = member.unconsumed_tail
            except zlib.error as error:
                raise ConfigError(
                    f"{path} is no sound WARC file: the compressed record at byte {at:,} is damaged"
                ) from error
            followed = member.eof
    if followed:
        return f"{path} has a record at byte {at:,} that is not as long as it says: it is left out"
    return f"{path} ends in the middle of a record: it is left out"


def _ends_in_head(path: Path, at: int) -> bool:
    """Whether a record begins there, and the file ends before the record's fields do."""
    data = _rest(path, at)
    if data.startswith(MAGIC):
        with contextlib.suppress(zlib.error):
            data = zlib.decompressobj(31).decompress(data, READ)
    return b"\r\n\r\n" not in data and (data.startswith(WORD) or WORD.startswith(data))


def _rest(path: Path, at: int) -> bytes:
    with path.open("rb") as file:
        file.seek(at)
        return file.read(READ)


def _response_at(path: Path, offset: int, request: Request, limit: int) -> Response:
    iterator = _reader()
    try:
        with path.open("rb") as file:
            file.seek(offset)
            record = next(iter(iterator(file)))
            head = record.http_headers
            headers = [
                (name.encode("latin-1"), value.encode("latin-1", "replace")) for name, value in head.headers
            ]
            body = _bounded(record.content_stream(), limit)
            version = head.protocol.partition("/")[2] or "1.1"
            status = int(head.get_statuscode())
    except TooLargeError:
        raise
    except Exception as error:
        raise DecodeError(f"the record of {request.url[:200]} in {path} cannot be read: {error}") from error
    return Response(
        url=request.url,
        status=status,
        headers=tuple(_former(headers)),
        body=b"" if request.method == "HEAD" else body,
        request=request,
        http_version=version,
        wire_bytes=len(body),
        from_cache=True,
    )


def _bounded(stream: Any, limit: int) -> bytes:
    parts, size = [], 0
    while part := stream.read(min(READ, limit + 1)):
        parts.append(part)
        size += len(part)
        if size > limit:
            raise TooLargeError(f"the archived body has more than {limit} bytes")
    return b"".join(parts)


def _former(headers: Sequence[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
    """The fields that the server sent, where the archive has others in their place."""
    kept = {name.lower().removeprefix(FORMER) for name, _ in headers if name.lower().startswith(FORMER)}
    fields = [(name, value) for name, value in headers if name.lower() not in kept]
    return [(name[len(FORMER) :] if name.lower().startswith(FORMER) else name, v) for name, v in fields]


def _reader() -> Any:
    try:
        from warcio.archiveiterator import ArchiveIterator
    except ModuleNotFoundError as error:
        raise ConfigError(
            f"WARC files need the package {error.name}: pip install 'silkline[warc]'"
        ) from error
    return ArchiveIterator
