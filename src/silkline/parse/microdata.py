"""Microdata: itemscope, itemprop and their like (HTML Standard, section 5), in the form of its JSON.

What differs: text is what a reader sees, in one line; and `content` counts on any element, as schema.org's
pages use it (`<b itemprop=price content=9.50>9,50 €</b>`), where the standard reads it of <meta> only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from turbohtml import Document, Element

from silkline.parse.text import text_of

MAX_VALUES = 20_000
"""Items and values of a page that are read."""

MAX_TEXT = 4_000_000
"""Characters in the values of a page: an element's text is that of all the elements inside, too."""

MAX_REFERENCES = 256
"""Elements that the `itemref` of a page may name."""

MAX_NESTING = 64
"""Items in items."""

_LOOKED_AT = 100_000
"""Properties of a page that are sorted by the items that they are in."""

_SOURCES = frozenset({"audio", "embed", "iframe", "img", "source", "track", "video"})
_LINKS = frozenset({"a", "area", "link"})
_NUMBERS = frozenset({"data", "meter"})

Absolute = Callable[[str], str | None]


def microdata_items(document: Document, absolute: Absolute, notes: list[str]) -> list[dict[str, Any]]:
    """The items at the top, `{"type": […], "id": …, "properties": {name: [values]}}`; type, id if stated.

    absolute: makes a link absolute. notes: gets a line where a limit is reached.
    """
    scopes = document.select("[itemscope]:not([itemprop])")
    if not scopes:
        return []
    reader = _Reader(document, absolute)
    items = [reader.item(scope, ()) for scope in scopes if reader.in_page(scope) and reader.within_limits()]
    if reader.exceeded:
        notes.append(f"microdata: over {reader.exceeded}, the rest left out")
    return items


class _Reader:
    def __init__(self, document: Document, absolute: Absolute) -> None:
        self._document = document
        self._absolute = absolute
        self._has_templates = document.select_one("template") is not None
        self._values = MAX_VALUES
        self._text = MAX_TEXT
        self._by_id: dict[str, Element] | None = None
        self._referred: dict[Element, list[Element]] = {}
        self._inside: dict[Element, list[Element]] = {}
        self.exceeded = ""
        for element in document.select("[itemscope] [itemprop]")[:_LOOKED_AT]:
            scope = _scope_around(element)
            if scope is not None:
                self._inside.setdefault(scope, []).append(element)

    def in_page(self, element: Element) -> bool:
        return not self._has_templates or element.closest("template") is None

    def within_limits(self) -> bool:
        if self._values <= 0:
            self.exceeded = f"{MAX_VALUES:,} values"
        elif self._text <= 0:
            self.exceeded = f"{MAX_TEXT:,} characters"
        return not self.exceeded

    def item(self, scope: Element, around: tuple[Element, ...]) -> dict[str, Any]:
        """around: the items that this one is in, outermost first."""
        self._values -= 1
        item: dict[str, Any] = {}
        if types := (scope.attr("itemtype") or "").split():
            item["type"] = types
        if identity := (scope.attr("itemid") or "").strip():
            item["id"] = self._absolute(identity) or identity
        properties: dict[str, list[Any]] = {}
        for element in self._properties(scope):
            if not self.within_limits():
                break
            names = dict.fromkeys((element.attr("itemprop") or "").split())
            if names:
                value = self._value(element, (*around, scope))
                self._values -= len(names)
                for name in names:
                    properties.setdefault(name, []).append(value)
        item["properties"] = properties
        return item

    def _properties(self, scope: Element) -> Iterable[Element]:
        inside = self._inside.get(scope, [])
        references = scope.attr("itemref")
        if not references:
            return inside
        found = dict.fromkeys(inside)
        for reference in references.split()[:MAX_REFERENCES]:
            if (root := self._with_id(reference)) is not None and root != scope:
                found.update(dict.fromkeys(self._referred_at(root)))
        return found

    def _with_id(self, identity: str) -> Element | None:
        if self._by_id is None:
            self._by_id = {}
            for element in self._document.select("[id]"):
                self._by_id.setdefault(element.attr("id") or "", element)
        return self._by_id.get(identity)

    def _referred_at(self, root: Element) -> list[Element]:
        """The properties that an item gets by naming `root`: it, and those in it but for nested items'."""
        if root not in self._referred:
            if len(self._referred) >= MAX_REFERENCES:
                self.exceeded = f"{MAX_REFERENCES} references"
                return []
            found = [root] if root.attr("itemprop") is not None else []
            if root.attr("itemscope") is None:
                around = _scope_around(root)
                inside = root.select("[itemprop]")[: max(self._values, 0)]
                self._values -= len(inside)
                found += [prop for prop in inside if _scope_around(prop) == around]
            self._referred[root] = found
        self._values -= len(self._referred[root])
        return self._referred[root]

    def _value(self, element: Element, around: tuple[Element, ...]) -> Any:
        if element.attr("itemscope") is not None:
            if element in around or len(around) >= MAX_NESTING:
                return "ERROR"  # as the standard says of an item that is in itself
            return self.item(element, around)
        content = element.attr("content")
        tag = element.tag
        if content is not None or tag == "meta":
            value = content or ""
        elif tag in _SOURCES:
            value = self._url(element.attr("src"))
        elif tag in _LINKS:
            value = self._url(element.attr("href"))
        elif tag == "object":
            value = self._url(element.attr("data"))
        elif tag in _NUMBERS:
            value = element.attr("value") or ""
        elif tag == "time" and (stated := element.attr("datetime")) is not None:
            value = stated
        else:
            value = text_of(element)
        self._text -= len(value)
        return value

    def _url(self, href: str | None) -> str:
        return "" if href is None else self._absolute(href) or href


def _scope_around(element: Element) -> Element | None:
    """The item that a property belongs to by its place."""
    parent = element.parent
    return parent.closest("[itemscope]") if isinstance(parent, Element) else None
