"""The pool over every engine, with real proxies: one that works, dies, is slow, bans, refuses."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest
from raw_server import Serve, answer_of, then_stall
from site_of_pages import Engine
from tests.proxies import SocksProxy, TestProxy

from silkline.errors import BannedError, FetchTimeout, NoProxyError, ProxyError
from silkline.fetch.cookies.sessions import Sessions
from silkline.fetch.middleware import compose
from silkline.fetch.proxies import pool as pool_module
from silkline.fetch.proxies.pool import ProxyPool
from silkline.fetch.proxies.sources import FixedProxies
from silkline.protocols import CallNext
from silkline.request import Request

PAGE = answer_of(200, {}, b"page")
BUSY = answer_of(503, {}, b"busy")
FORBIDDEN = answer_of(403, {}, b"go away")
CAPTCHA = answer_of(200, {}, b"<script src=https://geo.captcha-delivery.com/c.js></script>")

Start = Callable[..., Awaitable[Any]]


@pytest.fixture
async def start() -> AsyncIterator[Start]:
    """`await start()` a proxy; `kind`, user and password as wanted."""
    started: list[TestProxy] = []

    async def make(kind: type[TestProxy] = TestProxy, *credentials: str, **options: Any) -> TestProxy:
        proxy = await kind(*credentials).start(**options)
        started.append(proxy)
        return proxy

    yield make
    for proxy in started:
        await proxy.stop()


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


class Through:
    """A fetcher behind a pool of these proxies."""

    def __init__(
        self, fetcher: Any, proxies: list[TestProxy], lines: list[str] | None = None, **options: Any
    ) -> None:
        self.told: list[str] = []
        self.clock = Clock()
        source = FixedProxies(lines or [proxy.url() for proxy in proxies])
        self.pool = ProxyPool(source, clock=self.clock, tell=self.told.append, **options)
        self.fetch: CallNext = compose([self.pool], fetcher.fetch)

    async def get(self, url: str, **fields: Any) -> bytes:
        request = Request(url, **fields)
        response = await self.fetch(request)
        assert response.request is request
        return response.body


async def test_pages_come_through_and_no_one_sees_the_credentials(
    start: Start, serve: Serve, engine: Engine
) -> None:
    server, proxy = await serve({"/": PAGE}), await start(TestProxy, "us@er", "p#%w:/ü")
    request = Request(f"http://site.test:{server.port}/", proxy=proxy.url("us%40er:p%23%25w%3A%2F%C3%BC"))
    assert (await engine().fetch(request)).body == b"page"
    assert server.header("via") == "1.1 testproxy"
    assert server.header("proxy-authorization") is None


async def test_a_dead_proxy_is_its_own_fault_and_another_one_is_tried_at_once(
    start: Start, serve: Serve, engine: Engine
) -> None:
    server = await serve({"/": PAGE})
    dead, alive = await start(), await start()
    await dead.stop()
    through = Through(engine(), [dead, alive])
    for _ in range(20):
        assert await through.get(f"http://site.test:{server.port}/") == b"page"
    assert len(alive.asked) == 20
    assert through.pool.health.of(dead.url()).failures == 1  # it rests since


async def test_a_proxy_that_dies_in_the_middle_of_a_crawl_costs_no_page(
    start: Start, serve: Serve, engine: Engine
) -> None:
    server = await serve({"/": PAGE})
    proxies = [await start() for _ in range(3)]
    through = Through(engine(), proxies)
    for number in range(30):
        if number == 10:
            await proxies[0].stop()
        assert await through.get(f"http://site.test:{server.port}/") == b"page"
    assert len(server.heads) == 30


async def test_a_proxy_rests_longer_after_each_failure_and_comes_back(
    start: Start, serve: Serve, engine: Engine
) -> None:
    server, proxy = await serve({"/": PAGE}), await start()
    url = f"http://site.test:{server.port}/"
    through = Through(engine(), [proxy])
    await proxy.stop()
    rests = []
    for _ in range(3):
        with pytest.raises(NoProxyError, match="the only proxy failed: "):
            await through.get(url)
        rests.append(through.pool.health.usable_at(proxy.url(), f"http://site.test:{server.port}"))
        rests[-1] -= through.clock.now
        through.clock.now += rests[-1] + 0.01
    assert rests[0] < rests[1] < rests[2]
    await proxy.start()
    assert await through.get(url) == b"page"
    assert through.pool.health.of(proxy.url()).failures == 0


async def test_while_no_proxy_works_visits_wait_and_cost_no_retry(
    start: Start, serve: Serve, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pool_module, "MAX_WAIT", 0.01)
    server, proxies = await serve({"/": PAGE}), [await start(), await start()]
    url = f"http://site.test:{server.port}/"
    through = Through(engine(), proxies)
    assert await through.get(url) == b"page"
    for proxy in proxies:
        await proxy.stop()
    for _ in range(5):
        with pytest.raises(NoProxyError) as error:
            await through.get(url)
        assert not error.value.costs_retry
        assert error.value.retry_after > 0
        assert "\n" not in str(error.value)
    line = f"none of 2 proxies works for http://site.test:{server.port} at the moment"
    assert through.told == [f"{line}; its pages wait until one does"]
    for proxy in proxies:
        await proxy.start()
    through.clock.now += 60.0
    assert await through.get(url) == b"page"
    assert through.told[1:] == ["a proxy works again"]
    for proxy in proxies:
        await proxy.stop()
    through.clock.now += pool_module.PATIENCE + 1
    with pytest.raises(ProxyError) as final:
        await through.get(url)
    assert final.value.costs_retry


async def test_a_silent_proxy_is_left_for_another_one_after_its_timeout(
    start: Start, serve: Serve, engine: Engine
) -> None:
    server, silent, good = await serve({"/": PAGE}), await start(), await start()
    silent.silent = True
    through = Through(engine(timeout=2.0), [silent, good])
    for _ in range(12):
        assert await through.get(f"http://site.test:{server.port}/") == b"page"
    assert through.pool.health.of(silent.url()).failures == 1


async def test_a_site_that_hangs_is_the_pages_fault_where_the_proxy_is_known_to_work(
    start: Start, serve: Serve, engine: Engine
) -> None:
    server, proxy, spare = await serve({"/": PAGE, "/slow": then_stall()}), await start(), await start()
    through = Through(engine(), [proxy, spare])
    for _ in range(20):
        await through.get(f"http://site.test:{server.port}/")
    impatient = compose([through.pool], engine(timeout=0.5).fetch)
    with pytest.raises(FetchTimeout):
        await impatient(Request(f"http://site.test:{server.port}/slow"))
    assert [through.pool.health.of(p.url()).failures for p in (proxy, spare)] == [0, 0]
    assert server.targets.count("/slow") == 1


async def test_a_ban_through_one_proxy_is_no_answer_while_another_gets_the_page(
    start: Start, serve: Serve, engine: Engine
) -> None:
    server, banned, good = await serve({"/": PAGE}), await start(), await start()
    banned.answer = lambda request: FORBIDDEN
    through = Through(engine(), [banned, good])
    for _ in range(20):
        assert await through.get(f"http://site.test:{server.port}/") == b"page"
    assert len(banned.asked) == 1  # the ban was confirmed: it rests for this host
    assert through.pool.health.usable_at(banned.url(), "http://other.test") <= 0
    banned.answer = lambda request: None


async def test_a_page_that_is_forbidden_to_all_is_the_answer_and_hurts_no_proxy_at_first(
    start: Start, serve: Serve, engine: Engine
) -> None:
    server, proxies = await serve({"/": PAGE, "/private": FORBIDDEN}), [await start() for _ in range(4)]
    through = Through(engine(), proxies)
    assert await through.get(f"http://site.test:{server.port}/private") == b"go away"
    assert server.targets.count("/private") == pool_module.TRIES
    host = f"http://site.test:{server.port}"
    assert all(through.pool.health.usable_at(proxy.url(), host) <= 0 for proxy in proxies)


async def test_a_bad_gateway_is_the_proxys_while_another_one_gets_the_page(
    start: Start, serve: Serve, engine: Engine
) -> None:
    server, bad, good = await serve({"/": PAGE}), await start(), await start()
    through = Through(engine(), [bad, good])
    url = f"http://site.test:{server.port}/"
    bad.answer = lambda request: BUSY
    for _ in range(20):
        assert await through.get(url) == b"page"
    assert len(bad.asked) == 1
    assert through.pool.health.of(bad.url()).failures == 1
    bad.answer = lambda request: None
    through.clock.now += 5.0
    for _ in range(20):
        await through.get(url)
    asked = len(bad.asked)
    assert asked > 1
    bad.answer = lambda request: BUSY  # it has worked before: it rests for this host alone
    for _ in range(20):
        assert await through.get(url) == b"page"
    assert len(bad.asked) == asked + 1
    assert through.pool.health.of(bad.url()).failures == 0


async def test_what_several_proxies_say_is_the_sites_answer_and_hurts_none(
    start: Start, serve: Serve, engine: Engine
) -> None:
    server, proxies = await serve({"/": PAGE, "/busy": BUSY}), [await start() for _ in range(4)]
    through = Through(engine(), proxies)
    url = f"http://site.test:{server.port}/busy"
    assert (await through.fetch(Request(url))).status == 503
    assert server.targets.count("/busy") == pool_module.TRIES
    assert (await through.fetch(Request(url))).status == 503
    assert server.targets.count("/busy") == pool_module.TRIES + pool_module.AGREED  # some are known to work
    assert [through.pool.health.of(proxy.url()).failures for proxy in proxies] == [0] * 4
    alone = Through(engine(), proxies[:1])
    assert (await alone.fetch(Request(url))).status == 503
    assert server.targets.count("/busy") == pool_module.TRIES + pool_module.AGREED + 1


async def test_a_bad_gateway_while_no_other_proxy_works_costs_no_retry(
    start: Start, serve: Serve, engine: Engine
) -> None:
    server, bad, dead = await serve({"/": PAGE}), await start(), await start()
    bad.answer = lambda request: BUSY
    await dead.stop()
    through = Through(engine(), [bad, dead])
    with pytest.raises(NoProxyError, match=r"2 proxies failed, the last one: .+") as error:
        await through.get(f"http://site.test:{server.port}/")
    assert not error.value.costs_retry
    assert through.pool.health.of(bad.url()).failures == 1


async def test_the_answer_of_a_site_in_a_tunnel_is_no_fault_of_the_proxy(
    start: Start, serve: Serve, engine: Engine, tls_context: Any
) -> None:
    server, proxies = await serve({"/": BUSY}, tls=tls_context), [await start(), await start()]
    through = Through(engine(verify=False), proxies)
    assert (await through.fetch(Request(f"https://site.test:{server.port}/"))).status == 503
    assert len(server.targets) == 1


async def until_it_refuses(proxy: TestProxy, through: Through, url: str, times: int) -> None:
    """Get the page until this proxy, which is chosen by chance, has refused so many times."""
    for _ in range(2_000):
        if proxy.refused >= times:
            return
        assert await through.get(url) == b"page"
        through.clock.now += 700.0
    raise AssertionError(f"refused {proxy.refused} times, not {times}")


async def test_wrong_credentials_are_named_by_their_line_once(
    start: Start, serve: Serve, engine: Engine, tls_context: Any
) -> None:
    plain, secure = await serve({"/": PAGE}), await serve({"/": PAGE}, tls=tls_context)
    proxy, good = await start(TestProxy, "me", "right"), await start()
    through = Through(engine(verify=False), [], [proxy.url("me:wrong"), good.url()])
    for url in (f"http://site.test:{plain.port}/", f"https://site.test:{secure.port}/"):
        await until_it_refuses(proxy, through, url, proxy.refused + 2)
    assert through.told == ["proxies, entry 1: the proxy asks for other credentials (407)"]


@pytest.mark.parametrize("wrong", ["me:wrong", ""])
async def test_wrong_credentials_of_a_socks_proxy_are_named_too(
    start: Start, serve: Serve, engine: Engine, wrong: str
) -> None:
    server, proxy, good = await serve({"/": PAGE}), await start(SocksProxy, "me", "right"), await start()
    through = Through(engine(), [], [proxy.url(wrong), good.url()])
    await until_it_refuses(proxy, through, f"http://site.test:{server.port}/", 2)
    assert through.told == ["proxies, entry 1: the proxy asks for other credentials (SOCKS)"]


async def test_a_proxy_that_hangs_from_the_start_holds_two_requests_at_most(
    start: Start, serve: Serve, engine: Engine
) -> None:
    server, silent, good = await serve({"/": PAGE}), await start(), await start()
    silent.silent = True
    through = Through(engine(timeout=5.0), [silent, good])
    url = f"http://site.test:{server.port}/"
    visits = [asyncio.create_task(through.get(url)) for _ in range(30)]
    done, hanging = await asyncio.wait(visits, timeout=2.0)
    assert len(done) >= 28
    assert through.pool.health.of(silent.url()).in_flight == len(hanging)
    for visit in hanging:
        visit.cancel()


async def test_a_captcha_in_place_of_the_page_is_a_failure(
    start: Start, serve: Serve, engine: Engine
) -> None:
    server, proxy = await serve({"/": CAPTCHA}), await start()
    through = Through(engine(), [proxy])
    with pytest.raises(BannedError, match="in place of the page"):
        await through.get(f"http://site.test:{server.port}/")


async def test_a_slow_proxy_gets_less_to_do(start: Start, serve: Serve, engine: Engine) -> None:
    server, slow, fast = await serve({"/": PAGE}), await start(), await start()
    slow.delay = 0.3
    through = Through(engine(), [slow, fast])
    for _ in range(30):
        await through.get(f"http://site.test:{server.port}/")
    assert 1 <= len(slow.asked) < len(fast.asked) / 2


async def test_a_dead_site_does_not_take_the_proxies_down(start: Start, serve: Serve, engine: Engine) -> None:
    server, gone, proxies = await serve({"/": PAGE}), await serve(), [await start(), await start()]
    await gone.stop()
    through = Through(engine(), proxies)
    for _ in range(20):
        await through.get(f"http://site.test:{server.port}/")
    with pytest.raises(ProxyError) as error:
        await through.get(f"https://secure.test:{gone.port}/")  # CONNECT is refused with 502
    assert error.value.refused
    assert error.value.costs_retry
    assert [through.pool.health.of(proxy.url()).failures for proxy in proxies] == [0, 0]


async def test_a_named_session_keeps_its_proxy_until_it_fails_or_begins_anew(
    start: Start, serve: Serve, engine: Engine
) -> None:
    server, proxies, sessions = await serve({"/": PAGE}), [await start() for _ in range(4)], Sessions()
    url = f"http://site.test:{server.port}/"
    through = Through(engine(), proxies, sessions=sessions)

    async def used(session: str | None, times: int = 12) -> Counter[int]:
        before = [len(proxy.asked) for proxy in proxies]
        for _ in range(times):
            await through.get(url, session=session)
        return Counter(
            {n: len(p.asked) - before[n] for n, p in enumerate(proxies) if len(p.asked) > before[n]}
        )

    assert len(await used(None, 40)) > 1
    first = await used("s")
    assert list(first.values()) == [12]
    (own,) = first
    await proxies[own].stop()
    second = await used("s")
    assert list(second.values()) == [12]
    assert set(second) != {own}
    homes = set()
    for _ in range(12):
        sessions.retire("s")
        homes |= set(await used("s", 1))
    assert len(homes) > 1


async def test_a_request_may_ask_for_a_region_or_for_no_proxy(
    start: Start, serve: Serve, engine: Engine
) -> None:
    server, german, other = await serve({"/": PAGE}), await start(), await start()
    source = FixedProxies([f"{german.url()} de eu", f"{other.url()} us"])
    told: list[str] = []
    fetch = compose([ProxyPool(source, region="US", tell=told.append)], engine().fetch)
    url = f"http://127.0.0.1:{server.port}/"
    for proxy in ("", "region:DE", None, "region:xx", "region:xx"):
        request = Request(url, proxy=proxy)
        if proxy == "region:xx":
            with pytest.raises(ProxyError, match="none of 2 proxies has the tag 'xx'"):
                await fetch(request)
        else:
            await fetch(request)
    assert (len(german.asked), len(other.asked), len(server.heads)) == (1, 1, 3)
    assert told == ["none of 2 proxies has the tag 'xx'"]


async def test_many_at_once_share_the_proxies(start: Start, serve: Serve, engine: Engine) -> None:
    server, proxies = await serve({"/": PAGE}), [await start() for _ in range(3)]
    through = Through(engine(), proxies)
    pages = await asyncio.gather(*(through.get(f"http://site.test:{server.port}/") for _ in range(30)))
    assert pages == [b"page"] * 30
    assert min(len(proxy.asked) for proxy in proxies) >= 3


@pytest.mark.parametrize("kind", [TestProxy, SocksProxy])
async def test_tunnels_with_credentials(
    start: Start, serve: Serve, engine: Engine, tls_context: Any, kind: type[TestProxy]
) -> None:
    server, proxy = await serve({"/": PAGE}, tls=tls_context), await start(kind, "us@er", "p#%w:/ü")
    url = f"https://secure.test:{server.port}/"
    fetcher = engine(verify=False)
    good = Request(url, proxy=proxy.url("us%40er:p%23%25w%3A%2F%C3%BC"))
    assert (await fetcher.fetch(good)).body == b"page"
    assert proxy.asked[0].endswith(f"secure.test:{server.port}")
    bad = Request(url, proxy=proxy.url("us%40er:wrong"))
    with pytest.raises(ProxyError) as error:
        await fetcher.fetch(bad)
    assert "wrong" not in str(error.value)


async def test_a_proxy_over_tls(start: Start, serve: Serve, engine: Engine, tls_context: Any) -> None:
    server, proxy = await serve({"/": PAGE}), await start(tls=tls_context)
    request = Request(f"http://site.test:{server.port}/", proxy=proxy.url())
    assert (await engine(verify=False).fetch(request)).body == b"page"
    assert server.header("via") == "1.1 testproxy"


async def test_a_proxy_that_does_not_serve_a_host_is_avoided_for_that_host(
    start: Start, serve: Serve, engine: Engine, tls_context: Any
) -> None:
    server, picky, good = await serve({"/": PAGE}, tls=tls_context), await start(), await start()
    forbidden = b"HTTP/1.1 403 Not there\r\nContent-Length: 0\r\n\r\n"
    through = Through(engine(verify=False), [picky, good])
    for _ in range(10):
        await through.get(f"https://other.test:{server.port}/")
    picky.answer = lambda request: forbidden if "site.test" in request else None
    for _ in range(12):
        assert await through.get(f"https://site.test:{server.port}/") == b"page"
    assert len([request for request in picky.asked if "site.test" in request]) <= 1
    assert through.pool.health.of(picky.url()).failures == 0
