"""Steps that say which items there are to be, and where they go."""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Callable
from typing import Any
from weakref import ref

import msgspec

from silkline.errors import Drop
from silkline.items import To
from silkline.parse.page import Page
from silkline.sinks.record import record_of
from silkline.steps.fields import MISSING, Step, value_of

REMEMBERED = 100_000
"""Keys that `unique` knows at most."""


def required(*fields: str) -> Step:
    """An item without one of these, or with None or empty text in it, is dead: it can be had again when the
    spider is mended. To leave such items out for good use `keep`."""
    if not fields:
        raise TypeError("required() wants the names of fields: required('name')")

    def required(item: Any) -> Any:
        for field in fields:
            value = value_of(item, field)
            if value is MISSING or value is None or value == "":
                raise ValueError(f"field {field!r} is {'missing' if value is MISSING else 'empty'}")
        return item

    return required


def keep(wanted: Callable[[Any], object], reason: str = "not wanted") -> Step:
    """Drop the items for which `wanted(item)` is false; `reason` counts them in the report."""

    def keep(item: Any) -> Any:
        if not wanted(item):
            raise Drop(reason)
        return item

    return keep


def unique(*fields: str, reason: str = "seen before") -> Step:
    """Drop an item whose values in these fields an earlier item has had, of this page or another one.

    It remembers the last 100,000 of them in the memory of one worker, from its start: two workers, and two
    runs, know nothing of each other. Where that is not enough, give items a key, and let a database tell them
    apart. A page that is visited again has its own items again.
    """
    if not fields:
        raise TypeError("unique() wants the names of fields: unique('sku')")
    owners: OrderedDict[bytes, tuple[int, ref[Page]]] = OrderedDict()

    def unique(item: Any, page: Page) -> Any:
        key, mine = _digest(item, fields), page.request.fingerprint
        owner, visit = owners.get(key, (mine, None))
        # The same page in another visit: what the earlier one gave may never have counted.
        if owner != mine or (visit is not None and visit() is page):
            owners.move_to_end(key)
            raise Drop(reason)
        owners[key] = (mine, ref(page))
        if len(owners) > REMEMBERED:
            owners.popitem(last=False)
        return item

    return unique


def _digest(item: Any, fields: tuple[str, ...]) -> bytes:
    values = {name: value for name in fields if (value := value_of(item, name)) is not MISSING}
    return hashlib.blake2b(msgspec.json.encode(record_of(values)), digest_size=16).digest()


def route(chosen: Callable[[Any], str | tuple[str, ...] | None]) -> Step:
    """Send an item to the output, or the outputs, that `chosen(item)` names; see `items.To`. None: to all."""

    def route(item: Any) -> Any:
        outputs = chosen(item)
        return item if outputs is None else To(outputs, item)

    return route
