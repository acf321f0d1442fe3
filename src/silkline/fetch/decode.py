"""Content codings, decoded piece by piece so that no bomb ever unfolds in memory.

gzip and x-gzip (RFC 1952), deflate (RFC 1950, or bare RFC 1951 as some servers send it), br (RFC 7932),
zstd (RFC 8878, windows of at most 8 MB as RFC 9659 asks), and several of them on top of each other. Bytes
behind the end of the coded data are ignored, as browsers do; several gzip members or zstd frames are one
body.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Protocol, cast

import brotli  # type: ignore[import-untyped]

from silkline.errors import DecodeError, TooLargeError

if sys.version_info >= (3, 14):
    from compression.zstd import DecompressionParameter, ZstdDecompressor, ZstdError
else:
    from backports.zstd import DecompressionParameter, ZstdDecompressor, ZstdError

try:
    # Inflates at three times the speed of zlib; most of the CPU of a large page goes there.
    from isal import isal_zlib as zlib
except ImportError:
    import zlib  # type: ignore[no-redef]

ACCEPT_ENCODING = "gzip, deflate, br, zstd"
MAX_LAYERS = 4
MAX_MEMBERS = 1_024
"""gzip members or zstd frames of one body; each one costs a fresh decompressor."""

NO_CODINGS = frozenset(
    {"", "identity", "none", "binary", "8bit", "utf-8", "utf8", "iso-8859-1", "windows-1252"}
)
"""What servers write, most by mistake, where there is no coding; browsers take the body as it is."""

_PIECE = 65_536
"""Bytes decoded at once at most."""
_ZSTD_WINDOW_LOG = 23
_ERRORS = (cast(type[Exception], zlib.error), brotli.error, ZstdError)


class Sink(Protocol):
    """Takes a body in pieces."""

    def write(self, data: bytes) -> None:
        """Raises TooLargeError or DecodeError."""

    def finish(self) -> None:
        """No more comes. Raises DecodeError where the coded data is not complete."""


class Body:
    """The innermost sink: collects at most `limit` bytes."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._size = 0
        self._pieces: list[bytes] = []

    def write(self, data: bytes) -> None:
        self._size += len(data)
        if self._size > self._limit:
            raise TooLargeError(f"the body is over the limit of {self._limit} bytes (max_body)")
        self._pieces.append(data)

    def finish(self) -> None:
        """Whatever came is complete."""

    def join(self) -> bytes:
        return self._pieces[0] if len(self._pieces) == 1 else b"".join(self._pieces)


def decoding(codings: str, body: Sink) -> Sink:
    """A sink for the coded body that writes the decoded one to `body`.

    codings: the value of Content-Encoding, in the order in which the codings were applied.

    Raises DecodeError for a coding that is not known, and for more than MAX_LAYERS of them.
    """
    names = [name for part in codings.split(",") if (name := part.strip().lower()) not in NO_CODINGS]
    if len(names) > MAX_LAYERS:
        raise DecodeError(f"{len(names)} layers of content coding, over the limit of {MAX_LAYERS}")
    sink = body
    for name in names:
        if name not in _CODECS:
            raise DecodeError(f"unknown content coding {name[:50]!r}")
        make, magic = _CODECS[name]
        sink = _Layer(name, make, magic, sink)
    return sink


class _Codec(Protocol):
    """The decompressor interface of the standard library's bz2, lzma and zstd modules."""

    @property
    def eof(self) -> bool: ...
    @property
    def needs_input(self) -> bool: ...
    @property
    def unused_data(self) -> bytes: ...
    def decompress(self, data: bytes, max_length: int) -> bytes: ...


