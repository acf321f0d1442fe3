"""The parts of an output in a bucket, as its manifests name them."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager

from silkline.errors import ConfigError, SinkError
from silkline.sinks.choose import objects_sink, sink_for
from silkline.sinks.committed import Committed, JsonLines, Row
from silkline.sinks.jsonl import JsonLinesSink
from silkline.sinks.manifest import Part
from silkline.sinks.objects import ObjectsSink
from silkline.sinks.packed import PackedLinesSink
from silkline.sinks.whole import whole


def bucket_parts(output: str) -> list[Committed]:
    """What the manifests of an output name, in their order; of several workers one after the other.

    Raises ConfigError where there is none, and SinkError where the bucket cannot be read.
    """
    sink = objects_sink(output)
    manifests = sink.manifests()
    if not manifests:
        raise ConfigError(
            f"{sink.shown}: there is no manifest of it, or none of its parts; "
            "a run that ends, or is interrupted, writes one"
        )
    is_lines = isinstance(sink_for(sink.shown), (JsonLinesSink, PackedLinesSink))
    kind = LinesPart if is_lines else BucketPart
    return [kind(sink, part) for manifest in manifests for part in manifest.parts]


class BucketPart:
    """An object that is read from a copy on this machine, which is there as long as it is read."""

    columns = None

    def __init__(self, sink: ObjectsSink, part: Part) -> None:
        self.path = f"{sink.shown.rpartition('/')[0]}/{part.name}"
        self._sink = sink
        self._part = part

    def rows(self) -> Iterator[Row]:
        with self._copied() as file:
            yield from file.rows()

    @contextmanager
    def _copied(self) -> Iterator[Committed]:
        with tempfile.TemporaryDirectory(prefix="silkline-") as folder:
            path = os.path.join(folder, os.path.basename(self._part.name))
            self._sink.download(self._part.name, path)
            size = os.path.getsize(path)
            if size != self._part.bytes:
                named = f"{self._part.bytes:,} in its manifest"
                raise SinkError(f"{self.path} has {size:,} bytes, and {named}: it was changed since")
            yield whole(path, self._part.items)


class LinesPart(BucketPart, JsonLines):
    """The same of JSON lines, which need not be taken apart."""

    def lines(self) -> Iterator[bytes]:
        with self._copied() as file:
            if not isinstance(file, JsonLines):
                raise SinkError(f"{self.path} does not hold JSON lines")
            yield from file.lines()

    rows = JsonLines.rows
