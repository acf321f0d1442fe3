"""Objects in a bucket (S3, Google Cloud Storage, Azure): part files that are uploaded, and their manifest.

Items go into a file of the job's own on this machine first, as exactly as into any other file. A file that is
large or old enough is uploaded as a whole before the next one is begun, when all of it is committed: so an
object that is uploaded again after a kill is the same one, and what the manifest names counts.
"""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from silkline.errors import ConfigError, SilklineError, SinkAwayError, SinkError
from silkline.files import shown_output, split_ending
from silkline.outcome import Item
from silkline.protocols import Sink
from silkline.sinks.address import address_of, seconds_of, size_of
from silkline.sinks.bucket import Bucket
from silkline.sinks.failing import answering
from silkline.sinks.faultpoint import reach
from silkline.sinks.jsonl import JsonLinesSink
from silkline.sinks.manifest import Manifest, ManifestFile, Part
from silkline.sinks.outputfile import starting
from silkline.sinks.spool import spool_of

SPOOL = Path(".silkline", "objects")
PART_BYTES = 64 * 1024 * 1024
PART_SECONDS = 900.0
PAUSE = 30.0
"""Seconds between two tries to upload a part while the crawl goes on."""


class ObjectsMark(msgspec.Struct, frozen=True):
    """The committed position.

    number: of the part that is being written. mark: how far its file counts, None where it is not begun.
    items: that count in it. began: when it was, Unix seconds.
    """

    number: int = 1
    mark: str | None = None
    items: int = 0
    began: float = 0.0


class ObjectsSink:
    """`s3://bucket/prefix/items.jsonl.gz`, `gs://…`, `az://container/…`: objects `items-000001.jsonl.gz` and
    so on, and `items.jsonl.gz.manifest.json`.

    options: part_bytes and part_seconds, when a part is large or old enough; the others are the store's.
    worker: one of several that write parts of their own, with manifests of their own.
    make: makes the sink for a file.
    """

    def __init__(
        self, output: str, make: Callable[[str], Sink], worker: str = "", *, spool: Path | None = None
    ) -> None:
        """Raises ConfigError for a URL or an ending that cannot be one."""
        address = address_of(output, noun="")
        shown = f"{address.scheme}://{address.hosts}/{address.path}"
        folder, _, last = address.path.rpartition("/")
        self._stem, self._ending = split_ending(last)
        if not address.hosts or not self._stem or not self._ending:
            raise ConfigError(
                f"output {shown!r}: name the bucket and the objects, as in s3://bucket/shop/items.jsonl.gz"
            )
        if worker:
            self._stem += f"-{worker}"
        options = dict(address.options)
        self._part_bytes = size_of(shown, "part_bytes", options.pop("part_bytes", ""), PART_BYTES)
        self._part_seconds = seconds_of(
            shown, "part_seconds", options.pop("part_seconds", ""), PART_SECONDS, 86_400
        )
        self.name = f"{shown}#{worker}" if worker else shown
        self.shown = shown
        self._bucket = Bucket(f"{address.scheme}://{address.hosts}/{folder}", options, shown)
        self._manifest = ManifestFile(self._bucket, self._stem, self._ending, shown)
        self._make = make
        self._format = make(last)
        self.typed = getattr(self._format, "typed", False)
        tag = hashlib.blake2b(self.name.encode(), digest_size=6).hexdigest()
        self._spool = (spool or SPOOL) / f"{self._stem}-{tag}"
        self._part: tuple[int, Sink] | None = None
        self._tried = -PAUSE

    def open(self, position: str | None) -> None:
        """Also finds out whether the bucket can be used at all."""
        with answering(), starting():
            found = self._bucket.names(self._stem)
            taken = [name for name in found if self._is_own(name)]
            if position is None and taken:
                raise SinkError(
                    f"{self.shown}: there is {taken[0]}, which this job did not write: choose another name"
                )
            mark = _mark_at(position)
            self._remove(lambda number: number < mark.number)
            if mark.mark is not None:
                self._file(mark.number).open(mark.mark)

    def encode(self, item: Mapping[str, Any]) -> Any:
        return self._format.encode(item)

    def write(self, items: Sequence[Item], position: str | None) -> str:
        mark = _mark_at(position)
        if not items:
            return _position(mark)
        if self._is_due(mark):
            mark = self._rolled(mark)
        file = self._file(mark.number)
        if mark.mark is None:
            self._begin(mark.number)
            mark = msgspec.structs.replace(mark, began=time.time())
            file.open(None)
        own = [msgspec.structs.replace(item, data={file.name: item.data[self.name]}) for item in items]
        mark = msgspec.structs.replace(mark, mark=file.write(own, mark.mark), items=mark.items + len(items))
        return _position(mark)

    def finish(self, position: str | None) -> str:
        """Upload what is left, and the manifest. Raises SinkAwayError; then what was written stays here."""
        mark = _mark_at(position)
        reach("before-finish")
        try:
            if mark.items:
                mark = self._uploaded(mark)
            elif self._manifest.read() is None:
                self._manifest.add()
        except SinkAwayError as error:
            raise SinkError(
                f"{error}; the items are kept in {self._spool}, run the same command again"
            ) from error
        reach("after-upload")
        return _position(mark)

    def manifests(self) -> list[Manifest]:
        """Those in the bucket: of a job on one machine its own, else those of all workers, by their names.

        Raises SinkError where the bucket cannot be read, or one is none.
        """
        return self._manifest.read_all()

    def download(self, name: str, path: str) -> None:
        """Write what an object holds to a new file. Raises SinkError."""
        with open(path, "xb") as file:
            for piece in self._bucket.pieces(name):
                file.write(piece)

    def close(self) -> None:
        if self._part is not None:
            self._part[1].close()
            self._part = None

    def discard(self) -> None:
        """Remove all that a job has written here, in the bucket and beside it."""
        self._manifest.remove()
        for name in filter(self._manifest.is_part, self._bucket.names(self._stem)):
            self._bucket.delete(name)
        for path in self._spool.glob("*"):
            path.unlink()

    def _is_own(self, name: str) -> bool:
        return name == self._manifest.name or self._manifest.is_part(name)

    def _name(self, number: int) -> str:
        return f"{self._stem}-{number:06d}{self._ending}"

    def _path(self, number: int) -> Path:
        return self._spool / self._name(number)

    def _file(self, number: int) -> Sink:
        if self._part is None or self._part[0] != number:
            self.close()
            self._part = number, self._make(str(self._path(number)))
        return self._part[1]

    def _begin(self, number: int) -> None:
        """What has this number was written by a run whose commit never came. The one before it may have been
        uploaded just now, which is not committed yet."""
        self._spool.mkdir(parents=True, exist_ok=True)
        self._remove(lambda found: found == number or found < number - 1)

    def _remove(self, which: Callable[[int], bool]) -> None:
        for path in self._spool.glob("*"):
            found = re.match(r"-(\d+)\.", path.name.removeprefix(self._stem))
            if found is not None and which(int(found[1])):
                path.unlink()

    def _is_due(self, mark: ObjectsMark) -> bool:
        if not mark.items or time.monotonic() < self._tried + PAUSE:
            return False
        path = str(self._path(mark.number))
        size = sum(os.path.getsize(file) for file in (path, spool_of(path)) if os.path.exists(file))
        return size >= self._part_bytes or time.time() >= mark.began + self._part_seconds

    def _rolled(self, mark: ObjectsMark) -> ObjectsMark:
        """The next part, where this one could be uploaded; the same one where the bucket is away."""
        try:
            return self._uploaded(mark)
        except SinkAwayError:
            self._tried = time.monotonic()
            return mark

    def _uploaded(self, mark: ObjectsMark) -> ObjectsMark:
        file, path, name = self._file(mark.number), self._path(mark.number), self._name(mark.number)
        file.finish(mark.mark)
        file.close()  # of a database, what is still in its log goes into the file by that
        self._bucket.put(name, path)
        reach("after-part")
        self._manifest.add(Part(name, mark.items, os.path.getsize(path)))
        return ObjectsMark(mark.number + 1)


