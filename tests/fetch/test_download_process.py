"""Large files in processes of their own: how much memory they take, and what a kill leaves."""

from __future__ import annotations

import http.server
import json
import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from conftest import ENGINES

MB = 1_048_576
BLOCK = 65_536
HERE = Path(__file__).parent


class Numbers(http.server.BaseHTTPRequestHandler):
    """A file in which each block of 64 KB is its own number again and again; with ranges.

    slow: seconds between two blocks.
    """

    protocol_version = "HTTP/1.1"
    size = 0
    slow = 0.0
    ranges: list[str | None]

    def do_GET(self) -> None:
        size = BLOCK if self.path.endswith("?small") else self.size
        asked = self.headers["Range"]
        if size == self.size:
            self.ranges.append(asked)
        match = re.fullmatch(r"bytes=(\d+)-", asked or "")
        first = int(match[1]) if match and self.headers["If-Range"] == '"numbers"' else 0
        self.send_response(206 if first else 200)
        self.send_header("ETag", '"numbers"')
        self.send_header("Content-Length", str(size - first))
        if first:
            self.send_header("Content-Range", f"bytes {first}-{size - 1}/{size}")
        self.end_headers()
        try:
            for number in range(first // BLOCK, size // BLOCK):
                self.wfile.write(block(number)[first % BLOCK if number == first // BLOCK else 0 :])
                time.sleep(self.slow)
        except ConnectionError:
            self.close_connection = True

    def log_message(self, *args: object) -> None:
        pass


def block(number: int) -> bytes:
    return number.to_bytes(8, "big") * (BLOCK // 8)


def is_whole(path: Path, size: int) -> bool:
    with path.open("rb") as file:
        return path.stat().st_size == size and all(
            file.read(BLOCK) == block(number) for number in range(size // BLOCK)
        )


@pytest.fixture
def numbers() -> Iterator[tuple[type[Numbers], str]]:
    handler = type("Handler", (Numbers,), {"ranges": []})
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield handler, f"http://127.0.0.1:{server.server_port}/numbers"
    server.shutdown()
    server.server_close()


def start(engine: str, url: str, path: Path) -> subprocess.Popen[str]:
    command = [sys.executable, str(HERE / "downloader.py"), engine, url, str(path)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    "size", [128 * MB, pytest.param(2_048 * MB, marks=[pytest.mark.soak, pytest.mark.timeout(900)])]
)
def test_a_large_file_takes_no_memory(
    numbers: tuple[type[Numbers], str], tmp_path: Path, engine: str, size: int
) -> None:
    handler, url = numbers
    handler.size = size
    with start(engine, url, tmp_path / "f") as process:
        said = json.loads(process.communicate()[0])
    assert is_whole(tmp_path / "f", size)
    assert said["growth"] < 20 * MB, f"{said['growth'] / MB:.1f} MB"


@pytest.mark.parametrize("engine", ENGINES)
def test_a_killed_transfer_goes_on_where_it_was(
    numbers: tuple[type[Numbers], str], tmp_path: Path, engine: str
) -> None:
    handler, url = numbers
    handler.size, handler.slow = 16 * MB, 0.005
    for least in (2 * MB, 6 * MB):
        with start(engine, url, tmp_path / "f") as process:
            part = tmp_path / "f.part"
            while not (part.exists() and part.stat().st_size >= least):
                assert process.poll() is None
                time.sleep(0.01)
            process.kill()
    assert not (tmp_path / "f").exists()
    came = os.path.getsize(tmp_path / "f.part")
    handler.slow = 0.0
    with start(engine, url, tmp_path / "f") as process:
        process.communicate()
    assert is_whole(tmp_path / "f", 16 * MB)
    first, second, third = handler.ranges
    assert first is None
    assert second is not None
    assert third == f"bytes={came}-"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["f", "f.small"]
