"""Every way to a server that the URL of a frontier can name: workers go it, and so do commands; and what
servers do on which the ways lead elsewhere."""

from __future__ import annotations

import asyncio
import socket
import ssl
import subprocess
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
import redis

from silkline.errors import ConfigError, FrontierError
from silkline.frontier.redis_lookup import exists, outputs_in, remove
from silkline.outcome import Stats
from silkline.request import Request
from tests import servers
from tests.frontier.conftest import done, pages
from tests.frontier.redis_worker import Counting, opened
from tests.servers import RedisServer, ValkeyCluster, free_port

USER, PASSWORD = "ann", "s3:cr/e@t"
WHO = f"{USER}:{quote(PASSWORD, safe='')}"


@pytest.fixture(scope="module")
def server() -> Iterator[RedisServer]:
    """With a socket in its folder, and a user who may do everything but look at the configuration."""
    started = RedisServer(servers.valkey().binary)
    started.options = ("--unixsocket", str(started.folder / "socket"))
    started.start()
    started.client().execute_command(
        "ACL", "SETUSER", USER, "on", f">{PASSWORD}", "~*", "&*", "+@all", "-config"
    )
    yield started
    started.remove()


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """For localhost, signed by itself; and its key."""
    folder = tmp_path_factory.mktemp("tls")
    cert, key = folder / "cert.pem", folder / "key.pem"
    words = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -subj /CN=localhost"
    files = ["-addext", "subjectAltName=DNS:localhost", "-keyout", str(key), "-out", str(cert)]
    subprocess.run([*words.split(), *files], check=True, capture_output=True)
    return cert, key


@asynccontextmanager
async def tls_to(port: int, context: ssl.SSLContext) -> AsyncIterator[int]:
    """A port that speaks TLS and hands on what it hears: the server from PyPI cannot."""

    async def pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(65_536):
            writer.write(data)
        writer.close()

    async def hand_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        far_reader, far_writer = await asyncio.open_connection("127.0.0.1", port)
        await asyncio.gather(pump(reader, far_writer), pump(far_reader, writer), return_exceptions=True)

    front = await asyncio.start_server(hand_on, "127.0.0.1", 0, ssl=context)
    try:
        yield front.sockets[0].getsockname()[1]
    finally:
        front.close()


async def there_and_back(url: str, job: str) -> None:
    """A job from its beginning to its end."""
    async with opened(job, url) as frontier:
        await frontier.add(pages("a", 3))
        leases = (await frontier.lease(2)).leases
        await frontier.commit(done(*leases, links=pages("b", 1)), Counting())
        assert await frontier.stats() == Stats(waiting=2, done=2)
    assert await asyncio.to_thread(exists, url, job)
    assert await asyncio.to_thread(outputs_in, url, job) == {"out"}
    assert await asyncio.to_thread(remove, url, job) > 5
    assert not await asyncio.to_thread(exists, url, job)


async def test_a_server_with_user_and_password(server: RedisServer) -> None:
    await there_and_back(f"redis://{WHO}@127.0.0.1:{server.port}/3", "users")
    with pytest.raises(ConfigError, match="refuses the user or the password") as raised:
        await there_and_back(f"redis://{USER}:wrong-one@127.0.0.1:{server.port}/3", "users")
    assert "wrong-one" not in str(raised.value)


async def test_a_socket(server: RedisServer) -> None:
    await there_and_back(f"unix://{WHO}@{server.folder}/socket?db=2", "socket")
    assert server.client().dbsize() == 0, "database 2 is meant"


async def test_a_server_behind_tls_whose_certificate_is_checked(
    server: RedisServer, certificate: tuple[Path, Path]
) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*certificate)
    async with tls_to(server.port, context) as port:
        start = f"rediss://{WHO}@localhost:{port}/0"
        await there_and_back(f"{start}?ssl_ca_certs={certificate[0]}", "tls")
        await there_and_back(f"{start}?ssl_cert_reqs=none", "tls")
        with pytest.raises(
            ConfigError, match=r"is not trusted \(self.signed.*\); .*ssl_ca_certs=FILE"
        ) as raised:
            await there_and_back(start, "tls")
        assert quote(PASSWORD, safe="") not in str(raised.value)


async def until(is_so: Callable[[], object]) -> None:
    async with asyncio.timeout(60):
        while not _holds(is_so):  # noqa: ASYNC110
            await asyncio.sleep(0.05)


def _holds(is_so: Callable[[], object]) -> bool:
    try:
        return bool(is_so())
    except (redis.RedisError, OSError):
        return False


class Watched:
    """A main server, a spare one that copies it, and a sentinel, which knows them as "shop"."""

    def __init__(self) -> None:
        binary = servers.valkey().binary
        self.main = RedisServer(binary).start()
        self.spare = RedisServer(binary, "--replicaof", "127.0.0.1", str(self.main.port)).start()
        self.port = free_port()
        config = self.main.folder / "sentinel.conf"
        config.write_text(f"port {self.port}\nsentinel monitor shop 127.0.0.1 {self.main.port} 1\n")
        words = [binary, str(config), "--sentinel", "--dir", str(self.main.folder)]
        self._sentinel = subprocess.Popen(words, stdout=subprocess.DEVNULL)

    def ask(self, *words: str) -> Any:
        with redis.Redis(port=self.port, decode_responses=True) as client:
            return client.execute_command("SENTINEL", *words)

    def remove(self) -> None:
        self._sentinel.kill()
        self._sentinel.wait(30)
        self.spare.remove()
        self.main.remove()


