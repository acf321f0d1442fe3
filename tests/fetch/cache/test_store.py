"""One contract for every place that keeps responses."""

from __future__ import annotations

import asyncio
import random

import msgspec
from tests.fetch.cache.conftest import OpenStore
from tests.fetch.cache.origin import START, Clock

from silkline.fetch.cache.entry import Key, Meta
from silkline.fetch.cache.store import VARIANTS, CacheStore

META = Meta(200, ((b"ETag", b'"1"'), (b"X-Raw", b"\xff\x00\xe9")), START, START + 1, (("accept", None),))
OWNER = b"o" * 16


def key(number: int, owner: bytes = OWNER, variant: bytes = b"") -> Key:
    return Key(number.to_bytes(16, "big"), owner, variant)


async def bodies(store: CacheStore, of: Key) -> list[bytes | None]:
    return [stored.body() for stored in await store.find(of.url, of.owner)]


async def test_what_was_put_is_found_as_it_was(open_store: OpenStore) -> None:
    store = await open_store()
    await store.put(key(1), META, b"body" * 1_000)
    (stored,) = await store.find(key(1).url, OWNER)
    assert (stored.meta, stored.key, stored.body()) == (META, key(1), b"body" * 1_000)
    assert len(stored.packed) < 100
    assert list(await store.find(key(2).url, OWNER)) == []


async def test_an_empty_body_is_a_body(open_store: OpenStore) -> None:
    store = await open_store()
    await store.put(key(1), META, b"")
    assert await bodies(store, key(1)) == [b""]


async def test_a_second_response_takes_the_place_of_the_first(open_store: OpenStore) -> None:
    store = await open_store()
    await store.put(key(1), META, b"one")
    await store.put(key(1), META, b"two")
    assert await bodies(store, key(1)) == [b"two"]


async def test_variants_are_kept_apart_and_bounded(open_store: OpenStore) -> None:
    store = await open_store()
    for number in range(VARIANTS + 5):
        await store.put(key(1, variant=b"%d" % number), META, b"%d" % number)
    found = await bodies(store, key(1))
    assert found == [b"%d" % number for number in range(VARIANTS + 4, 4, -1)]


async def test_owners_do_not_see_each_other_but_lose_a_url_together(open_store: OpenStore) -> None:
    store = await open_store()
    await store.put(key(1, b"a" * 16), META, b"a's")
    await store.put(key(1, b"b" * 16), META, b"b's")
    assert await bodies(store, key(1, b"a" * 16)) == [b"a's"]
    assert await bodies(store, key(1, b"c" * 16)) == []
    await store.invalidate(key(1).url)
    assert await bodies(store, key(1, b"a" * 16)) == await bodies(store, key(1, b"b" * 16)) == []


async def test_a_refresh_changes_what_is_known_and_not_the_body(open_store: OpenStore) -> None:
    store = await open_store()
    await store.put(key(1), META, b"body")
    (stored,) = await store.find(key(1).url, OWNER)
    newer = msgspec.structs.replace(META, received_at=START + 60)
    await store.refresh(stored, newer)
    (stored,) = await store.find(key(1).url, OWNER)
    assert (stored.meta, stored.body()) == (newer, b"body")


async def test_nothing_said_of_a_replaced_response_touches_the_new_one(open_store: OpenStore) -> None:
    store, other = await open_store(), await open_store()
    await store.put(key(1), META, b"old")
    (old,) = await store.find(key(1).url, OWNER)
    await other.put(key(1), META, b"new")
    assert await bodies(other, key(1)) == [b"new"]
    await store.refresh(old, msgspec.structs.replace(META, status=203))
    await store.forget(old)
    (stored,) = await store.find(key(1).url, OWNER)
    assert (stored.meta, stored.body()) == (META, b"new")
    await store.forget(stored)
    assert await bodies(store, key(1)) == []


async def test_what_one_process_stored_another_one_finds(open_store: OpenStore) -> None:
    one, two = await open_store(), await open_store()
    await asyncio.gather(*(one.put(key(n), META, b"one") for n in range(50)))
    await asyncio.gather(*(two.put(key(n), META, b"two") for n in range(50, 100)))
    await one.close()
    await two.close()
    three = await open_store()
    assert [(await bodies(three, key(n)))[0] for n in (0, 49, 50, 99)] == [b"one", b"one", b"two", b"two"]


async def test_the_store_stays_within_its_limit_and_what_was_used_last_stays(
    open_store: OpenStore, clock: Clock
) -> None:
    store = await open_store(200_000)
    noise = [random.Random(n).randbytes(2_000) for n in range(300)]
    for number, body in enumerate(noise):
        clock.now += 1
        await store.put(key(number), META, body)
        assert await bodies(store, key(0)) == [noise[0]], f"used all the time, and gone after {number}"
    kept = [number for number in range(300) if await bodies(store, key(number))]
    assert sum(len(noise[number]) for number in kept) <= 220_000
    assert len(kept) > 40
    assert kept == [0, *range(301 - len(kept), 300)]


async def test_a_response_that_would_fill_the_store_is_not_kept(open_store: OpenStore) -> None:
    store = await open_store(10_000)
    await store.put(key(1), META, b"small")
    await store.put(key(1), META, random.Random(1).randbytes(5_000))
    assert await bodies(store, key(1)) == []  # and the small one is outdated


async def test_closing_twice_is_fine_and_finishes_the_writes(open_store: OpenStore) -> None:
    store = await open_store()
    for number in range(200):
        await store.put(key(number), META, b"x")
    await store.close()
    await store.close()
    assert await bodies(await open_store(), key(199)) == [b"x"]
