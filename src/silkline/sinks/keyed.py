"""The base of sinks that tell items apart by their identity: databases, and a user's own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from silkline.outcome import Batch, Item


class OwnSink:
    """Where items go, in two methods: `open` and `write`; the rest may stay as it is. See
    `protocols.KeyedSink` for what each one promises.

    name: shown to the user; two outputs of a crawl never share one. batch: how much it likes to get at once.
    """

    def __init__(self, name: str, batch: Batch | None = None) -> None:
        self.name = name
        self.batch = batch or Batch()

    async def open(self) -> None:
        """Connect. Nothing to do, here."""

    def encode(self, fields: Mapping[str, Any]) -> Any:
        """What `row` gives back; the fields themselves, here."""
        return fields

    async def write(self, items: Sequence[Item]) -> None:
        raise NotImplementedError(f"{type(self).__name__} has no method `async def write(self, items)`")

    def row(self, item: Item) -> Any:
        """What `encode` made of the item for this sink."""
        return item.data[self.name]

    async def trim(self, pages: Mapping[int, int]) -> None:
        """Remove what earlier visits left. Nothing to do, here."""

    async def close(self) -> None:
        """Disconnect. Nothing to do, here."""
