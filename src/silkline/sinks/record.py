"""Items of any kind -> plain records: a dict with text keys and nothing in it but what JSON can say."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, KeysView, Mapping, Sequence, Set, ValuesView
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

import msgspec

from silkline.errors import ItemError

TYPED = (Decimal, datetime, date, time, timedelta, UUID, bytes)
"""Types that many databases have, and JSON has not."""

SAID = 10_000
"""Characters of what is no value that an output could hold."""

KINDS = "a dict, dataclass, msgspec.Struct, attrs or pydantic object"


def record_of(item: object) -> dict[str, Any]:
    """Turn an item into a plain record: a new dict of None, bool, int, float, str, list and dict.

    Takes mappings with text keys, dataclasses, msgspec structs (under their encoded field names), attrs
    classes (without their private attributes) and pydantic models (`model_dump(mode="json")`), nested
    in each other and in sequences and sets, which become lists. Dates and times become ISO 8601 text, paths,
    Decimal and UUID text (no digit is lost), bytes base64 text, enum members their value. NaN and the
    infinities become None, since JSON has no word for them; a lone surrogate becomes U+FFFD, as on the web.

    Raises ItemError for anything else, naming the type, and the field if it is inside of one.
    """
    try:
        if type(item) is dict or isinstance(item, Mapping):
            for key in item:
                if not isinstance(key, str):
                    raise ItemError(f"an item's field names must be text, not {_kind(key)}: {shown(key)}")
        record = _plain(item)
    except ItemError:
        raise
    except Exception as error:
        raise ItemError(_reason(item, error)) from error
    if not isinstance(record, dict):
        raise ItemError(f"an item must be {KINDS}, not {_kind(item)}: {shown(item)}")
    return record


def fields_of(item: object) -> dict[str, Any]:
    """The same for outputs with types of their own: at the top of the record Decimal, date, datetime, time,
    timedelta, UUID and bytes stay what they are, and what is deeper in is plain.

    Raises ItemError as `record_of` does.
    """
    return record_of(item) | typed_of(item)


def typed_of(item: object) -> dict[str, Any]:
    """What `fields_of` has of these types, for an item that there is a record of."""
    pydantic = sys.modules.get("pydantic")
    if pydantic is not None and isinstance(item, pydantic.BaseModel):
        item = item.model_dump()
    typed = msgspec.to_builtins(item, builtin_types=TYPED, enc_hook=_foreign, str_keys=True)
    return {name: value for name, value in typed.items() if isinstance(value, TYPED)}


def text_of(item: object) -> str:
    """The JSON text of an item, as far as there is one: of what JSON has no word for, its `repr`."""
    try:
        return json_of(record_of(item)).decode()
    except ItemError:
        fields = _fields_of(item)
        return json_of({_sayable_name(name): _sayable(value) for name, value in fields}).decode()


def shown(value: object, most: int = 80) -> str:
    """Its `repr`, cut, for a message: of a value of the user's, whose `repr` may fail, its type's name."""
    try:
        text = repr(value)
    except Exception:  # nested too deeply, a number of too many digits, whatever a class does
        text = f"<{_kind(value)}, which cannot be shown>"
    return text[:most].encode("utf-8", "replace").decode()


def _fields_of(item: object) -> list[tuple[object, object]]:
    try:
        fields = item if isinstance(item, Mapping) else getattr(item, "__dict__", None) or {"": item}
        return list(fields.items())
    except Exception:
        return [("", item)]


def _sayable_name(name: object) -> str:
    return name.encode("utf-8", "replace").decode() if isinstance(name, str) else shown(name)


def _sayable(value: object) -> Any:
    try:
        return record_of({"": value})[""]
    except ItemError:
        return shown(value, SAID)


def size_of(fields: Mapping[str, Any]) -> int:
    """About how many bytes they take: those of their JSON text."""
    return len(_encode(fields))


def json_of(value: object) -> bytes:
    """The JSON text of a record or of a value in one. Raises ItemError where JSON has no word for it."""
    try:
        return _encode(value)
    except Exception as error:
        raise ItemError(_reason(value, error)) from error


def _plain(item: object) -> Any:
    try:
        return _decode(_encode(item))
    except UnicodeEncodeError:  # a lone surrogate somewhere
        return _mended(msgspec.to_builtins(item, enc_hook=_foreign, str_keys=True))


def _mended(value: Any) -> Any:
    """The slow way to a plain value, for text that cannot be encoded."""
    if isinstance(value, str):
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, float):
        return value if value - value == 0 else None
    if isinstance(value, dict):
        return {_mended(key): _mended(part) for key, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [_mended(part) for part in value]
    return value


def _foreign(value: Any) -> Any:
    """What msgspec does not know by itself. pydantic is only looked for where it was imported already."""
    if type(value) in (list, tuple, set, frozenset, dict):  # msgspec knows them, but not as keys
        raise TypeError(f"a {_kind(value)} cannot be a field name")
    if isinstance(value, os.PathLike):
        return os.fsdecode(value)
    for kind in (str, int, float):  # subclasses, as other libraries return them
        if isinstance(value, kind):
            return kind(value)
    if isinstance(value, (date, time)):
        return value.isoformat()
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, (Sequence, Set, KeysView, ValuesView)):
        return list(value)
    pydantic = sys.modules.get("pydantic")
    if pydantic is not None and isinstance(value, pydantic.BaseModel):
        return value.model_dump(mode="json")
    raise TypeError(f"{_kind(value)} cannot be written")


def _reason(item: object, error: Exception) -> str:
    if isinstance(error, RecursionError):
        return "the item contains itself, or is nested too deeply"
    for name, value in _fields_of(item) if isinstance(item, Mapping) else ():
        try:
            _encode(value)
        except Exception as its_error:
            return f"item field {shown(name)}: {_line(its_error)}; turn it into text or a number first"
    return f"{_kind(item)} as an item: {_line(error)}"


def _line(error: Exception) -> str:
    try:
        return " ".join(str(error).split())[:200] or type(error).__name__
    except Exception:
        return type(error).__name__


def _kind(value: object) -> str:
    return f"the class {value.__qualname__}" if isinstance(value, type) else type(value).__qualname__


_encode: Callable[[object], bytes] = msgspec.json.Encoder(enc_hook=_foreign).encode
_decode: Callable[[bytes], Any] = msgspec.json.Decoder().decode
