"""Writes of keyed sinks: refused rows, several workers, servers that go away, and the event loop."""

from __future__ import annotations

import asyncio
import gc
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from silkline.engine import delivery as delivery_module
from silkline.engine.delivery import Delivery
from silkline.errors import ConfigError, RowsRefused, SinkAwayError, SinkError
from silkline.events import Event, Trouble
from silkline.outcome import Done, Lease, Outcome
from silkline.protocols import KeyedSink
from silkline.request import Request
from tests.proxy import CuttingProxy
from tests.servers import free_port
from tests.sinks.contract.target import Target, item, own

LAG = 0.05
"""Seconds for which nothing else ran on the event loop."""


def outcome(sink: KeyedSink, page: int, *items: Any, deliveries: int = 1) -> Outcome:
    lease = Lease(Request(f"https://shop.example/{page}"), page, page, "https://shop.example:443", deliveries)
    return Outcome(
        lease, Done(), tuple(item(sink, fields, page=page, index=n) for n, fields in enumerate(items))
    )


@pytest.mark.needs("refused")
async def test_rows_that_the_server_refuses_are_isolated(target: Target, sink: KeyedSink) -> None:
    assert target.refused is not None
    await sink.write([item(sink, {"text": "first"}, page=999)])
    bad = (3, 40, 41)
    written = await Delivery([sink], lambda event: None).write(
        [outcome(sink, n, target.refused if n in bad else {"text": f"page {n}"}) for n in range(60)]
    )
    assert {row["_fingerprint"] for row in target.rows()} == {999, *range(60)} - {*bad}
    dead = [one for outcome in written for one in outcome.dead_items]
    assert [one.fingerprint for one in dead] == [*bad]
    assert all(one.cause == "refused" and one.error and "\n" not in one.error for one in dead)


@pytest.mark.needs("columns")
async def test_a_value_that_does_not_fit_its_column_is_refused(target: Target, sink: KeyedSink) -> None:
    await sink.write([item(sink, {"day": 7, "n": 1}, page=1)])
    for wrong in ({"day": "soon"}, {"day": True}, {"day": [7]}):
        with pytest.raises(RowsRefused, match="day"):
            await sink.write([item(sink, {"n": 2}, page=2), item(sink, wrong, page=3)])
    assert [own(row) for row in target.rows()] == [{"day": 7, "n": 1}]
    await sink.write([item(sink, {"n": 2}, page=2)])
    assert len(target.rows()) == 2


async def test_workers_at_once_share_a_new_table_and_its_rows(target: Target, sinks: list[KeyedSink]) -> None:
    sinks += [target.sink() for _ in range(4)]
    await asyncio.gather(*[sink.open() for sink in sinks])

    async def work(number: int, sink: KeyedSink) -> None:
        for turn in range(4):
            keys = range(60) if number % 2 else reversed(range(60))
            rows = [item(sink, {"n": key, f"c{turn}": turn, f"w{number}": 1}, page=key) for key in keys]
            while True:
                try:
                    await sink.write(rows)
                    break
                except SinkAwayError:  # such as a deadlock: the engine tries again, too
                    await asyncio.sleep(0.01)

    await asyncio.gather(*[work(number, sink) for number, sink in enumerate(sinks)])
    rows = target.rows()
    assert [row["n"] for row in rows] == list(range(60))
    assert {tuple(sorted(own(row))) for row in rows} <= {("c3", "n", f"w{number}") for number in range(4)}


@asynccontextmanager
async def through_proxy(target: Target) -> AsyncIterator[tuple[CuttingProxy, KeyedSink]]:
    async with CuttingProxy(target.port) as proxy:
        sink = target.sink(port=proxy.port, timeout="5")
        try:
            await sink.open()
            yield proxy, sink
        finally:
            await sink.close()


