"""What the cache asks of a place to keep responses."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Protocol

from silkline.fetch.cache.entry import Key, Meta, Stored

VARIANTS = 16
"""Responses of one URL and owner that are looked at; Vary may ask for endless ones."""

LARGEST = 8
"""A response may take an eighth of the cache; larger ones are not kept."""


SLACK = 0.9
"""What is left of the limit once there was too much: so not every write has to make room."""


class CacheStore(Protocol):
    """Keeps responses, bounded in size: what was used longest ago goes first. Several processes may share it.

    Every verb raises CacheError where the store fails. A write may be done later than it returns, and is
    lost where the process is killed before; it is never half done.
    """

    async def open(self) -> None:
        """Raises ConfigError for a place that cannot be used."""

    async def find(self, url: bytes, owner: bytes) -> Sequence[Stored]:
        """At most VARIANTS of them, the last written first."""

    async def put(self, key: Key, meta: Meta, body: bytes) -> None:
        """Replaces what was there."""

    async def refresh(self, stored: Stored, meta: Meta) -> None:
        """New metadata for the same body; nothing where another response has taken its place since."""

    async def forget(self, stored: Stored) -> None:
        """Nothing where another response has taken its place since."""

    async def invalidate(self, url: bytes) -> None:
        """Forget everything of a URL, whoever fetched it."""

    async def close(self) -> None:
        """Finish the writes. Idempotent."""


def new_id() -> bytes:
    return os.urandom(8)
