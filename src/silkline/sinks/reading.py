"""Reading files of which only a part counts, with errors that a user can act on."""

from __future__ import annotations

import contextlib
import csv
import errno
import os
import sys
import zlib
from collections.abc import Callable, Iterator
from typing import Any, BinaryIO, TypeVar

from silkline.errors import SinkError
from silkline.sinks.frames import DAMAGE
from silkline.sinks.outputfile import TAIL, Mark

T = TypeVar("T")


@contextlib.contextmanager
def opened(
    path: str, mark: Mark, rewritten: Callable[[BinaryIO, Any], int | None] = lambda file, mark: None
) -> Iterator[BinaryIO]:
    """The file, checked against its mark; the descriptor keeps that file, whatever takes its place.

    rewritten: how many bytes count in a file that was rewritten since the mark; None where it was not.
    """
    with open(path, "rb") as file:
        check(file, mark, path, rewritten(file, mark))
        yield file


def check(file: BinaryIO, mark: Mark, path: str, again: int | None = None) -> None:
    """Raise SinkError where the file does not have what the mark says. again: bytes that it has now, where it
    was rewritten."""
    size = os.fstat(file.fileno()).st_size
    if size < (again or mark.at):
        raise shorter(path, f"has {size} bytes", f"{again or mark.at}")
    start = max(0, mark.at - TAIL)
    if again is None and zlib.crc32(os.pread(file.fileno(), mark.at - start, start)) != mark.tail:
        raise changed(path)


@contextlib.contextmanager
def opened_if_there(path: str) -> Iterator[BinaryIO | None]:
    """None where there is no file, or nothing in it."""
    with reading(path), contextlib.ExitStack() as files:
        file = None
        with contextlib.suppress(FileNotFoundError):
            file = files.enter_context(open(path, "rb"))
        yield file if file is not None and os.fstat(file.fileno()).st_size else None


def lines_until(file: BinaryIO, end: int, path: str) -> Iterator[bytes]:
    """The lines of the first `end` bytes."""
    left = end
    while left:
        line = file.readline(left)
        if not line.endswith(b"\n"):
            raise changed(path)
        left -= len(line)
        yield line


def undamaged(lines: Iterator[bytes], path: str) -> Iterator[bytes]:
    """The lines of a compressed file."""
    while True:
        try:
            line = next(lines, b"")
        except DAMAGE as error:
            raise changed(path) from error
        if not line:
            return
        if not line.endswith(b"\n"):
            raise changed(path)
        yield line


def counted(rows: Iterator[T], expected: int | None, path: str) -> Iterator[T]:
    """The same, if there are as many as expected."""
    number = 0
    for row in rows:
        number += 1
        yield row
    if expected is not None and number != expected:
        raise changed(path)


@contextlib.contextmanager
def cells_of_any_size() -> Iterator[None]:
    before = csv.field_size_limit(sys.maxsize)
    try:
        yield
    finally:
        csv.field_size_limit(before)


def changed(path: str) -> SinkError:
    return SinkError(f"{path} was changed since its worker wrote it: put the original back, or copy it again")


def shorter(path: str, there: str, committed: str) -> SinkError:
    return SinkError(
        f"{path} {there}, but {committed} were committed: it was cut, or copied before that; "
        "put the original back, or copy it again"
    )


def unreadable(path: str, reason: str) -> SinkError:
    return SinkError(f"cannot read {path}: {reason}; mend it and run the same command again")


@contextlib.contextmanager
def reading(path: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise unreadable(path, error.strerror or str(error)) from error


def missing(path: str) -> SinkError:
    return unreadable(path, os.strerror(errno.ENOENT))
