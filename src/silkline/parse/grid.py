"""Where the cells of a <table> stand: rows and columns, as the HTML Standard forms a table (section 4.9.12).

What differs: a column in which no cell begins is none, whatever colspan says (a browser gives it no width
either), and cells never overlap.
"""

from __future__ import annotations

from typing import NamedTuple

from turbohtml import Element

MAX_COLUMNS = 1_000
_MAX_SPAN = 65_534
"""What larger spans mean (section 4.9.11)."""

_CELLS = frozenset({"td", "th"})


class Cell:
    """A <td> or <th>: the row and column where it begins, its last row, and its width in columns."""

    __slots__ = ("column", "element", "last", "row", "span")

    def __init__(self, element: Element, row: int, column: int, last: int, span: int) -> None:
        self.element = element
        self.row = row
        self.column = column
        self.last = last
        self.span = span


class Grid(NamedTuple):
    """rows: their elements, and the cell at each place, None where there is none; all of the same length.

    heads: how many rows are of <thead>. cut: whether a limit has left something out.
    """

    rows: list[tuple[Element, list[Cell | None]]]
    heads: int
    width: int
    cut: bool


def grid_of(table: Element, places: int) -> Grid:
    """places: rows times columns, at most; rows beyond are left out, as are columns beyond MAX_COLUMNS."""
    rows: list[tuple[Element, list[Cell]]] = []
    heads, width, cut = 0, 0, False
    for is_head, section in _sections(table):
        hanging: list[Cell] = []
        for index, tr in enumerate(section):
            number = len(rows)
            covering, whole = _row(tr, hanging, number, number + len(section) - index - 1)
            columns = max(width, covering[-1].column + 1 if covering else 0)
            if (number + 1) * max(columns, 1) > places:
                return Grid(_filled(rows, width), heads, width, True)
            rows.append((tr, covering))
            hanging = [cell for cell in covering if cell.last > number]
            width, cut = columns, cut or not whole
        if is_head:
            heads = len(rows)
    return Grid(_filled(rows, width), heads, width, cut)


def children_of(element: Element) -> list[Element]:
    return [child for child in element.children if isinstance(child, Element)]


def _sections(table: Element) -> list[tuple[bool, list[Element]]]:
    """The first <thead>, then the bodies, then the feet; and whether it is the first <thead>."""
    head: list[tuple[bool, list[Element]]] = []
    bodies: list[tuple[bool, list[Element]]] = []
    feet: list[tuple[bool, list[Element]]] = []
    bare: list[Element] | None = None
    for child in children_of(table):
        if child.tag == "tr":
            if bare is None:
                bare = []
                bodies.append((False, bare))
            bare.append(child)
            continue
        if child.tag in ("thead", "tbody", "tfoot"):
            bare = None
            rows = [row for row in children_of(child) if row.tag == "tr"]
            if child.tag == "thead" and not head:
                head.append((True, rows))
            else:
                (feet if child.tag == "tfoot" else bodies).append((False, rows))
    return head + bodies + feet


def _row(tr: Element, hanging: list[Cell], number: int, end: int) -> tuple[list[Cell], bool]:
    """The cells that cover a row, by their columns, and whether they are all.

    hanging: those that come down from above. number: of the row. end: the last row of its section.
    """
    covering: list[Cell] = []
    column = passed = 0
    for element in children_of(tr):
        if element.tag not in _CELLS:
            continue
        while passed < len(hanging) and hanging[passed].column == column:
            covering.append(hanging[passed])
            column += hanging[passed].span
            passed += 1
        if column >= MAX_COLUMNS:
            return covering + hanging[passed:], False
        span = _number(element, "colspan") or 1
        if passed < len(hanging):
            span = min(span, hanging[passed].column - column)
        down = _number(element, "rowspan")
        last = end if down == 0 else min(number + down - 1, end)
        covering.append(Cell(element, number, column, last, min(span, MAX_COLUMNS)))
        column += covering[-1].span
    return covering + hanging[passed:], True


def _number(element: Element, name: str) -> int:
    """A span as the standard reads it: 1 for what is none."""
    text = element.attr(name)
    if text is None:
        return 1
    digits = text.strip().partition(".")[0]
    if not (digits.isascii() and digits.isdigit()):
        return 1
    return int(digits) if len(digits) < 6 else _MAX_SPAN


def _filled(rows: list[tuple[Element, list[Cell]]], width: int) -> list[tuple[Element, list[Cell | None]]]:
    filled: list[tuple[Element, list[Cell | None]]] = []
    for tr, covering in rows:
        row: list[Cell | None] = [None] * width
        for cell in covering:
            end = min(cell.column + cell.span, width)
            row[cell.column : end] = [cell] * (end - cell.column)
        filled.append((tr, row))
    return filled
