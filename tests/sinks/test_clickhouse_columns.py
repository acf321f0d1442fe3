from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Context, Decimal
from fractions import Fraction
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import given

from silkline.errors import RowsRefused
from silkline.sinks.clickhouse_columns import NAMING, TYPES, column_of, native_of, quoted
from silkline.sinks.columns import Kind, fitted, prepared


def taken(declared: str, value: Any) -> Any:
    """What is sent for a value."""
    column = column_of("c", declared)
    _, [ready] = prepared({"c": value})
    [sent] = fitted([ready], [type(ready)], column.fitting, "c")
    return sent


@pytest.mark.parametrize(
    ("declared", "kind", "native"),
    [
        *((declared, kind, declared) for kind, declared in TYPES.items() if "String" not in declared),
        ("String", Kind.TEXT, "Nullable(String)"),
        ("LowCardinality(Nullable(String))", Kind.TEXT, "Nullable(String)"),
        ("Enum8('a' = 1)", Kind.TEXT, "Nullable(String)"),
        ("Array(Nullable(Int64))", Kind.TEXT, "Nullable(String)"),
        ("Float32", Kind.FLOAT, "Nullable(Float64)"),
        ("UInt256", Kind.INT, "Nullable(UInt256)"),
        ("Decimal(9, 2)", Kind.DECIMAL, "Nullable(Decimal(9, 2))"),
        ("DateTime('Europe/Berlin')", Kind.DATETIME, "Nullable(DateTime('Europe/Berlin'))"),
    ],
)
def test_a_type_has_its_kind_and_is_sent_so_that_it_may_be_empty(
    declared: str, kind: Kind, native: str
) -> None:
    column = column_of("c", declared)
    assert (column.kind, native_of(column)) == (kind, native)


@pytest.mark.parametrize(
    ("declared", "value"),
    [
        ("UInt8", 255),
        ("Int8", -128),
        ("UInt64", 2**64 - 1),
        ("Int256", -(2**255)),
        ("Decimal(9, 2)", Decimal("-9999999.99")),
        ("Decimal(9, 2)", Decimal("1.50000000000")),
        ("Decimal(76, 38)", 0.1),
        ("Nullable(DateTime64(6, 'UTC'))", datetime(1900, 1, 1, tzinfo=UTC)),
        ("Date32", date(2299, 12, 31)),
        ("Date", date(2149, 6, 6)),
    ],
)
def test_what_a_type_can_hold_is_taken_as_it_is(declared: str, value: Any) -> None:
    sent = taken(declared, value)
    assert sent == (Decimal(repr(value)) if isinstance(value, float) else value)


@pytest.mark.parametrize(
    ("declared", "value"),
    [
        ("UInt8", 256),
        ("UInt8", -1),
        ("Int8", 128),
        ("Int64", 2**63),
        ("UInt64", 2**64),
        ("Decimal(9, 2)", Decimal("10000000.00")),
        ("Decimal(9, 2)", Decimal("0.001")),
        ("Decimal(76, 38)", 5e-324),
        ("Decimal(76, 38)", Decimal("1E+9999999")),
        ("Decimal(76, 38)", Decimal("1E-9999999")),
        ("Nullable(DateTime64(6, 'UTC'))", datetime(1899, 12, 31, tzinfo=UTC)),
        ("DateTime", datetime(2106, 2, 7, tzinfo=UTC)),
        ("Date32", date(2300, 1, 1)),
        ("Date", date(1969, 12, 31)),
        ("Bool", 1),
        ("UUID", "x"),
    ],
)
def test_what_a_type_cannot_hold_is_refused_and_never_bent(declared: str, value: Any) -> None:
    with pytest.raises(RowsRefused, match="does not fit the column c"):
        taken(declared, value)


def test_what_is_no_number_is_nothing() -> None:
    assert taken("Decimal(76, 38)", Decimal("NaN")) is None
    assert taken("Decimal(76, 38)", Decimal("-Infinity")) is None


DECIMALS = st.builds(
    lambda digits, exponent: Decimal(digits).scaleb(exponent, Context(prec=100)),
    st.integers(-(10**40), 10**40),
    st.integers(-60, 60),
)


@given(DECIMALS, st.integers(1, 76), st.integers(0, 76))
def test_a_decimal_is_taken_with_all_its_digits_or_not_at_all(
    value: Decimal, precision: int, scale: int
) -> None:
    scale = min(scale, precision)
    scaled = Fraction(value) * 10**scale
    fits = scaled.denominator == 1 and abs(scaled) < 10**precision
    try:
        assert taken(f"Decimal({precision}, {scale})", value) == value
    except RowsRefused:
        assert not fits
    else:
        assert fits


@pytest.mark.parametrize(
    ("name", "usable"),
    [
        ("price", True),
        ("a.b", True),
        ("a.null", False),
        ("", False),
        ("`x`", False),
        ('"x"', False),
        ("x" * 201, False),
        ("_version", False),
        ("_deleted", False),
        ("a\0b", False),
    ],
)
def test_names_that_mean_something_else_to_the_server_are_no_names_of_columns(
    name: str, usable: bool
) -> None:
    assert NAMING.usable(name) is usable


def test_names_are_quoted() -> None:
    assert quoted("a`b\\") == "`a\\`b\\\\`"
