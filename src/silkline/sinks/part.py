"""Part files: where workers of many machines share a job, each process writes a file of its own.

`-o out.jsonl` becomes `out.<worker>.jsonl`. How far a part counts travels in the commits, as for every
output; `export` joins what counts. A worker's id is never used again, so a part has one writer, once.
"""

from __future__ import annotations

import os
import re
import socket
from collections.abc import Iterable, Mapping, Sequence
from tempfile import TemporaryFile
from typing import Any

import msgspec

from silkline.errors import ConfigError, SinkError
from silkline.files import is_folder, split_ending
from silkline.outcome import Item
from silkline.protocols import KeyedSink, Output, PageSink, Positions, Sink
from silkline.response import Response
from silkline.sinks.address import files_in, is_in_bucket
from silkline.sinks.choose import discard, objects_sink, output_for, wants_types
from silkline.sinks.folder import folder_sink
from silkline.sinks.format import PLAIN, Format
from silkline.sinks.outputfile import creating, name_of, prepare, starting, told


class PartMark(msgspec.Struct, frozen=True, tag_field="kind", tag="part"):
    """The committed position of a part file, under the part's absolute path.

    output: the absolute path of the output that it is a part of; worker: who wrote it; host: on which
    machine. items: how many count. mark: the position as the format of the file has it, "" for none yet.
    """

    output: str
    worker: str
    host: str
    items: int = 0
    mark: str = ""


class Part:
    """One worker's part of an output. The file is made by the first item: who writes nothing leaves none."""

    def __init__(self, sink: Output, output: str, worker: str) -> None:
        self.name = sink.name
        self.output = name_of(output)
        self._sink = sink
        self._new = PartMark(self.output, worker, socket.gethostname())
        self._begun = False

    def open(self, position: str | None) -> None:
        """Check what can be checked without making the file."""
        shown = self._new.output
        with starting(), told(shown):
            prepare(os.path.realpath(self.name), shown)
            folder = os.path.dirname(self.name)
            if not os.access(folder, os.W_OK | os.X_OK):
                raise SinkError(f"cannot create files in {folder}: choose a directory that you may write to")
            with creating(shown), TemporaryFile(dir=folder):
                """/proc says that it may be written to."""

    def write(self, items: Sequence[Item], position: str | None) -> str | None:
        if not items:
            return position
        part = self._new if position is None else _part_at(position)
        if not self._begun:
            self._begin(part)
        mark = self._sink.write(items, part.mark or None)
        return _position(msgspec.structs.replace(part, items=part.items + len(items), mark=mark or ""))

    def finish(self, position: str | None) -> str | None:
        if position is not None:
            part = _part_at(position)
            mark = self._sink.finish(part.mark)
            return _position(msgspec.structs.replace(part, mark=mark or part.mark))
        if self._begun:  # nothing of what was written has counted
            self._begun = False
            self._sink.close()
            discard(self.name)
        return None

    def close(self) -> None:
        self._sink.close()

    def _begin(self, part: PartMark) -> None:
        try:
            self._sink.open(part.mark or None)
        except ConfigError as error:  # pages were visited already: not a matter of how the crawl was started
            raise SinkError(str(error)) from error
        self._begun = True


class PartSink(Part):
    """A part with items."""

    def __init__(self, sink: Sink, output: str, worker: str) -> None:
        super().__init__(sink, output, worker)
        self._items = sink
        self.typed = wants_types(sink)

    def encode(self, item: Mapping[str, Any]) -> Any:
        return self._items.encode(item)


class PartArchive(Part):
    """A part with pages."""

    def __init__(self, sink: PageSink, output: str, worker: str) -> None:
        super().__init__(sink, output, worker)
        self._pages = sink

    def record(self, response: Response) -> Any:
        return self._pages.record(response)


def part_sinks(outputs: Iterable[str], worker: str, format: Format = PLAIN) -> tuple[Output, ...]:
    """The sinks of one worker. Raises ConfigError for an ending that no format has."""
    outputs = tuple(outputs)
    parts = [_part(output, worker, format) for output in files_in(outputs)]
    name = safe(worker)
    parts += [objects_sink(o, name, format) for o in outputs if is_in_bucket(o)]
    return tuple(parts)


def _part(output: str, worker: str, format: Format) -> Output:
    if is_folder(output):
        return folder_sink(output, f"manifest.{safe(worker)}.jsonl")
    sink = output_for(part_path(output, worker), format)
    if isinstance(sink, PageSink):
        return PartArchive(sink, output, worker)
    return PartSink(sink, output, worker)


def output_of(sink: Sink | KeyedSink) -> str:
    """The output that a sink writes, whichever worker's it is."""
    return sink.output if isinstance(sink, PartSink) else sink.name


def part_path(output: str, worker: str) -> str:
    stem, ending = split_ending(output)
    return f"{stem}.{safe(worker)}{ending}"


def safe(worker: str) -> str:
    """A worker's id as a part of a name."""
    return re.sub(r"[^0-9A-Za-z_.-]", "_", worker)


def part_at(position: str) -> PartMark | None:
    """What a committed position says of a part; None where it is none of a part."""
    try:
        return _part_at(position)
    except msgspec.MsgspecError:
        return None


def parts_of(output: str, positions: Positions) -> tuple[str, ...]:
    """The part files of an output that are committed; of other machines, those of an output of that name."""
    here, own, name = socket.gethostname(), name_of(output), os.path.basename(output)
    found = []
    for path, position in positions.items():
        part = part_at(position)
        if part is not None and (
            part.output == own or (part.host != here and os.path.basename(part.output) == name)
        ):
            found.append(path)
    return tuple(sorted(found))


def discard_parts(positions: Positions, outputs: Iterable[str]) -> None:
    """Remove the parts of these outputs that are on this machine: nothing else has the name of a part.

    Raises ConfigError where one cannot be removed.
    """
    outputs = tuple(outputs)
    names = {name_of(output) for output in files_in(outputs)}
    for path, position in positions.items():
        part = part_at(position)
        if part is not None and part.output in names:
            discard(path)
    for output in filter(is_in_bucket, outputs):
        from silkline.sinks.objects import discard_objects

        own = objects_sink(output).name + "#"
        for name in positions:
            if name.startswith(own):
                discard_objects(output, name.removeprefix(own))


_part_at = msgspec.json.Decoder(PartMark).decode
_encode = msgspec.json.Encoder().encode


def _position(part: PartMark) -> str:
    return _encode(part).decode()
