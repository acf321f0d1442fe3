"""What a page says of itself for machines: JSON-LD, microdata and OpenGraph, each as it stands there, and one
way to ask for a thing by its type."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import msgspec
from turbohtml import Document

from silkline.parse.jsonld import json_ld_objects
from silkline.parse.microdata import microdata_items
from silkline.parse.opengraph import OpenGraph, open_graph

_schema_org = re.compile(r"(?:https?://(?:www\.)?schema\.org/|schema:)").match


class StructuredData(msgspec.Struct, frozen=True):
    """json_ld: the objects at the top, those of arrays and @graph one by one.

    microdata: the items at the top, `{"type": […], "id": …, "properties": {name: [values]}}`.

    notes: what was mended, and what was left out, one line each.
    """

    json_ld: list[dict[str, Any]] = []
    microdata: list[dict[str, Any]] = []
    opengraph: OpenGraph = OpenGraph()
    notes: list[str] = []

    def first(self, *types: str) -> dict[str, Any] | None:
        """The first thing of one of these types of schema.org ("Product"); None if there is none.

        JSON-LD before microdata, what stands at the top before what is nested. Microdata comes in the form
        of JSON-LD: `{"@type": "Product", "name": "Chair", "offers": {…}}`, a list for several values.
        A type is meant exactly: "Article" is not "NewsArticle". Types of other vocabularies go by their URL.
        """
        return next(self._of(types), None)

    def all(self, *types: str) -> list[dict[str, Any]]:
        """All things of these types, as `first` finds them, those inside others included."""
        return list(self._of(types))

    def _of(self, types: Iterable[str]) -> Iterator[dict[str, Any]]:
        wanted = {_name(kind) for kind in types}
        yield from _typed(self.json_ld, wanted)
        if self.microdata:
            yield from _typed([_as_json_ld(item) for item in self.microdata], wanted)


def structured_data(document: Document, absolute: Callable[[str], str | None]) -> StructuredData:
    """absolute: makes a link of the document absolute."""
    notes: list[str] = []
    json_ld = json_ld_objects(document, notes)
    microdata = microdata_items(document, absolute, notes)
    return StructuredData(json_ld, microdata, open_graph(document, absolute), notes)


def _name(kind: str) -> str:
    prefix = _schema_org(kind)
    return kind[prefix.end() :] if prefix else kind


def _typed(things: Iterable[Any], wanted: set[str]) -> Iterator[dict[str, Any]]:
    """Level by level, so that what is nested comes last."""
    pending = deque(things)
    while pending:
        thing = pending.popleft()
        if isinstance(thing, dict):
            kinds = thing.get("@type")
            kinds = kinds if isinstance(kinds, list) else [kinds]
            if any(isinstance(kind, str) and _name(kind) in wanted for kind in kinds):
                yield thing
            pending.extend(thing.values())
        elif isinstance(thing, list):
            pending.extend(thing)


def _as_json_ld(item: dict[str, Any]) -> dict[str, Any]:
    thing: dict[str, Any] = {}
    if kinds := [_name(kind) for kind in item.get("type", ())]:
        thing["@type"] = kinds[0] if len(kinds) == 1 else kinds
    if "id" in item:
        thing["@id"] = item["id"]
    for name, values in item["properties"].items():
        plain = [_as_json_ld(value) if isinstance(value, dict) else value for value in values]
        thing.setdefault(name, plain[0] if len(plain) == 1 else plain)
    return thing
