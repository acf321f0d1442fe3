"""A table of a database as it is, and where the fields of a batch go in it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from silkline.sinks.columns import (
    FITS,
    KEYS,
    MORE,
    NUMBERS,
    Fit,
    Kind,
    Naming,
    column_for,
    fits_all,
    fitted,
    kind_for,
)
from silkline.sinks.rows import Rows, Slice, more


class Column(msgspec.Struct, frozen=True):
    """declared: its type as the database writes it. kept: a row that is replaced keeps what it has there,
    unless the item has the field. fits: where its kind's own do not hold."""

    name: str
    declared: str
    kind: Kind
    kept: bool = False
    fits: Mapping[type, Fit] | None = None

    @property
    def fitting(self) -> Mapping[type, Fit]:
        return self.fits or FITS[self.kind]


class Table(msgspec.Struct, frozen=True):
    columns: Mapping[str, Column]
    naming: Naming

    def missing_keys(self) -> list[str]:
        return [name for name in KEYS if name not in self.columns]

    def unfit_keys(self, types: KeyTypes) -> list[str]:
        """Those whose type takes no row."""
        return [name for name in KEYS if not types[name][1](self.columns[name])]


KeyTypes = Mapping[str, tuple[str, Callable[[Column], bool]]]
"""By column of KEYS: the type that it is made with, and whether another one does as well."""


class Places(msgspec.Struct, frozen=True):
    """homes: the column of each field that has one. added: columns that are not there, and what they are to
    take; widened: those that are there and are to take more. rest: fields that go into `_more`."""

    homes: Mapping[str, str]
    added: Mapping[str, Kind]
    widened: Mapping[str, Kind]
    rest: Sequence[str]

    @property
    def fit(self) -> bool:
        """Whether the table can take the rows as it is."""
        return not self.added and not self.widened


def places_for(rows: Rows, table: Table, widening: Callable[[Column, set[Kind]], bool]) -> Places:
    """Where the fields go. A field without any value needs no column.

    widening: whether a column that takes one kind of numbers may be made to take these as well.
    """
    kinds = rows.kinds()
    taken = {table.naming.fold(name): name for name in table.columns}
    taken |= {table.naming.fold(name): "" for name in (*KEYS, MORE)}
    homes: dict[str, str] = {}
    added: dict[str, Kind] = {}
    widened: dict[str, Kind] = {}
    rest: list[str] = []
    for field in rows.types:
        name = column_for(field, taken, table.naming)
        if name is None:
            rest.append(field)
            continue
        column = table.columns.get(name)
        if column is not None:
            homes[field] = name
            if _too_narrow(column, kinds.get(field, set())) and widening(column, kinds[field]):
                widened[name] = Kind.DECIMAL
        elif field in kinds:
            homes[field] = name
            added[name] = kind_for(kinds[field])
            taken[table.naming.fold(name)] = name
    if MORE not in table.columns and any(field in kinds for field in rest):
        added[MORE] = Kind.JSON
    return Places(homes, added, widened, [field for field in rest if field in kinds])


def _too_narrow(column: Column, kinds: set[Kind]) -> bool:
    if column.kind is Kind.INT:
        return kinds <= NUMBERS and bool(kinds - {Kind.INT})
    return column.kind is Kind.FLOAT and kinds <= NUMBERS and Kind.DECIMAL in kinds


def names_of(places: Places) -> list[str]:
    """The columns of the records that `records_of` makes."""
    return [*KEYS, *places.homes.values(), *([MORE] if places.rest else [])]


async def records_of(rows: Rows, table: Table, places: Places) -> list[list[tuple[Any, ...]]]:
    """The rows as the table takes them, slice by slice. Raises RowsRefused for a value that does not fit."""
    made = []
    fields = tuple(places.homes)
    as_they_are = not places.rest and all(
        fits_all(rows.types[field], table.columns[name].fitting) for field, name in places.homes.items()
    )
    for part in rows.slices:
        if as_they_are and part.fields == fields:
            keyed = zip(*part.keys, part.rows, strict=True)
            made.append([(key, page, index, *row) for key, page, index, row in keyed])
        else:
            made.append(list(zip(*_columns(part, rows, table, places), strict=True)))
        await asyncio.sleep(0)
    return made


async def columns_of(rows: Rows, table: Table, places: Places) -> list[list[Any]]:
    """The same column by column, those of all slices together."""
    made: list[list[Any]] = [[] for _ in names_of(places)]
    for part in rows.slices:
        for column, values in zip(made, _columns(part, rows, table, places), strict=True):
            column.extend(values)
        await asyncio.sleep(0)
    return made


def _columns(part: Slice, rows: Rows, table: Table, places: Places) -> list[Sequence[Any]]:
    columns: list[Sequence[Any]] = [*part.keys]
    there = part.values()
    count = len(part.rows)
    for field, name in places.homes.items():
        values = there.get(field)
        columns.append(
            [None] * count if values is None else _taken(values, rows.types[field], table.columns[name])
        )
    if places.rest:
        columns.append(more(there, places.rest, count))
    return columns


def _taken(values: Sequence[Any], types: set[type], column: Column) -> Sequence[Any]:
    return fitted(values, types, column.fitting, f'"{column.name}" ({column.declared})')


def replaced(table: Table, places: Places) -> list[str]:
    """The columns of a row that are set anew when it is replaced: what the item has no value for is empty."""
    written = set(names_of(places))
    return [
        name
        for name, column in table.columns.items()
        if name != KEYS[0] and (name in written or not column.kept)
    ]
