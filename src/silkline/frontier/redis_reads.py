"""The verbs that only read, and what Redis says of itself."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any

import msgspec

from silkline.config import FrontierOptions
from silkline.errors import ConfigError, FrontierError
from silkline.frontier import rules
from silkline.frontier.redis_job import Job
from silkline.frontier.redis_link import RedisLink
from silkline.frontier.redis_partition import Partition
from silkline.frontier.redis_wire import fingerprint_bytes, letter_of, request_of
from silkline.outcome import (
    Blocked,
    Heartbeat,
    HostState,
    Overview,
    Stats,
    Whereabouts,
    WorkerState,
    blocked_of,
)
from silkline.request import Request

LOOKED_AT = 200_000
"""Entries of lists that one `explain` looks at, at most: the server does nothing else meanwhile."""
HOSTS_LOOKED_AT = 5_000
LEGS = 100
"""Hosts to which one request is followed."""

Raw = Mapping[Partition, Mapping[str, str]]
"""By partition: its sinks' positions, each with a number in front that says which one is newest."""


def text_of(flat: Any) -> dict[str, str]:
    """A hash, whichever protocol version it came by."""
    if isinstance(flat, dict):
        flat = [word for pair in flat.items() for word in pair]
    words = [word.decode("utf-8", "replace") if isinstance(word, bytes) else str(word) for word in flat]
    return dict(zip(words[::2], words[1::2], strict=True))


def newest(raw: Raw) -> dict[str, str]:
    """A sink's position is in the partition whose commit came last."""
    found: dict[str, tuple[int, str]] = {}
    for positions in raw.values():
        for name, numbered in positions.items():
            number, _, position = numbered.partition(" ")
            found[name] = max(found.get(name, (-1, "")), (int(number), position))
    return {name: position for name, (_, position) in found.items()}


def moves(raw: Raw, partition: Partition, changed: Mapping[str, str]) -> list[tuple[str, str, str | None]]:
    """(sink, new, old) as this partition is to store it."""
    moved = []
    for name, position in changed.items():
        numbers = [int(kept[name].partition(" ")[0]) for kept in raw.values() if name in kept]
        moved.append((name, f"{max(numbers, default=0) + 1} {position}", raw[partition].get(name)))
    return moved


async def explain(job: Job, host: str, fingerprint: int) -> Whereabouts:
    """host: the politeness key of the request's own URL."""
    key, led = host, False
    for _ in range(LEGS):
        place, *facts = await job.of(key).call(
            "explain",
            [fingerprint_bytes(fingerprint)],
            host=key,
            led=led,
            fingerprint=str(fingerprint),
            hex=fingerprint_bytes(fingerprint).hex(),
            limit=LOOKED_AT,
        )
        if place != b"away":
            break
        key, led = facts[0].decode(), True
    match place.decode():
        case "never seen":
            return rules.not_seen(host, int(facts[0]), job.options.max_pages_per_host)
        case "waiting" | "leaving" | "delayed" | "leased" | "dead":
            found, request = _found(place.decode(), facts, key)
            return rules.on_the_way(found, request, facts[0].decode() if place == b"leaving" else key)
        case "alias":
            return rules.ALIAS
        case "unknown":
            detail = (
                f"known, but not among the {LOOKED_AT:,} entries that were looked at: done, or far behind"
            )
            return Whereabouts("waiting or done", detail)
    return rules.DONE


def _found(place: str, facts: Sequence[Any], host: str) -> tuple[Whereabouts, Request]:
    """With the request as it is kept."""
    if place == "dead":
        letter = letter_of(facts[0])
        described = rules.describe_dead(letter.cause, letter.error, letter.deliveries, letter.at)
        return described, letter.request
    request = request_of(facts[-1])
    if place == "waiting":
        ahead, priority, blocked, now = facts[:4]
        return rules.describe_waiting(int(ahead), host, int(priority), float(blocked), float(now)), request
    if place == "leaving":
        return Whereabouts("waiting", f"on its way to {facts[0].decode()}"), request
    if place == "delayed":
        due, retries, cause = facts[:3]
        return rules.describe_delayed(float(due), int(retries), cause.decode()), request
    worker, expires, deliveries = facts[:3]
    return rules.describe_leased(worker.decode(), float(expires), int(deliveries)), request


async def waiting_hosts(partition: Partition) -> AsyncIterator[list[str]]:
    """The hosts that have something waiting, in groups; a host may come twice."""
    for level in await partition.command("ZRANGE", "levels", 0, -1):
        name = f"due:{level.decode()}"
        members = await partition.command("ZRANGE", name, 0, -1)
        for start in range(0, len(members), 200):
            yield [member[26:].decode() for member in members[start : start + 200]]


