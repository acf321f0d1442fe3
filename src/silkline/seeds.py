"""Where a crawl starts: URLs, Requests, iterables of them, and files of any length, read in batches."""

from __future__ import annotations

import codecs
import gzip
import os
import zlib
from collections.abc import Collection, Iterable, Iterator
from io import BufferedReader
from itertools import chain, islice
from pathlib import Path
from typing import Any

import msgspec

from silkline.errors import BadUrlError, ConfigError, TaskError
from silkline.request import DEFAULT_LABEL, MAX_TASK_BYTES, Request, request_from_task
from silkline.url import check

Seed = str | Request | os.PathLike[str] | Iterable[str | Request]
"""A URL, a Request, a file's path (Path("-") for standard input), or an iterable of URLs and Requests."""

CHUNK = 262_144
"""Bytes read at once: some thousand URLs, which a frontier takes in one transaction."""
BATCH = 1_000
KEPT_REASONS = 5


class Seeds:
    """Iterate to get batches of requests; reading may block, for as long as the source does.

    A file holds one URL or JSON task a line; blank lines and lines that start with # are skipped. It is
    UTF-8, or UTF-16 with a byte order mark, and may be compressed with gzip. Its invalid lines, like the
    invalid entries of an iterable, are counted and the rest goes on.

    labels: what an entry of a file or an iterable may have as its label, None for any. A direct seed with
        another one is left to whoever looks for its handler.

    invalid: how many entries were no valid request so far.
    reasons: where and why, for the first few of them.
    """

    def __init__(self, *seeds: Seed, labels: Collection[str] | None = None) -> None:
        """Raises ConfigError for a URL that is not valid and a file that is missing, unreadable, binary or
        without anything in it but blank lines and comments."""
        self.invalid = 0
        self.reasons: tuple[str, ...] = ()
        self._labels = labels
        self._direct: list[Request] = []
        self._sources: list[Iterable[Any] | Path] = []
        for seed in seeds:
            if isinstance(seed, (str, Request)):
                self._direct.append(_direct(seed))
            elif isinstance(seed, os.PathLike):
                self._sources.append(_readable(Path(seed)))
            elif isinstance(seed, Iterable) and not isinstance(seed, (bytes, dict)):
                self._sources.append(seed)
            else:
                raise ConfigError(f"a seed is a URL, a Request, a Path or an iterable of these, not {seed!r}")

    def __iter__(self) -> Iterator[list[Request]]:
        """Raises ConfigError for a file that turns out to be unreadable, binary or without a valid URL."""
        if self._direct:
            yield self._direct
        for source in self._sources:
            if isinstance(source, Path):
                yield from self._from_file(source)
            else:
                yield from self._from_iterable(source)

    def _from_iterable(self, source: Iterable[Any]) -> Iterator[list[Request]]:
        entries, number = iter(source), 0
        while entry := list(islice(entries, BATCH)):
            if batch := self._batch(entry, "seed ", number):
                yield batch
            number += len(entry)

    def _from_file(self, path: Path) -> Iterator[list[Request]]:
        name = _name(path)
        number, valid, invalid, known = 0, 0, self.invalid, len(self.reasons)
        for lines in _lines(path):
            if batch := self._batch(lines, f"{name}:", number):
                valid += len(batch)
                yield batch
            number += len(lines)
        if not valid:
            if self.invalid == invalid:
                raise ConfigError(f"{name} holds no URL")
            raise ConfigError(f"{name} holds no valid URL; {self.reasons[min(known, KEPT_REASONS - 1)]}")

    def _batch(self, entries: Iterable[Any], where: str, before: int) -> list[Request]:
        """The valid requests among `entries`, which come after the first `before` ones."""
        batch = []
        for number, entry in enumerate(entries, before + 1):
            try:
                if isinstance(entry, str):
                    if _says_nothing(text := entry.strip()):
                        continue
                    request = request_from_task(text) if text[0] == "{" else Request(check(text))
                else:
                    request = _request(entry)
                if self._labels is not None and request.label not in self._labels:
                    raise TaskError(self._unknown(request.label))
                batch.append(request)
            except (BadUrlError, TaskError) as error:
                self.invalid += 1
                if len(self.reasons) < KEPT_REASONS:
                    self.reasons += (f"{where}{number}: {error}",)
        return batch

    def _unknown(self, label: str) -> str:
        known = ", ".join(sorted(self._labels or ()))
        if label == DEFAULT_LABEL:
            return f"no handler without a label; there are: {known}"
        return f"no handler for the label {label!r}; there are: {known}"


