"""A file that grows only behind a committed mark: what makes the file outputs exactly-once.

The mark (how many bytes count) is stored by the frontier in the same commit as the pages. Bytes behind it
belong to a commit that never happened, and the next write cuts them off. So the file comes out right
whatever the instant at which a process dies.

Several processes append to one file. They take turns under the frontier's lock, and between two calls
any of them may have written, so nothing but the open descriptor is remembered here: the mark handed in is
the truth.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import zlib
from collections.abc import Iterator
from typing import Generic, TypeVar

import msgspec

from silkline.errors import ConfigError, SinkAwayError, SinkError
from silkline.sinks.faultpoint import reach

TAIL = 256
"""Bytes before the mark that are compared when a run starts."""

sync = getattr(os, "fdatasync", os.fsync)  # macOS has no fdatasync


class Mark(msgspec.Struct, frozen=True):
    """A committed end of the file.

    at: bytes that count. inode: of the file that has them, so that another file under its name is
    noticed. tail: CRC-32 of the last TAIL bytes that count, so that an edited file is noticed.
    """

    at: int = 0
    inode: int = 0
    tail: int = 0


M = TypeVar("M", bound=Mark)


class OutputFile:
    """One output file; every method but `close` is called under the frontier's lock.

    Raises SinkError with one line that says what happened to the file and how to mend it.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.shown = os.fspath(path)
        self.path = os.path.realpath(path)
        self._fd: int | None = None

    def create(self, mark: M) -> M:
        """The first start of a job: the file must be new or empty."""
        with told(self.shown):
            prepare(self.path, self.shown)
            with creating(self.shown):
                self._open(os.O_CREAT)
            found = os.fstat(self._opened)
            if found.st_size:
                raise SinkError(foreign(self.shown))
            sync_directory(self.path)
        return msgspec.structs.replace(mark, inode=found.st_ino)

    def resume(self, mark: M) -> M:
        """A later start: check that the file is what was committed, and cut off what is behind that.

        It may have been moved or copied meanwhile, which gives it another inode, but not edited.
        """
        with told(self.shown):
            prepare(self.path, self.shown)
            if mark.at == 0 and not os.path.exists(self.path):
                return self.create(mark)
            found = self._attach()
            if mark.at == 0 and found.st_size and found.st_ino != mark.inode:
                raise SinkError(foreign(self.shown))
            if found.st_size >= mark.at and self._tail(mark.at) != mark.tail:
                raise SinkError(
                    f"{self.shown} was changed since this job wrote it: "
                    "put the original back, or start over with --fresh"
                )
            mark = msgspec.structs.replace(mark, inode=found.st_ino)
            self.cut(mark)
            return mark

    def append(self, mark: M, data: bytes, end: bytes = b"") -> M:
        """Cut at the mark, append, make durable; return the mark behind the data.

        end: stands behind that without being counted, also where there is no data.
        """
        with told(self.shown):
            if not data:
                self.cut(mark, end)
                return mark
            self.cut(mark)
            whole = data + end
            reach("mid-write", lambda: write_all(self._opened, whole[: len(whole) // 2], mark.at))
            write_all(self._opened, whole, mark.at)
            sync(self._opened)
            at = mark.at + len(data)
            moved = msgspec.structs.replace(mark, at=at, tail=self._tail(at))
        reach("after-write")
        return moved

    def renewed(self, mark: M) -> M:
        """The mark for a new and empty file, in place of whatever is there."""
        with told(self.shown):
            self.close()
            remove(self.path)
            with creating(self.shown):
                self._open(os.O_CREAT | os.O_EXCL)
            sync_directory(self.path)
            return msgspec.structs.replace(mark, at=0, inode=os.fstat(self._opened).st_ino, tail=0)

    def cut(self, mark: Mark, end: bytes = b"") -> None:
        """Cut off what is behind the mark, in the file that the mark is about and in no other; but for `end`,
        which is put there."""
        with told(self.shown):
            found = self._attach()
            if found.st_ino != mark.inode:
                raise SinkError(
                    f"{self.shown} was replaced by another file while the crawl was writing it: "
                    "put the original back and run the same command again, or start over with --fresh"
                )
            if found.st_size < mark.at:
                raise SinkError(
                    f"{self.shown} has {found.st_size} bytes, but {mark.at} were written: it was cut by "
                    "another program; put the original back, or start over with --fresh"
                )
            behind = found.st_size - mark.at
            if behind == len(end) and os.pread(self._opened, behind, mark.at) == end:
                return
            if behind:
                os.ftruncate(self._opened, mark.at)
            if end:
                write_all(self._opened, end, mark.at)
                sync(self._opened)

    def taken_over(self, mark: M, at: int) -> M:
        """The mark for the file that is in place now, of which `at` bytes count."""
        with told(self.shown):
            inode = self._attach().st_ino
            return msgspec.structs.replace(mark, at=at, inode=inode, tail=self._tail(at))

    def starts_with(self, head: bytes) -> bool:
        with told(self.shown):
            self._attach()
            return os.pread(self._opened, len(head), 0) == head

    def close(self) -> None:
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None

    @property
    def _opened(self) -> int:
        assert self._fd is not None, "open() comes before write()"
        return self._fd

    def _open(self, flags: int = 0) -> None:
        self.close()
        self._fd = os.open(self.path, os.O_RDWR | os.O_CLOEXEC | flags, 0o666)

    def _attach(self) -> os.stat_result:
        """Have the file open that is at the path now, which a sibling process may have rewritten."""
        found = os.stat(self.path)
        if self._fd is None or not os.path.samestat(found, os.fstat(self._fd)):
            self._open()
            found = os.fstat(self._opened)
        return found

    def _tail(self, at: int) -> int:
        start = max(0, at - TAIL)
        return zlib.crc32(os.pread(self._opened, at - start, start))


class Marks(Generic[M]):
    """What the positions of an output stand for.

    new: the mark of a file that does not exist yet.
    """

    def __init__(self, file: OutputFile, new: M) -> None:
        self._file = file
        self._new = new
        self._found: tuple[str | None, M] | None = None

    def open(self, position: str | None) -> None:
        """Check the file and cut it. Raises ConfigError where it is not usable."""
        with starting():
            self._found = (position, self._resumed(position))

    def at(self, position: str | None) -> M:
        """The file may have been moved before `open`; then its mark has another inode than the position."""
        if self._found is not None and self._found[0] == position:
            return self._found[1]
        return self._resumed(None) if position is None else self._read(position)

    def _resumed(self, position: str | None) -> M:
        return self._file.create(self._new) if position is None else self._file.resume(self._read(position))

    def _read(self, position: str) -> M:
        return msgspec.json.decode(position, type=type(self._new))


def position_of(mark: Mark) -> str:
    return msgspec.json.encode(mark).decode()


def name_of(path: str | os.PathLike[str]) -> str:
    """The stable identity of an output: its absolute path, links in its directory resolved."""
    directory, name = os.path.split(os.fspath(path))
    return os.path.join(os.path.realpath(directory), name)


def prepare(path: str, shown: str) -> None:
    """Make the directory of an output; raise SinkError where something else than a file is in its place."""
    with creating(shown):
        os.makedirs(os.path.dirname(path), exist_ok=True)
    with contextlib.suppress(FileNotFoundError):
        if not stat.S_ISREG(os.stat(path).st_mode):
            raise SinkError(f"{shown} is not a regular file: name a file that the items can be written to")


def foreign(shown: str) -> str:
    return f"{shown} exists and was not written by this job: choose another name, or remove it"


def foreign_spool(shown: str) -> str:
    return (
        f"{shown} exists and was not written by this job: it holds the items of a job that has not ended; "
        "choose another name for the output"
    )


def write_all(fd: int, data: bytes, at: int) -> None:
    view = memoryview(data)
    while view:
        written = os.pwrite(fd, view, at)
        view, at = view[written:], at + written


def temporary(path: str) -> str:
    """Where a rewritten file stands until it takes the place of `path`."""
    directory, name = os.path.split(path)
    return os.path.join(directory, f".{name}.rewriting")


def remove(path: str) -> None:
    """Remove a file, if it is there."""
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path)


def sync_directory(path: str) -> None:
    """Make a name that was created or replaced in the directory of `path` durable."""
    fd = os.open(os.path.dirname(path), os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


@contextlib.contextmanager
def told(shown: str) -> Iterator[None]:
    """Turn the system's errors into SinkErrors that a user can act on."""
    try:
        yield
    except FileNotFoundError as error:
        raise SinkError(
            f"{shown} is gone, with what was written to it: put it back, or start over with --fresh"
        ) from error
    except OSError as error:
        full = error.errno in (errno.ENOSPC, errno.EDQUOT)
        raise SinkError(
            f"{'disk full while writing' if full else 'cannot write'} {shown}: {error.strerror}; nothing is "
            f"lost, {'free space' if full else 'mend it'} and run the same command again"
        ) from error


@contextlib.contextmanager
def creating(shown: str) -> Iterator[None]:
    """Inside `told`: here a file that is not found is one that could not be made."""
    try:
        yield
    except FileNotFoundError as error:
        raise SinkError(
            f"{shown} cannot be created: no files can be made there; choose another place"
        ) from error
    except (FileExistsError, NotADirectoryError) as error:
        raise SinkError(
            f"{shown} cannot be created: {error.filename} is a file and no folder; choose another place"
        ) from error


@contextlib.contextmanager
def starting() -> Iterator[None]:
    """Before the first page, an output that cannot be used is the user's to mend: a ConfigError."""
    try:
        yield
    except SinkAwayError:
        raise
    except SinkError as error:
        raise ConfigError(str(error)) from error