async def overview(
    link: RedisLink, partitions: Sequence[Partition], stats: Stats, hosts: int, options: FrontierOptions
) -> Overview:
    states: list[HostState] = []
    known, oldest, with_dead_items = 0, None, 0
    for partition in partitions:
        reply = await partition.call("overview", limit=HOSTS_LOOKED_AT)
        now = float(reply[2])
        with_dead_items += int(await partition.command("ZCARD", "dead_items"))
        known += (len(reply) - 3) // 9
        if reply[1]:
            age = max(0.0, now - float(reply[1]))
            oldest = age if oldest is None else max(oldest, age)
        found = [_host_state(reply[i : i + 9], now) for i in range(3, len(reply), 9)]
        states += await _with_paces(partition, _busiest(found)[:hosts])
    home = partitions[0]
    workers = text_of(await home.command("HGETALL", "workers"))
    return Overview(
        stats=stats,
        hosts=tuple(_busiest(states)[:hosts]),
        host_count=known,
        workers=workers_of(workers, now),
        oldest_lease=oldest,
        with_dead_items=with_dead_items,
        live=text_of(await home.command("HGETALL", "config")),
        notes=(*await _dedup_notes(partitions, options), *await persistence(link)),
    )


async def blocked(partitions: Sequence[Partition], most: int) -> Blocked:
    found, now = [], 0.0
    for partition in partitions:
        reply = await partition.call("blocked", limit=HOSTS_LOOKED_AT)
        now = float(reply[0])
        found += [(reply[i].decode(), float(reply[i + 1])) for i in range(1, len(reply), 2)]
    return blocked_of(found, most, now)


async def host(partition: Partition, key: str) -> HostState | None:
    _, _, now, *fields = await partition.call("overview", limit=1, key=key)
    if not fields:
        return None
    (state,) = await _with_paces(partition, [_host_state(fields, float(now))])
    return state


def _busiest(states: Sequence[HostState]) -> list[HostState]:
    return sorted(states, key=lambda state: (-state.waiting, -state.leased, state.key))


async def _with_paces(partition: Partition, states: Sequence[HostState]) -> list[HostState]:
    """With what their paces were decided on."""
    if not states:
        return []
    kept = await partition.command("HMGET", "paces", *(state.key for state in states))
    return [
        msgspec.structs.replace(state, pace_state=text or b"")
        for state, text in zip(states, kept, strict=True)
    ]


def _host_state(fields: Sequence[Any], now: float) -> HostState:
    key, waiting, leased, delay, cap, due, blocked, pace_cap, pace_delay = fields
    return HostState(
        key=key.decode(),
        waiting=int(waiting),
        leased=int(leased),
        delay=float(delay) if delay else None,
        cap=int(cap) if cap else None,
        due_in=max(0.0, max(float(due), float(blocked)) - now),
        blocked_for=max(0.0, float(blocked) - now),
        pace=(int(pace_cap), float(pace_delay)) if pace_cap else None,
    )


class _Beat(Heartbeat, frozen=True, kw_only=True):
    seen: float


def workers_of(texts: Mapping[str, str], now: float) -> tuple[WorkerState, ...]:
    """`now`: by the server's clock."""
    found = []
    for name, text in sorted(texts.items()):
        try:
            beat = msgspec.json.decode(text, type=_Beat)
        except msgspec.MsgspecError:
            continue  # another program's
        plain = {field: getattr(beat, field) for field in Heartbeat.__struct_fields__}
        found.append(WorkerState(name, max(0.0, now - beat.seen), Heartbeat(**plain)))
    return tuple(found)


async def _dedup_notes(partitions: Sequence[Partition], options: FrontierOptions) -> tuple[str, ...]:
    if options.dedup == "exact":
        return ()
    if options.dedup == "none":
        return ("dedup: none; a URL that is added twice is visited twice",)
    layers = 1
    for partition in partitions:
        layers = max(layers, int(await partition.command("HGET", "meta", "bloom_layers") or 1))
    chance = options.bloom_error * (1 - 0.5**layers)
    return (
        f"dedup: bloom, {layers} layer(s) from {options.bloom_capacity:,} URLs on; a new URL is taken for "
        f"seen, and so lost, with a chance of at most {chance:.3g}",
    )


async def persistence(link: RedisLink) -> tuple[str, ...]:
    """What would lose the job: no persistence, or eviction of keys; nothing where that may not be asked."""
    try:
        policy = await _config(link, "maxmemory-policy")
        limit = await _config(link, "maxmemory")
        aof, rdb = await _config(link, "appendonly"), await _config(link, "save")
    except (ConfigError, FrontierError):  # a user without leave to ask, a service without that command
        return ()
    notes = []
    if aof == "no" and rdb == "":
        notes.append(
            "this Redis keeps nothing over a restart, and would lose the job: "
            "set appendonly yes (with appendfsync everysec), or save 60 1000"
        )
    if limit not in ("", "0") and policy not in ("", "noeviction"):
        notes.append(
            f"this Redis throws keys away when its memory is full (maxmemory-policy {policy}), and would "
            "lose parts of the job: set maxmemory-policy noeviction"
        )
    return tuple(notes)


async def _config(link: RedisLink, name: str) -> str:
    reply = await link.command("CONFIG GET", name)
    return text_of(reply).get(name, "")
