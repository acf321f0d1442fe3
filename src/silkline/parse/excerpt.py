"""A part of a page on its own, as HTML, Markdown and text: links absolute, without what no reader reads.

A copy: the page stays as it is.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Callable

import turbohtml
from turbohtml import Document, Element, Markdown, PlainText

from silkline.parse.grid import grid_of
from silkline.parse.tables import MAX_PLACES
from silkline.url import MAX_URL_LENGTH

_UNREAD = (
    "script, style, template, noscript, link, meta, svg, iframe, object, embed, canvas, audio, video, "
    "dialog, input, select, textarea, button, [hidden], img[src^='data:' i]"
)
_LAZY = ("data-src", "data-lazy-src", "data-original")
"""Where scripts keep the address of a picture until it comes into sight."""

_runs_code = re.compile(r"[\x00-\x20]*(?:javascript|vbscript|data):", re.I).match
_MARKDOWN = Markdown(tables=Markdown.Tables(header="detect", cell_blocks="text"))
_TEXT = PlainText(bullet="- ")
_SPANNING = "td[colspan], th[colspan], td[rowspan], th[rowspan]"


def excerpt(element: Element, absolute: Callable[[str], str | None]) -> Element:
    """absolute: makes a link of the page absolute, or None where it is none of http(s)."""
    part = _copy_of(element)
    for image in part.select("img"):
        _show(image)
    part.remove(_UNREAD)
    for link in part.select("[href]"):
        if _runs_code(link.attr("href") or ""):
            del link.attrs["href"]

    def rewritten(href: str) -> str:
        return href if len(href) > MAX_URL_LENGTH else absolute(href) or href

    part.rewrite_links(rewritten)
    return part


def markdown_of(part: Element) -> str:
    """GitHub-flavoured Markdown. part: an excerpt, whose tables lose their spans here."""
    _even_out(part)
    return part.to_markdown(_MARKDOWN)


def text_of_blocks(part: Element) -> str:
    """Text as a reader sees it, blocks apart."""
    return part.to_text(_TEXT)


def _copy_of(element: Element) -> Element:
    """In a document of its own: turbohtml crashes on some of what has no parent."""
    if isinstance(element.parent, Document):
        whole = copy.deepcopy(element.parent).root
        assert whole is not None
        return whole
    body = turbohtml.parse("").select_one("body")
    assert body is not None
    part = copy.deepcopy(element)
    body.append(part)
    return part


def _show(image: Element) -> None:
    source = image.attr("src")
    if not source or source.lower().startswith("data:"):
        for name in _LAZY:
            if kept := image.attr(name):
                image.attrs["src"] = kept
                break


def _even_out(part: Element) -> None:
    """Put empty cells where a cell spans several places: Markdown has no other way."""
    tables = dict.fromkeys(cell.closest("table") for cell in part.select(_SPANNING))
    left = MAX_PLACES
    for table in tables:
        if table is None or left <= 0:
            continue
        grid = grid_of(table, left)
        left -= max(len(grid.rows) * grid.width, 1)
        for number, (tr, row) in enumerate(grid.rows):
            tr.clear()
            for column, cell in enumerate(row):
                begins = cell is not None and (cell.row, cell.column) == (number, column)
                tr.append(cell.element if cell is not None and begins else Element("td"))
        for spanning in table.select(_SPANNING):
            for name in ("colspan", "rowspan"):
                spanning.attrs.pop(name, None)
