"""Every backend is held equal to the memory frontier over random histories.

`SILKLINE_SOAK=1` runs many more and longer ones.
"""

from __future__ import annotations

import asyncio
import os
import re
import tempfile
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from silkline.config import FrontierOptions
from silkline.frontier import MemoryFrontier
from silkline.keys import KeyRules
from silkline.outcome import (
    Alias,
    Dead,
    DeadItem,
    Done,
    Heartbeat,
    HostPace,
    Item,
    Lease,
    Moved,
    Outcome,
    Overview,
    RetryLater,
    Verdict,
)
from silkline.protocols import Frontier, Positions
from silkline.request import Onward, Request
from silkline.url import host_of
from tests.frontier.conftest import BACKENDS, ManualClock

HOSTS = ["a", "b", "c", "d"]
URLS = [f"http://{host}/{n}" for host in HOSTS for n in range(6)]
URLS += ["http://a/1?utm_source=x", "http://b/2?sid=0123456789abcdef", "http://c/3?ref=1"]
CAUSES = ["timeout", "http_404", "crash"]

hosts = st.sampled_from([host_of(f"http://{host}/") for host in HOSTS])
maybe_host = st.none() | hosts
maybe_item_cause = st.none() | st.sampled_from(["item", "step", "refused"])
maybe_cause = st.none() | st.sampled_from(CAUSES)
quarters = st.sampled_from([0.0, 0.25, 0.5, 1.0, 3.0, 10.0])
requests = st.lists(
    st.builds(
        Request,
        st.sampled_from(URLS),
        priority=st.sampled_from([0, 0, 0, 7, -3]),
        label=st.sampled_from(["default", "author"]),
        key=st.sampled_from([None, None, None, "one key", "another"]),
    ),
    max_size=12,
)
aliases = st.lists(
    st.sampled_from([*URLS, "http://a/elsewhere", "http://b/elsewhere"]).map(
        lambda url: Alias(host_of(url), KeyRules(["default"]).fingerprint(url))
    ),
    max_size=2,
)
dead_items = st.lists(
    st.builds(
        DeadItem,
        st.just(0),
        st.integers(0, 3),
        st.just("http://a/"),
        st.sampled_from(["item", "step", "refused"]),
        st.text(max_size=3),
        st.just("{}"),
        st.sampled_from(["", "", "out.db"]),
    ),
    max_size=3,
)
verdicts: st.SearchStrategy[Verdict] = st.one_of(
    st.just(Done()),
    st.builds(RetryLater, quarters, st.sampled_from(CAUSES), st.text(max_size=5), st.booleans()),
    st.builds(Dead, st.sampled_from([*CAUSES, "robots"]), st.text(max_size=5)),
    st.sampled_from(["http://a/elsewhere", "http://d/elsewhere", "http://e/elsewhere"]).map(
        lambda url: Moved(host_of(url), Onward(url, ("http://a/0",)))
    ),
)
options = st.builds(
    FrontierOptions,
    per_host=st.integers(1, 4),
    delay=st.sampled_from([0.0, 0.0, 0.25, 1.0]),
    max_pages=st.none() | st.integers(1, 20),
    lease_seconds=st.sampled_from([4.0, 60.0]),
    max_deliveries=st.integers(1, 5),
    window=st.sampled_from([0.5, 2.0]),
    ceiling=st.none() | st.integers(1, 6),
    max_pages_per_host=st.none() | st.none() | st.integers(1, 5),
)


paces = st.builds(HostPace, st.integers(1, 6), quarters, quarters, st.binary(min_size=1, max_size=3))


class Broken(Exception):
    pass


