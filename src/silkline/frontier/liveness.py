"""Which workers that share a frontier file are alive: each holds a lock on a file of its own.

The kernel drops the lock when the process ends, however it ends, so a killed worker is known at once
and its leases need not run out first.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import time
from collections.abc import Iterator
from pathlib import Path

from silkline.errors import ConfigError, JobError


class WorkerLock:
    """This worker's lock in `directory`, which all workers of one frontier file share."""

    def __init__(self, directory: Path, worker: str) -> None:
        self._directory = directory
        self._worker = worker
        self._descriptor: int | None = None

    @staticmethod
    def directory_of(database: Path) -> Path:
        return database.with_name(database.name + ".workers")

    def take(self) -> None:
        """Raises ConfigError if the directory cannot be written."""
        path = self._directory / self._worker
        try:
            while self._descriptor is None:
                self._directory.mkdir(exist_ok=True)
                descriptor = _open(path, os.O_CREAT)
                # Before the lock is ours, another worker may take the new file for a dead worker's and
                # remove it: a lock counts only on the file that still has the name.
                if descriptor is not None and _lock(descriptor) and _is_at(descriptor, path):
                    self._descriptor = descriptor
                else:
                    _close(descriptor)
                    time.sleep(0.005)
        except OSError as error:
            raise ConfigError(
                f"cannot write {path}: {error.strerror}; check the permissions of the directory"
            ) from error

    def drop(self) -> None:
        if self._descriptor is not None:
            _remove(self._directory / self._worker)
            _close(self._descriptor)
            self._descriptor = None
            with contextlib.suppress(OSError):  # others are still in it
                self._directory.rmdir()

    def has_company(self) -> bool:
        """Whether other workers share the file, or have left traces of themselves."""
        return len(_names(self._directory)) > 1

    @contextlib.contextmanager
    def roll_call(self) -> Iterator[list[str]]:
        """The workers that live, this one first.

        The files of the dead are removed at the end, if nothing is raised; their locks are held until
        then, so that no file goes away that its new owner has just locked.
        """
        living = [self._worker]
        dead: dict[str, int] = {}
        try:
            for name in _names(self._directory):
                descriptor = None if name == self._worker else _open(self._directory / name)
                if descriptor is None:
                    continue
                if _lock(descriptor):
                    dead[name] = descriptor
                else:
                    _close(descriptor)
                    living.append(name)
            yield living
            for name in dead:
                _remove(self._directory / name)
        finally:
            for descriptor in dead.values():
                _close(descriptor)


def remove_locks(database: Path) -> None:
    """Remove the lock directory of a frontier file; raises JobError while a worker lives."""
    directory = WorkerLock.directory_of(database)
    with WorkerLock(directory, "").roll_call() as living:
        if len(living) > 1:
            raise JobError(f"{database} is in use by {', '.join(sorted(living[1:]))}: end that crawl first")
    with contextlib.suppress(FileNotFoundError):
        directory.rmdir()


def _names(directory: Path) -> list[str]:
    try:
        return os.listdir(directory)
    except FileNotFoundError:
        return []


def _lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _open(path: Path, flags: int = 0) -> int | None:
    try:
        return os.open(path, os.O_RDWR | os.O_CLOEXEC | flags, 0o644)
    except FileNotFoundError:
        return None


def _close(descriptor: int | None) -> None:
    if descriptor is not None:
        os.close(descriptor)


def _is_at(descriptor: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), os.stat(path))
    except FileNotFoundError:
        return False


def _remove(path: Path) -> None:
    with contextlib.suppress(FileNotFoundError):
        path.unlink()
