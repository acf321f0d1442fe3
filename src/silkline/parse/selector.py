"""Selectors: CSS, and what to take of an element.

`h1`, `h1::text`, `div::html`, `a::attr(href)`. A pseudo-element alone, such as `::attr(href)`, takes from
the element that is searched itself.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Literal, NamedTuple

import turbohtml

from silkline.errors import SelectorError

Take = Literal["element", "text", "html", "attr"]

_NO_DOCUMENT = turbohtml.parse("")
_pseudo_element = re.compile(r"::([A-Za-z-]*)(?:\(\s*([^()]*?)\s*\))?\s*$")


class Selector(NamedTuple):
    """`css` is empty where the searched element itself is meant; `attribute` belongs to take "attr"."""

    css: str
    take: Take = "element"
    attribute: str = ""


@lru_cache(maxsize=1_024)
def compile_selector(text: str) -> Selector:
    """Read a selector with or without a pseudo-element. Raises SelectorError, naming it and the place.

    A pseudo-element stands once, at the end, and goes for all selectors of a list: `h1, h2::text`.
    """
    match = _pseudo_element.search(text)
    css = (text[: match.start()] if match else text).strip()
    if not match:
        selector = Selector(css)
    elif match[1] in ("text", "html") and match[2] is None:
        selector = Selector(css, "text" if match[1] == "text" else "html")
    elif match[1] == "attr" and match[2]:
        selector = Selector(css, "attr", match[2].strip("\"'").lower())
    else:
        known = "there are ::text, ::html and ::attr(NAME)"
        raise SelectorError(f"selector {_quoted(text)}: no pseudo-element {match[0].strip()!r}; {known}")
    if css or not match:
        _check_css(css, text)
    return selector


@lru_cache(maxsize=1_024)
def compile_css(text: str) -> Selector:
    """Read a selector of elements. Raises SelectorError also for one with a pseudo-element."""
    selector = compile_selector(text)
    if selector.take != "element":
        asked = "elements are asked for here; leave out its pseudo-element"
        raise SelectorError(f"selector {_quoted(text)}: {asked}")
    return selector


def _check_css(css: str, text: str) -> None:
    try:
        _NO_DOCUMENT.select(css)
    except ValueError as error:
        detail = str(error).removeprefix(f'invalid CSS selector "{css}": ')
        hint = "; a pseudo-element stands once, at the end" if "::" in css else ""
        raise SelectorError(f"selector {_quoted(text)}: {detail}{hint}") from error


def _quoted(text: str) -> str:
    return repr(text if len(text) <= 200 else text[:200] + "…")
