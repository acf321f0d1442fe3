"""Steps that find numbers and prices in text; they need the extra `clean` (price-parser)."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Any, Literal

from silkline.errors import ConfigError
from silkline.sinks.record import shown
from silkline.steps.fields import MISSING, Step, changed, mapped, value_of

Separator = Literal[".", ","]

_MINUS = "-\u2212\u2013"


def number(*fields: str, decimal: Separator | None = None) -> Step:
    """The number in a text, as a Decimal: of "1.234,50 kg" it is 1234.50; of empty text None.

    decimal: the decimal separator; without it, it is guessed, and "1.234" is 1234.

    Raises ConfigError where price-parser is not installed. An item whose text has no number is dead.
    """
    parse = _parser()
    if not fields:
        raise TypeError("number() wants the names of fields: number('weight')")
    return mapped("number", fields, lambda value: _number(parse, value, decimal))


def price(field: str, *, currency: str | None = None, decimal: Separator | None = None) -> Step:
    """The amount of a price in a text, as a Decimal; otherwise as `number`.

    currency: the field that gets what the text calls the currency, such as "€" or "EUR", if it says so.
    """
    parse = _parser()

    def price(item: Any) -> Any:
        text = value_of(item, field)
        if text is MISSING or not isinstance(text, str):
            return item
        try:
            values: Mapping[str, Any] = {field: _number(parse, text, decimal)}
        except ValueError as error:
            raise ValueError(f"field {field!r}: {error}") from error
        if currency is not None and (found := parse(text, decimal_separator=decimal).currency):
            values = {**values, currency: found}
        return changed(item, values)

    return price


def _number(parse: Any, value: Any, decimal: str | None) -> Any:
    if not isinstance(value, str):
        return value
    if not value.strip():
        return None
    found = parse(value, decimal_separator=decimal)
    if found.amount is None:
        raise ValueError(f"no number in {shown(value)}")
    return -found.amount if _is_negative(value, found.amount_text) else Decimal(found.amount)


def _is_negative(text: str, amount: str) -> bool:
    """The parser leaves the sign out. A dash between two numbers or words is none."""
    before = text.partition(amount)[0].rstrip(" \u00a0$€£¥")
    if not before or before[-1] not in _MINUS:
        return False
    return not before[:-1].rstrip() or not before[-2].isalnum()


def _parser() -> Any:
    try:
        from price_parser import parse_price
    except ModuleNotFoundError as error:
        raise ConfigError(
            f"this step needs the package {error.name}: pip install 'silkline[clean]'"
        ) from error
    return parse_price
