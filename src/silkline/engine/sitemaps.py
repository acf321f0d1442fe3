"""Sitemaps as seeds: found, fetched with the limits of a crawl, and read in constant memory."""

from __future__ import annotations

import asyncio
import tempfile
from collections import deque
from collections.abc import Iterator
from contextlib import AsyncExitStack
from datetime import date, datetime
from pathlib import Path
from time import time
from typing import NamedTuple
from urllib.parse import urlsplit

import msgspec

from silkline.config import FrontierOptions, Settings
from silkline.engine.fetching import fetcher_for
from silkline.engine.named import NamedHosts, hosts_of
from silkline.engine.retry import RetryPolicy
from silkline.engine.visit import expect_success
from silkline.errors import (
    BadUrlError,
    BlockedError,
    ConfigError,
    DecodeError,
    FetchError,
    SilklineError,
    SourceError,
    TooLargeError,
)
from silkline.fetch.cookies.sessions import Sessions
from silkline.fetch.decode import Sink, decoding
from silkline.frontier.memory import MemoryFrontier
from silkline.outcome import Dead
from silkline.politeness.robots_txt import MAX_BYTES as MAX_ROBOTS_BYTES
from silkline.politeness.robots_txt import ROBOTS_PATH, product_token, read_robots_txt
from silkline.protocols import Fetcher
from silkline.request import Request
from silkline.seeds.entries import BATCH
from silkline.seeds.sitemap import Entry, SitemapReader, moment_of
from silkline.seeds.source import Refusals
from silkline.url import check, resolve
from silkline.values import MiB

MAX_UNPACKED = 50 * MiB
"""Of one file (sitemaps.org); what is beyond is not read."""

MAX_FILE = 200 * MiB
"""On the disk, while it is read."""

MAX_FILES = 50_000
MAX_DEPTH = 5
"""Lists of lists of sitemaps: the protocol allows one level."""

MAX_WRAPPINGS = 3
"""gzip in gzip happens by mistake."""

LONGEST_PAUSE = 60.0
_PIECE = 65_536
_GZIP = b"\x1f\x8b"


