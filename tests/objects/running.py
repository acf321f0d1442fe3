"""The S3 server of the tests, in a process of its own."""

from __future__ import annotations

import gzip
import json
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote, urlencode

from tests.servers import free_port


class S3Server:
    """What it keeps is in `folder`, and outlives it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(exist_ok=True)
        self.port = free_port()
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> S3Server:
        script = Path(__file__).with_name("server.py")
        self.process = subprocess.Popen([sys.executable, str(script), str(self.port), str(self.folder)])
        deadline = time.monotonic() + 20
        while True:
            try:
                socket.create_connection(("127.0.0.1", self.port), 1).close()
                return self
            except OSError:
                assert time.monotonic() < deadline
                time.sleep(0.02)

    def __enter__(self) -> S3Server:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.kill()

    def kill(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None

    def url(self, name: str, bucket: str = "shop", key: str = "key", **options: str) -> str:
        given = {
            "endpoint": f"http://127.0.0.1:{self.port}",
            "region": "us-east-1",
            "access_key_id": key,
            "secret_access_key": "s3cret",
            **options,
        }
        return f"s3://{bucket}/{name}?{urlencode(given)}"

    def names(self) -> list[str]:
        return sorted(unquote(path.name) for path in self.folder.iterdir() if "~" not in path.name)

    def content(self, name: str) -> bytes:
        return (self.folder / quote(name, safe="")).read_bytes()

    def items(self, manifest: str) -> list[Any]:
        """The items in the objects that the manifest names."""
        listed = json.loads(self.content(manifest))
        folder = manifest.rpartition("/")[0]
        found = []
        for part in listed["parts"]:
            data = self.content(f"{folder}/{part['name']}" if folder else part["name"])
            assert len(data) == part["bytes"]
            text = gzip.decompress(data) if part["name"].endswith(".gz") else data
            lines = [json.loads(line) for line in text.splitlines()]
            assert len(lines) == part["items"]
            found += lines
        return found
