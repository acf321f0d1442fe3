"""The stable key of an item, such as a product's number."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from silkline.errors import ConfigError, ItemError
from silkline.sinks.record import json_of, record_of, shown

ATTRIBUTE = "__item_key__"
C = TypeVar("C", bound=type)

Names = Sequence[str]


class ItemKeys:
    """Which fields are the key of which items: those of classes by class, and one for all dicts.

    A class says so by an attribute `__item_key__`, a name or a tuple of names, or is added here, which wins.
    A subclass has the key of its base.
    """

    def __init__(self, of_dicts: Names = ()) -> None:
        self._of_dicts = tuple(of_dicts)
        self._declared: dict[type, tuple[str, ...]] = {}
        self._known: dict[type, tuple[str, ...]] = {}

    def with_dicts(self, names: Names) -> ItemKeys:
        """The same classes, and another key for dicts."""
        keys = ItemKeys(names)
        keys._declared = self._declared
        return keys

    def add(self, kind: type, names: str | Names) -> None:
        """Raises ConfigError where that is no class of items, or has no such fields."""
        self._declared[kind] = _checked(kind, names)
        self._known.clear()

    def of(self, item: object) -> str | None:
        """The key as text; None where such items have none. Numbers and text that look the same are the
        same: 7, 7.0 and "7". Of several fields it is a JSON array of their texts.

        Raises ItemError where a field of the key is missing, None or empty, or no single value.
        """
        kind = type(item)
        names = self._known.get(kind)
        if names is None:
            names = self._known[kind] = self._names_of(kind)
        if not names:
            return None
        parts = [_text(name, _value(item, name)) for name in names]
        return parts[0] if len(parts) == 1 else json_of(parts).decode()

    def _names_of(self, kind: type) -> tuple[str, ...]:
        if issubclass(kind, Mapping):
            return self._of_dicts
        for base in kind.__mro__:
            if base in self._declared:
                return self._declared[base]
            if ATTRIBUTE in vars(base):
                return _checked(kind, vars(base)[ATTRIBUTE])
        return ()


def fields_in(kind: type) -> frozenset[str] | None:
    """The names of the fields of such items; None for a class that is none of items."""
    for attribute in ("__struct_fields__", "__dataclass_fields__", "model_fields"):
        found = getattr(kind, attribute, None)
        if found is not None:
            return frozenset(found)
    attributes = getattr(kind, "__attrs_attrs__", None)
    return None if attributes is None else frozenset(one.name for one in attributes)


def _checked(kind: type, names: Any) -> tuple[str, ...]:
    given = (names,) if isinstance(names, str) else names
    shown = getattr(kind, "__name__", repr(kind))
    if not isinstance(given, (tuple, list)) or not given or not all(isinstance(one, str) for one in given):
        raise ConfigError(f"the key of {shown} must be the name of a field, or several: key='sku'")
    if not isinstance(kind, type) or issubclass(kind, dict):
        raise ConfigError(
            f"{shown} is no class that items are objects of; the key of dicts is a setting: item_key='sku'"
        )
    fields = fields_in(kind)
    if fields is None:
        raise ConfigError(
            f"{shown} is no dataclass, msgspec.Struct, attrs or pydantic class; if it is to be a dataclass, "
            "put @crawler.item above @dataclass"
        )
    for name in given:
        if name not in fields:
            known = ", ".join(sorted(fields))
            raise ConfigError(f"the key of {shown} has no field {name!r}; there are {known}")
    return tuple(given)


def _value(item: Any, name: str) -> object:
    if isinstance(item, Mapping):
        if name not in item:
            raise ItemError(f"the key field {name!r} is missing")
        return item[name]
    return getattr(item, name, None)


def _text(name: str, value: object) -> str:
    if type(value) is not str or not value.isascii():
        value = record_of({"": value})[""]
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, int | float):
        return str(value)
    if isinstance(value, str) and value:
        return value
    if value is None or value == "":
        raise ItemError(f"the key field {name!r} is {'empty' if value == '' else 'None'}")
    raise ItemError(f"the key field {name!r} must be text or a number, not {shown(value)}")
