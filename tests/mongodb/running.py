"""MongoDB servers for tests: small ones of our own in a process each, or the one that SILKLINE_TEST_MONGODB
names, as mongodb://host:port."""

from __future__ import annotations

import atexit
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

from pymongo import MongoClient
from pymongo.errors import PyMongoError

from tests.servers import free_port

REAL = os.environ.get("SILKLINE_TEST_MONGODB", "").rstrip("/")
"""Read before the tests' environment is cleared. Its database `silkline_test` is used."""
DATABASE = "silkline_test"
ROOT = Path(__file__).parents[2]


class MongoServer:
    """A process with its data in a folder of its own. login: user and password that it asks for."""

    def __init__(self, login: Sequence[str] = ()) -> None:
        self.port = free_port()
        self._login = tuple(login)
        self._folder = tempfile.TemporaryDirectory(prefix="silkline-mongodb-")
        self.process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"mongodb://127.0.0.1:{self.port}"

    def start(self) -> MongoServer:
        path = f"{self._folder.name}/data"
        words = [sys.executable, "-m", "tests.mongodb.server", str(self.port), path, *self._login]
        self.process = subprocess.Popen(words, cwd=ROOT)
        deadline = time.monotonic() + 30
        with MongoClient[dict[str, Any]](self.url, serverSelectionTimeoutMS=100) as client:
            while True:
                try:
                    client.admin.command("ping")
                    return self
                except PyMongoError:
                    assert self.process.poll() is None, "the server has ended"
                    assert time.monotonic() < deadline, "the server does not start"

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


@cache
def shared() -> MongoServer:
    server = MongoServer().start()
    atexit.register(server.remove)
    return server


def any_url() -> str:
    """Of the real server, if there is one, or of one that all tests share."""
    return REAL or shared().url


def documents_in(url: str, collection: str) -> dict[str, dict[str, Any]]:
    """By identity; read with the driver alone."""
    with MongoClient[dict[str, Any]](url, uuidRepresentation="standard", tz_aware=True) as client:
        return {each["_id"]: each for each in client[DATABASE][collection].find({})}


def drop(url: str, collection: str) -> None:
    with MongoClient[dict[str, Any]](url) as client:
        client[DATABASE].drop_collection(collection)
