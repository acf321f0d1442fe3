"""JSON lines: one JSON object per line, UTF-8, "\\n" after each (https://jsonlines.org)."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from silkline.outcome import Item
from silkline.sinks.faultpoint import reach
from silkline.sinks.outputfile import Mark, OutputFile, name_of, starting
from silkline.sinks.record import json_of


class JsonLinesSink:
    """Items as JSON lines, in the order in which their pages were committed.

    The position is a JSON object: how many bytes count, and by what the file is known again.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.name = name_of(path)
        self._file = OutputFile(path)
        self._found: tuple[str | None, Mark] | None = None

    def open(self, position: str | None) -> None:
        with starting():
            self._found = (position, self._resumed(position))

    def encode(self, item: Mapping[str, Any]) -> bytes:
        return json_of(item) + b"\n"

    def write(self, items: Sequence[Item], position: str | None) -> str:
        name = self.name
        return _position(self._file.append(self._mark(position), b"".join([i.data[name] for i in items])))

    def finish(self, position: str | None) -> str:
        reach("before-finish")
        return self.write((), position)

    def close(self) -> None:
        self._file.close()

    def _resumed(self, position: str | None) -> Mark:
        if position is None:
            return self._file.create(Mark())
        return self._file.resume(_mark_at(position))

    def _mark(self, position: str | None) -> Mark:
        """What the position stands for; `open` may have found it in a file that was moved."""
        if self._found is not None and self._found[0] == position:
            return self._found[1]
        return self._resumed(None) if position is None else _mark_at(position)


def _mark_at(position: str) -> Mark:
    return msgspec.json.decode(position, type=Mark)


def _position(mark: Mark) -> str:
    return msgspec.json.encode(mark).decode()
