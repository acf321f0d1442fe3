"""A job in Redis: its partitions, and which host belongs to which."""

from __future__ import annotations

import json
import secrets
import zlib
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from silkline.config import FrontierOptions
from silkline.errors import ConfigError, FrontierError, JobError
from silkline.frontier import rules
from silkline.frontier.groups import Groups
from silkline.frontier.redis_link import RedisLink
from silkline.frontier.redis_partition import Partition, prefix_of
from silkline.frontier.redis_wire import Placed, placed
from silkline.keys import KeyRules, agreed
from silkline.protocols import Clock, Resolve
from silkline.request import Request

VERSIONS = ("1", "2", "3")
"""A job of version 1 ignores no parameters of URLs, whatever the settings say; one of version 3 is polite by
something else than hosts."""


class Job:
    """A politeness key belongs to one partition, by its hash: its queues and its limits are in one place."""

    def __init__(
        self,
        link: RedisLink,
        options: FrontierOptions,
        clock: Clock | None,
        resolve: Resolve | None = None,
    ) -> None:
        self.options = options
        self.keys = KeyRules(options.ignore_params)
        self.groups = Groups(options.politeness_by, self._grouped, resolve)
        self.worker = rules.new_worker_id()
        self.channel = f"{options.job}:news"
        self._link = link
        self._clock = clock
        self._resolve = resolve
        self._clustered = link.url.partition("://")[0].endswith("+cluster")
        self._partitions: list[Partition] = []

    async def enter(self) -> None:
        """Create the job, or join it. Raises JobError where it is not what the options say."""
        wanted, epoch = self.options, secrets.token_hex(8)
        home = self._partition(0)
        meta = await home.enter(wanted, epoch)
        if meta.get("version") not in VERSIONS:
            raise JobError(
                f"the job {wanted.job!r} was written by a newer silkline (version {meta.get('version')}); "
                "update silkline on this machine"
            )
        self.options = home.options = settled(wanted, meta)
        self.keys = KeyRules(json.loads(meta.get("ignore_params", "[]")))
        if not agreed(wanted.ignore_params, self.keys.ignored):
            raise JobError(rules.other_keys(wanted.job, self.keys.ignored))
        if self.options.max_pages is not None and self.options.partitions > 1:
            raise ConfigError("max_pages counts in one place: it needs a job with partitions=1")
        partitions = [home]
        for number in range(1, self.options.partitions):
            partition = self._partition(number)
            partitions.append(partition)
            if (await partition.enter(self.options, meta["epoch"]))["epoch"] != meta["epoch"]:
                raise JobError(
                    f"partition {number} of job {wanted.job!r} belongs to an earlier job of that name: "
                    f"remove what is left of it with: silkline purge --job {wanted.job}"
                )
        self.groups = Groups(self.options.politeness_by, self._grouped, self._resolve)
        self._partitions = partitions

    def leave(self) -> None:
        self._partitions = []

    @property
    def partitions(self) -> list[Partition]:
        """Raises FrontierError unless entered."""
        if not self._partitions:
            raise FrontierError("the frontier is not open")
        return self._partitions

    @property
    def home(self) -> Partition:
        """The one with the inbox, the facts and the settings."""
        return self.partitions[0]

    async def placed(self, requests: Iterable[Request]) -> list[Placed]:
        """Raises BadUrlError or TaskError; then nothing of the batch can be added."""
        requests = list(requests)
        return placed(requests, self.keys, await self.groups.keys(request.url for request in requests))

    def of(self, host: str) -> Partition:
        partitions = self.partitions
        return partitions[zlib.crc32(host.encode()) % len(partitions)]

    def spread(self, requests: Iterable[Placed]) -> dict[Partition, list[Placed]]:
        groups: dict[Partition, list[Placed]] = {}
        for request in requests:
            groups.setdefault(self.of(request.host), []).append(request)
        return groups

    def spread_tokens(self, held: Iterable[tuple[int, str]]) -> dict[Partition, list[tuple[int, str]]]:
        """(token, host) of leases, by partition."""
        groups: dict[Partition, list[tuple[int, str]]] = {}
        for token, host in held:
            groups.setdefault(self.of(host), []).append((token, host))
        return groups

    async def _grouped(self, proposals: Mapping[str, str]) -> Mapping[str, str]:
        """The key of each host is kept in the host's own partition, which is not that of the key."""
        shares: dict[Partition, list[str]] = {}
        for host, key in proposals.items():
            shares.setdefault(self.of(host), []).extend((host, key))
        found: dict[str, str] = {}
        for partition, pairs in shares.items():
            words = [word.decode() for word in await partition.call("group", pairs=pairs)]
            found.update(zip(words[::2], words[1::2], strict=True))
        return found

    def _partition(self, number: int) -> Partition:
        prefix = prefix_of(self.options.job, number, clustered=self._clustered)
        return Partition(self._link, prefix, self.channel, self.worker, self.options, self._clock)


def settled(wanted: FrontierOptions, meta: Mapping[str, str]) -> FrontierOptions:
    """The options with what the job was created with. Raises JobError where something else is asked for."""
    default = FrontierOptions()
    kept: dict[str, Any] = {
        "partitions": int(meta["partitions"]),
        "dedup": meta["dedup"],
        "bloom_capacity": int(meta["bloom_capacity"]),
        "bloom_error": float(meta["bloom_error"]),
        "politeness_by": meta.get("politeness_by", "host"),
    }
    for name, value in kept.items():
        asked = getattr(wanted, name)
        if asked not in (value, getattr(default, name)):
            raise JobError(
                f"the job {wanted.job!r} was created with {name}={value}, not {asked}: that cannot change; "
                "leave it out, choose another --job, or start over with --fresh"
            )
    return msgspec.structs.replace(wanted, **kept)
