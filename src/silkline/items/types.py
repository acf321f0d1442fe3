"""Whether the fields of items hold what their classes declare."""

from __future__ import annotations

import dataclasses
import typing
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from silkline.errors import ItemError
from silkline.sinks.record import shown

Plan = Callable[[Any], Mapping[str, Any]]

UNCHECKED: Mapping[str, Any] = {}


class TypeChecks:
    """Checks dataclasses, msgspec structs and attrs objects, which do not do so when they are made, nested in
    each other, too. pydantic's check themselves.

    tell: gets a line for each class with annotations that nobody can check.
    """

    def __init__(self, tell: Callable[[str], None] = lambda line: None) -> None:
        self._tell = tell
        self._plans: dict[type, Plan | None] = {}

    def converted(self, item: object) -> Mapping[str, Any]:
        """By name in the record, the values that stand for those of another type: text that JSON would write
        for a Decimal, a date or a UUID is one, and a whole number is a float where one is declared.

        Raises ItemError, which names the field and its value.
        """
        kind = type(item)
        if kind is dict:
            return UNCHECKED
        if kind not in self._plans:
            self._plans[kind] = self._plan(kind)
        plan = self._plans[kind]
        return UNCHECKED if plan is None else plan(item)

    def _plan(self, kind: type) -> Plan | None:
        try:
            fields = declared(kind)
        except Exception as error:  # whatever an annotation may raise that is evaluated
            self._tell(f"the types of {kind.__qualname__} are not checked: {error}")
            return None
        if not fields:
            return None
        types = []
        for name, encoded, annotation in fields:
            try:
                msgspec.json.Decoder(annotation)
            except Exception as error:
                self._tell(f"the field {name!r} of {kind.__qualname__} is not checked: {error}")
                annotation = Any
            types.append((name, annotation, msgspec.field(name=encoded)))
        shape = msgspec.defstruct(kind.__name__, types)
        places = [(name, encoded) for name, encoded, _ in fields]
        return lambda item: _converted(item, shape, places)


def _converted(item: Any, shape: type, places: list[tuple[str, str]]) -> Mapping[str, Any]:
    given = {encoded: _opened(getattr(item, name, None)) for name, encoded in places}
    try:
        checked: Any = msgspec.convert(given, shape)
    except msgspec.ValidationError as error:
        raise ItemError(_told(error, given, type(item).__name__)) from error
    changed = {}
    for name, encoded in places:
        value = getattr(checked, name)
        if type(given[encoded]) in (str, int, float) and type(value) is not type(given[encoded]):
            changed[encoded] = value
    return changed or UNCHECKED


def declared(kind: type) -> list[tuple[str, str, Any]]:
    """(name, name in the record, annotation) of each field; empty for other classes.

    Raises whatever the evaluation of an annotation does.
    """
    if issubclass(kind, msgspec.Struct):
        return [(field.name, field.encode_name, field.type) for field in msgspec.structs.fields(kind)]
    if dataclasses.is_dataclass(kind):
        names = [field.name for field in dataclasses.fields(kind)]
    elif hasattr(kind, "__attrs_attrs__"):
        names = [field.name for field in kind.__attrs_attrs__]
    else:
        return []
    hints = typing.get_type_hints(kind, include_extras=True)
    return [(name, name, hints.get(name, Any)) for name in names if not name.startswith("_")]


_PLAIN = (str, int, float, bool, type(None))


def _opened(value: Any) -> Any:
    """With the objects in it as dicts of their fields: as they are, they would be taken on trust."""
    kind = type(value)
    if kind in _PLAIN:
        return value
    if kind in (list, tuple, set, frozenset):
        return [_opened(part) for part in value]
    if kind is dict:
        return {name: _opened(part) for name, part in value.items()}
    if isinstance(value, msgspec.Struct):
        config, fields = value.__struct_config__, msgspec.structs.fields(kind)
        opened = {field.encode_name: _opened(getattr(value, field.name)) for field in fields}
        return opened if config.tag is None else {str(config.tag_field): config.tag, **opened}
    if dataclasses.is_dataclass(kind):
        names = [field.name for field in dataclasses.fields(kind)]
    elif hasattr(kind, "__attrs_attrs__"):
        names = [field.name for field in kind.__attrs_attrs__]
    else:
        return value
    return {name: _opened(getattr(value, name, None)) for name in names if not name.startswith("_")}


def _told(error: msgspec.ValidationError, given: Mapping[str, Any], kind: str) -> str:
    reason, _, path = str(error).rpartition(" - at `$")
    if not reason:
        return f"{kind}: {error}"
    path = path.removesuffix("`").removeprefix(".")
    return f"{kind}: field {path!r} is {shown(_at(given, path))}: {reason[:1].lower()}{reason[1:]}"


def _at(value: Any, path: str) -> Any:
    """The value at a path such as `offers[0].price`, as far as it can be followed."""
    for step in path.replace("[", ".[").split("."):
        try:
            value = value[int(step[1:-1])] if step.startswith("[") else value[step]
        except (KeyError, IndexError, TypeError, ValueError):
            break
    return value
