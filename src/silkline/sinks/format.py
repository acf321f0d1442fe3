"""How files of items are to look, beyond what their endings say."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec


class Format(msgspec.Struct, frozen=True):
    """columns: which fields come first, where the format has columns; None for those of the first items.
    excel: CSV and TSV for spreadsheets."""

    columns: Sequence[str] | None = None
    excel: bool = False


PLAIN = Format()
