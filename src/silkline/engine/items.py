"""From what a handler yielded to items as every output wants them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from silkline.outcome import Item, Lease
from silkline.protocols import KeyedSink, Output, PageSink
from silkline.response import Response
from silkline.sinks.choose import wants_types
from silkline.sinks.record import fields_of, record_of, size_of

Note = Callable[[str, Mapping[str, Any]], None]
"""`note(kind, record)` hears of each item that is made: its class's name, or for a dict its page's label."""


class ItemMaker:
    """Encodes items for the sinks of one worker."""

    def __init__(self, sinks: Sequence[Output], keyed: Sequence[KeyedSink], note: Note) -> None:
        files = [sink for sink in sinks if not isinstance(sink, PageSink)]
        self._plain = [sink for sink in files if not wants_types(sink)]
        self._typed = [sink for sink in files if wants_types(sink)]
        self._archives = [sink for sink in sinks if isinstance(sink, PageSink)]
        self._keyed = keyed
        self._note = note

    def made(self, values: Sequence[object], lease: Lease) -> tuple[Item, ...]:
        """The items of one page, in their order. Raises ItemError."""
        return tuple(self._item(value, lease, index) for index, value in enumerate(values))

    def archived(self, response: Response | None, lease: Lease) -> tuple[Item, ...]:
        """The page itself, for the outputs that keep pages; () where there was no response."""
        if response is None:
            return ()
        kept = ((sink.name, sink.record(response)) for sink in self._archives)
        records = [(name, record) for name, record in kept if record is not None]
        return tuple(Item(lease.fingerprint, -1 - n, {name: r}) for n, (name, r) in enumerate(records))

    def _item(self, value: object, lease: Lease, index: int) -> Item:
        record, fingerprint = record_of(value), lease.fingerprint
        data = {sink.name: sink.encode(record) for sink in self._plain}
        self._note(lease.request.label if type(value) is dict else type(value).__name__, record)
        if not self._keyed and not self._typed:
            return Item(fingerprint, index, data)
        fields = fields_of(value)
        data |= {sink.name: sink.encode(fields) for sink in self._typed}
        if not self._keyed:
            return Item(fingerprint, index, data)
        data |= {sink.name: sink.encode(fields) for sink in self._keyed}
        return Item(fingerprint, index, data, size=size_of(fields), fields=fields)