class Sitemaps:
    """The pages that sitemaps list, one request each: see `silkline.seeds.SeedSource`.

    urls: of sitemaps, lists of sitemaps, text files of URLs, RSS or Atom feeds, plain or gzipped; the home
        page or the robots.txt of a site stands for the sitemaps that its robots.txt names, or
        /sitemap.xml.
    since: leave out what was changed last before that time (a date such as "2026-01-31", or a datetime);
        what does not say when it was changed is kept.
    settings: how to fetch; None for those of the crawl that it is a seed of, or the defaults.
    """

    def __init__(
        self, *urls: str, since: str | date | datetime | None = None, settings: Settings | None = None
    ) -> None:
        """Raises ConfigError for a URL that is none, and for a `since` that is no time."""
        if not urls:
            raise ConfigError("Sitemaps(...) needs the URL of a sitemap or of a site")
        try:
            self.given = tuple(check(url) for url in urls)
        except BadUrlError as error:
            raise ConfigError(f"sitemap: {error}") from error
        self._since = None if since is None else moment_of(since)
        if since is not None and self._since is None:
            raise ConfigError(f"since: {since!r} is no date; write 2026-01-31 or 2026-01-31T12:00:00Z")
        self._settings = settings
        self._of_crawl = Settings()
        self._alone = True
        self._refusals = Refusals()

    def fetch_as(self, settings: Settings, *, alone: bool = True) -> None:
        """Fetch as this crawl does, where no other settings were given. alone: it has no other seeds, so that
        it cannot begin where nothing can be read."""
        self._of_crawl = settings
        self._alone = alone

    @property
    def invalid(self) -> int:
        """Entries that are no http(s) URL, and files that could not be read."""
        return self._refusals.invalid

    @property
    def reasons(self) -> tuple[str, ...]:
        return self._refusals.reasons

    def __iter__(self) -> Iterator[list[Request]]:
        """Fetches as it goes, on an event loop of its own.

        Raises ConfigError where no given URL leads to a sitemap, SourceError where none can be fetched; not
        where the crawl has other seeds.
        """
        with tempfile.TemporaryDirectory(prefix="silkline-sitemaps-") as folder, asyncio.Runner() as runner:
            downloads = _Downloads(self._settings or self._of_crawl, Path(folder))
            try:
                runner.run(downloads.open(self.given))
                yield from self._batches(runner, downloads)
            finally:
                runner.run(downloads.close())

    def _batches(self, runner: asyncio.Runner, downloads: _Downloads) -> Iterator[list[Request]]:
        batch: list[Request] = []
        seen: set[str] = set()
        failures, read = list[SilklineError](), False
        for url in self.given:
            queue = deque(_Place(found, 0) for found in runner.run(downloads.discover(url)))
            files, kinds, wrong = 0, set[str](), self._refusals.invalid
            while queue:
                place = queue.popleft()
                if place.url in seen or len(seen) >= MAX_FILES:
                    continue
                seen.add(place.url)
                files += 1
                for entry in self._entries(runner, downloads, place, failures):
                    read = True
                    kinds.add("old" if self._is_old(entry) else "list" if entry.sitemap else "page")
                    if entry.url is None:
                        self._refusals.add(place.url, f"{entry.written!r} is not an http or https URL")
                    elif self._is_old(entry):
                        continue
                    elif not entry.sitemap:
                        batch.append(Request(entry.url))
                        if len(batch) == BATCH:
                            yield batch
                            batch = []
                    elif place.depth < MAX_DEPTH:
                        queue.append(_Place(entry.url, place.depth + 1))
            if files and kinds <= {"list"} and self._refusals.invalid == wrong:
                self._refusals.add(url, _no_page(files, kinds))
        if batch:
            yield batch
        if failures and not read and self._alone:
            raise failures[0]

    def _is_old(self, entry: Entry) -> bool:
        return self._since is not None and entry.lastmod is not None and entry.lastmod < self._since

    def _entries(
        self, runner: asyncio.Runner, downloads: _Downloads, place: _Place, failures: list[SilklineError]
    ) -> Iterator[Entry]:
        """What stands in one file; why it cannot be read is added to `failures`."""
        try:
            url, path = runner.run(downloads.fetch(place.url))
        except SilklineError as error:
            self._refusals.add(place.url, error)
            # Another try mends neither a port nor an address that is refused.
            kind = ConfigError if isinstance(error, (BadUrlError, BlockedError)) else SourceError
            failures.append(kind(f"the sitemap {place.url} cannot be read: {error}"))
            return
        reader = SitemapReader(url)
        try:
            yield from unpacked(path, reader)
        except (DecodeError, TooLargeError) as error:
            self._refusals.add(place.url, error)
        if not reader.is_sitemap:
            self._refusals.add(place.url, "no sitemap")
            failures.append(
                ConfigError(f"{place.url} is no sitemap: no XML of a known kind, no list of URLs")
            )


def _no_page(files: int, kinds: set[str]) -> str:
    """Why a sitemap of so many files, with such entries, brings no page."""
    if not kinds:
        return "lists no page: it is empty"
    if files == 1:
        return "lists no page: it is a list of sitemaps that names no other than itself"
    return f"lists no page: it is a list of sitemaps, and none of its {files} files has one"


class _Place(NamedTuple):
    """Where a sitemap is. depth: how many lists led to it."""

    url: str
    depth: int


