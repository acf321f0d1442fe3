from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from itertools import permutations
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from silkline.sinks.schema import MAX_COLUMNS, MORE, Column, Kind, Schema, column_of


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ([None], Kind.NOTHING),
        ([True, None], Kind.BOOLEAN),
        ([1, -(2**63), 2**63 - 1], Kind.WHOLE),
        ([1, 2**63], Kind.MIXED),
        ([1, 1.5], Kind.REAL),
        ([1, True], Kind.MIXED),
        (["a", None], Kind.TEXT),
        (["a", 1], Kind.MIXED),
        ([[1], {"a": 1}], Kind.NESTED),
        ([[1], "a"], Kind.MIXED),
        ([date(2030, 1, 31)], Kind.DAY),
        ([datetime(2030, 1, 31, tzinfo=UTC)], Kind.INSTANT),
        ([datetime(2030, 1, 31)], Kind.CLOCK),
        ([datetime(2030, 1, 31), datetime(2030, 1, 31, tzinfo=UTC)], Kind.MIXED),
        ([date(2030, 1, 31), datetime(2030, 1, 31)], Kind.MIXED),
        ([Decimal(1), 1.5], Kind.MIXED),
    ],
)
def test_a_column_takes_all_of_its_values(values: list[Any], kind: Kind) -> None:
    assert column_of(values).kind == kind


def test_decimals_keep_their_digits() -> None:
    assert column_of([Decimal("9.50"), Decimal("-1234.5"), None]) == Column(Kind.DECIMAL, 4, 2)
    assert column_of([Decimal("1E+3"), Decimal("0.001")]) == Column(Kind.DECIMAL, 4, 3)
    assert column_of([Decimal("1E+60"), Decimal("1E-60")]) == Column(Kind.MIXED)
    assert column_of([Decimal("1E+99")]) == Column(Kind.MIXED)


COLUMNS = st.one_of(
    st.sampled_from([kind for kind in Kind if kind != Kind.DECIMAL]).map(Column),
    st.builds(Column, st.just(Kind.DECIMAL), st.integers(1, 60), st.integers(0, 15)),
)


@given(st.lists(COLUMNS, min_size=1, max_size=4))
def test_the_order_in_which_values_come_does_not_matter(columns: list[Column]) -> None:
    joined = set()
    for order in permutations(columns):
        column = Column()
        for one in order:
            column = column.joined(one)
        joined.add(column)
    assert len(joined) == 1
    assert all(column.joined(one) == column for one in columns)


def test_columns_come_in_the_order_of_their_first_item() -> None:
    schema = Schema({"url": Column()})
    schema.see([{"b": 1}, {"a": 2, "b": None}, {"url": "u"}])
    assert list(schema.columns) == ["url", "b", "a"]
    assert schema.transposed([{"a": 1}]) == {"url": [None], "b": [None], "a": [1]}


def test_columns_are_bounded_and_the_rest_is_kept() -> None:
    schema = Schema({})
    schema.see([{f"f{n}": n} for n in range(MAX_COLUMNS + 2)])
    schema.see([{"late": 1, MORE: 2, "f0": 3}])
    assert len(schema.columns) == MAX_COLUMNS + 1
    assert schema.columns[MORE].kind == Kind.NESTED
    values = schema.transposed([{"late": 1, MORE: 2, "f0": 3}])
    assert (values["f0"], values[MORE]) == ([3], [{"late": 1, MORE: 2}])
