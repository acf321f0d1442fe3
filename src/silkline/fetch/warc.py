"""A fetcher that answers from WARC files: a crawl is parsed again without a network."""

from __future__ import annotations

import contextlib
import io
import os
import sqlite3
import tempfile
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

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


class WarcFetcher:
    """Answers from the response records of WARC files (1.0 and 1.1, also compressed), by URL; of several for
    one URL the last counts. Redirects are followed as in a crawl.

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
            index.execute("CREATE TABLE page (url TEXT PRIMARY KEY, file INTEGER, at INTEGER, ok INTEGER)")
            for number, path in enumerate(self._paths):
                found = ((url, number, at, ok) for url, at, ok in _responses(path, self.warnings))
                index.executemany("INSERT OR REPLACE INTO page VALUES (?, ?, ?, ?)", found)
                if not index.execute("SELECT 1 FROM page WHERE file = ? LIMIT 1", (number,)).fetchone():
                    cut = [warning for warning in self.warnings if warning.startswith(f"{path} ")]
                    why = cut[0] if cut else "is it a WARC file of a crawl?"
                    raise ConfigError(f"{path} has no pages in it: {why}")
            index.commit()
        self._connection = None

    def urls(self) -> Iterator[str]:
        """The URLs of all pages with a status of success, in the order in which they were archived."""
        with contextlib.closing(self._connected()) as index:
            self._connection = None
            for (url,) in index.execute("SELECT url FROM page WHERE ok ORDER BY file, at"):
                yield url

    async def fetch(self, request: Request) -> Response:
        """Raises NotCachedError for a URL that is not in the files, and what following redirects raises."""
        return await follow(self._answered, request, self._max_redirects)

    async def close(self) -> None:
        if self._connection is not None:
            self._connection[1].close()
            self._connection = None

    async def _answered(self, request: Request) -> Response:
        found = None
        if request.method in ("GET", "HEAD"):
            url = wire_url(request.url)
            found = self._connected().execute("SELECT file, at FROM page WHERE url = ?", (url,)).fetchone()
        if found is None:
            raise NotCachedError(f"{request.url[:200]} is not in the archive, and nothing is fetched")
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


def _responses(path: Path, warnings: list[str]) -> Iterator[tuple[str, int, bool]]:
    """URL, offset and whether the status is one of success, of each whole response record of a file."""
    iterator = _reader()
    records: Any = None
    end, short = 0, False
    try:
        with path.open("rb") as file:
            records = iterator(file)
            for record in records:
                odd = records.err_count
                at = records.get_record_offset()
                end = at + records.get_record_length()
                length = record.rec_headers.get_header("Content-Length") or ""
                left = getattr(record.raw_stream, "limit", 1) or not length.strip().isdecimal()
                if left or records.err_count > odd:
                    warnings.append(_told(path, at, followed=not left))
                    short = True
                    continue
                url = record.rec_headers.get_header("WARC-Target-URI") or ""
                if record.rec_type == "response" and url.startswith(WEB) and record.http_headers is not None:
                    with contextlib.suppress(Exception):  # no URL that could be asked for
                        ok = record.http_headers.get_statuscode().startswith("2")
                        yield wire_url(url), at, ok
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
