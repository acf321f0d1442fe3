"""A folder of files: the bodies of pages that are no HTML, such as pictures, named by their content.

A file is written under another name and renamed, and durable before the commit; the same content is there
once, however often it was found. What counts is in the manifest, JSON lines that are as exact as any output:
a file that is there and not in it was written by a run whose commit never came.
"""

from __future__ import annotations

import hashlib
import os
import secrets
from collections.abc import Callable, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import msgspec

from silkline.errors import ConfigError, ItemError
from silkline.files import split_folder
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

if TYPE_CHECKING:
    from silkline.sinks.thumbnail import Thumbnail

MANIFEST = "manifest.jsonl"
OPTIONS = ("thumbnails", "types")
PAGES = ("text/html", "application/xhtml+xml")


class Found(msgspec.Struct, frozen=True):
    """A body that is to be kept, with small versions of it where these are wanted."""

    body: bytes
    url: str
    page: str
    type: str
    thumbnails: Sequence[Thumbnail] = ()


class FilesSink:
    """`-o pictures/`: files `ab/cdef….jpg`, by the SHA-256 of what is in them, and `manifest.jsonl`.

    types: patterns of media types that are kept, such as image/*; () for all but HTML. thumbnails: sizes of
    small versions of pictures, such as 256x256, made in a process beside the crawl. manifest: its name.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        types: Sequence[str] = (),
        manifest: str = MANIFEST,
        thumbnails: Sequence[str] = (),
    ) -> None:
        """Raises ConfigError for sizes that are none, and where Pillow is missing."""
        self._folder = Path(os.fspath(path).rstrip("/") or "/")
        self.manifest = self._folder / manifest
        self.name = name_of(self.manifest)
        self._types = tuple(kind.lower() for kind in types)
        self._small = Small(os.fspath(path), thumbnails) if thumbnails else None
        self._file = OutputFile(self.manifest)
        self._marks = Marks(self._file, Mark())

    def warn_with(self, trouble: Callable[[str], None]) -> None:
        if self._small is not None:
            self._small.trouble = trouble

    def record(self, response: Response) -> Any:
        """None for pages, failures, and types that are not wanted, whatever the Content-Type says."""
        if not response.body or not 200 <= response.status < 300:
            return None
        said = (response.header("content-type") or "").partition(";")[0].strip().lower()
        kind = file_type(response.body, said)
        wanted = (
            any(fnmatchcase(kind, pattern) for pattern in self._types) if self._types else kind not in PAGES
        )
        if not wanted:
            return None
        found = Found(response.body, response.url, response.request.url, kind)
        return found if self._small is None else self._small.added(found)

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
        if self._small is not None:
            self._small.close()

    def _kept(self, found: Found) -> bytes:
        """Have the file; returns its line of the manifest."""
        digest = hashlib.sha256(found.body).hexdigest()
        place = f"{digest[:2]}/{digest[2:]}{ending_of(found.type)}"
        self._have(place, found.body)
        about = {
            "url": found.page,
            "path": place,
            "type": found.type,
            "size": len(found.body),
            "sha256": digest,
        }
        if found.url != found.page:
            about["from"] = found.url
        small = {}
        for each in found.thumbnails:
            small[each.box] = f"thumbnails/{each.box}/{digest[:2]}/{digest[2:]}{each.ending}"
            self._have(small[each.box], each.content)
        if small:
            about["thumbnails"] = small
        return msgspec.json.encode(about) + b"\n"

    def _have(self, place: str, content: bytes) -> None:
        path = self._folder / place
        with told(str(path)):
            if not path.exists():
                path.parent.mkdir(parents=True, exist_ok=True)
                _write(path, content)


class Small:
    """Has the thumbnails made. trouble: told of pictures that cannot be read."""

    def __init__(self, shown: str, sizes: Sequence[str]) -> None:
        try:
            from silkline.sinks.darkroom import Darkroom
            from silkline.sinks.thumbnail import DECODERS, box_of
        except ModuleNotFoundError as error:
            raise ConfigError(
                f"output {shown!r} needs the package Pillow: pip install 'silkline[images]'"
            ) from error
        self._boxes = [box_of(shown, size) for size in dict.fromkeys(sizes)]
        self._kinds = frozenset(DECODERS)
        self._darkroom = Darkroom()
        self.trouble: Callable[[str], None] = lambda line: None

    async def added(self, found: Found) -> Found:
        """The same with its thumbnails; without, where it is no picture or a broken one."""
        if found.type not in self._kinds:
            return found
        try:
            made = await self._darkroom.thumbnails_of(found.body, found.type, self._boxes)
        except ItemError as error:
            self.trouble(f"no thumbnail of {found.url}, which {error}; the file itself is kept")
            return found
        return msgspec.structs.replace(found, thumbnails=made)

    def close(self) -> None:
        self._darkroom.close()


def folder_sink(output: str, manifest: str = MANIFEST) -> FilesSink:
    """The sink for `pictures/?types=image/*&thumbnails=64x64,256x256`. Raises ConfigError."""
    folder, query = split_folder(output)
    options: dict[str, list[str]] = {}
    for option in filter(None, query.split("&")):
        name, _, text = option.partition("=")
        if name not in OPTIONS:
            known = ", ".join(OPTIONS)
            raise ConfigError(f"output {output!r}: there is no option {name!r}; there are: {known}")
        values = [unquote(value).strip() for value in text.split(",")]
        if name in options or not all(values):
            raise ConfigError(f"output {output!r}: write {name}= once, with values between commas")
        options[name] = values
    for kind in options.get("types", ()):
        if "/" not in kind and kind != "*":
            raise ConfigError(f"output {output!r}: types={kind} is no media type; write image/* or image/png")
    return FilesSink(folder, options.get("types", ()), manifest, options.get("thumbnails", ()))


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
