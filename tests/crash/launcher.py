"""Starts crawls by forking a process that has silkline imported already, which saves the start-up of each.

    python -m tests.crash.launcher FD      FD: one end of a socket pair; the other end is Launcher's

A crawl is `silkline run SPIDER ARGUMENTS` in a process group of its own: it can be killed as a whole.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import resource
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

SPIDER = Path(__file__).with_name("spider.py")
PATIENCE = 120.0
"""Seconds that a crawl may take to do what a test waits for."""


class Running:
    """One crawl. `log` is what it and its workers printed."""

    def __init__(self, pid: int, lifeline: int, log: Path, reap: Callable[[int], int]) -> None:
        self.pid = pid
        self.code: int | None = None
        self._lifeline = lifeline
        self._ended = select.poll()  # unlike select() it knows no highest file number
        self._ended.register(lifeline, select.POLLIN)
        self._log = log
        self._reap = reap

    @property
    def log(self) -> str:
        return self._log.read_text()

    def over(self, within: float = 0.0) -> bool:
        """Whether every process of the crawl has ended: each has a writing end of the lifeline."""
        if self.code is None and self._ended.poll(within * 1000.0):
            os.close(self._lifeline)
            self.code = self._reap(self.pid)
        return self.code is not None

    def ended(self) -> int:
        """The exit code, once every process has ended; negative where a signal ended the first one."""
        assert self.over(PATIENCE), f"the crawl does not end:\n{self.log}"
        assert self.code is not None
        return self.code

    def until(self, reached: Callable[[], bool], patience: float = PATIENCE) -> bool:
        """Wait for `reached`; False if the crawl ended or the patience did."""
        deadline = time.monotonic() + patience
        while not reached():
            if self.over(0.002) or time.monotonic() > deadline:
                return False
        return True

    def kill(self) -> bool:
        """SIGKILL to all its processes; False if there was none left to kill."""
        if self.over():
            return False
        os.killpg(self.pid, signal.SIGKILL)
        return self.ended() == -signal.SIGKILL

    def signal(self, number: int, pid: int | None = None) -> None:
        """To one of its processes, the first one by default."""
        os.kill(self.pid if pid is None else pid, number)

    def workers(self, store: Path) -> set[int]:
        """Those of its processes that have the store open, by their lock files: HOST-PID-NUMBER."""
        with contextlib.suppress(FileNotFoundError):
            names = os.listdir(f"{store}.workers")
            return {pid for name in names if self._owns(pid := int(name.rsplit("-", 2)[1]))}
        return set()

    def _owns(self, pid: int) -> bool:
        try:
            return os.getpgid(pid) == self.pid
        except ProcessLookupError:
            return False


class Launcher:
    """A context manager; crawls that are still running at its end are killed."""

    def __enter__(self) -> Launcher:
        self._started = 0
        self._socket, theirs = socket.socketpair()
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.crash.launcher", str(theirs.fileno())],
            pass_fds=[theirs.fileno()],
            cwd=Path(__file__).parents[2],
        )
        theirs.close()
        return self

    def __exit__(self, *exc: object) -> None:
        self._socket.close()
        self._process.wait(PATIENCE)

    def start(
        self,
        arguments: Sequence[str],
        *,
        folder: Path,
        env: Mapping[str, str] | None = None,
        max_bytes: int | None = None,
        spider: Path = SPIDER,
    ) -> Running:
        """`silkline run SPIDER ARGUMENTS` in a folder; max_bytes: of every file that it may write."""
        self._started += 1
        log = folder / f"{self._started}.log"
        order = {
            "spider": str(spider),
            "arguments": arguments,
            "folder": str(folder),
            "env": dict(env or {}),
            "max_bytes": max_bytes,
        }
        mine, theirs = os.pipe()
        printed = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND)
        try:
            socket.send_fds(self._socket, [json.dumps(order).encode()], [theirs, printed])
        finally:
            os.close(theirs)
            os.close(printed)
        return Running(json.loads(self._socket.recv(100)), mine, log, self._reap)

    def _reap(self, pid: int) -> int:
        self._socket.sendall(json.dumps({"reap": pid}).encode())
        return int(self._socket.recv(100))


def serve(control: socket.socket) -> None:
    """Fork a crawl for each order, or answer how one ended."""
    from silkline.cli.main import main

    with contextlib.redirect_stdout(io.StringIO()):
        main(["run", str(SPIDER), "--show-config"])  # imports what every crawl needs
    running: set[int] = set()
    while True:
        message, descriptors, *_ = socket.recv_fds(control, 65_536, 2)
        if not message:
            break
        order = json.loads(message)
        if "reap" in order:
            running.discard(order["reap"])
            control.sendall(b"%d" % os.waitstatus_to_exitcode(os.waitpid(order["reap"], 0)[1]))
            continue
        pid = os.fork()
        if not pid:
            control.close()
            crawl(order, *descriptors)
        with contextlib.suppress(PermissionError, ProcessLookupError):
            os.setpgid(pid, pid)  # here as well as there: whoever is first
        for descriptor in descriptors:
            os.close(descriptor)
        running.add(pid)
        control.sendall(b"%d" % pid)
    for pid in running:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(pid, signal.SIGKILL)


def crawl(order: dict[str, Any], lifeline: int, log: int) -> None:
    """Become the crawl; the lifeline just stays open until this process and its workers end."""
    os.setpgid(0, 0)
    os.dup2(log, 1)
    os.dup2(log, 2)
    os.chdir(order["folder"])
    os.environ.update(order["env"])
    if order["max_bytes"] is not None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (order["max_bytes"], resource.RLIM_INFINITY))
    from silkline.cli.main import main
    from silkline.sinks.faultpoint import reach

    reach.arm(order["env"])
    sys.exit(main(["run", order["spider"], *order["arguments"]]))


if __name__ == "__main__":
    serve(socket.socket(fileno=int(sys.argv[1])))
