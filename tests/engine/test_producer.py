from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from itertools import count
from typing import Any

import pytest
from tests.waiting import until

from silkline.config import FrontierOptions
from silkline.engine import producer
from silkline.engine.producer import Flow, Producer, visited
from silkline.errors import FrontierError, SourceError
from silkline.events import Seeded
from silkline.frontier.memory import MemoryFrontier
from silkline.outcome import Added
from silkline.request import Request
from silkline.seeds import Seeds


class Noting(MemoryFrontier):
    """fails_at: the number of the batch that the store does not take."""

    def __init__(self, fails_at: int = 0) -> None:
        super().__init__(FrontierOptions())
        self.batches: list[list[str]] = []
        self.fails_at = fails_at
        self.before: Any = None

    async def add(self, requests: Sequence[Request]) -> Added:
        if self.before:
            await self.before()
        self.batches.append([request.url for request in requests])
        if len(self.batches) == self.fails_at:
            raise FrontierError("the disk is full")
        return await super().add(requests)


class Produced:
    """A run, and what was told of it."""

    def __init__(self, frontier: Noting, *seeds: Any, **flow: Any) -> None:
        self.stopping = asyncio.Event()
        self.seen: list[Seeded] = []
        self.said: list[str] = []
        self.producer = Producer(
            frontier,
            Seeds(*seeds),
            Flow(**flow),
            stopping=self.stopping,
            say=self.said.append,
            watch=self.seen.append,
        )

    async def run(self) -> Seeded:
        return await self.producer.run()


async def opened(fails_at: int = 0) -> Noting:
    frontier = Noting(fails_at)
    await frontier.open()
    return frontier


def urls(number: int) -> Iterator[str]:
    return (f"http://a/{n}" for n in range(number))


async def test_all_is_added_in_batches_and_counted() -> None:
    frontier = await opened()
    produced = Produced(frontier, "http://a/0", urls(25), ["nope"], batch=10)
    assert await produced.run() == Seeded(25, 1, 1, ("seed 1: 'nope' has no scheme; write https://nope",))
    assert max(map(len, frontier.batches)) == 10
    assert (await frontier.stats()).waiting == 25
    assert produced.seen[-1].added == 25
    assert len(produced.seen) > 2


async def test_what_this_run_has_added_is_not_sent_again() -> None:
    frontier = await opened()
    assert await Produced(frontier, urls(10), urls(10), urls(12), batch=5).run() == Seeded(12, 20, 0)
    assert sum(map(len, frontier.batches)) < 20


async def test_requests_that_are_not_their_url_alone_are_all_sent() -> None:
    frontier = await opened()
    requests = [Request("http://a/"), Request("http://a/", method="POST"), Request("http://a/", key="2")]
    assert await Produced(frontier, requests, requests, batch=3).run() == Seeded(3, 3, 0)


async def test_without_dedup_in_the_frontier_nothing_is_left_out_on_the_way() -> None:
    frontier = await opened()
    await Produced(frontier, urls(10), urls(10), batch=5, remember=False).run()
    assert sum(map(len, frontier.batches)) == 20


async def test_memory_for_dedup_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(producer, "REMEMBERED", 1_000)
    frontier = await opened()
    produced = Produced(frontier, urls(10_000), batch=100)
    await produced.run()
    assert len(produced.producer._known) <= 1_000


async def test_another_visit_visits_again_and_the_same_one_does_not() -> None:
    frontier = await opened()
    requests = [*urls(3), Request("http://a/0", method="POST"), Request("http://a/0", key="mine")]
    seeded = [await Produced(frontier, requests, visit=visit).run() for visit in (None, "1", "1", "2")]
    assert [one.added for one in seeded] == [5, 5, 0, 5]


def test_two_ways_to_write_a_url_are_one_request_of_a_visit() -> None:
    first = visited(Request("http://a/?x=1&y=2#top"), "1")
    assert first.fingerprint == visited(Request("http://A/?y=2&x=1"), "1").fingerprint
    assert first.url == "http://a/?x=1&y=2#top"


async def test_a_limit_on_what_waits_is_never_passed() -> None:
    frontier = await opened()
    produced = Produced(frontier, urls(30), batch=7, max_waiting=10)
    running = asyncio.create_task(produced.run())
    await until(lambda: produced.said)
    produced.stopping.set()
    seeded = await running
    assert seeded.added == (await frontier.stats()).waiting == 10


async def test_a_stop_ends_at_a_batch_and_says_what_was_added() -> None:
    frontier = await opened()
    produced = Produced(frontier, urls(1_000), batch=10)

    async def stop_later() -> None:
        if len(frontier.batches) == 3:
            produced.stopping.set()

    frontier.before = stop_later
    seeded = await produced.run()
    assert seeded.added == (await frontier.stats()).waiting
    assert 0 < seeded.added < 1_000
    assert seeded.added % 10 == 0


async def test_a_store_that_fails_ends_the_run_and_what_was_added_is_told() -> None:
    frontier = await opened(fails_at=3)
    produced = Produced(frontier, urls(1_000), batch=10)
    with pytest.raises(FrontierError, match="the disk is full"):
        await produced.run()
    assert produced.seen[-1].added == (await frontier.stats()).waiting >= 20
    before = len(frontier.batches)
    await asyncio.sleep(0)
    assert len(frontier.batches) == before


class Failing:
    """A source that goes away."""

    invalid = 0
    reasons: tuple[str, ...] = ()
    closed = False

    def __iter__(self) -> Iterator[list[Request]]:
        try:
            yield [Request("http://a/")]
            raise SourceError("the database is gone")
        finally:
            self.closed = True


async def test_a_source_that_fails_ends_the_run_after_what_it_gave_is_added() -> None:
    frontier = await opened()
    produced = Produced(frontier, Failing())
    with pytest.raises(SourceError, match="is gone"):
        await produced.run()
    assert (await frontier.stats()).waiting == 1


class Endless(Failing):
    def __iter__(self) -> Iterator[list[Request]]:
        try:
            for number in count():
                yield [Request(f"http://a/{number}")]
        finally:
            self.closed = True


@pytest.mark.parametrize("end", ["stopped", "cancelled"])
async def test_a_source_is_closed_when_the_run_ends_early(end: str) -> None:
    source = Endless()
    produced = Produced(await opened(), source, batch=1)
    task = asyncio.create_task(produced.run())
    await until(lambda: produced.seen)
    if end == "stopped":
        produced.stopping.set()
    else:
        task.cancel()
    await asyncio.wait((task,))
    assert task.cancelled() == (end == "cancelled")
    await until(lambda: source.closed)