class Comparison(RuleBasedStateMachine):
    """The same history for both, and the same answers from both."""

    backend: str

    @initialize(options=options)
    def start(self, options: FrontierOptions) -> None:
        self.clock = ManualClock()
        self.options = options
        self.directory = tempfile.TemporaryDirectory()
        self.loop = asyncio.new_event_loop()
        self.memory: Frontier = MemoryFrontier(options, clock=self.clock)
        self.other = self._another()
        self.loop.run_until_complete(self.memory.open())
        self.loop.run_until_complete(self.other.open())
        self.leases: list[Lease] = []

    def _another(self) -> Frontier:
        return BACKENDS[self.backend](Path(self.directory.name), self.options, self.clock)

    def both(self, verb: Callable[[Frontier], Awaitable[Any]]) -> Any:
        expected, got = [
            self.loop.run_until_complete(_answer(verb, frontier)) for frontier in (self.memory, self.other)
        ]
        assert got == expected
        return expected

    @rule(requests=requests)
    def add(self, requests: list[Request]) -> None:
        self.both(lambda f: f.add(requests))

    @rule(count=st.integers(0, 9))
    def lease(self, count: int) -> None:
        self.leases += self.both(lambda f: f.lease(count)).leases

    @rule(seconds=st.sampled_from([0.25, 0.5, 1.0, 4.0, 61.0, 300.0]))
    def wait(self, seconds: float) -> None:
        self.clock.now += seconds

    @precondition(lambda self: self.leases)
    @rule(data=st.data())
    def renew(self, data: st.DataObject) -> None:
        tokens = [lease.token for lease in self._some(data)]
        self.both(lambda f: f.renew(tokens))

    @precondition(lambda self: self.leases)
    @rule(data=st.data())
    def release(self, data: st.DataObject) -> None:
        tokens = [lease.token for lease in self._some(data)]
        self.both(lambda f: f.release(tokens))

    @precondition(lambda self: self.leases)
    @rule(data=st.data(), delivery=st.sampled_from(["none", "kept", "broken"]))
    def commit(self, data: st.DataObject, delivery: str) -> None:
        """Old leases too: these outcomes are stale."""
        outcomes = [
            Outcome(
                lease,
                data.draw(verdicts),
                items=(Item(lease.fingerprint, 0, {}),),
                links=tuple(data.draw(requests)),
                aliases=tuple(data.draw(aliases)),
                dead_items=tuple(data.draw(dead_items)),
                block_host=data.draw(st.sampled_from([0.0, 0.0, 0.0, 2.0])),
            )
            for lease in self._some(data)
        ]
        self.both(lambda f: f.distinct(outcomes))
        deliver = None if delivery == "none" else _Delivery(delivery == "broken")
        self.both(lambda f: f.commit(outcomes, deliver))

    @rule()
    def deliver_nothing(self) -> None:
        self.both(lambda f: f.commit([], _Delivery(broken=False)))

    @rule(host=hosts, seconds=quarters)
    def block_host(self, host: str, seconds: float) -> None:
        self.both(lambda f: f.block_host(host, seconds))

    @rule(host=hosts, delay=st.none() | quarters, cap=st.none() | st.integers(1, 5))
    def limit_host(self, host: str, delay: float | None, cap: int | None) -> None:
        self.both(lambda f: f.limit_host(host, delay=delay, cap=cap))

    @rule(
        keys=st.lists(hosts, max_size=3),
        pace=st.none() | paces,
    )
    def pace(self, keys: list[str], pace: HostPace | None) -> None:
        """What is decided on is the same on both."""

        async def paced(frontier: Frontier) -> list[tuple[str, bytes | None, float]]:
            asked = []

            def decide(host: str, state: bytes | None, now: float) -> HostPace | None:
                asked.append((host, state, now))
                return pace

            await frontier.pace(keys, decide)
            return asked

        self.both(paced)

    @rule(cause=maybe_cause, host=maybe_host, limit=st.none() | st.integers(0, 3))
    def resend(self, cause: str | None, host: str | None, limit: int | None) -> None:
        self.both(lambda f: f.dead_letters.resend(cause=cause, host=host, limit=limit))

    @rule(cause=maybe_cause, host=maybe_host, limit=st.none() | st.integers(0, 3))
    def drop(self, cause: str | None, host: str | None, limit: int | None) -> None:
        self.both(lambda f: f.dead_letters.drop(cause=cause, host=host, limit=limit))

    @rule(cause=maybe_cause, host=maybe_host, limit=st.integers(0, 5))
    def list_dead(self, cause: str | None, host: str | None, limit: int) -> None:
        self.both(lambda f: f.dead_letters.newest(cause=cause, host=host, limit=limit))

    @rule(cause=maybe_item_cause, host=maybe_host, limit=st.none() | st.integers(0, 3))
    def resend_items(self, cause: str | None, host: str | None, limit: int | None) -> None:
        self.both(lambda f: f.dead_items.resend(cause=cause, host=host, limit=limit))

    @rule(cause=maybe_item_cause, host=maybe_host, limit=st.none() | st.integers(0, 3))
    def drop_items(self, cause: str | None, host: str | None, limit: int | None) -> None:
        self.both(lambda f: f.dead_items.drop(cause=cause, host=host, limit=limit))

    @rule(cause=maybe_item_cause, host=maybe_host, limit=st.integers(0, 5))
    def list_dead_items(self, cause: str | None, host: str | None, limit: int) -> None:
        self.both(lambda f: f.dead_items.newest(cause=cause, host=host, limit=limit))

    @rule(url=st.sampled_from(URLS))
    def explain(self, url: str) -> None:
        self.both(lambda f: f.explain(url))

    @rule(facts=st.dictionaries(st.text(max_size=3), st.text(max_size=3), max_size=2))
    def remember(self, facts: dict[str, str]) -> None:
        self.both(lambda f: f.remember(facts))

    @rule(changes=st.dictionaries(st.sampled_from(["delay", "paused", ""]), st.none() | st.text(max_size=3)))
    def configure(self, changes: dict[str, str | None]) -> None:
        self.both(lambda f: f.configure(changes))

    @rule(pages=st.integers(0, 2**53))
    def heartbeat(self, pages: int) -> None:
        self.both(lambda f: f.heartbeat(Heartbeat("box", 1, 0.0, pages=pages)))

    @rule(options=options)
    def apply(self, options: FrontierOptions) -> None:
        self.options = options
        self.both(lambda f: f.apply(options))

    @rule()
    def reopen(self) -> None:
        self.both(lambda f: f.close())
        self.other = self._another()
        self.both(lambda f: f.open())

    @invariant()
    def same_everywhere(self) -> None:
        self.both(lambda f: f.stats())
        self.both(lambda f: f.dead_letters.causes())
        self.both(lambda f: f.dead_letters.newest())
        self.both(lambda f: f.dead_items.causes())
        self.both(lambda f: f.dead_items.newest())
        self.both(lambda f: f.positions())
        self.both(lambda f: f.recall())
        self.both(lambda f: overview_of(f))
        self.both(lambda f: f.blocked(2))

    def teardown(self) -> None:
        for url in URLS:
            self.both(lambda f, url=url: f.explain(url))
        self.both(lambda f: f.close())
        self.loop.close()
        self.directory.cleanup()

    def _some(self, data: st.DataObject) -> Sequence[Lease]:
        recent = self.leases[-12:]
        chosen = st.lists(st.sampled_from(recent), min_size=1, max_size=6)
        old = st.lists(st.sampled_from(self.leases), max_size=1)
        return data.draw(chosen) + data.draw(old)


