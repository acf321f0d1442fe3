"""Responses in Redis or Valkey, for the workers of many machines; each verb is one script, so atomic.

Every script may be sent twice and then does no more than once.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Sequence
from functools import cache
from importlib.resources import files
from typing import Any

from silkline.fetch.cache.entry import Key, Meta, Stored, packed_body, packed_meta, unpacked_meta
from silkline.fetch.cache.store import LARGEST, SLACK, VARIANTS, new_id

Command = Callable[..., Awaitable[Any]]
"""`command("EVAL", …)`: sends one command to the server and gives its reply; waits for one that is away."""


class RedisCache:
    """See CacheStore.

    command: how to send a command. prefix: of the job's keys, such as "shop:". limit: bytes of compressed
    bodies and metadata.
    """

    def __init__(
        self, command: Command, prefix: str, limit: int, clock: Callable[[], float] = time.time
    ) -> None:
        self._command = command
        self._prefix = f"{prefix}cache:"
        self._limit = limit
        self._clock = clock

    async def open(self) -> None:
        """Nothing to prepare."""

    async def close(self) -> None:
        """Every write was done when it returned."""

    async def find(self, url: bytes, owner: bytes) -> Sequence[Stored]:
        flat = await self._run("find", url.hex(), owner.hex(), self._clock())
        fields = dict(zip(flat[::2], flat[1::2], strict=True))
        found: list[tuple[bytes, Stored]] = []
        for name, value in fields.items():
            variant, body = name[1:], fields.get(b"b" + name[1:])
            if name[:1] == b"m" and body is not None and (meta := unpacked_meta(value[16:])) is not None:
                found.append((value[:8], Stored(Key(url, owner, variant), value[8:16], meta, body)))
        return [stored for _, stored in sorted(found, key=lambda pair: pair[0], reverse=True)]

    async def put(self, key: Key, meta: Meta, body: bytes) -> None:
        packed, described = packed_body(body), _written(new_id(), meta)
        if len(packed) + len(described) > self._limit // LARGEST:
            await self.invalidate(key.url)
            return
        room = int(self._limit * SLACK)
        values = (described, packed, self._clock(), self._limit, room, VARIANTS)
        await self._run("put", *_place(key), *values)

    async def refresh(self, stored: Stored, meta: Meta) -> None:
        written = _written(stored.id, meta)
        await self._run("refresh", *_place(stored.key), stored.id, written, self._clock())

    async def forget(self, stored: Stored) -> None:
        await self._run("forget", *_place(stored.key), stored.id)

    async def invalidate(self, url: bytes) -> None:
        await self._run("invalidate", url.hex())

    async def _run(self, verb: str, *values: Any) -> Any:
        return await self._command("EVAL", _script(verb), 1, self._prefix, *values)


@cache
def _script(verb: str) -> str:
    folder = files(__package__) / "lua"
    return (folder / "common.lua").read_text() + (folder / f"{verb}.lua").read_text()


def _place(key: Key) -> tuple[Any, ...]:
    return (key.url.hex(), key.owner.hex(), key.variant)


def _written(writing: bytes, meta: Meta) -> bytes:
    return time.time_ns().to_bytes(8, "big") + writing + packed_meta(meta)
