"""Compressed JSON lines (.jsonl.gz, .jsonl.zst), in steps that can each be committed; see `frames.py`."""

from __future__ import annotations

import io
import os
import zlib
from collections.abc import Mapping, Sequence
from typing import Any, BinaryIO, cast

import msgspec

from silkline.outcome import Item
from silkline.sinks.faultpoint import reach
from silkline.sinks.frames import BUFFER, Ended, Frames, Pack
from silkline.sinks.jsonl import lines_of
from silkline.sinks.outputfile import Mark, Marks, OutputFile, name_of, position_of
from silkline.sinks.record import json_of

MEMBER = 67_108_864
"""Bytes, not compressed, at which the open member is ended: more than that no damaged byte can cost."""


class PackedMark(Mark, frozen=True):
    """A committed place in the open member, whose end stands behind it and does not count.

    size: bytes that the member holds, not compressed; 0 where none is open. crc: their CRC-32.
    """

    size: int = 0
    crc: int = 0


class PackedLinesSink:
    """JSON lines in a gzip or zstd file, which any tool may read whenever the crawl stands still.

    A process keeps its compressor between two writes, so that small ones compress nearly as well as large
    ones. It begins a new member where it cannot go on: after a start, another process's write, or a commit
    that failed.
    """

    def __init__(self, path: str | os.PathLike[str], frames: Frames) -> None:
        self.name = name_of(path)
        self.frames = frames
        self._file = OutputFile(path)
        self._marks = Marks(self._file, PackedMark())
        self._open: tuple[str, Pack] | None = None

    def open(self, position: str | None) -> None:
        self._marks.open(position)

    def encode(self, item: Mapping[str, Any]) -> bytes:
        return json_of(item)

    def write(self, items: Sequence[Item], position: str | None) -> str:
        mark = self._marks.at(position)
        if not items:
            return position_of(self._file.append(mark, b"", self._end(mark)))
        ended, pack = b"", self._packer(mark, position)
        if pack is None:
            ended, pack = self._end(mark), self.frames.begin()
            mark = msgspec.structs.replace(mark, size=0, crc=0)
        lines = lines_of(items, self.name)
        mark = msgspec.structs.replace(mark, size=mark.size + len(lines), crc=zlib.crc32(lines, mark.crc))
        position = position_of(self._file.append(mark, ended + pack(lines), self._end(mark)))
        self._open = position, pack
        return position

    def finish(self, position: str | None) -> str:
        reach("before-finish")
        mark = self._marks.at(position)
        if mark.at == 0:  # readers refuse a file with nothing in it
            return position_of(self._file.append(mark, self.frames.nothing))
        return self.write((), position)

    def close(self) -> None:
        self._file.close()

    def reader(self, file: BinaryIO, mark: PackedMark) -> BinaryIO:
        """What counts in an opened file, not compressed. Reading raises one of `frames.DAMAGE`."""
        whole = io.BufferedReader(Ended(file, mark.at, self._end(mark)), BUFFER)
        return self.frames.reader(cast(BinaryIO, whole))

    def _packer(self, mark: PackedMark, position: str | None) -> Pack | None:
        """The compressor that made exactly what counts now. Not again before its next step was committed."""
        kept, self._open = self._open, None
        if kept is None or kept[0] != position or mark.size >= MEMBER:
            return None
        return kept[1]

    def _end(self, mark: PackedMark) -> bytes:
        return self.frames.end(mark.size, mark.crc) if mark.size else b""
