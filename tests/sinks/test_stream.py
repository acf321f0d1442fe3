"""Redis streams: what is appended, and what is not appended twice."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from silkline.errors import ConfigError, SinkAwayError
from silkline.sinks.stream import RedisStreamSink
from tests import servers
from tests.sinks.contract.stream import RedisStreamTarget
from tests.sinks.contract.target import item


@pytest.fixture
def target() -> RedisStreamTarget:
    return RedisStreamTarget()


@pytest.fixture
async def opened() -> AsyncIterator[list[RedisStreamSink]]:
    made: list[RedisStreamSink] = []
    yield made
    for sink in made:
        await sink.close()


async def begin(target: RedisStreamTarget, opened: list[RedisStreamSink], **options: str) -> RedisStreamSink:
    sink = RedisStreamSink(target.url(**options))
    opened.append(sink)
    await sink.open()
    return sink


async def test_the_stream_is_named_as_the_user_names_it(target: RedisStreamTarget) -> None:
    sink = RedisStreamSink(target.url(maxlen="9"), create=False)
    assert sink.name == f"redis+stream://127.0.0.1:{target.port}/0?stream={target.table}"
    with pytest.raises(ConfigError, match=r"XGROUP CREATE .*, or leave out --no-create$"):
        await sink.open()
    await sink.close()


async def test_what_is_the_same_is_appended_once_and_what_changed_again(
    target: RedisStreamTarget, opened: list[RedisStreamSink]
) -> None:
    sink = await begin(target, opened)
    for price in (9, 9, 8, 8, 9):
        await sink.write([item(sink, {"price": price}, key="sku-1")])
    assert [entry["item"] for entry in target.entries()] == ['{"price":9}', '{"price":8}', '{"price":9}']


async def test_identities_are_remembered_in_bounds(
    target: RedisStreamTarget, opened: list[RedisStreamSink]
) -> None:
    sink = await begin(target, opened, remember="100")
    for _ in range(2):
        for start in range(0, 400, 20):
            batch = [item(sink, {"n": n}, key=f"k{n}") for n in range(start, start + 20)]
            await sink.write(batch)
            await sink.write(batch)  # as after a kill: what was written lately is known
    assert len(target.entries()) == 800
    with servers.valkey().client() as client:
        hashes = [name for name in client.keys("*") if target.table in name and ":ids:" in name]
        assert sum(client.hlen(name) for name in hashes) <= 100


async def test_the_stream_is_held_to_its_length(
    target: RedisStreamTarget, opened: list[RedisStreamSink]
) -> None:
    sink = await begin(target, opened, maxlen="100")
    await sink.write([item(sink, {"n": n}, page=n) for n in range(2_000)])
    assert 100 <= len(target.entries()) <= 400


async def test_another_kind_of_key_is_left_alone(target: RedisStreamTarget) -> None:
    with servers.valkey().client() as client:
        client.set(target.table, "mine")
        with pytest.raises(ConfigError, match="is a string there"):
            await RedisStreamSink(target.url()).open()
        assert client.get(target.table) == "mine"
    with pytest.raises(ConfigError, match="MKSTREAM"):
        await RedisStreamSink(target.url(stream=f"{target.table}-none"), create=False).open()


async def test_a_server_that_is_full_is_waited_for(opened: list[RedisStreamSink]) -> None:
    server = servers.RedisServer(servers.valkey().binary, "--maxmemory", "3mb").start()
    try:
        sink = RedisStreamSink(f"redis+stream://127.0.0.1:{server.port}/0")
        opened.append(sink)
        await sink.open()
        big = [item(sink, {"text": 100_000 * "x"}, page=page) for page in range(100)]
        with pytest.raises(SinkAwayError, match=r"cannot write now: .*maxmemory"):
            await asyncio.gather(*[sink.write([one]) for one in big])
        with server.client() as client:
            client.config_set("maxmemory", "100mb")
        await sink.write([item(sink, {"text": "again"}, page=999)])
    finally:
        await sink.close()
        server.remove()