def discard_objects(output: str, worker: str = "") -> None:
    """Remove all that a job has written to an output. Raises SinkError.

    In a process of its own: the client's threads would not come along into workers that are forked later. Not
    one of multiprocessing, which would run a script that starts a crawl once more.
    """
    words = [sys.executable, "-m", __name__]
    done = subprocess.run(words, input=_encode((output, worker)), capture_output=True, check=False)
    if done.returncode:
        raise SinkError(
            f"the objects of {shown_output(output)!r} cannot be removed: {_last_line(done.stderr)}"
        )
    kind, line = msgspec.json.decode(done.stdout, type=tuple[str, str])
    if kind:
        raise (SinkAwayError if kind == SinkAwayError.__name__ else SinkError)(line)


def _discard(output: str, worker: str) -> tuple[str, str]:
    """Returns the kind of error that has stopped it, and its line; "" where there was none."""
    try:
        ObjectsSink(output, _no_file, worker).discard()
    except SilklineError as error:
        return type(error).__name__, str(error)
    return "", ""


def _last_line(text: bytes) -> str:
    return (text.decode(errors="replace").strip().splitlines() or ["it ended without a word"])[-1]


def _no_file(path: str) -> Sink:
    return JsonLinesSink(path)


def _mark_at(position: str | None) -> ObjectsMark:
    return ObjectsMark() if position is None else msgspec.json.decode(position, type=ObjectsMark)


def _position(mark: ObjectsMark) -> str:
    return _encode(mark).decode()


_encode = msgspec.json.Encoder().encode

if __name__ == "__main__":
    sys.stdout.buffer.write(_encode(_discard(*msgspec.json.decode(sys.stdin.buffer.read()))))
