"""Servers that tests run in processes of their own, kill, stop and start again."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from tests.servers import free_port

ROOT = Path(__file__).parents[1]


class ServerProcess:
    """A server on a port of its own, with its data in a folder of its own.

    kind: the package in tests that has the module `server`, which is started with port and folder.
    login: user and password that it asks for.
    """

    kind = ""

    def __init__(self, login: Sequence[str] = ()) -> None:
        self.port = free_port()
        self._login = tuple(login)
        self._folder = tempfile.TemporaryDirectory(prefix=f"silkline-{self.kind}-")
        self.process: subprocess.Popen[bytes] | None = None

    def launch(self) -> subprocess.Popen[bytes]:
        words = [
            sys.executable,
            "-m",
            f"tests.{self.kind}.server",
            str(self.port),
            f"{self._folder.name}/data",
        ]
        self.process = subprocess.Popen([*words, *self._login], cwd=ROOT)
        return self.process

    def kill(self) -> None:
        self.stop(kill=True)

    def stop(self, *, kill: bool = False) -> None:
        self.signal(signal.SIGKILL if kill else signal.SIGTERM)
        assert self.process is not None
        self.process.wait(30)

    def signal(self, number: int) -> None:
        assert self.process is not None
        self.process.send_signal(number)
        if number == signal.SIGSTOP:  # its threads may answer until they have all stopped
            os.waitid(os.P_PID, self.process.pid, os.WSTOPPED | os.WNOWAIT)

    def remove(self) -> None:
        if self.process is not None and self.process.poll() is None:
            self.kill()
        self._folder.cleanup()
