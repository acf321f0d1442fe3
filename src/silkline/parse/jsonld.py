"""JSON-LD in a page's <script type="application/ld+json"> (JSON-LD 1.1, section 7).

Much of what stands there is no JSON (RFC 8259). What has one meaning only is mended: line breaks and tabs
inside text, a comma or semicolon too many, comments, the wrapping of XHTML (`//<![CDATA[`, `<!--`), quotes
that were escaped for HTML, halves of surrogate pairs. Any other block is left out, and a note says so.
"""

from __future__ import annotations

import html
import json
import math
import re
from collections.abc import Iterator
from typing import Any

import msgspec
from turbohtml import Document

MAX_TEXT = 2_000_000
"""Characters of JSON-LD that are read of a page; catalogues of a thousand products have half of it."""

_BLOCKS = 'script[type*="ld+json" i]'
_opening = re.compile(r"(?:\s|(?://|/\*)(?=\s*<!)|<!--|<!\[CDATA\[|\*/|\ufeff)*").match
"""Not possessive: Python 3.11.2 goes wrong there. Nothing follows, so nothing is tried twice."""
_closing = re.compile(r"(?:\s|//|/\*|-->|\]\]>|\*/|;)+\Z")
_TAIL = 200
"""Characters at the end of a block that are searched for what closes its wrapping."""

_tokens = re.compile(r'("(?:[^"\\]|\\.)*+(?:"|\Z))|,(?=\s*+[}\]])|/\*.*?(?:\*/|\Z)|//[^\n]*+', re.S)
_escapes = re.compile(r"\\u[dD][89abAB]..\\u[dD][c-fC-F]..|\\u[dD][89a-fA-F]..|\\.", re.S)


def json_ld_objects(document: Document, notes: list[str]) -> list[dict[str, Any]]:
    """The objects at the top of all blocks, in order; those in arrays and in @graph one by one.

    notes: gets a line for each block that was mended or left out.
    """
    found: list[dict[str, Any]] = []
    left = MAX_TEXT
    for number, script in enumerate(document.select(_BLOCKS), 1):
        if script.closest("template") is not None:
            continue
        text = script.text
        left -= len(text)
        if left < 0:
            notes.append(f"JSON-LD block {number} and what follows: over {MAX_TEXT:,} characters, left out")
            break
        if text.strip():
            found += _flat(_read(text, number, notes))
    return found


def _read(text: str, number: int, notes: list[str]) -> Any:
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError):
        pass
    try:
        value = json.loads(_mended(text), strict=False, parse_constant=_no_value, parse_float=_finite)
        msgspec.json.encode(value)  # as an item would be
    except (ValueError, RecursionError, OverflowError, msgspec.MsgspecError) as error:
        notes.append(f"JSON-LD block {number}: {str(error)[:200]}, left out")
        return None
    notes.append(f"JSON-LD block {number}: not quite JSON, mended")
    return value


def _no_value(name: str) -> Any:
    raise ValueError(f"{name} is no JSON value")


def _finite(number: str) -> float:
    return float(number) if math.isfinite(float(number)) else _no_value(number[:20])


def _mended(text: str) -> str:
    start = _opening(text)
    text = text[start.end() if start else 0 :]
    tail = len(text) - _TAIL
    text = text[: max(tail, 0)] + _closing.sub("", text[max(tail, 0) :])
    if '"' not in text and "&quot;" in text:
        text = html.unescape(text)
    return _tokens.sub(_token, text)


def _token(match: re.Match[str]) -> str:
    """Text stays, without lone surrogates; comments and commas before a closing bracket go."""
    text: str | None = match[1]
    if text is None:
        return ""
    return _escapes.sub(_escape, text) if "\\" in text else text


def _escape(match: re.Match[str]) -> str:
    is_half = len(match[0]) == 6 and match[0][1] == "u"
    return r"\ufffd" if is_half else match[0]


def _flat(value: Any) -> Iterator[dict[str, Any]]:
    """The objects of nested arrays and graphs, in order."""
    pending = [value]
    while pending:
        value = pending.pop()
        if isinstance(value, list):
            pending.extend(reversed(value))
        elif isinstance(value, dict):
            graph = value.get("@graph")
            if isinstance(graph, list | dict):
                pending.append(graph)
                value = {name: of for name, of in value.items() if name != "@graph"}
            if value.keys() - {"@context"}:
                yield value
