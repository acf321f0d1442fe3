"""A real nginx for tests, with a log of what it sent: status, bytes of the body, path."""

from __future__ import annotations

import os
import pwd
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest


class Sent(NamedTuple):
    status: int
    size: int
    path: str


class Nginx(NamedTuple):
    url: str
    log: Path

    def sent(self) -> list[Sent]:
        lines = (line.split(" ", 2) for line in self.log.read_text().splitlines())
        return [Sent(int(status), int(size), path) for status, size, path in lines]

    def pages(self) -> list[Sent]:
        """Without robots.txt."""
        return [sent for sent in self.sent() if sent.path != "/robots.txt"]

    def forget(self) -> None:
        os.truncate(self.log, 0)


@contextmanager
def nginx(root: Path, scratch: Path, directives: str = "") -> Iterator[Nginx]:
    """Serve `root` on a free port of 127.0.0.1. directives: more of the server block."""
    program = shutil.which("nginx", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin")
    if program is None:
        pytest.skip("nginx is not installed")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    config, errors, log = scratch / "nginx.conf", scratch / "errors.log", scratch / "access.log"
    log.touch()
    user = f"user {pwd.getpwuid(0).pw_name};" if os.geteuid() == 0 else ""
    kinds = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    temporary = " ".join(f'{kind}_temp_path "{scratch}/{kind}";' for kind in kinds)
    config.write_text(f"""
daemon off; worker_processes 1; {user} pid "{scratch}/nginx.pid"; error_log "{errors}";
events {{ worker_connections 1024; }}
http {{
  {temporary}
  log_format sent "$status $body_bytes_sent $request_uri"; access_log "{log}" sent;
  types {{ text/html html; }} default_type text/html; charset utf-8;
  server {{ listen 127.0.0.1:{port}; root "{root}"; {directives} }}
}}
""")
    server = subprocess.Popen([program, "-e", str(errors), "-c", str(config)])
    try:
        deadline = time.monotonic() + 30
        while True:
            try:
                socket.create_connection(("127.0.0.1", port), timeout=1).close()
                break
            except OSError:
                assert server.poll() is None, errors.read_text()
                assert time.monotonic() < deadline, errors.read_text()
                time.sleep(0.02)
        yield Nginx(f"http://127.0.0.1:{port}", log)
    finally:
        server.terminate()
        server.wait()
