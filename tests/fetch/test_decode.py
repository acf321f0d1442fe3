"""Content codings: every form servers send, and none that unfolds in memory."""

from __future__ import annotations

import contextlib
import gzip
import importlib.util
import random
import sys
import tracemalloc
import zlib
from collections.abc import Callable

import pytest
from coders import CODERS, zstd
from hypothesis import given
from hypothesis import strategies as st

from silkline.errors import DecodeError, TooLargeError
from silkline.fetch import decode
from silkline.fetch.decode import MAX_LAYERS, MAX_MEMBERS, Body, decoding

TEXT = b"".join(b"<p>line %d</p>" % number for number in range(20_000))
LIMIT = 1_000_000


def raw_deflate(data: bytes) -> bytes:
    packer = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    return packer.compress(data) + packer.flush()


def unpack(codings: str, data: bytes, piece: int = 65_536, limit: int = LIMIT) -> bytes:
    body = Body(limit)
    sink = decoding(codings, body)
    for start in range(0, len(data), piece):
        sink.write(data[start : start + piece])
    sink.finish()
    return body.join()


@pytest.mark.parametrize("piece", [1, 7, 65_536])
@pytest.mark.parametrize("coding", CODERS)
def test_each_coding_gives_the_body_back_in_whatever_pieces_it_comes(coding: str, piece: int) -> None:
    text = TEXT[:20_000]
    assert unpack(coding, CODERS[coding](text), piece) == text


@pytest.mark.parametrize("piece", [1, 65_536])
def test_deflate_without_its_zlib_wrapper_is_recognised(piece: int) -> None:
    assert unpack("deflate", raw_deflate(TEXT), piece) == TEXT


@given(st.binary(max_size=300), st.lists(st.sampled_from(sorted(CODERS)), max_size=3))
def test_layers_come_off_in_the_reverse_order(data: bytes, codings: list[str]) -> None:
    packed = data
    for coding in codings:
        packed = CODERS[coding](packed)
    assert unpack(" , ".join([*codings, "identity"]).upper(), packed, piece=11) == data


@pytest.mark.parametrize(("coding", "pack"), [("gzip", gzip.compress), ("zstd", CODERS["zstd"])])
@pytest.mark.parametrize("piece", [1, 65_536])
def test_several_members_are_one_body(coding: str, pack: Callable[[bytes], bytes], piece: int) -> None:
    assert unpack(coding, pack(b"one ") + pack(b"") + pack(b"two"), piece) == b"one two"


@pytest.mark.parametrize("coding", ["gzip", "deflate", "zstd"])
@pytest.mark.parametrize("junk", [b"\0", b"\0" * 500, b"\x1f", b"junk behind the end"])
@pytest.mark.parametrize("piece", [1, 65_536])
def test_junk_behind_the_end_is_ignored(coding: str, junk: bytes, piece: int) -> None:
    assert unpack(coding, CODERS[coding](b"page") + junk, piece) == b"page"