def _says_nothing(line: str) -> bool:
    return not line or line[0] == "#"


def _request(seed: object) -> Request:
    if isinstance(seed, Request):
        url = check(seed.url)
        return seed if url == seed.url else msgspec.structs.replace(seed, url=url)
    if isinstance(seed, UnicodeDecodeError):
        raise TaskError("the line is not UTF-8 text")
    raise TaskError(f"{str(seed)[:200]!r} is neither a URL nor a Request")


def _direct(seed: str | Request) -> Request:
    try:
        return Request(check(seed)) if isinstance(seed, str) else _request(seed)
    except BadUrlError as error:
        raise ConfigError(str(error)) from error


def _readable(path: Path) -> Path:
    """Refuse what can be known to be no list of URLs. A pipe is left alone: what is read from it is gone."""
    if path.is_file():
        lines = chain.from_iterable(_lines(path))
        if all(isinstance(line, str) and _says_nothing(line.strip()) for line in lines):
            raise ConfigError(f"{path} holds no URL")
    elif not path.exists() and path != Path("-"):
        raise ConfigError(f"{path}: no such file")
    elif path.is_dir():
        raise ConfigError(f"{path} is a directory, not a file of URLs")
    return path


def _name(path: Path) -> str:
    return "standard input" if path == Path("-") else str(path)


def _lines(path: Path) -> Iterator[list[Any]]:
    """Whole lines, as many as a chunk brings; for one that is not UTF-8 stands its UnicodeDecodeError."""
    rest = b""
    for chunk in _text(path):
        head, newline, tail = chunk.rpartition(b"\n")
        if newline:
            yield _decoded(rest + head)
            rest = tail
        elif len(rest) <= MAX_TASK_BYTES:
            rest += tail
        # else: the line is over the limit already, whatever else it holds; it is refused for its length.
    if rest:
        yield _decoded(rest)


def _decoded(block: bytes) -> list[Any]:
    try:
        return block.decode().split("\n")
    except UnicodeDecodeError:
        return [_line(line) for line in block.split(b"\n")]


def _line(line: bytes) -> str | UnicodeDecodeError:
    try:
        return line.decode()
    except UnicodeDecodeError as error:
        return error


def _text(path: Path) -> Iterator[bytes]:
    """The file in chunks of UTF-8, uncompressed, without a byte order mark."""
    try:
        with open(0, "rb", closefd=False) if path == Path("-") else path.open("rb") as file:
            compressed = file.peek(2)[:2] == b"\x1f\x8b"
            yield from _transcoded(gzip.GzipFile(fileobj=file) if compressed else file, _name(path))
    except (OSError, EOFError, zlib.error, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or error
        raise ConfigError(f"{_name(path)}: cannot be read: {reason}") from error


def _transcoded(file: BufferedReader | gzip.GzipFile, name: str) -> Iterator[bytes]:
    chunk = file.read1(CHUNK)
    wide = chunk.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    decoder = codecs.getincrementaldecoder("utf-16")() if wide else None
    chunk = chunk.removeprefix(codecs.BOM_UTF8)
    while chunk:
        text = decoder.decode(chunk).encode() if decoder else chunk
        if b"\0" in text:
            raise ConfigError(f"{name} is a binary file, not a list of URLs")
        yield text
        chunk = file.read1(CHUNK)
