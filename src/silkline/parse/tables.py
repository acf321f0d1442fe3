"""Tables of data: rows of text, the names of their columns, and records made of both."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec
from turbohtml import Element

from silkline.parse.grid import Cell, Grid, children_of, grid_of
from silkline.parse.text import text_of

MAX_TABLES = 1_000
MAX_PLACES = 500_000
"""Rows times columns of all tables of a page."""

MAX_TEXT = 10_000_000
"""Characters in the cells of all tables of a page: the text of a cell is that of the tables in it, too."""


class Table(msgspec.Struct, frozen=True):
    """rows: what is below the header, all as long as the table is wide. A cell that spans places is in each.

    header: the names of the columns; empty where they have none. Those of several header rows are joined.

    row_header: the names of the rows, where these have names and the columns none, as in a list of features.

    cut: whether a limit has left something out.
    """

    caption: str | None = None
    header: tuple[str, ...] = ()
    row_header: tuple[str, ...] = ()
    rows: tuple[tuple[str, ...], ...] = ()
    cut: bool = False

    def records(self) -> list[dict[str, str]]:
        """A dict for each row by the names of the columns; for each column, where the rows have the names.

        A name that comes again gets a number, `price 2`; a column without one is called `column 3`.
        """
        if self.row_header:
            return _records(self.row_header, zip(*(row[1:] for row in self.rows), strict=True))
        width = len(self.rows[0]) if self.rows else 0
        return _records(self.header or ("",) * width, self.rows)


def tables_of(elements: Iterable[Element]) -> list[Table]:
    """elements: <table>s; those without a cell are left out."""
    found: list[Table] = []
    places, text = MAX_PLACES, MAX_TEXT
    for element in elements:
        if len(found) == MAX_TABLES or places <= 0 or text <= 0:
            break
        grid = grid_of(element, places)
        places -= max(len(grid.rows) * grid.width, 1)
        if grid.width:
            table, used = _table(element, grid, text)
            text -= used
            found.append(table)
    return found


def _table(element: Element, grid: Grid, limit: int) -> tuple[Table, int]:
    """The table, and how many characters were read for it. limit: of these."""
    texts, used = _texts(grid, limit)
    caption = next((text_of(child) for child in children_of(element) if child.tag == "caption"), None)
    cells = [row for _, row in grid.rows]
    is_vertical = not grid.heads and _names_its_rows(cells, texts)
    heads = 0 if is_vertical else _header_rows(grid, cells, texts)
    rows = [tuple(texts[cell] if cell else "" for cell in row) for row in cells]
    named, title = _joined(cells[:heads], texts)
    return (
        Table(
            caption=caption or title,
            header=named,
            row_header=tuple(row[0] for row in rows) if is_vertical else (),
            rows=tuple(rows[heads:]),
            cut=grid.cut or used >= limit,
        ),
        used + len(caption or ""),
    )


def _texts(grid: Grid, limit: int) -> tuple[dict[Cell, str], int]:
    texts: dict[Cell, str] = {}
    used = 0
    for number, (_, row) in enumerate(grid.rows):
        for cell in row:
            if cell is not None and cell.row == number and cell not in texts:
                texts[cell] = text_of(cell.element) if used < limit else ""
                used += len(texts[cell])
    return texts, used


def _names_its_rows(rows: list[list[Cell | None]], texts: dict[Cell, str]) -> bool:
    """Whether each row is a name and what is said of it."""
    for row in rows:
        first = row[0]
        if first is None or first.element.tag != "th" or first.span > 1 or len(row) < 2:
            return False
        if all(cell is None or cell.element.tag == "th" or not texts[cell] for cell in row):
            return False
    return True


def _header_rows(grid: Grid, rows: list[list[Cell | None]], texts: dict[Cell, str]) -> int:
    """Those of <thead>; else those at the top that consist of names only."""
    if any(texts[cell] for row in rows[: grid.heads] for cell in row if cell):
        return grid.heads
    heads = 0
    for number, row in enumerate(rows, 1):
        if any(cell and texts[cell] for cell in row):
            if not _is_header(row, texts):
                break
            heads = number
    if heads < len(rows) or len(rows) == 1:
        return heads
    return 1 if heads else 0  # all are <th>: a page that uses them for everything


def _is_header(row: list[Cell | None], texts: dict[Cell, str]) -> bool:
    return all(cell is None or not texts[cell] or _is_name(cell.element) for cell in row)


def _is_name(element: Element) -> bool:
    """Whether it heads columns (HTML Standard, `scope`; ARIA, `columnheader`)."""
    if element.tag == "th":
        return element.attr("scope") not in ("row", "rowgroup")
    return element.attr("scope") == "col" or element.attr("role") == "columnheader"


def _joined(rows: list[list[Cell | None]], texts: dict[Cell, str]) -> tuple[tuple[str, ...], str | None]:
    """The names of the columns, from the top down; and the title, if a single cell stands above them all."""
    title = None
    while len(rows) > 1 and len(cells := {cell for cell in rows[0] if cell}) == 1 and len(rows[0]) > 1:
        title = title or texts[cells.pop()] or None
        rows = rows[1:]
    if not rows:
        return (), title
    columns: list[str] = []
    for column in zip(*rows, strict=True):
        parts = dict.fromkeys(texts[cell] for cell in column if cell and texts[cell])
        columns.append(" ".join(parts))
    return tuple(columns), title


def _records(names: Iterable[str], rows: Iterable[tuple[str, ...]]) -> list[dict[str, str]]:
    keys = _unique(names)
    return [dict(zip(keys, row, strict=True)) for row in rows]


def _unique(names: Iterable[str]) -> list[str]:
    keys: dict[str, None] = {}
    turns: dict[str, int] = {}
    for number, name in enumerate(names, 1):
        key = name = name or f"column {number}"
        while key in keys:
            turns[name] = turns.get(name, 1) + 1
            key = f"{name} {turns[name]}"
        keys[key] = None
    return list(keys)