@pytest.mark.parametrize("what", ["cut_request", "cut_reply"])
@pytest.mark.parametrize("piece", [1, 2, 3, 4])
async def test_a_connection_cut_in_mid_batch_costs_nothing(
    target: Target, what: str, piece: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(delivery_module, "FIRST_WAIT", 0.01)
    heard: list[Event] = []
    async with through_proxy(target) as (proxy, sink):
        await sink.write([item(sink, {"n": n, "text": "old"}, page=n) for n in range(5)])
        seen = 0

        def cuts(data: bytes) -> bool:
            nonlocal seen
            seen += 1
            return seen == piece

        setattr(proxy, what, cuts)
        outcomes = [outcome(sink, n, {"n": n, "text": 5_000 * "x"}) for n in range(200)]
        await Delivery([sink], heard.append).write(outcomes)
        setattr(proxy, what, lambda data: False)
        assert proxy.cuts == (1 if seen >= piece else 0)
    rows = target.rows()
    assert [(row["_fingerprint"], row["n"], len(row["text"])) for row in rows] == [
        (n, n, 5_000) for n in range(200)
    ]
    if proxy.cuts and not target.tries_again:
        assert next(event.message for event in heard if isinstance(event, Trouble)).startswith(sink.name)


async def test_the_table_is_not_half_written_when_the_connection_is_cut(target: Target) -> None:
    async with through_proxy(target) as (proxy, sink):
        await sink.write([item(sink, {"n": n, "text": "old"}, page=n) for n in range(100)])
        proxy.cut_request = lambda data: len(data) > 10_000
        with pytest.raises(SinkAwayError) as caught:
            await sink.write([item(sink, {"n": n, "text": 10_000 * "x"}, page=n) for n in range(200)])
        assert proxy.cuts >= 1
        assert "\n" not in str(caught.value)
    assert [own(row) for row in target.rows()] == [{"n": n, "text": "old"} for n in range(100)]


async def test_a_server_that_hangs_is_noticed_and_used_again(target: Target) -> None:
    async with CuttingProxy(target.port) as proxy:
        sink = target.sink(port=proxy.port, timeout="0.4")
        try:
            await sink.open()
            proxy.pause()
            with pytest.raises(SinkAwayError, match=r"does not answer|is away"):
                await asyncio.wait_for(sink.write([item(sink, {"n": 1})]), 5)
            proxy.resume()
            await sink.write([item(sink, {"n": 2})])
        finally:
            await sink.close()
    assert [own(row) for row in target.rows()] == [{"n": 2}]


async def test_a_server_that_is_not_there_is_away(target: Target, sinks: list[KeyedSink]) -> None:
    sink = target.sink(port=free_port())
    sinks.append(sink)
    with pytest.raises(SinkAwayError) as caught:
        await sink.open()
    assert str(caught.value).startswith(sink.name)
    assert "\n" not in str(caught.value)


async def test_what_no_waiting_mends_is_said_without_the_password(target: Target) -> None:
    for url, part in target.wrong_urls().items():
        with pytest.raises(ConfigError) as caught:
            await open_and_close(target, url)
        assert part in str(caught.value), url
        assert "s3cret" not in str(caught.value)
        assert "\n" not in str(caught.value)
        assert not isinstance(caught.value, SinkError)


async def open_and_close(target: Target, url: str) -> None:
    sink = target.sink_for(url)
    try:
        await sink.open()
    finally:
        await sink.close()


@pytest.mark.needs("columns")
async def test_nothing_is_made_where_that_is_forbidden(target: Target, sinks: list[KeyedSink]) -> None:
    strict = target.sink(create=False)
    sinks += [strict, target.sink()]
    with pytest.raises(ConfigError, match="CREATE TABLE") as caught:
        await strict.open()
    target.run(str(caught.value).partition("make it: ")[2])
    await strict.open()
    with pytest.raises(SinkError, match="no column 'price'") as refused:
        await strict.write([item(strict, {"price": 5})])
    target.run(str(refused.value).partition("add it: ")[2])
    await strict.write([item(strict, {"price": 5})])
    assert [own(row) for row in target.rows()] == [{"price": 5}]
    with pytest.raises(RowsRefused):
        await strict.write([item(strict, {"price": 5.5})])


async def test_ten_thousand_items_at_once_never_hold_up_the_event_loop(
    target: Target, sink: KeyedSink
) -> None:
    items = [
        item(sink, {"n": n, "name": f"Chair {n}", "price": n / 4, "tags": ["a", "b"], **WIDE}, page=n)
        for n in range(10_000)
    ]
    gc.freeze()  # what this process has beside the sink costs a crawl nothing
    try:
        async with watched_lag() as lag:
            for _ in range(2):  # new rows, and the same again
                await sink.write(items)
    finally:
        gc.unfreeze()
    rows = target.rows()
    assert len(rows) == 10_000
    assert sum(row["n"] for row in rows) == sum(range(10_000))
    assert max(lag) < LAG, sorted(lag)[-5:]


WIDE = {f"text_{n}": "lorem ipsum dolor sit amet" for n in range(8)}


@asynccontextmanager
async def watched_lag() -> AsyncIterator[list[float]]:
    """For how long the thread was busy at a time, in seconds of its CPU: others use the machine, too."""
    lag = [0.0]

    async def watch() -> None:
        while True:
            wall, cpu = time.monotonic(), time.thread_time()
            await asyncio.sleep(0)
            lag.append(min(time.monotonic() - wall, time.thread_time() - cpu))
            await asyncio.sleep(0.001)

    gc.collect()
    gc.freeze()  # what the test run has in memory would be looked through again and again
    task = asyncio.create_task(watch())
    try:
        yield lag
    finally:
        task.cancel()
        gc.unfreeze()
