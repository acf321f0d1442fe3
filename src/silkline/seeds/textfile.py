"""Files of any length with a URL or a JSON task a line."""

from __future__ import annotations

import codecs
import gzip
import zlib
from collections.abc import Collection, Iterator
from io import BufferedReader
from itertools import chain
from pathlib import Path
from typing import Any

from silkline.errors import ConfigError
from silkline.request import MAX_TASK_BYTES, Request
from silkline.seeds.entries import EntryReader, says_nothing
from silkline.seeds.source import Refusals

CHUNK = 262_144
"""Bytes read at once: some thousand URLs, which a frontier takes in one transaction."""
STANDARD_INPUT = Path("-")


class FileSource:
    """A file, a pipe or standard input, Path("-"): see SeedSource.

    Blank lines and lines that start with # are skipped. The file is UTF-8, or UTF-16 with a byte order
    mark, and may be compressed with gzip.
    """

    def __init__(self, path: Path, labels: Collection[str] | None = None) -> None:
        """Raises ConfigError for a file that is missing, unreadable, binary or without anything in it but
        blank lines and comments."""
        self._path = _readable(path)
        self._refusals = Refusals()
        self._reader = EntryReader(labels, self._refusals)

    @property
    def invalid(self) -> int:
        return self._refusals.invalid

    @property
    def reasons(self) -> tuple[str, ...]:
        return self._refusals.reasons

    def __iter__(self) -> Iterator[list[Request]]:
        """Raises ConfigError for a file that turns out to be unreadable, binary or without a valid URL."""
        name = _name(self._path)
        number, valid, known = 0, 0, self.invalid
        for lines in _lines(self._path):
            if batch := self._reader.batch(lines, f"{name}:", number):
                valid += len(batch)
                yield batch
            number += len(lines)
        if not valid:
            if self.invalid == known:
                raise ConfigError(f"{name} holds no URL")
            raise ConfigError(f"{name} holds no valid URL; {self._refusals.first_since(known)}")


def _readable(path: Path) -> Path:
    """Refuse what can be known to be no list of URLs. A pipe is left alone: what is read from it is gone."""
    if path.is_file():
        lines = chain.from_iterable(_lines(path))
        if all(isinstance(line, str) and says_nothing(line.strip()) for line in lines):
            raise ConfigError(f"{path} holds no URL")
    elif not path.exists() and path != STANDARD_INPUT:
        raise ConfigError(f"{path}: no such file")
    elif path.is_dir():
        raise ConfigError(f"{path} is a directory, not a file of URLs")
    return path


def _name(path: Path) -> str:
    return "standard input" if path == STANDARD_INPUT else str(path)


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
        with open(0, "rb", closefd=False) if path == STANDARD_INPUT else path.open("rb") as file:
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
