"""Requests through proxies: the same for every engine."""

from __future__ import annotations

import socket
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest
from proxy_servers import HttpProxy, Proxy, SocksProxy
from raw_server import Serve, answer_of
from site_of_pages import Engine

from silkline.errors import ConnectError, FetchTimeout, ProxyError, TlsError
from silkline.request import Request

Start = Callable[..., Awaitable[Any]]
OK = answer_of(200, {}, b"through")
KINDS = [HttpProxy, SocksProxy]
SPECIAL = ("us;er", "p@ss/:?#%ü")
ENCODED = "us%3Ber:p%40ss%2F%3A%3F%23%25%C3%BC"


@pytest.fixture
async def start() -> AsyncIterator[Start]:
    """`await start(HttpProxy, ...)`, with `tls=context` over TLS."""
    proxies: list[Proxy] = []

    async def begin(
        kind: type[Proxy], *args: Any, tls: ssl.SSLContext | None = None, **options: Any
    ) -> Proxy:
        proxies.append(await kind(*args, **options).start(tls))
        return proxies[-1]

    yield begin
    for proxy in proxies:
        await proxy.stop()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("tls", [False, True], ids=["http", "https"])
async def test_pages_come_through_the_proxy(
    serve: Serve, engine: Engine, start: Start, tls_context: ssl.SSLContext, kind: type[Proxy], tls: bool
) -> None:
    server = await serve({"/a%2fb?x=%c3": OK}, tls=tls_context if tls else None)
    proxy = await start(kind)
    asked = []
    fetcher = engine(verify=False, guard=lambda host, ip, port: asked.append(port))
    for _ in range(2):
        response = await fetcher.fetch(Request(server.url("/a%2fb?x=%c3"), proxy=proxy.url()))
        assert (response.status, response.body) == (200, b"through")
        assert response.headers == ((b"Content-Length", b"7"),)
        assert response.peer == f"127.0.0.1:{proxy.port}"
    assert set(asked) == {server.port}, "of a proxy the address is not asked about"
    assert set(proxy.asked) == {f"127.0.0.1:{server.port}"}
    assert server.targets == ["/a%2fb?x=%c3"] * 2


async def test_an_http_proxy_gets_the_whole_url_as_written(
    serve: Serve, engine: Engine, start: Start
) -> None:
    server = await serve({"/%7efoo?": OK})
    proxy = await start(HttpProxy)
    url = f"http://127.0.0.1:{server.port}/%7efoo?"
    assert (await engine().fetch(Request(url, proxy=proxy.url()))).body == b"through"
    assert proxy.heads[0].startswith(f"GET {url} HTTP/1.1\r\n")


@pytest.mark.parametrize("kind", KINDS)
async def test_credentials_with_special_characters_are_understood(
    serve: Serve, engine: Engine, start: Start, kind: type[Proxy]
) -> None:
    server = await serve({"/": OK})
    proxy = await start(kind, SPECIAL)
    fetcher = engine()
    assert (await fetcher.fetch(Request(server.url(), proxy=proxy.url(ENCODED)))).body == b"through"
    assert server.header("proxy-authorization") is None or kind is HttpProxy
    for wrong in ("", "user:wrong"):
        with pytest.raises(ProxyError) as caught:
            await fetcher.fetch(Request(server.url(), proxy=proxy.url(wrong)))
        assert "wrong" not in str(caught.value)
    assert len(server.heads) == 1


async def test_a_tunnel_needs_its_credentials_too(
    serve: Serve, engine: Engine, start: Start, tls_context: ssl.SSLContext
) -> None:
    server = await serve({"/": OK}, tls=tls_context)
    proxy = await start(HttpProxy, SPECIAL)
    fetcher = engine(verify=False)
    assert (await fetcher.fetch(Request(server.url(), proxy=proxy.url(ENCODED)))).body == b"through"
    assert server.header("proxy-authorization") is None
    with pytest.raises(ProxyError, match="407"):
        await fetcher.fetch(Request(server.url(), proxy=proxy.url()))


@pytest.mark.parametrize("tls", [False, True], ids=["http", "https"])
async def test_the_way_to_the_proxy_may_be_tls(
    serve: Serve, engine: Engine, start: Start, tls_context: ssl.SSLContext, tls: bool
) -> None:
    server = await serve({"/": OK}, tls=tls_context if tls else None)
    proxy = await start(HttpProxy, tls=tls_context)
    assert (await engine(verify=False).fetch(Request(server.url(), proxy=proxy.url()))).body == b"through"
    with pytest.raises(ProxyError):
        await engine().fetch(Request(server.url(), proxy=proxy.url()))


