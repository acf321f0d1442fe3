"""What can be asked of a job in Redis without joining it. Synchronous: for commands before a crawl begins."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from redis import exceptions

from silkline.config import FrontierOptions
from silkline.errors import FrontierError
from silkline.frontier.redis_link import address_of, client_of, passing
from silkline.frontier.redis_partition import prefix_of
from silkline.frontier.redis_reads import text_of, workers_of

OWN = re.compile(
    r"(meta|hosts|groups|aliases|paces|levels|expiry|delayed|ops|idle|hungry|taken|draining|positions|facts|config|stats"
    r"|workers|task:wait|task:dead|url:done|dead_items|leaving|away|(seen|due|wait|back|held|kept|cache):.*)",
    re.DOTALL,
)
"""Names behind a partition's prefix that are the job's. Whatever else begins like it is left alone."""

AT_ONCE = 1_000

LIVING = 10.0
"""Seconds since its last heartbeat for which a worker counts as living: it beats every two seconds."""


def exists(url: str, job: str) -> bool:
    """Whether the job was begun there, or has tasks in its inbox. Raises FrontierError if Redis is away."""
    with _client(url) as client:
        home = _home(url, job)
        return bool(client.exists(home + "meta") or client.exists(home + "task:wait"))


def outputs_in(url: str, job: str) -> frozenset[str]:
    """The names of the sinks that have a committed position."""
    return frozenset(positions_in(url, job))


def positions_in(url: str, job: str) -> dict[str, str]:
    """The committed position of each sink, by its name, as the sink wrote it."""
    found: dict[str, tuple[int, str]] = {}
    with _client(url) as client:
        meta = text_of(client.hgetall(_home(url, job) + "meta"))
        for number in range(int(meta.get("partitions", 1))):
            prefix = prefix_of(job, number, clustered=_clustered(url))
            for name, numbered in text_of(client.hgetall(prefix + "positions")).items():
                order, _, position = numbered.partition(" ")
                found[name] = max(found.get(name, (-1, "")), (int(order), position))
    return {name: position for name, (_, position) in found.items()}


def facts_in(url: str, job: str) -> dict[str, str]:
    """What `Frontier.remember` keeps about the job."""
    with _client(url) as client:
        return text_of(client.hgetall(_home(url, job) + "facts"))


def options_in(url: str, job: str) -> FrontierOptions | None:
    """The job as it was created, with the limits that were applied last; None where there is none."""
    with _client(url) as client:
        meta = text_of(client.hgetall(_home(url, job) + "meta"))
    if not meta:
        return None
    per_host, delay, ceiling = (*meta.get("limits", "8 0").split(), "None")[:3]
    return FrontierOptions(
        job=job,
        per_host=int(per_host),
        delay=float(delay),
        ceiling=None if ceiling == "None" else int(ceiling),
        partitions=int(meta["partitions"]),
        dedup=meta["dedup"],  # type: ignore[arg-type]
        bloom_capacity=int(meta["bloom_capacity"]),
        bloom_error=float(meta["bloom_error"]),
        politeness_by=meta.get("politeness_by", "host"),  # type: ignore[arg-type]
    )


def living_in(url: str, job: str) -> tuple[str, ...]:
    """The workers that had a heartbeat in the last few seconds."""
    with _client(url) as client:
        beats = text_of(client.hgetall(_home(url, job) + "workers"))
        if not beats:
            return ()
        seconds, micros = client.time(target_nodes="random") if _clustered(url) else client.time()
    return tuple(worker.id for worker in workers_of(beats, seconds + micros / 1e6) if worker.seen < LIVING)


def remove(
    url: str,
    job: str,
    progress: Callable[[int], None] = lambda count: None,
    *,
    keep_cache: bool = False,
) -> int:
    """Remove every key of the job and no other. Returns how many there were.

    keep_cache: all but its HTTP cache, which a fresh start is to find again.

    Workers that still run stop with an error: their job is gone, not finished.
    """
    clustered = _clustered(url)
    removed: int = 0
    with _client(url) as client:
        meta = text_of(client.hgetall(_home(url, job) + "meta"))
        partitions = int(meta.get("partitions", 1))
        prefixes = [prefix_of(job, number, clustered=clustered) for number in range(partitions)]
        # First what makes it a job, so that nobody goes on with half of it.
        removed += sum(int(client.delete(prefix + "meta")) for prefix in reversed(prefixes))
        for prefix in prefixes:
            keys: list[bytes] = []
            for key in client.scan_iter(match=_glob(prefix) + "*", count=AT_ONCE):
                name = key[len(prefix) :].decode("utf-8", "replace")
                if OWN.fullmatch(name) and not (keep_cache and name.startswith("cache:")):
                    keys.append(key)
                if len(keys) >= AT_ONCE:
                    removed += _unlink(client, keys)
                    progress(removed)
                    keys = []
            removed += _unlink(client, keys)
    return removed


def _unlink(client: Any, keys: list[bytes]) -> int:
    """All are of one slot, so that they are one command in a cluster, too."""
    return int(client.execute_command("UNLINK", *keys)) if keys else 0


def _clustered(url: str) -> bool:
    return url.partition("://")[0].endswith("+cluster")


def _home(url: str, job: str) -> str:
    return prefix_of(job, 0, clustered=_clustered(url))


def _glob(text: str) -> str:
    return re.sub(r"([\[\]*?\\])", r"\\\1", text)


@contextmanager
def _client(url: str) -> Iterator[Any]:
    address = address_of(url)
    try:
        client = client_of(url, asynchronous=False)
        try:
            yield client
        finally:
            client.close()
    except (exceptions.RedisError, exceptions.RedisClusterException, OSError) as error:
        raise FrontierError(f"Redis at {address} cannot be asked: {passing(error, address)}") from error
