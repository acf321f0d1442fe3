"""How CSV and TSV write a value: RFC 4180, and what spreadsheets need beyond it.

RFC 4180 asks for CRLF; every reader takes "\\n" as well, and so do the line tools of a Unix system. A cell
is quoted only if it holds the delimiter, a quote or a line break.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from silkline.sinks.record import json_of

BYTE_ORDER_MARK = "\ufeff".encode()

FORMULA = re.compile(r"'*[=+\-@\t\r\n\0＝＋－＠]").match
"""Text that a spreadsheet would run (OWASP, CSV Injection; the wide forms count in Japanese ones), with the
quotes that make it text."""

NUMBER = re.compile(r"[+-]?(\d+([.,]\d+)*|\.\d+)([eE][+-]?\d+)?%?").fullmatch


class Dialect:
    """delimiter: one character. excel: with a byte order mark, and a quote before text that is a formula."""

    def __init__(self, delimiter: str, *, excel: bool) -> None:
        self.delimiter = delimiter
        self.excel = excel
        self._delimiter = delimiter.encode()
        self._special = re.compile(f'["\r\n{delimiter}]').search

    def header(self, columns: Sequence[str]) -> bytes:
        """The beginning of a file with these columns."""
        mark = BYTE_ORDER_MARK if self.excel else b""
        return mark + self.line([self.cell(column) for column in columns])

    def line(self, cells: Iterable[bytes]) -> bytes:
        """A record with nothing in it is one pair of quotes: readers skip an empty line."""
        return (self._delimiter.join(cells) or b'""') + b"\n"

    def cell(self, value: object) -> bytes:
        """None is an empty cell, as is NaN; true and false are written so, nested values as JSON."""
        if isinstance(value, str):
            if self.excel and FORMULA(value) and not NUMBER(value):
                value = "'" + value
            if self._special(value):
                value = '"' + value.replace('"', '""') + '"'
            return value.encode()
        if value is None:
            return b""
        text = json_of(value)
        if text == b"null":
            return b""
        if isinstance(value, (dict, list, tuple)):
            return self.cell(text.decode())
        return text

    def value(self, cell: str) -> str | None:
        """What was written as this cell, as text."""
        if self.excel and cell.startswith("'") and FORMULA(cell):
            return cell[1:]
        return cell or None