@pytest.mark.parametrize("coding", CODERS)
def test_data_that_ends_early_is_an_error(coding: str) -> None:
    packed = CODERS[coding](TEXT)
    for size in (1, 2, 3, len(packed) // 2, len(packed) - 1):
        with pytest.raises(DecodeError):
            unpack(coding, packed[:size])


@pytest.mark.parametrize("coding", CODERS)
def test_data_of_another_kind_is_an_error(coding: str) -> None:
    with pytest.raises(DecodeError, match=coding):
        unpack(coding, b"<html>plain after all</html>")


@pytest.mark.parametrize("coding", CODERS)
@given(st.binary(max_size=200))
def test_any_bytes_give_a_body_or_a_decode_error(coding: str, data: bytes) -> None:
    with contextlib.suppress(DecodeError):
        unpack(coding, data, piece=50)


@given(
    st.binary(max_size=2000) | st.text("ab <p>", max_size=5000).map(str.encode),
    st.integers(0, 9),
    st.sampled_from([9, 12, 15]),
    st.sampled_from([zlib.Z_DEFAULT_STRATEGY, zlib.Z_FIXED, zlib.Z_HUFFMAN_ONLY, zlib.Z_RLE]),
    st.sampled_from([0, 16]),
)
def test_every_way_to_deflate_is_understood(
    text: bytes, level: int, wbits: int, how: int, gzipped: int
) -> None:
    packer = zlib.compressobj(level, wbits=wbits + gzipped, strategy=how)
    packed = packer.compress(text) + packer.flush(zlib.Z_FULL_FLUSH) + packer.compress(text) + packer.flush()
    assert unpack("gzip" if gzipped else "deflate", packed, piece=100) == text + text


@given(st.sampled_from(sorted(CODERS)), st.data())
def test_damaged_data_gives_a_body_or_a_decode_error(coding: str, data: st.DataObject) -> None:
    packed = bytearray(CODERS[coding](TEXT[:3000]))
    for _ in range(data.draw(st.integers(1, 3))):
        packed[data.draw(st.integers(0, len(packed) - 1))] = data.draw(st.integers(0, 255))
    with contextlib.suppress(DecodeError):
        unpack(coding, bytes(packed), piece=data.draw(st.sampled_from([1, 100, 65_536])))


@pytest.mark.parametrize("coding", ["gzip", "deflate"])
def test_a_wrong_checksum_is_an_error(coding: str) -> None:
    packed = bytearray(CODERS[coding](TEXT))
    packed[-6 if coding == "gzip" else -1] ^= 0xFF
    with pytest.raises(DecodeError):
        unpack(coding, bytes(packed))


@pytest.mark.parametrize("coding", CODERS)
def test_no_bytes_at_all_are_an_empty_body(coding: str) -> None:
    assert unpack(coding, b"") == b""


@pytest.mark.parametrize("codings", ["", "identity", "None", "UTF-8", "utf-8, identity"])
def test_names_that_are_no_coding_leave_the_body_as_it_is(codings: str) -> None:
    assert unpack(codings, b"plain") == b"plain"


def test_an_unknown_coding_is_an_error() -> None:
    with pytest.raises(DecodeError, match="'sdch'"):
        decoding("sdch", Body(LIMIT))


def test_too_many_layers_are_an_error() -> None:
    with pytest.raises(DecodeError, match="layers"):
        decoding(",".join(["gzip"] * (MAX_LAYERS + 1)), Body(LIMIT))


def test_too_many_members_are_an_error() -> None:
    assert unpack("gzip", gzip.compress(b"x") * MAX_MEMBERS) == b"x" * MAX_MEMBERS
    with pytest.raises(DecodeError, match="members"):
        unpack("gzip", gzip.compress(b"x") * (MAX_MEMBERS + 1))


@pytest.mark.parametrize("codings", [*CODERS, "gzip, gzip", "br, zstd", "deflate, br"])
def test_a_bomb_is_refused_without_unfolding_it(codings: str) -> None:
    bomb = b"\0" * 64_000_000
    for coding in codings.split(", "):
        bomb = CODERS[coding](bomb)
    assert len(bomb) < 100_000
    tracemalloc.start()
    try:
        with pytest.raises(TooLargeError, match=str(LIMIT)):
            unpack(codings, bomb)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 2 * LIMIT


def test_a_zstd_window_over_eight_megabytes_is_refused() -> None:
    data = random.Random(1).randbytes(20_000_000)
    packed = zstd.compress(
        data,
        options={zstd.CompressionParameter.window_log: 25, zstd.CompressionParameter.compression_level: 1},
    )
    with pytest.raises(DecodeError, match="zstd"):
        unpack("zstd", packed, limit=30_000_000)


def test_where_isal_has_no_wheel_zlib_does_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "isal", None)
    spec = importlib.util.spec_from_file_location("decode_without_isal", decode.__file__)
    assert spec is not None
    assert spec.loader is not None
    other = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(other)
    assert other.zlib is zlib
    for packed, coding in ((gzip.compress(TEXT), "gzip"), (zlib.compress(TEXT), "deflate")):
        body = other.Body(LIMIT)
        sink = other.decoding(coding, body)
        sink.write(packed + b"junk")
        sink.finish()
        assert body.join() == TEXT
        with pytest.raises(DecodeError):
            other.decoding(coding, other.Body(LIMIT)).write(b"\x78\x9cno deflate data")


def test_a_body_of_exactly_the_limit_passes() -> None:
    assert unpack("gzip", gzip.compress(b"x" * LIMIT)) == b"x" * LIMIT
    with pytest.raises(TooLargeError):
        unpack("gzip", gzip.compress(b"x" * (LIMIT + 1)))


def test_what_is_advertised_is_what_is_known() -> None:
    for coding in decode.ACCEPT_ENCODING.split(", "):
        assert unpack(coding, CODERS[coding](b"page")) == b"page"
