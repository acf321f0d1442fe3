"""The rows of one batch by their fields, made in slices so that the event loop goes on."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from struct import pack
from typing import Any

from silkline.outcome import MASK, Item
from silkline.sinks.columns import Json, Kind, Prepared, kinds_of, more_of

SLICE = 1_000
"""Rows that are worked on without a break: about 5 ms with twenty fields."""

Keys = tuple[Sequence[str], Sequence[int], Sequence[int | None]]
"""The values of `columns.KEYS`, column by column."""


class Slice:
    """Some rows of a batch, all with values of the same fields, or each with its own."""

    def __init__(self, keys: Keys, rows: Sequence[Prepared]) -> None:
        self.keys = keys
        self.shapes = {shape for shape, _ in rows}
        self.fields = next(iter(self.shapes)).names
        self.rows: Sequence[Sequence[Any]] = [values for _, values in rows]
        if any(shape.names != self.fields for shape in self.shapes):
            self.fields = tuple(dict.fromkeys(name for shape, _ in rows for name in shape.names))
            records = [dict(zip(shape.names, values, strict=True)) for shape, values in rows]
            self.rows = [list(map(record.get, self.fields)) for record in records]

    def values(self) -> Mapping[str, Sequence[Any]]:
        """Column by column, None for rows without the field."""
        return dict(zip(self.fields, zip(*self.rows, strict=True), strict=True)) if self.fields else {}


class Rows:
    """A batch, sorted by key, so that two workers that write the same rows never wait for each other.

    types: of the values of each field.
    """

    def __init__(self) -> None:
        self.slices: list[Slice] = []
        self.types: dict[str, set[type]] = {}

    @classmethod
    async def of(cls, items: Sequence[Item], sink: str) -> Rows:
        """sink: for which `columns.prepared` made something of each item."""
        rows = cls()
        by_identity: dict[str, Item] = {}
        for start in range(0, len(items), 4 * SLICE):
            part = items[start : start + 4 * SLICE]
            by_identity.update(zip(identities(part), part, strict=True))
            await asyncio.sleep(0)
        ordered = sorted(by_identity)
        for start in range(0, len(ordered), SLICE):
            rows._add(ordered[start : start + SLICE], by_identity, sink)
            await asyncio.sleep(0)
        return rows

    def _add(self, identities: Sequence[str], items: Mapping[str, Item], sink: str) -> None:
        part = [items[identity] for identity in identities]
        places = [item.index if item.key is None else None for item in part]
        keys = (identities, [item.fingerprint for item in part], places)
        rows = Slice(keys, [item.data[sink] for item in part])
        for field in rows.fields:
            self.types.setdefault(field, set())
        for shape in rows.shapes:
            for field, kind in zip(shape.names, shape.types, strict=True):
                self.types[field].add(kind)
        self.slices.append(rows)

    def kinds(self) -> dict[str, set[Kind]]:
        """Of each field that has a value somewhere."""
        found = {name: kinds_of(types) for name, types in self.types.items()}
        return {name: kinds for name, kinds in found.items() if kinds}


def identities(items: Sequence[Item]) -> list[str]:
    """`Item.identity` of each, several times as fast."""
    pages = pack(f">{len(items)}Q", *[item.fingerprint & MASK for item in items]).hex("-", 8).split("-")
    return [
        f"{page}-{item.index}" if item.key is None else item.key
        for page, item in zip(pages, items, strict=True)
    ]


def more(values: Mapping[str, Sequence[Any]], fields: Iterable[str], count: int) -> Sequence[Json | None]:
    """What so many rows have in `_more`, where these fields are without a column."""
    here = [name for name in fields if name in values]
    columns = [values[name] for name in here]
    if not here:
        return [None] * count
    return [more_of(dict(zip(here, row, strict=True))) for row in zip(*columns, strict=True)]
