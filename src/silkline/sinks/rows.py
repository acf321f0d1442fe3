"""The rows of one batch by their fields, made in slices so that the event loop goes on."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from silkline.outcome import Item
from silkline.sinks.columns import Json, Kind, kinds_of, more_of

SLICE = 500
"""Rows that are worked on without a break: about 5 ms with twenty fields."""

Keys = tuple[Sequence[str], Sequence[int], Sequence[int | None]]
"""The values of `columns.KEYS`, column by column."""


class Slice(NamedTuple):
    """values: of each field that one of the rows has, None for rows without it."""

    keys: Keys
    values: Mapping[str, Sequence[Any]]


class Rows:
    """A batch, sorted by key, so that two workers that write the same rows never wait for each other.

    types: of the values of each field, NoneType for those that are missing.
    """

    def __init__(self) -> None:
        self.slices: list[Slice] = []
        self.types: dict[str, set[type]] = {}

    @classmethod
    async def of(cls, items: Sequence[Item], row: Callable[[Item], Mapping[str, Any]]) -> Rows:
        """row: what `columns.prepared` made of an item."""
        rows = cls()
        by_identity: dict[str, Item] = {}
        for start in range(0, len(items), 4 * SLICE):
            by_identity.update((item.identity, item) for item in items[start : start + 4 * SLICE])
            await asyncio.sleep(0)
        ordered = sorted(by_identity)
        for start in range(0, len(ordered), SLICE):
            identities = ordered[start : start + SLICE]
            part = [by_identity[identity] for identity in identities]
            places = [item.index if item.key is None else None for item in part]
            keys = (identities, [item.fingerprint for item in part], places)
            rows._add(keys, [row(item) for item in part])
            await asyncio.sleep(0)
        return rows

    def _add(self, keys: Keys, rows: Sequence[Mapping[str, Any]]) -> None:
        names = tuple(rows[0])
        if all(tuple(row) == names for row in rows):
            values: dict[str, Sequence[Any]] = (
                dict(zip(names, zip(*[row.values() for row in rows], strict=True), strict=True))
                if names
                else {}
            )
        else:
            union = dict.fromkeys(name for row in rows for name in row)
            values = {name: [row.get(name) for row in rows] for name in union}
        for name, column in values.items():
            self.types.setdefault(name, set()).update(map(type, column))
        self.slices.append(Slice(keys, values))

    def kinds(self) -> dict[str, set[Kind]]:
        """Of each field that has a value somewhere."""
        found = {name: kinds_of(types) for name, types in self.types.items()}
        return {name: kinds for name, kinds in found.items() if kinds}


def more(part: Slice, fields: Iterable[str]) -> Sequence[Json | None]:
    """What the rows of a slice have in `_more`, where these fields are without a column."""
    here = [name for name in fields if name in part.values]
    columns = [part.values[name] for name in here]
    if not here:
        return [None] * len(part.keys[0])
    return [more_of(dict(zip(here, row, strict=True))) for row in zip(*columns, strict=True)]