class _Layer:
    """One content coding, decoded into the next sink."""

    def __init__(self, name: str, make: Callable[[bytes], _Codec], magic: bytes, sink: Sink) -> None:
        self._name = name
        self._make = make
        self._magic = magic
        self._sink = sink
        self._codec: _Codec | None = None
        self._members = 0
        self._held = b""
        self._junk = False

    def write(self, data: bytes) -> None:
        while data and not self._junk:
            if self._codec is None or self._codec.eof:
                data = self._held + data
                self._held = b""
                if not self._begin(data):
                    return
            data = self._decode(data)

    def finish(self) -> None:
        if self._members == 0 and self._held:
            self._codec = self._make(self._held)
            self._decode(self._held)
        if self._codec is not None and not self._codec.eof:
            raise DecodeError(f"the {self._name} data ends early")
        self._sink.finish()

    def _begin(self, data: bytes) -> bool:
        """Start the next member, if `data` holds enough to tell that there is one."""
        if len(data) < max(2, len(self._magic)):
            self._held = data
            return False
        if self._members and (not self._magic or not data.startswith(self._magic)):
            self._junk = True
            return False
        if self._members == MAX_MEMBERS:
            raise DecodeError(f"more than {MAX_MEMBERS} {self._name} members in one body")
        self._members += 1
        self._codec = self._make(data)
        return True

    def _decode(self, data: bytes) -> bytes:
        """Decode `data` as far as this member goes and return the rest."""
        codec = self._codec
        assert codec is not None
        while True:
            try:
                piece = codec.decompress(data, _PIECE)
            except _ERRORS as error:
                raise DecodeError(f"the {self._name} data is broken: {error}") from error
            if piece:
                self._sink.write(piece)
            if codec.eof:
                return codec.unused_data
            if codec.needs_input:
                return b""
            data = b""


class _Zlib:
    """zlib's decompressor with the interface of the other ones."""

    def __init__(self, wbits: int) -> None:
        self._zlib = zlib.decompressobj(wbits)
        self.needs_input = True

    @property
    def eof(self) -> bool:
        return self._zlib.eof

    @property
    def unused_data(self) -> bytes:
        return self._zlib.unused_data

    def decompress(self, data: bytes, max_length: int) -> bytes:
        piece = self._zlib.decompress(self._zlib.unconsumed_tail + data, max_length)
        # A full piece may have left output inside zlib even when all input is used up.
        self.needs_input = len(piece) < max_length and not self._zlib.unconsumed_tail
        return piece


class _Brotli:
    """Brotli's decompressor with the interface of the other ones; it does not tell where its data ended."""

    unused_data = b""

    def __init__(self) -> None:
        self._brotli = brotli.Decompressor()

    @property
    def eof(self) -> bool:
        return bool(self._brotli.is_finished())

    @property
    def needs_input(self) -> bool:
        return bool(self._brotli.can_accept_more_data())

    def decompress(self, data: bytes, max_length: int) -> bytes:
        piece: bytes = self._brotli.process(data, output_buffer_limit=max_length)
        return piece


def _gzip(start: bytes) -> _Codec:
    return _Zlib(16 + zlib.MAX_WBITS)


def _deflate(start: bytes) -> _Codec:
    wrapped = len(start) > 1 and start[0] & 0x0F == 8 and (start[0] << 8 | start[1]) % 31 == 0
    return _Zlib(zlib.MAX_WBITS if wrapped else -zlib.MAX_WBITS)


def _br(start: bytes) -> _Codec:
    return _Brotli()


def _zstd(start: bytes) -> _Codec:
    return ZstdDecompressor(options={DecompressionParameter.window_log_max: _ZSTD_WINDOW_LOG})


_CODECS: dict[str, tuple[Callable[[bytes], _Codec], bytes]] = {
    "gzip": (_gzip, b"\x1f\x8b\x08"),
    "x-gzip": (_gzip, b"\x1f\x8b\x08"),
    "deflate": (_deflate, b""),
    "br": (_br, b""),
    "zstd": (_zstd, b"\x28\xb5\x2f\xfd"),
}
"""By name: how to start on data that begins like this, and what a further member begins with."""
