"""A folder of files: the bodies of pages that are no HTML, such as pictures, named by their content.

A file is written under another name and renamed, and durable before the commit; the same content is there
once, however often it was found. What counts is in the manifest, JSON lines that are as exact as any output:
a file that is there and not in it was written by a run whose commit never came.
"""

from __future__ import annotations

import hashlib
import os
import secrets
from collections.abc import Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import msgspec

from silkline.outcome import Item
from silkline.response import Response
from silkline.sinks.filetype import ending_of, file_type
from silkline.sinks.outputfile import (
    Mark,
    Marks,
    OutputFile,
    name_of,
    position_of,
    sync,
    sync_directory,
    told,
)

PAGES = ("text/html", "application/xhtml+xml")


class Found(msgspec.Struct, frozen=True):
    """A body that is to be kept."""

    body: bytes
    url: str
    page: str
    type: str


class FilesSink:
    """`-o pictures/`: files `ab/cdef….jpg`, by the SHA-256 of what is in them, and `manifest.jsonl`.

    types: patterns of media types that are kept, such as image/*; () for all but HTML. manifest: its name.
    """

    def __init__(
        self, path: str | os.PathLike[str], types: Sequence[str] = (), manifest: str = "manifest.jsonl"
    ) -> None:
        self._folder = Path(os.fspath(path).rstrip("/") or "/")
        self.manifest = self._folder / manifest
        self.name = name_of(self.manifest)
        self._types = tuple(kind.lower() for kind in types)
        self._file = OutputFile(self.manifest)
        self._marks = Marks(self._file, Mark())

    def record(self, response: Response) -> Any:
        """None for pages, failures, and types that are not wanted, whatever the Content-Type says."""
        if not response.body or not 200 <= response.status < 300:
            return None
        said = (response.header("content-type") or "").partition(";")[0].strip().lower()
        kind = file_type(response.body, said)
        wanted = (
            any(fnmatchcase(kind, pattern) for pattern in self._types) if self._types else kind not in PAGES
        )
        return Found(response.body, response.url, response.request.url, kind) if wanted else None

    def open(self, position: str | None) -> None:
        self._marks.open(position)

    def write(self, items: Sequence[Item], position: str | None) -> str:
        mark = self._marks.at(position)
        lines = [self._kept(item.data[self.name]) for item in items]
        return position_of(self._file.append(mark, b"".join(lines)))

    def finish(self, position: str | None) -> str:
        return self.write((), position)

    def close(self) -> None:
        self._file.close()

    def _kept(self, found: Found) -> bytes:
        """Have the file; returns its line of the manifest."""
        digest = hashlib.sha256(found.body).hexdigest()
        place = f"{digest[:2]}/{digest[2:]}{ending_of(found.type)}"
        path = self._folder / place
        with told(str(path)):
            if not path.exists():
                path.parent.mkdir(parents=True, exist_ok=True)
                _write(path, found.body)
        about = {
            "url": found.page,
            "path": place,
            "type": found.type,
            "size": len(found.body),
            "sha256": digest,
        }
        if found.url != found.page:
            about["from"] = found.url
        return msgspec.json.encode(about) + b"\n"


def _write(path: Path, body: bytes) -> None:
    fresh = path.with_name(f".{secrets.token_hex(8)}")
    try:
        with fresh.open("xb") as file:
            file.write(body)
            file.flush()
            sync(file.fileno())
        os.replace(fresh, path)
        sync_directory(str(path))
    finally:
        fresh.unlink(missing_ok=True)
