"""What the fields of the items hold: how often each is filled, and with what; and whether that has changed
since earlier runs, the first sign of a changed page."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from silkline.observe import figures
from silkline.request import DEFAULT_LABEL

KINDS_KEPT = 20
FIELDS_KEPT = 100
"""Of one kind. Items whose fields are named after what a page says would have more and more of them."""
NAME_LENGTH = 100

TYPES: dict[type, str] = {
    str: "text",
    int: "number",
    float: "number",
    bool: "boolean",
    list: "list",
    dict: "object",
}

ENOUGH = 20
"""Items of a kind, and pages without any, before something is said about them."""
FALL = 0.1
"""The share of the items by which a field must have fallen; and by more than chance explains:"""
SIGMAS = 3.0
REMEMBERED = 1_000
"""Earlier items count as many as those of the latest run, but never as fewer than these."""
FORGOTTEN = 0.001
"""The share of the items below which a field is none any more."""


class Filled(msgspec.Struct):
    """Items of one kind. types: by field, how often it is filled with each type; 0 times for some.

    A field is filled if it is there and neither null nor an empty text, list or object.
    """

    items: int = 0
    types: dict[str, dict[str, int]] = {}

    def begin(self, name: str, type_: str = "") -> None:
        """A field that is new, or filled with a type that is new."""
        if name not in self.types and (len(self.types) >= FIELDS_KEPT or len(name) > NAME_LENGTH):
            return
        counts = self.types.setdefault(name, {})
        if type_:
            counts[type_] = 1

    def rate(self, name: str) -> float:
        """The share of the items in which the field is filled."""
        return sum(self.types.get(name, {}).copy().values()) / self.items if self.items else 0.0


class FieldTally(msgspec.Struct):
    """kinds: by the name of the items' class, for dicts by the label of their request."""

    kinds: dict[str, Filled] = {}

    def add(self, kind: str, record: Mapping[str, Any]) -> None:
        """Count one item, as JSON has it."""
        filled = self.kinds.get(kind)
        if filled is None:
            if len(self.kinds) >= KINDS_KEPT:
                return
            filled = self.kinds[kind[:NAME_LENGTH]] = Filled()
        filled.items += 1
        types = filled.types
        for name, value in record.items():
            if value or value == 0:
                try:
                    types[name][TYPES[type(value)]] += 1
                except KeyError:
                    filled.begin(name, TYPES[type(value)])
            elif name not in types:
                filled.begin(name)


class Field(msgspec.Struct, frozen=True):
    """A field in the report. types: those that it was filled with, the most frequent first.

    earlier: the share of the items in which earlier runs of the job filled it; None where they had too few.
    """

    kind: str
    name: str
    types: tuple[str, ...]
    filled: int
    items: int
    earlier: float | None = None

    @property
    def full_name(self) -> str:
        """With the kind, but for dicts of pages without a label: `price`, `Product.price`."""
        return self.name if self.kind == DEFAULT_LABEL else f"{self.kind}.{self.name}"

    @property
    def rate(self) -> float:
        """The share of the items in which it is filled, 0 to 1."""
        return self.filled / self.items if self.items else 0.0


class Past(msgspec.Struct, frozen=True):
    """What earlier runs of a job have filled, by kind: how many items, weighted; and by field, how often."""

    items: dict[str, float] = {}
    filled: dict[str, dict[str, float]] = {}

    def rate(self, kind: str, name: str) -> float | None:
        """None where there were too few items."""
        items = self.items.get(kind, 0.0)
        return self.filled.get(kind, {}).get(name, 0.0) / items if items >= ENOUGH else None


NO_PAST = Past()


def past_from(text: str | None) -> Past:
    """What `text_of` made; nothing where it is missing or of another version."""
    try:
        return msgspec.json.decode(text or "{}", type=Past)
    except msgspec.MsgspecError:
        return NO_PAST


def text_of(past: Past) -> str:
    return msgspec.json.encode(past).decode()


def with_run(past: Past, run: FieldTally) -> Past:
    """The past as the next run will see it. Earlier items count less the more there are of later ones."""
    items, filled = dict(past.items), {kind: dict(fields) for kind, fields in past.filled.items()}
    for kind, of in run.kinds.items():
        before = items.get(kind, 0.0)
        weight = min(1.0, max(REMEMBERED, of.items) / before) if before else 1.0
        fields = filled.get(kind, {})
        names = dict.fromkeys([*of.types, *fields])
        counted = {name: fields.get(name, 0.0) * weight + of.rate(name) * of.items for name in names}
        items[kind] = before * weight + of.items
        most = sorted(counted.items(), key=lambda pair: -pair[1])[:FIELDS_KEPT]
        filled[kind] = {name: number for name, number in most if number >= items[kind] * FORGOTTEN}
    kept = sorted(items, key=lambda kind: -items[kind])[:KINDS_KEPT]
    return Past({kind: items[kind] for kind in kept}, {kind: filled.get(kind, {}) for kind in kept})


def fields_of(run: FieldTally, past: Past = NO_PAST) -> tuple[Field, ...]:
    """In the order in which they came up, kind by kind; those that only the past knows come last."""
    found: list[Field] = []
    for kind, of in run.kinds.copy().items():
        known = of.types.copy()
        for name in dict.fromkeys([*known, *past.filled.get(kind, {})]):
            counts = known.get(name, {}).copy()
            types = tuple(sorted(counts, key=lambda one: -counts[one]))
            earlier = past.rate(kind, name)
            found.append(Field(kind, name, types, sum(counts.values()), of.items, earlier))
    return tuple(found)


def fallen(run: FieldTally, past: Past, pages: int) -> list[str]:
    """A line for each field that is filled in fewer items than in earlier runs. pages: of this run."""
    fields = fields_of(run, past)
    lines = [_line(field) for field in fields if _has_fallen(field, past.items.get(field.kind, 0.0))]
    if not run.kinds and pages >= ENOUGH and sum(past.items.values()) >= ENOUGH:
        lines.append(
            f"no items from {figures.count(pages)} pages, some in earlier runs: has the site changed?"
        )
    return lines


def merge(parts: Iterable[FieldTally]) -> FieldTally:
    """All of them in a new one that shares nothing with them."""
    whole = FieldTally()
    for part in parts:
        for kind, of in part.kinds.copy().items():
            filled = whole.kinds.setdefault(kind, Filled())
            filled.items += of.items
            for name, counts in of.types.copy().items():
                summed = filled.types.setdefault(name, {})
                for known, number in counts.copy().items():
                    summed[known] = summed.get(known, 0) + number
    return whole


def _has_fallen(field: Field, before: float) -> bool:
    """Whether by more than FALL, and by more than the luck of so few items (two-proportion z-test)."""
    if field.earlier is None or field.items < ENOUGH or field.earlier - field.rate < FALL:
        return False
    both = (field.earlier * before + field.filled) / (before + field.items)
    spread = math.sqrt(both * (1 - both) * (1 / before + 1 / field.items))
    return field.earlier - field.rate > SIGMAS * spread


def _line(field: Field) -> str:
    name = figures.one_line(field.full_name)
    now, before = figures.share(field.rate), figures.share(field.earlier or 0.0)
    return f"field {name!r}: filled in {now} of items, {before} in earlier runs: has the page changed?"
