"""Compression in steps: each one can be read back with those before it, and no byte that counts is rewritten.

A file is one gzip member (RFC 1952) or zstd frame (RFC 8878) after the other. The last one is open: the
compressor is flushed at each step, and the few bytes that end a member stand behind what counts. They follow
from what is known of it, so the next step may write over them, and a start after a crash sets them again.
"""

from __future__ import annotations

import gzip
import io
import sys
import zlib
from collections.abc import Callable
from typing import BinaryIO, Protocol, cast

if sys.version_info >= (3, 14):
    from compression.zstd import ZstdCompressor, ZstdError, ZstdFile, compress
else:
    from backports.zstd import ZstdCompressor, ZstdError, ZstdFile, compress

BUFFER = 262_144
GZIP_LEVEL = 6
ZSTD_LEVEL = 3
GZIP_HEAD = bytes.fromhex("1f8b08000000000000ff")
"""Without a name and a time: the same items make the same bytes."""

DAMAGE = (zlib.error, gzip.BadGzipFile, EOFError, ZstdError)
"""What reading raises where the bytes are not what was written."""

Pack = Callable[[bytes], bytes]
"""What makes these bytes readable behind those before; for the first ones with the head of the member."""


class Frames(Protocol):
    """A kind of compressed file. nothing: a whole file with nothing in it."""

    nothing: bytes

    def begin(self) -> Pack:
        """A new member."""

    def end(self, size: int, crc: int) -> bytes:
        """The end of a member that holds so many bytes with that CRC-32."""

    def reader(self, file: BinaryIO) -> BinaryIO:
        """What is in a file of whole members. Reading raises one of DAMAGE."""

    def writer(self, file: BinaryIO) -> BinaryIO:
        """One member, ended by closing it."""


class Gzip:
    nothing = GZIP_HEAD + b"\x03\x00" + bytes(8)

    def begin(self) -> Pack:
        head = GZIP_HEAD
        deflate = zlib.compressobj(GZIP_LEVEL, zlib.DEFLATED, -zlib.MAX_WBITS)

        def pack(data: bytes) -> bytes:
            nonlocal head
            before, head = head, b""
            return before + deflate.compress(data) + deflate.flush(zlib.Z_SYNC_FLUSH)

        return pack

    def end(self, size: int, crc: int) -> bytes:
        """An empty last block, the CRC-32 and the size modulo 2^32."""
        return b"\x03\x00" + crc.to_bytes(4, "little") + (size % 2**32).to_bytes(4, "little")

    def reader(self, file: BinaryIO) -> BinaryIO:
        return cast(BinaryIO, gzip.GzipFile(fileobj=file, mode="rb"))

    def writer(self, file: BinaryIO) -> BinaryIO:
        return cast(BinaryIO, gzip.GzipFile("", "wb", GZIP_LEVEL, fileobj=file, mtime=0))


class Zstd:
    nothing = compress(b"")

    def begin(self) -> Pack:
        compressor = ZstdCompressor(ZSTD_LEVEL)
        return lambda data: compressor.compress(data, ZstdCompressor.FLUSH_BLOCK)

    def end(self, size: int, crc: int) -> bytes:
        """An empty last block; the frames have no checksum of their own."""
        return b"\x01\x00\x00"

    def reader(self, file: BinaryIO) -> BinaryIO:
        return cast(BinaryIO, ZstdFile(file, "rb"))

    def writer(self, file: BinaryIO) -> BinaryIO:
        return cast(BinaryIO, ZstdFile(file, "wb", level=ZSTD_LEVEL))


class Ended(io.RawIOBase):
    """The first `size` bytes of a file and then `end`: of a file that grows, what counts of it as a whole."""

    def __init__(self, file: BinaryIO, size: int, end: bytes) -> None:
        self._file = file
        self._left = size
        self._end = end

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        data = self._file.read(min(len(buffer), self._left))
        self._left -= len(data)
        if not data:
            data, self._end = self._end[: len(buffer)], self._end[len(buffer) :]
        buffer[: len(data)] = data
        return len(data)
