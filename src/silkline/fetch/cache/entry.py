"""A stored response, and how it is written down."""

from __future__ import annotations

import sys

import msgspec

from silkline.fetch.cache.fields import Headers

if sys.version_info >= (3, 14):
    from compression.zstd import ZstdError, compress, decompress
else:
    from backports.zstd import ZstdError, compress, decompress

_LEVEL = 3


class Meta(msgspec.Struct, frozen=True, array_like=True):
    """Everything of a stored response but its body.

    varied: the request's fields that Vary names, and their values (None: absent).
    asked_at, received_at: Unix seconds of the request and the response that were last exchanged for it.
    replay_only: a redirect that RFC 9111 does not let a cache reuse; kept for offline replay alone.
    """

    status: int
    headers: Headers
    asked_at: float
    received_at: float
    varied: tuple[tuple[str, str | None], ...] = ()
    replay_only: bool = False
    http_version: str = "1.1"


class Key(msgspec.Struct, frozen=True):
    """Where a response is stored, as hashes of 16 bytes.

    url: what an unsafe request invalidates. owner: the session and credentials it was fetched with; one
    never sees what is another's. variant: the values of the fields in Vary.
    """

    url: bytes
    owner: bytes
    variant: bytes = b""


class Stored(msgspec.Struct, frozen=True):
    """What a store gives back. id: of this writing of it, see `CacheStore.refresh`."""

    key: Key
    id: bytes
    meta: Meta
    packed: bytes

    def body(self) -> bytes | None:
        """None where it is damaged."""
        try:
            return decompress(self.packed) if self.packed else b""
        except ZstdError:
            return None


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(Meta).decode


def packed_meta(meta: Meta) -> bytes:
    return _encode(meta)


def unpacked_meta(data: bytes) -> Meta | None:
    """None for what another version of silkline wrote, or nobody."""
    try:
        return _decode(data)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return None


def packed_body(body: bytes) -> bytes:
    return compress(body, _LEVEL) if body else b""