async def test_socks5_resolves_names_here_and_socks5h_at_the_proxy(
    serve: Serve, engine: Engine, start: Start
) -> None:
    server = await serve({"/": OK})
    proxy = await start(SocksProxy)
    url = f"http://localhost:{server.port}/"
    for scheme in ("socks5", "socks5h"):
        await engine().fetch(Request(url, proxy=proxy.url(scheme=scheme)))
    assert proxy.asked == [f"127.0.0.1:{server.port}", f"localhost:{server.port}"]


@pytest.mark.parametrize("scheme", ["http", "https", "socks5h"])
@pytest.mark.parametrize("target", ["http://h.test/", "https://h.test/"])
async def test_a_proxy_that_is_not_there_is_a_proxy_error(engine: Engine, scheme: str, target: str) -> None:
    with pytest.raises(ProxyError) as caught:
        await engine().fetch(Request(target, proxy=f"{scheme}://127.0.0.1:{free_port()}"))
    assert caught.value.__cause__ is not None
    with pytest.raises(ProxyError):
        await engine().fetch(Request(target, proxy=f"{scheme}://no-such-host.invalid:3128"))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("target", ["http://h.test/", "https://h.test/"])
async def test_a_proxy_that_hangs_up_or_says_nothing_is_a_proxy_error(
    engine: Engine, start: Start, kind: type[Proxy], target: str
) -> None:
    fetcher = engine(connect_timeout=0.5, read_timeout=0.5)
    with pytest.raises(ProxyError):
        await fetcher.fetch(Request(target, proxy=(await start(kind, hang_up=True)).url()))
    # Of a plain request it is not known who does not answer.
    plain = kind is HttpProxy and target.startswith("http:")
    with pytest.raises(FetchTimeout if plain else ProxyError):
        await fetcher.fetch(Request(target, proxy=(await start(kind, silent=True)).url()))


@pytest.mark.parametrize("status", [403, 407, 502])
async def test_a_refused_tunnel_is_a_proxy_error(engine: Engine, start: Start, status: int) -> None:
    proxy = await start(HttpProxy, reply=status)
    with pytest.raises(ProxyError, match=str(status)):
        await engine().fetch(Request("https://h.test/", proxy=proxy.url()))


@pytest.mark.parametrize(
    ("reply", "kind"),
    [(1, ProxyError), (2, ProxyError), (3, ConnectError), (4, ConnectError), (5, ConnectError)],
)
async def test_a_socks_reply_says_whose_fault_it_is(
    engine: Engine, start: Start, reply: int, kind: type[Exception]
) -> None:
    proxy = await start(SocksProxy, reply=reply)
    with pytest.raises(kind) as caught:
        await engine().fetch(Request("http://h.test/", proxy=proxy.url()))
    assert type(caught.value) is kind


@pytest.mark.parametrize("kind", KINDS)
async def test_a_certificate_of_the_server_is_not_the_proxy_s_fault(
    serve: Serve, engine: Engine, start: Start, tls_context: ssl.SSLContext, kind: type[Proxy]
) -> None:
    server = await serve({"/": OK}, tls=tls_context)
    with pytest.raises(TlsError):
        await engine().fetch(Request(server.url(), proxy=(await start(kind)).url()))


@pytest.mark.parametrize("url", ["ftp://h.test:1", "http://", "nonsense", "http://h:99999"])
async def test_what_is_no_proxy_is_a_proxy_error_without_its_password(engine: Engine, url: str) -> None:
    with pytest.raises(ProxyError):
        await engine().fetch(Request("http://h.test/", proxy=url))


async def test_what_follows_a_proxied_request_goes_its_own_way(
    serve: Serve, engine: Engine, start: Start
) -> None:
    server = await serve({"/": OK})
    first, second = await start(HttpProxy, SPECIAL), await start(SocksProxy)
    fetcher = engine()
    url = server.url()
    await fetcher.fetch(Request(url, proxy=first.url(ENCODED)))
    with pytest.raises(ProxyError):
        await fetcher.fetch(Request(url, proxy="nonsense"))
    assert (await fetcher.fetch(Request(url))).peer == f"127.0.0.1:{server.port}"
    await fetcher.fetch(Request(url, proxy=second.url()))
    assert (await fetcher.fetch(Request(url, proxy=""))).peer == f"127.0.0.1:{server.port}"
    assert (len(first.asked), len(second.asked)) == (1, 1)


async def test_the_environment_s_proxies_are_not_used(
    serve: Serve, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = await serve({"/": OK})
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, f"http://127.0.0.1:{free_port()}")
    assert (await engine().fetch(Request(server.url()))).body == b"through"
