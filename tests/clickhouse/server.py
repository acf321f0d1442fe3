"""ClickHouse's HTTP interface in front of its engine in a library, chdb.

    python -m tests.clickhouse.server PORT FOLDER [USER PASSWORD]

What is in the folder outlives a SIGKILL, as with any ClickHouse server. There is a database `silkline_test`,
since the default one of chdb looks for files, too. `POST /fail?code=241&word=INSERT&times=1` lets the next
queries with that word fail with that error.
"""

from __future__ import annotations

import base64
import gzip
import io
import re
import sys
import tempfile
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import chdb
import lz4.frame

TRANSPORT = frozenset(
    {
        *("database", "query", "query_id", "quota_key", "role", "client_protocol_version"),
        *("session_id", "session_timeout", "session_check", "wait_end_of_query", "buffer_size"),
        *("enable_http_compression", "compress", "decompress"),
        *("send_progress_in_http_headers", "http_headers_progress_interval_ms"),
    }
)
"""Parameters of a request that are no settings of the engine."""

INSERT = re.compile(rb"INSERT INTO .*? FORMAT Native\n", re.S)
FORMAT = re.compile(r"\bFORMAT\s+(\w+)\s*$", re.I)
CODE = re.compile(r"Code: (\d+)\.")

DECODERS: dict[str, Callable[[bytes], bytes]] = {
    "lz4": lambda data: lz4.frame.open(io.BytesIO(data)).read(),
    "gzip": gzip.decompress,
    "": bytes,
}


class Failure(Exception):
    def __init__(self, code: int, text: str) -> None:
        super().__init__(f"Code: {code}. DB::Exception: {text}")


class Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64

    def __init__(self, port: int, folder: str, user: str = "", password: str = "") -> None:
        super().__init__(("127.0.0.1", port), Client)
        self.folder = folder
        login = base64.b64encode(f"{user}:{password}".encode()).decode()
        self.login = f"Basic {login}" if user else ""
        self.failures: list[tuple[int, str]] = []
        self.lock = threading.Lock()
        self.engine = chdb.connect(folder)
        self.engine.query("CREATE DATABASE IF NOT EXISTS silkline_test", "Null")


class Client(BaseHTTPRequestHandler):
    """One connection, with a handle of the engine of its own: databases and settings are per handle."""

    server: Server
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def setup(self) -> None:
        super().setup()
        self.engine = chdb.connect(self.server.folder)
        self.engine.query("SET max_threads = 1, max_insert_threads = 1", "Null")  # others test, too
        self.settings: dict[str, str] = {}

    def finish(self) -> None:
        super().finish()
        self.engine.close()

    def do_GET(self) -> None:
        self.do_POST()

    def do_POST(self) -> None:
        address = urlsplit(self.path)
        parameters = dict(parse_qsl(address.query, keep_blank_values=True))
        body = DECODERS[self.headers.get("Content-Encoding", "")](self.body())
        if address.path == "/ping":
            self.answer(200, b"Ok.\n")
        elif address.path == "/fail":
            failure = (int(parameters["code"]), parameters["word"])
            self.server.failures = [failure] * int(parameters.get("times", "1"))
            self.answer(200, b"")
        else:
            try:
                self.answer(200, self.run(body, parameters))
            except (RuntimeError, Failure) as error:
                text = f"{error} (version 26.9.2.1 (official build))\n"
                code = CODE.search(text)
                headers = {"X-ClickHouse-Exception-Code": code[1] if code else "1"}
                self.answer(403 if code and code[1] == "516" else 500, text.encode(), headers)

    def run(self, body: bytes, parameters: dict[str, str]) -> bytes:
        if self.server.login and self.headers.get("Authorization") != self.server.login:
            raise Failure(516, "ann: Authentication failed: password is incorrect. (AUTHENTICATION_FAILED)")
        text = parameters.get("query", "").encode() + body
        with self.server.lock:
            if self.server.failures and self.server.failures[0][1].encode() in text:
                code, word = self.server.failures.pop(0)
                raise Failure(code, f"{word} fails as it was told to. (TOLD)")
        self.prepare(parameters)
        bound = {name[6:]: value for name, value in parameters.items() if name.startswith("param_")}
        insert = INSERT.match(text)
        if insert is None:
            sql = text.decode()
            form = FORMAT.search(sql)
            return bytes(self.engine.query(sql, form[1] if form else "TabSeparated", params=bound).bytes())
        with tempfile.NamedTemporaryFile(suffix=".native") as file:
            file.write(text[insert.end() :])
            file.flush()
            head = insert[0].decode().rpartition(" FORMAT Native")[0]
            self.engine.query(f"{head} FROM INFILE '{file.name}' FORMAT Native", "TabSeparated")
        return b""

    def prepare(self, parameters: dict[str, str]) -> None:
        if "database" in parameters:
            self.engine.query(f"USE {quoted(parameters['database'], '`')}", "Null")
        settings = {
            name: value
            for name, value in parameters.items()
            if name not in TRANSPORT and not name.startswith("param_")
        }
        for name, value in settings.items():
            if self.settings.get(name) != value:
                self.engine.query(f"SET {name} = {quoted(value, chr(39))}", "Null")
                self.settings[name] = value

    def body(self) -> bytes:
        if self.headers.get("Transfer-Encoding") != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length") or 0))
        found = bytearray()
        while True:
            size = int(self.rfile.readline(), 16)
            piece = self.rfile.read(size)
            self.rfile.readline()
            if len(piece) < size:
                raise ConnectionError("the client has gone in the middle of a request")
            if not size:
                return bytes(found)
            found += piece

    def answer(self, status: int, body: bytes, headers: dict[str, str] | None = None) -> None:
        self.send_response(status)
        for name, value in {**(headers or {}), "Content-Length": str(len(body))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def handle(self) -> None:
        try:
            super().handle()
        except (ConnectionError, ValueError):
            self.close_connection = True

    def log_message(self, *arguments: Any) -> None:
        """Nothing."""


def quoted(text: str, mark: str) -> str:
    return mark + text.replace("\\", "\\\\").replace(mark, f"\\{mark}") + mark


if __name__ == "__main__":
    with Server(int(sys.argv[1]), *sys.argv[2:]) as server:
        server.serve_forever(poll_interval=60)