@pytest.fixture
def watched() -> Iterator[Watched]:
    started = Watched()
    yield started
    started.remove()


async def test_a_server_that_sentinels_name_and_the_one_that_takes_its_place(watched: Watched) -> None:
    url = f"redis+sentinel://127.0.0.1:{watched.port}/shop/0"
    await there_and_back(url, "before")
    async with opened("shop", url) as frontier:
        await frontier.add(pages("a", 5))
        leases = (await frontier.lease(2)).leases
        watched.main.client().execute_command("WAIT", 1, 10_000)
        await until(lambda: watched.ask("FAILOVER", "shop"))
        await until(lambda: watched.spare.client().info("replication")["role"] == "master")
        await frontier.commit(done(*leases), Counting())
        assert await frontier.stats() == Stats(waiting=3, done=2)
    assert await asyncio.to_thread(remove, url, "shop") > 5


async def test_a_server_that_still_loads_its_data_is_waited_for() -> None:
    server = RedisServer(servers.valkey().binary).start()
    said: list[str] = []
    try:
        async with opened("loads", server.url) as frontier:
            await frontier.add([Request(f"http://h{number}.test/") for number in range(300)])
            leases = (await frontier.lease(5)).leases
            server.client().save()
            server.stop(kill=True)
            server.options = ("--key-load-delay", "3000", "--loading-process-events-interval-bytes", "1024")
            server.start(wait=False)
            await until(lambda: _loads(server.port))
            frontier.listen(lambda: None, said.append)
            await frontier.commit(done(*leases), Counting())
            assert await frontier.stats() == Stats(waiting=295, done=5)
        assert "loading" in said[0].lower()
        assert "is back" in said[1]
    finally:
        server.remove()


def _loads(port: int) -> bool:
    with socket.create_connection(("127.0.0.1", port), 10) as connection, suppress(OSError):
        connection.sendall(b"PING\r\n")
        return connection.recv(100).startswith(b"-LOADING")
    return False


async def test_a_slot_that_moves_to_another_node_takes_its_job_along() -> None:
    """Valkey moves slots at one instant; from then on the old node answers MOVED."""
    cluster = ValkeyCluster().start()
    try:
        async with opened("moves", cluster.url) as frontier:
            moved, added = asyncio.Event(), 0

            async def work() -> None:
                nonlocal added
                while not (moved.is_set() and (await frontier.stats()).done == added):
                    if not moved.is_set():
                        await frontier.add([Request(f"http://a/{added}"), Request(f"http://b/{added}")])
                        added += 2
                    leases = (await frontier.lease(8)).leases
                    await frontier.commit(done(*leases), Counting())

            working = asyncio.create_task(work())
            first, *others = (node.client() for node in cluster.nodes)
            slot = first.execute_command("CLUSTER", "KEYSLOT", "{moves}:meta")
            owner = next(node for node in (first, *others) if slot in _slots(node))
            target = next(node for node in (first, *others) if node is not owner)
            name = target.execute_command("CLUSTER", "MYID")
            await until(lambda: added > 20)
            owner.execute_command("CLUSTER", "MIGRATESLOTS", "SLOTSRANGE", slot, slot, "NODE", name)
            await until(lambda: slot in _slots(target))
            moved_at = added
            await until(lambda: added > moved_at + 20)
            moved.set()
            await asyncio.wait_for(working, 60)
            assert await frontier.stats() == Stats(done=added)
            assert target.exists("{moves}:meta")
    finally:
        cluster.remove()


async def test_a_slot_that_is_moved_key_by_key_stops_the_worker_and_says_why() -> None:
    cluster = ValkeyCluster().start()
    try:
        async with opened("moves", cluster.url) as frontier:
            await frontier.add(pages("a", 3))
            nodes = [node.client() for node in cluster.nodes]
            slot = nodes[0].execute_command("CLUSTER", "KEYSLOT", "{moves}:meta")
            nodes.sort(key=lambda node: slot in _slots(node))
            target, _, owner = nodes
            for node, word, other in ((target, "IMPORTING", owner), (owner, "MIGRATING", target)):
                name = other.execute_command("CLUSTER", "MYID")
                node.execute_command("CLUSTER", "SETSLOT", slot, word, name)
            with pytest.raises(FrontierError, match="stop the workers of a job before its slots are moved"):
                await frontier.lease(1)
    finally:
        cluster.remove()


def _slots(node: redis.Redis) -> set[int]:
    """Those that are its own, by what it says itself."""
    (myself,) = (line for line in node.execute_command("CLUSTER", "NODES").splitlines() if "myself" in line)
    found: set[int] = set()
    for part in myself.split()[8:]:
        first, _, last = part.partition("-")
        if first.isdigit():
            found |= set(range(int(first), int(last or first) + 1))
    return found
