"""Fields as the command line writes them: NAME=CSS, NAME=CSS::text, NAME=CSS::html, NAME=CSS::attr(X)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from silkline.errors import ConfigError, SelectorError
from silkline.parse.node import Queries
from silkline.parse.selector import compile_selector


class Field(NamedTuple):
    """One value of an item: its name, and the selector of what it holds."""

    name: str
    selector: str


def parse_field(text: str) -> Field:
    """Read `NAME=CSS`; the first "=" is the border. Raises ConfigError in one line."""
    name, equals, selector = (part.strip() for part in text.partition("="))
    if not equals:
        raise ConfigError(f"field {text!r} has no '='; write NAME=CSS, for example price=.price")
    if not name:
        raise ConfigError(f"field {text!r} has no name before '='; write NAME=CSS, for example price=.price")
    if not selector:
        raise ConfigError(
            f"field {text!r} has no selector after '='; write NAME=CSS, for example price=.price"
        )
    try:
        compile_selector(selector)
    except SelectorError as error:
        raise ConfigError(f"field {name!r}: {error}") from error
    return Field(name, selector)


def parse_fields(texts: Iterable[str]) -> tuple[Field, ...]:
    """Read several. Raises ConfigError for a name that stands twice."""
    fields = tuple(parse_field(text) for text in texts)
    names = [field.name for field in fields]
    for name in names:
        if names.count(name) > 1:
            raise ConfigError(f"field {name!r} is given more than once; give each field its own name")
    return fields


def extract(source: Queries, fields: Iterable[Field]) -> dict[str, str | None]:
    """One item from a page or an element: the first match of each field, None where there is none.

    Links (::attr(href), ::attr(src)) come out as absolute URLs.
    """
    return {field.name: source.get(field.selector) for field in fields}
