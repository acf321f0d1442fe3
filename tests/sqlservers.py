"""PostgreSQL and MariaDB servers of the tests' own, which may be stopped, killed and started again."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path
from types import TracebackType
from typing import ClassVar

import psycopg
import pymysql
import pytest

from tests.servers import free_port

PATIENCE = 60.0
"""Seconds."""


class SqlServer:
    """A context manager: a fresh server on a port of its own. Skips where it is not installed."""

    account: ClassVar[str] = ""
    """Whose processes it has where the tests run as root, which it refuses."""

    def __init__(self) -> None:
        self.port = free_port()
        self.process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> SqlServer:
        self._folder = tempfile.TemporaryDirectory(prefix="silkline-sql-")
        self.data = Path(self._folder.name) / "data"
        self.data.mkdir()
        if self.user is not None:
            for path in (self._folder.name, self.data):
                shutil.chown(path, self.account)
        self.prepare()
        return self.start()

    def __exit__(self, kind: type[BaseException] | None, error: object, trace: TracebackType | None) -> None:
        self.stop(kill=True)
        self._folder.cleanup()

    @property
    def user(self) -> str | None:
        return self.account if os.getuid() == 0 else None

    @property
    def url(self) -> str:
        raise NotImplementedError

    def prepare(self) -> None:
        raise NotImplementedError

    def command(self) -> list[str]:
        raise NotImplementedError

    def ping(self) -> None:
        """Raises while the server does not answer."""
        raise NotImplementedError

    def do(self, *words: str) -> None:
        done = subprocess.run(words, user=self.user, capture_output=True, text=True, cwd=self.data)
        assert done.returncode == 0, done.stdout + done.stderr

    def start(self) -> SqlServer:
        log = (Path(self._folder.name) / "log").open("ab")
        self.process = subprocess.Popen(
            self.command(), user=self.user, stdout=log, stderr=log, cwd=self.data, start_new_session=True
        )
        deadline = time.monotonic() + PATIENCE
        while True:
            try:
                self.ping()
                return self
            except (psycopg.Error, pymysql.Error):
                assert self.process.poll() is None, Path(log.name).read_text()
                assert time.monotonic() < deadline, Path(log.name).read_text()
                time.sleep(0.02)

    def stop(self, *, kill: bool = False) -> None:
        """End it, with all its processes, and leave its data where it is."""
        process, self.process = self.process, None
        if process is None:
            return
        if kill:
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.send_signal(self.ending)
        process.wait(PATIENCE)

    ending: ClassVar[signal.Signals] = signal.SIGTERM


class PostgresqlServer(SqlServer):
    account = "postgres"
    ending = signal.SIGINT  # at once, whoever is connected

    @property
    def url(self) -> str:
        return f"postgresql://postgres@127.0.0.1:{self.port}/postgres"

    def prepare(self) -> None:
        found = sorted(Path("/usr/lib/postgresql").glob("*/bin/postgres"))
        binary = shutil.which("postgres") or (str(found[-1]) if found else None)
        if binary is None or not _has(self.account):
            pytest.skip("PostgreSQL's server is not installed")
        self.binary = Path(binary)
        self.do(str(self.binary.parent / "initdb"), "-D", ".", "-U", "postgres", "-A", "trust", "--no-sync")

    def command(self) -> list[str]:
        words = ["-D", ".", "-p", str(self.port), "-h", "127.0.0.1", "-k", ""]
        return [str(self.binary), *words, "-c", "fsync=off"]

    def ping(self) -> None:
        psycopg.connect(self.url, connect_timeout=5).close()


class MariadbServer(SqlServer):
    account = "mysql"

    @property
    def url(self) -> str:
        return f"mysql://root@127.0.0.1:{self.port}/test"

    def prepare(self) -> None:
        binary = shutil.which("mariadbd", path=f"{os.environ.get('PATH', '')}:/usr/sbin")
        install = shutil.which("mariadb-install-db")
        if binary is None or install is None or not _has(self.account):
            pytest.skip("MariaDB's server is not installed")
        self.binary = binary
        normal = "--auth-root-authentication-method=normal"
        self.do(install, "--no-defaults", f"--datadir={self.data}", normal, "--skip-name-resolve")

    def command(self) -> list[str]:
        here = [f"--datadir={self.data}", f"--socket={self.data}/socket", f"--port={self.port}"]
        options = ["--bind-address=127.0.0.1", "--skip-name-resolve", "--innodb-flush-log-at-trx-commit=1"]
        return [self.binary, "--no-defaults", *here, *options]

    def ping(self) -> None:
        pymysql.connect(host="127.0.0.1", port=self.port, user="root", database="test").close()


def _has(account: str) -> bool:
    if os.getuid():
        return True
    try:
        pwd.getpwnam(account)
    except KeyError:
        return False
    return True
