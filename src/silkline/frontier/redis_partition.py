"""One partition of a job in Redis: its keys, and a call of each verb; `lua/*.lua` tell what each does."""

from __future__ import annotations

import asyncio
import json
import secrets
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import msgspec

from silkline.config import FrontierOptions
from silkline.frontier import rules
from silkline.frontier.dead_pages import DeadPage
from silkline.frontier.redis_link import FellBackError, RedisLink
from silkline.frontier.redis_wire import Arrivals, Letter, json_of, member_of, refused_of
from silkline.keys import expanded
from silkline.outcome import Done, Moved, Outcome, Refused, RetryLater, ends_a_visit
from silkline.protocols import Decide

_pack = msgspec.msgpack.Encoder().encode

HostTokens = list[tuple[str, list[str]]]
"""Tokens by host, as decimal digits: they are too long for a Lua number in MessagePack."""


def prefix_of(job: str, number: int, *, clustered: bool) -> str:
    """What all keys of a partition begin with. Partition 0 has the public names of the wire contract."""
    name = job if number == 0 else f"{job}:p{number}"
    return f"{{{name}}}:" if clustered else f"{name}:"


class Partition:
    """See `lua/common.lua` for the shape of a call. `clock` stands in for the server's in tests."""

    def __init__(
        self,
        link: RedisLink,
        prefix: str,
        channel: str,
        worker: str,
        options: FrontierOptions,
        clock: Callable[[], float] | None,
    ) -> None:
        self.prefix = prefix
        self.options = options
        self.epoch: str | None = None
        self._link = link
        self._key = f"{prefix}meta"
        self._channel = channel
        self._worker = worker
        self._clock = clock
        # A number is never used twice, by this process or another one that takes the worker's name.
        self._run = secrets.token_hex(4)
        self._number = 0
        self._lanes: dict[str, asyncio.Lock] = {}
        self._answered: dict[str, str] = {}
        """By lane, the last call whose reply has arrived."""
        self.fell_back = False
        """The server has lost calls that it had answered, which the next `lease` tells."""

    async def call(self, verb: str, args: Sequence[bytes] = (), **fields: Any) -> Any:
        """For verbs that may be sent twice."""
        return await self._link.run(verb, self._key, self._header(fields), args)

    async def once(self, verb: str, args: Sequence[bytes] = (), **fields: Any) -> Any:
        """For verbs that must not be done twice. One at a time: the server remembers the last one only."""
        async with self._lanes.setdefault(verb, asyncio.Lock()):
            self._number += 1
            lane, op = f"{self._worker}:{verb}", f"{self._run}{self._number:08x}"
            fields |= {"lane": lane, "op": op}
            before = self._answered.get(lane)
            try:
                reply = await self._link.run(
                    verb, self._key, self._header({**fields, "before": before}), args
                )
            except FellBackError:
                self.fell_back = True
                reply = await self._link.run(verb, self._key, self._header(fields), args)
            self._answered[lane] = op
            return reply

    async def command(self, word: str, name: str, *args: Any) -> Any:
        return await self._link.command(word, self.prefix + name, *args)

    async def enter(self, options: FrontierOptions, epoch: str) -> dict[str, str]:
        """Open or create; returns what the job is."""
        flat = await self.call(
            "open",
            new_epoch=epoch,
            job=options.job,
            version=2 if options.politeness_by in (None, "host") else 3,
            politeness_by=options.politeness_by or "host",
            partitions=options.partitions,
            dedup=options.dedup,
            bloom_capacity=options.bloom_capacity,
            bloom_error=options.bloom_error,
            ignore_params=json.dumps(expanded(options.ignore_params)),
        )
        meta = {flat[i].decode(): flat[i + 1].decode() for i in range(0, len(flat), 2)}
        self.epoch = meta.get("epoch")
        return meta

    async def put(self, name: str, changes: Mapping[str, str | None]) -> Any:
        """Set fields of a hash, unset those with None; returns all of it. Unlike a plain command it leaves
        nothing behind where the job is gone."""
        fields = [word for item in changes.items() if item[1] is not None for word in item]
        unset = [field for field, value in changes.items() if value is None]
        return await self.call("put", name=name, set=fields, unset=unset)

    async def add(self, batch: Arrivals) -> tuple[int, Refused]:
        added, refused, example = await self.once("add", batch.args, runs=batch.runs)
        return int(added), refused_of(int(refused), example)

    async def known(self, fingerprints: Iterable[int], *, mark: bool = False) -> set[int]:
        """Those that were seen before. mark: all are from now on."""
        asked = list(fingerprints)
        flags = await self.call("known", fingerprints=list(map(str, asked)), mark=mark)
        return {one for one, flag in zip(asked, flags, strict=True) if flag}

    async def lease(self, count: int, max_pages: int | None) -> list[Any]:
        reply: list[Any] = await self.call(
            "lease",
            count=count,
            worker=self._worker,
            max_pages=max_pages,
            lease_seconds=self.options.lease_seconds,
            window=self.options.window,
            least_share=rules.LEAST_SHARE,
            hunger=rules.HUNGER,
            second_helping=rules.SECOND_HELPING,
            answered=self._answered,
        )
        reply[7] = bool(reply[7]) or self.fell_back
        if reply[7]:
            self._answered, self.fell_back = {}, False
        return reply

    async def commit(
        self,
        outcomes: Sequence[Outcome],
        links: Arrivals,
        positions: Sequence[tuple[str, str, str | None]],
        claims: Iterable[int],
        is_ours: Callable[[str], bool],
    ) -> tuple[str, list[Any]]:
        """("ok", [added, refused, example]), ("stale", tokens), ("moved", []) or ("claimed", []).

        is_ours: whether a politeness key belongs to this partition.
        """
        done: dict[str, list[str]] = {}
        others: list[tuple[str | float, ...]] = []
        urls: list[bytes] = []
        payloads: list[bytes] = []
        for outcome in outcomes:
            lease, verdict = outcome.lease, outcome.verdict
            if isinstance(verdict, Done):
                if self.options.keep_done_urls:
                    urls.append(lease.request.url.encode())
                if not (outcome.block_host or outcome.dead_items or lease.request.onward):
                    done.setdefault(lease.host, []).append(str(lease.token))
                    continue
            if isinstance(verdict, (RetryLater, Moved)):
                payloads.append(_again(outcome))
            dead_items = rules.dead_items(outcome, 0.0)
            if dead_items:
                payloads.append(member_of(lease, dead_items))
            led, ended = lease.request.onward is not None, ends_a_visit(verdict)
            ending = (*_ending(outcome), outcome.block_host, bool(dead_items), ended, led)
            if isinstance(verdict, Moved):
                ending += (verdict.host, rules.ON_THE_WAY, is_ours(verdict.host))
            others.append((str(lease.token), lease.host, *ending))
        word, *rest = await self.once(
            "commit",
            [*urls, *payloads, *links.args],
            done=list(done.items()),
            others=others,
            urls=len(urls),
            positions=[(name, new, False if old is None else old) for name, new, old in positions],
            runs=links.runs,
            claims=list(map(str, claims)),
        )
        return word.decode() if isinstance(word, bytes) else word, rest

    async def pace(self, hosts: Sequence[str], decide: Decide) -> None:
        """Ask what states there are, decide, and say so; again for those that others were quicker with."""
        asked = list(dict.fromkeys(hosts))
        changes: list[tuple[str, int, float, float]] = []
        states: list[bytes] = []
        while asked or changes:
            now, *told = await self.call("pace", states, hosts=asked, changes=changes)
            asked, changes, states = [], [], []
            for key, state in zip(told[::2], told[1::2], strict=True):
                paced = decide(key.decode(), state or None, float(now))
                if paced is not None:
                    changes.append((key.decode(), paced.cap, float(paced.delay), float(paced.block)))
                    states += (state, paced.state)

    async def check(self, held: HostTokens, *, renew: bool) -> set[int]:
        """The tokens among them that are not held any more."""
        seconds = self.options.lease_seconds if renew else None
        return {int(token) for token in await self.call("check", held=held, lease_seconds=seconds)}

    async def release(
        self, held: HostTokens, *, everything: bool = False, keep: Mapping[str, bool] | None = None
    ) -> None:
        """everything: all that the worker holds, but for the tokens in `keep`."""
        await self.call("release", held=held, worker=self._worker, all=everything, keep=keep)

    async def take_out(self, letters: Sequence[Letter], *, again: bool) -> int:
        """Remove dead letters from their list; with `again` they are waiting. Returns how many were where
        they had been read."""
        args: list[bytes] = []
        for letter in letters:
            request = msgspec.structs.replace(letter.request, retry_count=0, spared=0)
            args += (letter.text, letter.fingerprint.to_bytes(8, "big", signed=True) + json_of(request))
        heads = [
            (letter.host, rules.priority_of(letter.request), letter.id, str(letter.fingerprint), letter.place)
            for letter in letters
        ]
        (moved,) = await self.once("resend", args, letters=heads, again=again)
        return int(moved)

    async def take_out_items(
        self, pages: Sequence[tuple[DeadPage, bytes, bytes]], *, again: bool
    ) -> list[bool]:
        """Remove dead items: pages with their members of `dead_items`, and what they become. With `again`
        that is a payload, and the page is waiting. Returns for each whether the member was there."""
        heads = [(page.host, rules.priority_of(page.request), page.id) for page, _, _ in pages]
        args = [text for _, old, new in pages for text in (old, new)]
        return [bool(there) for there in await self.once("items", args, pages=heads, again=again)]

    def _header(self, fields: dict[str, Any]) -> bytes:
        options = self.options
        return _pack(
            {
                "epoch": self.epoch,
                "now": self._clock() if self._clock else None,
                "channel": self._channel,
                "per_host": options.per_host,
                "delay": float(options.delay),
                "ceiling": options.ceiling,
                "max_pages_per_host": options.max_pages_per_host,
                "dedup": options.dedup,
                "sweep": rules.SWEEP,
                "quick_returns": rules.QUICK_RETURNS,
                "max_deliveries": options.max_deliveries,
                **fields,
            }
        )


