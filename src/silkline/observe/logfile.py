"""A rotating log file that several processes write to."""

from __future__ import annotations

import contextlib
import fcntl
import logging
import os
import stat
import sys
from logging.handlers import RotatingFileHandler
from typing import IO


class SharedRotatingFileHandler(RotatingFileHandler):
    """The standard library's handler, for one file in many processes.

    Each line is one write in append mode, so that lines never mix. Before each one the handler looks
    whether the path still names the file it has open, and follows if another process has rotated it.
    A rotation is done under a lock on the file itself: of the processes that find it full at the same
    time one renames it, the others then see that it is no longer the file they meant. A line written
    between such a look and the rename ends up in the renamed file; none is lost.

    A line that cannot be written is dropped, which is said once on stderr.

    max_bytes: a file of that size or more is rotated. backups: older files kept as path.1, path.2 ...
    Raises OSError where the file cannot be opened.
    """

    def __init__(self, path: str, *, max_bytes: int, backups: int) -> None:
        super().__init__(
            path, maxBytes=max_bytes, backupCount=backups, encoding="utf-8", errors="backslashreplace"
        )
        self._complained = False

    def shouldRollover(self, record: logging.LogRecord) -> bool:  # noqa: N802
        status = os.fstat(self._follow().fileno())
        return stat.S_ISREG(status.st_mode) and status.st_size >= self.maxBytes

    def doRollover(self) -> None:  # noqa: N802
        with open(self.baseFilename, "ab") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            if self.stream and not self._was_replaced(self.stream):
                with contextlib.suppress(OSError):  # a folder that takes no new names: the file grows on
                    super().doRollover()
        self._follow()

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802
        """Logging never stops what it tells about."""
        if self._complained or sys.stderr is None:
            return
        self._complained = True
        with contextlib.suppress(OSError, ValueError):
            error = sys.exc_info()[1]
            print(f"log lines are lost, {self.baseFilename} cannot be written: {error}", file=sys.stderr)

    def close(self) -> None:
        with contextlib.suppress(OSError):
            super().close()

    def _follow(self) -> IO[str]:
        """The open file, which after this is the one that the path names."""
        if self.stream is None or self._was_replaced(self.stream):
            stream, self.stream = self.stream, None
            if stream:
                with contextlib.suppress(OSError):
                    stream.close()
            self.stream = self._open()
        return self.stream

    def _was_replaced(self, stream: IO[str]) -> bool:
        try:
            named = os.stat(self.baseFilename)
        except FileNotFoundError:
            return True
        return not os.path.samestat(named, os.fstat(stream.fileno()))
