"""JSON lines: one JSON object per line, UTF-8, "\\n" after each (https://jsonlines.org)."""

from __future__ import annotations

import os
from collections.abc import Sequence

from silkline.outcome import Item
from silkline.sinks.faultpoint import reach
from silkline.sinks.outputfile import Mark, Marks, OutputFile, name_of, position_of
from silkline.sinks.record import json_of


class JsonLinesSink:
    """Items as JSON lines, in the order in which their pages were committed.

    The position is a JSON object: how many bytes count, and by what the file is known again.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.name = name_of(path)
        self._file = OutputFile(path)
        self._marks = Marks(self._file, Mark())

    def open(self, position: str | None) -> None:
        self._marks.open(position)

    encode = staticmethod(json_of)

    def write(self, items: Sequence[Item], position: str | None) -> str:
        mark = self._marks.at(position)
        return position_of(self._file.append(mark, lines_of(items, self.name)))

    def finish(self, position: str | None) -> str:
        reach("before-finish")
        return self.write((), position)

    def close(self) -> None:
        self._file.close()


def lines_of(items: Sequence[Item], name: str) -> bytes:
    """What was encoded for the sink of that name."""
    return b"\n".join([*[item.data[name] for item in items], b""])