def by_host(tokens: Iterable[tuple[int, str]]) -> HostTokens:
    groups: dict[str, list[str]] = {}
    for token, host in tokens:
        groups.setdefault(host, []).append(str(token))
    return list(groups.items())


def _again(outcome: Outcome) -> bytes:
    request, verdict = outcome.lease.request, outcome.verdict
    if isinstance(verdict, Moved):
        return outcome.lease.fingerprint.to_bytes(8, "big", signed=True) + json_of(
            rules.moved(request, verdict.onward)
        )
    if isinstance(verdict, RetryLater):
        request = rules.retried(request, cost=verdict.costs_retry)
    return outcome.lease.fingerprint.to_bytes(8, "big", signed=True) + json_of(request)


def _ending(outcome: Outcome) -> tuple[str | float, ...]:
    """(verdict, after, cause, error)"""
    verdict = outcome.verdict
    if isinstance(verdict, Done):
        return "done", 0.0, "", ""
    if isinstance(verdict, Moved):
        return "moved", 0.0, "", ""
    if isinstance(verdict, RetryLater):
        name = "retry" if verdict.costs_retry else "spared"
        return name, verdict.after, verdict.cause, rules.storable(verdict.error)
    return "dead", 0.0, verdict.cause, rules.storable(verdict.error)
