"""The manifest of an output in a bucket: the parts that hold each item once.

Each output has its own, named like it: `items.jsonl.gz.manifest.json`. Before, outputs that differ only in
the ending shared `items.manifest.json`, which is still read where an output has no manifest of its own; what
is its own there moves with the next part.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import msgspec

from silkline.errors import SinkError
from silkline.sinks.bucket import Bucket

SUFFIX = ".manifest.json"
OF_WORKER = re.compile(r".+-\d+-[0-9a-f]{8}$")
"""Stems that end with a worker's id: host, process, and eight digits of any kind."""


class Part(msgspec.Struct, frozen=True):
    """An object in the manifest."""

    name: str
    items: int
    bytes: int


class Manifest(msgspec.Struct, frozen=True):
    """The objects that hold each item once, in their order."""

    parts: tuple[Part, ...] = ()
    format: str = "silkline-parts"
    version: int = 1


class ManifestFile:
    """That of an output whose parts are `STEM-000001ENDING` and so on. shown: the output in messages."""

    def __init__(self, bucket: Bucket, stem: str, ending: str, shown: str) -> None:
        self.name = f"{stem}{ending}{SUFFIX}"
        self._shared = f"{stem}{SUFFIX}"
        self._bucket = bucket
        self._stem = stem
        self._ending = ending
        self._shown = shown
        self._moved = False

    def read(self) -> Manifest | None:
        """None where there is none. Raises SinkError where the bucket cannot be read, or it cannot."""
        own = self._at(self.name)
        if own is not None:
            return own
        shared = self._at(self._shared)
        if shared is None:
            return None
        parts = tuple(part for part in shared.parts if self.is_part(part.name))
        return Manifest(parts) if parts or not shared.parts else None

    def read_all(self) -> list[Manifest]:
        """Of a job on one machine its own, else those of all workers, by their names. Raises as `read`."""
        own = self.read()
        if own is not None:
            return [own]
        found = (
            ManifestFile(self._bucket, stem, self._ending, self._shown).read() for stem in self._workers()
        )
        return [manifest for manifest in found if manifest is not None]

    def add(self, *parts: Part) -> None:
        """One of a name that is there takes its place."""
        listed = self.read() or Manifest()
        named = {part.name: part for part in (*listed.parts, *parts)}
        self._put(self.name, tuple(named[name] for name in sorted(named)))
        self._leave_shared()

    def remove(self) -> None:
        """Nothing happens where there is none."""
        if self._at(self.name) is not None:
            self._bucket.delete(self.name)
        self._leave_shared()

    def is_part(self, name: str) -> bool:
        """Whether an object is named like a part of this output."""
        middle = name.removeprefix(self._stem).removesuffix(self._ending)
        return name == f"{self._stem}{middle}{self._ending}" and re.fullmatch(r"-\d+", middle) is not None

    def _workers(self) -> Iterator[str]:
        """Stems of the outputs of workers."""
        names = self._bucket.names(f"{self._stem}-")
        stems = {
            name.removesuffix(SUFFIX).removesuffix(self._ending) for name in names if name.endswith(SUFFIX)
        }
        return iter(sorted(filter(OF_WORKER.match, stems)))

    def _leave_shared(self) -> None:
        """What is in this output's own manifest, or nowhere any more, need not be in the shared one. The own
        one is written before: it counts where a part is in both."""
        if self._moved:
            return
        shared = self._at(self._shared)
        if shared is not None:
            rest = tuple(part for part in shared.parts if not self.is_part(part.name))
            if not rest and shared.parts:
                self._bucket.delete(self._shared)
            elif len(rest) < len(shared.parts):
                self._put(self._shared, rest)
        self._moved = True

    def _at(self, name: str) -> Manifest | None:
        content = self._bucket.get(name)
        try:
            return None if content is None else _decode(content)
        except msgspec.MsgspecError as error:
            raise SinkError(f"{self._shown}: its manifest cannot be read: {error}") from error

    def _put(self, name: str, parts: tuple[Part, ...]) -> None:
        self._bucket.put(name, _encode(Manifest(parts)))


_decode = msgspec.json.Decoder(Manifest).decode
_encode = msgspec.json.Encoder().encode
