"""Elements, and the questions that pages and elements answer alike."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TypeVar, overload

from turbohtml import Document, Element

from silkline.parse.excerpt import excerpt, markdown_of
from silkline.parse.selector import Selector, compile_css, compile_selector
from silkline.parse.tables import Table, tables_of
from silkline.parse.text import text_of

T = TypeVar("T")

LINK_ATTRIBUTES = frozenset({"href", "src"})
"""Attributes whose values come out as absolute URLs."""


class Queries(ABC):
    """CSS questions to a page or an element.

    Elements come in document order. A question for one value is about the first match, and answers None,
    or `default`, if nothing matches. Text is what a reader sees, in one line: scripts, styles and comments
    left out, blocks and table cells apart, items of ordered lists with their numbers, each run of white
    space one space. The attributes href and src come out as absolute URLs, all others as they stand; for
    an absent attribute there is no value.

    Every method raises SelectorError for a selector that is none, and on a page ContentError if its body
    is no document.
    """

    __slots__ = ()

    @property
    @abstractmethod
    def _scope(self) -> Document | Element:
        """Where selectors search."""

    @property
    @abstractmethod
    def _element(self) -> Element | None:
        """What is meant where no selector is given."""

    @property
    @abstractmethod
    def base_url(self) -> str:
        """What relative links are relative to: the page's URL, or its `<base href>`."""

    @abstractmethod
    def absolute(self, href: str) -> str | None:
        """The URL that a link found here means; None where it is not one of http(s)."""

    @property
    @abstractmethod
    def _page(self) -> Queries: ...

    def css(self, selector: str) -> list[Node]:
        """All matching elements below this one."""
        page = self._page
        return [Node(element, page) for element in self._scope.select(compile_css(selector).css)]

    def one(self, selector: str) -> Node | None:
        """The first matching element below this one."""
        element = self._scope.select_one(compile_css(selector).css)
        return None if element is None else Node(element, self._page)

    @overload
    def get(self, selector: str) -> str | None: ...
    @overload
    def get(self, selector: str, *, default: T) -> str | T: ...
    def get(self, selector: str, *, default: object = None) -> object:
        """The value that a selector with ::text (the default), ::html or ::attr(NAME) names."""
        return self._first(compile_selector(selector), default)

    def get_all(self, selector: str) -> list[str]:
        """The values of all matches, elements without that attribute left out."""
        chosen = compile_selector(selector)
        found = self._scope.select(chosen.css) if chosen.css else [self._element]
        values = [self._value(element, chosen) for element in found if element is not None]
        return [value for value in values if value is not None]

    @overload
    def text(self, css: str | None = None) -> str | None: ...
    @overload
    def text(self, css: str | None = None, *, default: T) -> str | T: ...
    def text(self, css: str | None = None, *, default: object = None) -> object:
        """The text of the first match, or of all of this."""
        element = self._scope.select_one(compile_css(css).css) if css else self._element
        return default if element is None else text_of(element)

    @overload
    def html(self, css: str | None = None) -> str | None: ...
    @overload
    def html(self, css: str | None = None, *, default: T) -> str | T: ...
    def html(self, css: str | None = None, *, default: object = None) -> object:
        """The HTML of the first match, its own tag included, or of all of this."""
        return self._first(Selector(compile_css(css).css if css else "", "html"), default)

    @overload
    def attr(self, css_or_name: str, name: str | None = None) -> str | None: ...
    @overload
    def attr(self, css_or_name: str, name: str | None = None, *, default: T) -> str | T: ...
    def attr(self, css_or_name: str, name: str | None = None, *, default: object = None) -> object:
        """`attr("href")` of this element, or `attr("a.next", "href")` of the first match."""
        if name is None:
            return self._first(Selector("", "attr", css_or_name.lower()), default)
        return self._first(Selector(compile_css(css_or_name).css, "attr", name.lower()), default)

    @overload
    def markdown(self, css: str | None = None) -> str | None: ...
    @overload
    def markdown(self, css: str | None = None, *, default: T) -> str | T: ...
    def markdown(self, css: str | None = None, *, default: object = None) -> object:
        """The first match, or all of this, as GitHub-flavoured Markdown: links absolute, without scripts,
        forms and the like. For the main text alone see `Page.article`."""
        element = self._scope.select_one(compile_css(css).css) if css else self._element
        return default if element is None else markdown_of(excerpt(element, self.absolute))

    def tables(self, css: str | None = None) -> list[Table]:
        """The tables here, those in tables too, as rows of text and as records; see `parse/tables.py`.

        css: only those that it matches, or that are in what it matches.
        """
        inside = compile_css(css).css if css else ""
        found = self._scope.select(f":is({inside}):is(table), :is({inside}) table" if inside else "table")
        if not inside and isinstance(self._scope, Element) and self._scope.tag == "table":
            found.insert(0, self._scope)
        return tables_of(table for table in found if table.closest("template") is None)

    def _first(self, selector: Selector, default: object) -> object:
        element = self._scope.select_one(selector.css) if selector.css else self._element
        value = None if element is None else self._value(element, selector)
        return default if value is None else value

    def _value(self, element: Element, selector: Selector) -> str | None:
        if selector.take == "attr":
            value = element.attr(selector.attribute)
            if value is None or selector.attribute not in LINK_ATTRIBUTES:
                return value
            return self.absolute(value) or value
        if selector.take == "html":
            return element.html
        return text_of(element)


class Node(Queries):
    """An element of a page.

    element: the turbohtml element itself, for everything that is not offered here.
    """

    __slots__ = ("_owner", "element")

    def __init__(self, element: Element, owner: Queries) -> None:
        self.element = element
        self._owner = owner

    @property
    def tag(self) -> str:
        """Its name in lower case."""
        return self.element.tag

    @property
    def base_url(self) -> str:
        return self._owner.base_url

    def absolute(self, href: str) -> str | None:
        return self._owner.absolute(href)

    @property
    def _scope(self) -> Element:
        return self.element

    @property
    def _element(self) -> Element:
        return self.element

    @property
    def _page(self) -> Queries:
        return self._owner

    def __repr__(self) -> str:
        return f"<Node {self.tag} {self.text(default='')[:60]!r}>"
