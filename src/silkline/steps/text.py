"""Steps that clean text."""

from __future__ import annotations

from typing import Any

import turbohtml

from silkline.parse.page import Page
from silkline.parse.text import text_of
from silkline.steps.fields import MISSING, Step, changed, mapped, value_of


def strip(*fields: str) -> Step:
    """No white space at the ends of text; of all fields where none is named."""
    return mapped("strip", fields, lambda value: value.strip() if isinstance(value, str) else value)


def squeeze(*fields: str) -> Step:
    """No white space at the ends of text, and each run of it inside one space, line breaks and no-break
    spaces included; of all fields where none is named."""
    return mapped("squeeze", fields, _squeezed)


def html_to_text(*fields: str) -> Step:
    """Of HTML source, the text that a reader sees, in one line."""
    _named("html_to_text", fields)
    return mapped("html_to_text", fields, _read)


def absolute_urls(*fields: str) -> Step:
    """Links as absolute URLs, by the page's own or its `<base href>`; one that is none of http(s) is None."""
    _named("absolute_urls", fields)

    def absolute_urls(item: Any, page: Page) -> Any:
        values: dict[str, Any] = {}
        for field in fields:
            old = value_of(item, field)
            if isinstance(old, str):
                values[field] = page.absolute(old)
            elif old is not MISSING and isinstance(old, list):
                values[field] = [page.absolute(one) if isinstance(one, str) else one for one in old]
        return changed(item, values) if values else item

    return absolute_urls


def _squeezed(value: Any) -> Any:
    return " ".join(value.split()) if isinstance(value, str) else value


def _read(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    body = turbohtml.parse(value).select_one("body")
    return "" if body is None else text_of(body)


def _named(step: str, fields: tuple[str, ...]) -> None:
    if not fields:
        raise TypeError(f"{step}() wants the names of fields: {step}('link')")
