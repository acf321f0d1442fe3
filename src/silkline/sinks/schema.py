"""The columns of a typed table that grows with the items."""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import date, datetime
from decimal import Decimal
from operator import itemgetter
from typing import Any

import msgspec

MAX_COLUMNS = 1_000
MAX_DIGITS = 76
MORE = "_more"

Record = dict[str, Any]


class Kind(enum.Enum):
    """What a column holds besides nulls. The values stand in files."""

    NOTHING = "nothing"
    BOOLEAN = "boolean"
    WHOLE = "whole"
    REAL = "real"
    TEXT = "text"
    NESTED = "nested"
    DAY = "day"
    INSTANT = "instant"  # with a time zone
    CLOCK = "clock"  # without one
    DECIMAL = "decimal"
    MIXED = "mixed"


class Column(msgspec.Struct, frozen=True):
    """digits: of decimals, before the point; scale: behind it."""

    kind: Kind = Kind.NOTHING
    digits: int = 0
    scale: int = 0

    def joined(self, other: Column) -> Column:
        """A column for what is in either one."""
        if self.kind == Kind.NOTHING or self == other:
            return other
        if other.kind == Kind.NOTHING:
            return self
        kinds = {self.kind, other.kind}
        if kinds == {Kind.WHOLE, Kind.REAL}:
            return Column(Kind.REAL)
        digits, scale = max(self.digits, other.digits), max(self.scale, other.scale)
        if kinds == {Kind.DECIMAL} and digits + scale <= MAX_DIGITS:
            return Column(Kind.DECIMAL, digits, scale)
        return Column(Kind.MIXED)


KINDS: Mapping[type, Kind] = {
    type(None): Kind.NOTHING,
    bool: Kind.BOOLEAN,
    int: Kind.WHOLE,
    float: Kind.REAL,
    str: Kind.TEXT,
    list: Kind.NESTED,
    dict: Kind.NESTED,
    date: Kind.DAY,
    datetime: Kind.CLOCK,
    Decimal: Kind.DECIMAL,
}


def column_of(values: Sequence[object]) -> Column:
    """The column for these values."""
    types = set(map(type, values))
    column = Column()
    for kind in {KINDS[one] for one in types}:
        column = column.joined(_exact(kind, values))
    return column


def _exact(kind: Kind, values: Sequence[object]) -> Column:
    if kind == Kind.WHOLE:
        wholes = [value for value in values if type(value) is int]
        return Column(kind if min(wholes) >= -(2**63) and max(wholes) < 2**63 else Kind.MIXED)
    if kind == Kind.CLOCK:
        zoned = {value.tzinfo is not None for value in values if isinstance(value, datetime)}
        return Column(Kind.MIXED if len(zoned) > 1 else Kind.INSTANT if True in zoned else kind)
    column = Column(kind)
    if kind == Kind.DECIMAL:
        for value in values:
            if isinstance(value, Decimal):
                column = column.joined(_decimal(value))
    return column


def _decimal(value: Decimal) -> Column:
    _, digits, exponent = value.as_tuple()
    assert isinstance(exponent, int), "a decimal that is no number is text"
    before, scale = max(1, len(digits) + exponent), max(0, -exponent)
    return Column(Kind.DECIMAL, before, scale) if before + scale <= MAX_DIGITS else Column(Kind.MIXED)


class Schema:
    """The columns in their order, by name: at most 1,000, and one more for what has none; also where no
    item has a field, since rows without columns are none."""

    def __init__(self, columns: Mapping[str, Column]) -> None:
        self.columns = dict(columns)

    def see(self, records: Sequence[Record]) -> None:
        """Grow by what is in these records."""
        for record in records:
            if not record.keys() <= self.columns.keys():
                for name in record:
                    self._add(name)
        if records and not self.columns:
            self._add(MORE)
        for name, values in self.transposed(records).items():
            self.columns[name] = self.columns[name].joined(column_of(values))

    def grow(self, columns: Mapping[str, Column]) -> bool:
        """Grow by these columns. False where that is not possible without looking at the rows."""
        if len(self.columns.keys() | columns.keys()) > MAX_COLUMNS:
            return False
        for name, column in columns.items():
            self.columns[name] = self.columns.get(name, Column()).joined(column)
        return True

    @property
    def over(self) -> bool:
        """Whether fields share a column."""
        return MORE in self.columns and len(self.columns) > MAX_COLUMNS

    def transposed(self, records: Sequence[Record]) -> dict[str, list[Any]]:
        """The values of each column."""
        if self.over:
            records = [self._fitted(record) for record in records]
        names = list(self.columns)
        with suppress(KeyError):  # mostly all records have all fields, which is several times as fast
            if len(names) > 1 and records:
                return dict(
                    zip(names, map(list, zip(*map(itemgetter(*names), records), strict=True)), strict=True)
                )
        return {name: [record.get(name) for record in records] for name in names}

    def _add(self, name: str) -> None:
        if name not in self.columns:
            self.columns.setdefault(name if len(self.columns) < MAX_COLUMNS else MORE, Column())

    def _fitted(self, record: Record) -> Record:
        rest = {name: value for name, value in record.items() if name not in self.columns or name == MORE}
        return record | {MORE: rest} if rest else record
