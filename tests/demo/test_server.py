"""Serving the demo shop: addresses, a thread of its own, and a clean end."""

from __future__ import annotations

import socket
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from urllib.parse import urlsplit

import aiohttp
import pytest

from silkline.demo import DemoServer, Shop, serve_in_thread
from silkline.errors import ConfigError


def status_of(url: str) -> int:
    with urllib.request.urlopen(url, timeout=10) as response:
        return response.status


def demo_threads() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "silkline-demo"]


async def test_it_serves_at_its_url_until_the_block_is_left() -> None:
    async with aiohttp.ClientSession() as client:
        async with DemoServer() as server, client.get(server.url) as response:
            assert response.status == 200
        with pytest.raises(aiohttp.ClientError):
            await client.get(server.url)


def test_a_thread_serves_beside_other_code_and_ends_with_its_block() -> None:
    shop = Shop(12)
    with serve_in_thread(shop) as url:
        assert status_of(url) == 200
        assert demo_threads()
    assert not demo_threads()
    assert shop.hits == {"/": 1}
    with pytest.raises(urllib.error.URLError):
        status_of(url)


def test_a_request_that_hangs_does_not_hold_up_the_end() -> None:
    with serve_in_thread() as url, socket.socket() as hanging:
        parts = urlsplit(url)
        hanging.connect((parts.hostname, parts.port))
        hanging.sendall(b"GET /hang HTTP/1.1\r\nHost: shop\r\n\r\n")
        assert status_of(url) == 200
    with pytest.raises(urllib.error.URLError):
        status_of(url)


@pytest.fixture
def taken_port() -> Iterator[int]:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        yield taken.getsockname()[1]


async def test_a_port_in_use_is_one_clear_line(taken_port: int) -> None:
    with pytest.raises(ConfigError, match=f"^port {taken_port} on 127.0.0.1 is in use; choose another"):
        await DemoServer(Shop(1), port=taken_port).__aenter__()


def test_a_thread_passes_on_why_it_cannot_serve(taken_port: int) -> None:
    with pytest.raises(ConfigError, match=f"^port {taken_port} on 127.0.0.1 is in use"):
        serve_in_thread(Shop(1), port=taken_port).__enter__()
    assert not demo_threads()


@pytest.mark.parametrize(
    ("host", "port", "reason"),
    [
        ("192.0.2.1", 0, "^the demo shop cannot listen on 192.0.2.1, port 0: .+$"),
        ("127.0.0.1", 70_000, "^70000 is not a port: .+$"),
    ],
)
async def test_an_impossible_address_is_one_clear_line(host: str, port: int, reason: str) -> None:
    with pytest.raises(ConfigError, match=reason):
        await DemoServer(Shop(1), host=host, port=port).__aenter__()
