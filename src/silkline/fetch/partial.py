"""The part of a file that has come so far, and what has to be known to ask for the rest."""

from __future__ import annotations

import asyncio
import errno
import fcntl
import os
from collections.abc import Iterable
from contextlib import suppress
from email.utils import parsedate_to_datetime
from functools import lru_cache
from pathlib import Path

import msgspec

from silkline.errors import SaveError
from silkline.files import beside, publish, saving

SYNC_EVERY = 16 * 1_048_576
"""Bytes after which the disk is told to keep what has come."""

_SURE_AGE = 60
"""Seconds by which Last-Modified must be older than the answer to identify one state of the resource
(RFC 9110, section 8.8.2.2)."""


class Origin(msgspec.Struct, frozen=True):
    """What the bytes of a part are from.

    url: where they came from. validator: identifies the state of the resource, for If-Range; "" where nothing
    does. total: bytes of the whole, None where it is not known.
    synced: bytes that survive a power cut; all of the part survives the death of a process.
    boot: of the machine, when this was written.
    """

    url: str = ""
    validator: str = ""
    total: int | None = None
    synced: int = 0
    boot: str = ""


class Part:
    """The file PATH.part, open and locked, with PATH.part.json beside it.

    Where another fetch has that file locked, it is one of its own, that nobody resumes.
    """

    def __init__(self, path: Path) -> None:
        """Raises SaveError."""
        self.path = path
        self.origin = Origin()
        self._syncing: asyncio.Future[None] | None = None
        self._said = 0
        self._over = False
        with saving(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            if path.is_dir():
                raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
            self._name = path.with_name(f"{path.name}.part")
            handle = _locked(self._name)
            self.shared = handle is not None
            if handle is None:
                self._name = beside(path)
                handle = _open(self._name)
            self._handle = handle
            self._notes = self._name.with_name(f"{self._name.name}.json")
            self.size = os.fstat(handle).st_size
            if self.size:
                self._recall()

    def begin(self, origin: Origin) -> None:
        """What comes next are the first bytes of a body. Raises SaveError."""
        with saving(self.path):
            os.ftruncate(self._handle, 0)
            self.size = self._said = 0
            self._note(origin)

    def write(self, data: bytes) -> None:
        """Raises SaveError."""
        view = memoryview(data)
        with saving(self.path):
            while view:
                written = os.write(self._handle, view)
                self.size += written
                view = view[written:]
            if self.size - self._said >= SYNC_EVERY and (self._syncing is None or self._syncing.done()):
                self._sync()

    async def publish(self) -> None:
        """It is complete: make it durable and give it its name. Raises SaveError."""
        with saving(self.path):
            if self._syncing is not None:
                await asyncio.shield(self._syncing)
            # The notes go first: a complete file without them is fetched anew, notes of another are a lie.
            self._notes.unlink(missing_ok=True)
            try:
                await asyncio.to_thread(publish, self._name, self.path)
            except OSError:
                self.discard()
                raise
            self._over = True

    def discard(self) -> None:
        """Nothing of it is worth keeping."""
        with suppress(OSError):
            self._notes.unlink(missing_ok=True)
            self._name.unlink(missing_ok=True)

    def close(self, failure: BaseException | None = None) -> None:
        """Give up the lock. What cannot be resumed is removed, and what came when the disk was full."""
        if not self._over:
            full = isinstance(failure, SaveError) and _errno(failure) in (errno.ENOSPC, errno.EDQUOT)
            if full or not self.size or not self.origin.validator or not self.shared:
                self.discard()
        self._over = True
        os.close(self._handle)

    def _recall(self) -> None:
        try:
            origin = msgspec.json.decode(self._notes.read_bytes(), type=Origin)
        except (OSError, msgspec.MsgspecError):
            return
        if not origin.boot or origin.boot != boot():
            self.size = min(self.size, origin.synced)
            os.ftruncate(self._handle, self.size)
        self.origin = origin
        self._said = self.size

    def _note(self, origin: Origin) -> None:
        self.origin = origin
        if not origin.validator or not self.shared:
            self._notes.unlink(missing_ok=True)
            return
        fresh = self._notes.with_name(f"{self._notes.name}.new")
        fresh.write_bytes(msgspec.json.encode(origin))
        os.replace(fresh, self._notes)

    def _sync(self) -> None:
        self._said = self.size
        origin = msgspec.structs.replace(self.origin, synced=self.size, boot=boot())
        handle = os.dup(self._handle)

        def sync() -> None:
            try:
                os.fsync(handle)
            finally:
                os.close(handle)

        def synced(job: asyncio.Future[None]) -> None:
            current = not self._over and self.origin.validator == origin.validator
            if not job.cancelled() and job.exception() is None and current:
                with suppress(OSError):
                    self._note(origin)

        self._syncing = asyncio.get_running_loop().run_in_executor(None, sync)
        self._syncing.add_done_callback(synced)


def validator_of(headers: Iterable[tuple[bytes, bytes]]) -> str:
    """What If-Range may carry for this response (RFC 9110, section 13.1.5): a strong ETag, or a Last-Modified
    that is old enough where there is no ETag; "" for neither."""
    fields: dict[bytes, str] = {}
    for name, value in headers:
        fields.setdefault(name.lower(), value.decode("latin-1").strip())
    if (tag := fields.get(b"etag")) is not None:
        strong = len(tag) > 1 and tag.startswith('"') and tag.endswith('"')
        return tag if strong else ""
    modified = fields.get(b"last-modified", "")
    try:
        age = parsedate_to_datetime(fields.get(b"date", "")) - parsedate_to_datetime(modified)
    except (TypeError, ValueError):
        return ""
    return modified if age.total_seconds() >= _SURE_AGE else ""


@lru_cache(maxsize=1)
def boot() -> str:
    """Identifies the time since the machine was started; "" where the system does not tell."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""


def _open(name: Path) -> int:
    return os.open(name, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW, 0o666)


def _locked(name: Path) -> int | None:
    """The file, open and locked; None where another fetch has it."""
    while True:
        handle = _open(name)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # Between opening and locking, the one that had it may have finished and renamed it.
            if _inode(name) == os.fstat(handle).st_ino:
                return handle
        except BlockingIOError:
            os.close(handle)
            return None
        except BaseException:
            os.close(handle)
            raise
        os.close(handle)


def _inode(name: Path) -> int | None:
    try:
        return os.stat(name, follow_symlinks=False).st_ino
    except FileNotFoundError:
        return None


def _errno(error: BaseException) -> int | None:
    return getattr(error.__cause__, "errno", None)
