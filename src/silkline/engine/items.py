"""From what a handler yielded to items as every output wants them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from inspect import isawaitable
from typing import Any

import msgspec

from silkline.engine.steps import Dropped, Failed
from silkline.errors import ItemError
from silkline.files import shown_output
from silkline.items import ItemKeys, To, TypeChecks
from silkline.outcome import DeadItem, Item, Lease
from silkline.protocols import KeyedSink, Output, PageSink, Sink
from silkline.response import Response
from silkline.sinks.choose import wants_types
from silkline.sinks.part import output_of
from silkline.sinks.record import fields_of, record_of, size_of, text_of, typed_of

Note = Callable[[str, Mapping[str, Any]], None]
"""`note(kind, record)` hears of each item that is made: its class's name, or for a dict its page's label."""


class Outputs(msgspec.Struct, frozen=True):
    """The sinks that are to have an item, each with the name of its output: files, those of them that want
    values with their types, and keyed ones."""

    plain: Sequence[tuple[Sink, str]] = ()
    typed: Sequence[tuple[Sink, str]] = ()
    keyed: Sequence[tuple[KeyedSink, str]] = ()

    @property
    def names(self) -> list[str]:
        return [name for _, name in (*self.plain, *self.typed, *self.keyed)]

    def only(self, names: Sequence[str]) -> Outputs:
        return Outputs(
            [pair for pair in self.plain if pair[1] in names],
            [pair for pair in self.typed if pair[1] in names],
            [pair for pair in self.keyed if pair[1] in names],
        )


class Made(msgspec.Struct, frozen=True):
    """The items of one page, in their order, and those that no output can hold, or not all. dropped: how many
    steps have left out, by the reason."""

    items: tuple[Item, ...] = ()
    dead: tuple[DeadItem, ...] = ()
    dropped: Mapping[str, int] = {}


class ItemMaker:
    """Checks and encodes items for the sinks of one worker.

    called: what outputs are called in this crawl, to their names; see `items.To`.
    """

    def __init__(
        self,
        sinks: Sequence[Output],
        keyed: Sequence[KeyedSink] = (),
        keys: ItemKeys | None = None,
        checks: TypeChecks | None = None,
        called: Mapping[str, str] | None = None,
        note: Note = lambda kind, record: None,
    ) -> None:
        self._archives = [sink for sink in sinks if isinstance(sink, PageSink)]
        files = [(sink, output_of(sink)) for sink in sinks if not isinstance(sink, PageSink)]
        self._all = Outputs(
            [pair for pair in files if not wants_types(pair[0])],
            [pair for pair in files if wants_types(pair[0])],
            [(sink, sink.name) for sink in keyed],
        )
        self._keys = keys or ItemKeys()
        self._checks = checks or TypeChecks()
        self._called = called or {}
        self._note = note

    def made(self, values: Sequence[object], lease: Lease) -> Made:
        items: list[Item] = []
        dead: list[DeadItem] = []
        dropped: dict[str, int] = {}
        for index, value in enumerate(values):
            outputs = self._all if not lease.request.redo else self._missed(lease, index)
            if type(value) is Dropped:
                dropped[value.reason] = dropped.get(value.reason, 0) + 1
                continue
            if type(value) is Failed:
                self._bury(dead, value.item, lease, index, "step", value.error, outputs)
                continue
            try:
                if type(value) is To:
                    outputs, value = self._routed(value, outputs), value.item
                item = self._item(value, lease, index, outputs, dead)
            except ItemError as error:
                self._bury(dead, value, lease, index, "item", str(error), outputs)
            except RecursionError:  # where a check or a format goes into it
                self._bury(dead, value, lease, index, "item", "it is nested too deeply", outputs)
            else:
                if item is not None:
                    items.append(item)
        if lease.request.redo:
            self._keep_homeless(dead, values, lease)
        return Made(tuple(items), tuple(dead), dropped)

    @property
    def archives(self) -> bool:
        """Whether there are outputs that keep pages."""
        return bool(self._archives)

    async def archived(self, response: Response | None, lease: Lease) -> tuple[Item, ...]:
        """The page itself, for the outputs that keep pages; () where there was no response."""
        if response is None or not self._archives:
            return ()
        items: list[Item] = []
        for sink in self._archives:
            record = sink.record(response)
            if isawaitable(record):
                record = await record
            if record is not None:
                items.append(Item(lease.fingerprint, -1 - len(items), {sink.name: record}))
        return tuple(items)

    def _item(
        self, value: object, lease: Lease, index: int, outputs: Outputs, dead: list[DeadItem]
    ) -> Item | None:
        """None where no output is to have it, or can."""
        is_dict = type(value) is dict
        changed = None if is_dict else self._checks.converted(value)
        plain = record_of(value)
        record = plain | record_of(changed) if changed else plain
        key = self._keys.of(value)
        data: dict[str, Any] = {}
        size, fields = 0, None
        for sink, name in outputs.plain:
            try:
                data[sink.name] = sink.encode(record)
            except ItemError as error:
                dead.append(_dead(value, lease, index, "item", str(error), name))
        if outputs.typed or outputs.keyed:
            fields = plain | typed_of(value)
            if changed:
                fields |= fields_of(changed)
            size = size_of(fields) if outputs.keyed else 0
            rest: list[tuple[Sink | KeyedSink, str]] = [*outputs.typed, *outputs.keyed]
            for typed, name in rest:
                try:
                    data[typed.name] = typed.encode(fields)
                except ItemError as error:
                    dead.append(_dead(value, lease, index, "item", str(error), name))
        if not data and (outputs is not self._all or self._all.names):
            return None
        self._note(lease.request.label if is_dict else type(value).__name__, record)
        kept = fields if outputs.keyed else None
        return Item(lease.fingerprint, index, data, key, size, kept, missed=bool(lease.request.redo))

    def _routed(self, value: To, outputs: Outputs) -> Outputs:
        for name in value.names:
            if name not in self._called:
                shown: dict[str, str] = {}
                for called, output in self._called.items():
                    shown.setdefault(output, shown_output(called))
                known = ", ".join(shown.values()) or "none"
                raise ItemError(f"no output is called {shown_output(name)!r}; there are: {known}")
        return outputs.only([self._called[name] for name in value.names])

    def _missed(self, lease: Lease, index: int) -> Outputs:
        """What is to have the item of a page that is visited again for some of its items: databases, which
        replace what they have, and those files that have missed it."""
        missing = [output for place, output in lease.request.redo if place == index]
        if "" in missing:
            return self._all
        return msgspec.structs.replace(self._all.only(missing), keyed=self._all.keyed)

    def _bury(
        self,
        dead: list[DeadItem],
        value: object,
        lease: Lease,
        index: int,
        cause: str,
        error: str,
        outputs: Outputs,
    ) -> None:
        names = [""] if outputs is self._all else outputs.names
        dead += [_dead(value, lease, index, cause, error, name) for name in names]

    def _keep_homeless(self, dead: list[DeadItem], values: Sequence[object], lease: Lease) -> None:
        """What an output has missed that this run does not have stays dead, and is not lost."""
        known = {"", *self._all.names}
        for index, output in lease.request.redo:
            if output not in known and index < len(values) and type(values[index]) is not Dropped:
                error = f"this run has no output {output}"
                dead.append(_dead(values[index], lease, index, "item", error, output))


def _dead(value: object, lease: Lease, index: int, cause: str, error: str, output: str) -> DeadItem:
    if isinstance(value, Failed):
        value = value.item
    if isinstance(value, To):
        value = value.item
    return DeadItem(lease.fingerprint, index, lease.request.url, cause, error, text_of(value), output)