async def overview_of(frontier: Frontier) -> Overview:
    """What the store alone decides: neither the worker's name nor the lines about the store."""
    overview = await frontier.overview(3)
    workers = tuple(msgspec.structs.replace(worker, id="") for worker in overview.workers)
    return msgspec.structs.replace(overview, workers=workers, notes=())


class _Delivery:
    """Counts up the position of one sink, or fails."""

    def __init__(self, broken: bool) -> None:
        self._broken = broken

    def __call__(self, outcomes: Sequence[Outcome], positions: Positions) -> Positions:
        if self._broken:
            raise Broken
        items = sum(len(outcome.items) for outcome in outcomes)
        return {"sink": str(int(positions.get("sink", "0")) + 1 + len(outcomes) + 100 * items)}


async def _answer(verb: Callable[[Frontier], Awaitable[Any]], frontier: Frontier) -> Any:
    """What it returned or raised, without the names of the workers, which differ."""
    try:
        return _nameless(await verb(frontier))
    except Broken as error:
        return type(error)


def _nameless(answer: Any) -> Any:
    plain = msgspec.to_builtins(answer, builtin_types=(bytes,)) if isinstance(answer, list) else None
    if plain and isinstance(plain[0], dict):
        return [{**letter, "worker": bool(letter.get("worker"))} for letter in plain]
    if hasattr(answer, "place"):
        return answer.place, re.sub(r"by worker \S+", "by a worker", answer.detail)
    return answer


LONG = bool(os.environ.get("SILKLINE_SOAK"))


@pytest.mark.parametrize("backend", [name for name in BACKENDS if name != "memory"])
@pytest.mark.timeout(3600 if LONG else 300)
def test_a_backend_answers_like_the_memory_frontier(backend: str) -> None:
    machine = type(f"Comparison_{backend}", (Comparison,), {"backend": backend})
    case = machine.TestCase
    case.settings = settings(
        max_examples=2_000 if LONG else 25,
        stateful_step_count=120 if LONG else 40,
        # Shrinking a history of steps takes minutes: for the soak.
        phases=[Phase.explicit, Phase.reuse, Phase.generate, *([Phase.shrink] if LONG else [])],
        deadline=None,
        derandomize=not LONG,  # the soak looks for new histories; every other run is the same
        suppress_health_check=list(HealthCheck),
    )
    case("runTest").debug()