class _Downloads:
    """Fetches files into a folder, as the settings say."""

    def __init__(self, settings: Settings, folder: Path) -> None:
        # The cache is a crawl's, and a file of any name may be written here.
        self._settings = msgspec.structs.replace(settings, files_dir="", max_save=MAX_FILE, cache="off")
        self._path = folder / "sitemap"
        self._retry = RetryPolicy(settings.retries)
        self._opened = AsyncExitStack()
        self._fetcher: Fetcher

    async def open(self, given: tuple[str, ...]) -> None:
        frontier = MemoryFrontier(FrontierOptions())
        await frontier.open()
        named = NamedHosts(frontier)
        await named.name(hosts_of(given))
        self._fetcher = await fetcher_for(self._settings, self._opened, named, Sessions())

    async def close(self) -> None:
        await self._opened.aclose()

    async def discover(self, url: str) -> list[str]:
        """The sitemaps that a URL which the user gave stands for."""
        path = urlsplit(url).path
        if path not in ("", "/", ROBOTS_PATH):
            return [url]
        robots = resolve(url, ROBOTS_PATH) or url
        agent = self._settings.robots_agent or product_token(self._settings.user_agent)
        try:
            found_at, file = await self.fetch(robots)
            with file.open("rb") as opened:
                named = read_robots_txt(opened.read(MAX_ROBOTS_BYTES), agent, found_at).sitemaps
        except SilklineError:
            named = ()
        if named or path == ROBOTS_PATH:
            return list(named)
        return [resolve(url, "/sitemap.xml") or url]

    async def fetch(self, url: str) -> tuple[str, Path]:
        """Where it came from, after redirects, and the file. Raises what a fetch raises, after retries."""
        request = Request(url, save_to=str(self._path))
        while True:
            try:
                response = await self._fetcher.fetch(request)
                expect_success(response, time)
            except SilklineError as error:
                verdict = self._retry.verdict(error, request)
                if isinstance(verdict, Dead):
                    raise
                await asyncio.sleep(min(verdict.after, LONGEST_PAUSE))
                request = msgspec.structs.replace(request, retry_count=request.retry_count + 1)
            else:
                return response.url, Path(response.saved_to or self._path)


def unpacked(path: Path, reader: SitemapReader) -> Iterator[Entry]:
    """The entries of a file, which may be gzipped. Raises DecodeError where the gzip data is broken and
    TooLargeError at MAX_UNPACKED bytes, after what comes before that."""
    entries = _Entries(reader)
    sink = _Unwrapping(entries, MAX_WRAPPINGS)
    error: FetchError | None = None
    with path.open("rb") as file:
        try:
            while data := file.read(_PIECE):
                sink.write(data)
                yield from entries.taken()
            sink.finish()
        except FetchError as broken:
            error = broken
    yield from entries.taken()
    yield from reader.finish()
    if error is not None:
        raise error


class _Entries:
    """The innermost sink: hands the bytes to the reader."""

    def __init__(self, reader: SitemapReader) -> None:
        self._reader = reader
        self._entries: list[Entry] = []
        self._size = 0

    def write(self, data: bytes) -> None:
        self._size += len(data)
        if self._size > MAX_UNPACKED:
            raise TooLargeError(f"more than {MAX_UNPACKED // MiB} MiB unpacked: the rest is not read")
        self._entries += self._reader.feed(data)

    def finish(self) -> None:
        """The reader is finished where its entries are taken."""

    def taken(self) -> list[Entry]:
        """What has been read since the last call."""
        entries, self._entries = self._entries, []
        return entries


class _Unwrapping:
    """A sink that unpacks what is gzipped, by its first bytes, up to `times` times."""

    def __init__(self, inner: Sink, times: int) -> None:
        self._inner = inner
        self._times = times
        self._start: bytes | None = b""

    def write(self, data: bytes) -> None:
        if self._start is not None:
            self._start += data
            if len(self._start) < len(_GZIP):
                return
            data, self._start = self._start, None
            if self._times and data.startswith(_GZIP):
                self._inner = decoding("gzip", _Unwrapping(self._inner, self._times - 1))
        self._inner.write(data)

    def finish(self) -> None:
        if self._start:
            self._inner.write(self._start)
        self._inner.finish()
