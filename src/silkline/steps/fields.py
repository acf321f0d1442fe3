"""Fields of items of any kind, read and replaced."""

from __future__ import annotations

import copy
from collections.abc import Callable, Collection, Mapping
from typing import Any

import msgspec

from silkline.items.key import fields_in
from silkline.sinks.record import shown

Step = Callable[..., Any]
"""`step(item)` or `step(item, page)`, sync or async: gives back an item, or None to drop it; see
`engine/steps.py` for what comes of one that raises."""

MISSING = object()


def names_of(item: object) -> Collection[str]:
    """The names of its fields. Raises TypeError for what is no item."""
    if isinstance(item, Mapping):
        return list(item)
    names = fields_in(type(item))
    if names is None:
        raise TypeError(f"{type(item).__name__} is no item: {shown(item)}")
    return names


def value_of(item: Any, name: str) -> Any:
    """The value of a field; MISSING where there is no such field."""
    if isinstance(item, Mapping):
        return item.get(name, MISSING)
    return getattr(item, name, MISSING)


def changed(item: Any, values: Mapping[str, Any]) -> Any:
    """A copy with other values for these fields. A pydantic model checks them; raises what it does."""
    if isinstance(item, Mapping):
        return {**item, **values}
    if isinstance(item, msgspec.Struct):
        return msgspec.structs.replace(item, **values)
    validator = getattr(type(item), "__pydantic_validator__", None)
    if validator is not None:
        return _checked(item.model_copy(), values, validator)
    new = copy.copy(item)
    for name, value in values.items():
        object.__setattr__(new, name, value)  # frozen ones, too: nobody else has this one yet
    return new


def _checked(new: Any, values: Mapping[str, Any], validator: Any) -> Any:
    if new.model_config.get("frozen"):
        return type(new).model_validate({**dict(new), **values})
    for name, value in values.items():
        validator.validate_assignment(new, name, value)
    return new


def mapped(name: str, fields: Collection[str], change: Callable[[Any], Any]) -> Step:
    """A step that changes the values of these fields, each one of a list by itself; of all fields where none
    is named. name: what it is called in reports."""

    def step(item: Any) -> Any:
        values = {}
        for field in fields or names_of(item):
            old = value_of(item, field)
            if old is not MISSING and old is not None:
                new = _each(field, old, change)
                if new is not old:
                    values[field] = new
        return changed(item, values) if values else item

    step.__name__ = step.__qualname__ = name
    return step


def _each(field: str, value: Any, change: Callable[[Any], Any]) -> Any:
    try:
        if isinstance(value, list):
            parts = [change(part) for part in value]
            same = all(new is old for new, old in zip(parts, value, strict=True))
            return value if same else parts
        return change(value)
    except ValueError as error:
        raise ValueError(f"field {field!r}: {error}") from error
