"""What a response starts with: the final head, its fields in order, as raw bytes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from silkline.fetch.head import HeadReader

NAMES = st.from_regex(rb"[A-Za-z][A-Za-z0-9-]{0,20}", fullmatch=True)
VALUES = st.binary(max_size=30).map(lambda value: value.translate(None, b"\r\n\0").strip(b" \t"))


@given(st.lists(st.tuples(NAMES, VALUES), max_size=10), st.integers(200, 999), st.sampled_from(["1.1", "2"]))
def test_every_field_comes_back_in_order_also_when_its_line_is_known(
    fields: list[tuple[bytes, bytes]], status: int, version: str
) -> None:
    lines = [b"HTTP/%s %d \r\n" % (version.encode(), status), *(b"%s: %s\r\n" % f for f in fields), b"\r\n"]
    reader = HeadReader()
    for _ in range(2):
        head = reader.read(lines)
        assert head is not None
        assert (head.status, head.version, head.headers) == (status, version, tuple(fields))
        codings = [value for name, value in fields if name.lower() == b"content-encoding"]
        assert list(head.codings) == codings


def test_interim_heads_and_trailers_are_left_out() -> None:
    lines = [
        *(b"HTTP/1.1 103 Early Hints\r\n", b"Link: </a>\r\n", b"\r\n"),
        *(b"HTTP/1.1 200 OK\r\n", b"A: 1\r\n", b"\r\n"),
        b"Trailer-Field: 2\r\n",
    ]
    head = HeadReader().read(lines)
    assert head is not None
    assert (head.status, head.headers) == (200, ((b"A", b"1"),))


@pytest.mark.parametrize(
    "lines",
    [
        [],
        [b"HTTP/1.1 200 OK\r\n"],
        [b"HTTP/1.1 200 OK\r\n", b"A: 1\r\n"],
        [b"HTTP/1.1 100 Continue\r\n", b"\r\n"],
        [b"HTTP/1.1 2x0 OK\r\n", b"\r\n"],
        [b"ICY 200 OK\r\n", b"\r\n"],
    ],
)
def test_what_is_not_complete_or_no_http_is_no_head(lines: list[bytes]) -> None:
    assert HeadReader().read(lines) is None


def test_the_first_field_of_a_name_is_found_in_any_case() -> None:
    head = HeadReader().read([b"HTTP/2 200 \r\n", b"x-A: 1\r\n", b"X-a: 2\r\n", b"\r\n"])
    assert head is not None
    assert head.first(b"x-a") == b"1"
    assert head.first(b"x-b") is None


def test_what_is_remembered_is_bounded() -> None:
    reader = HeadReader()
    for number in range(10_000):
        reader.read([b"HTTP/1.1 200 %d\r\n" % number, b"X: %d\r\n" % number, b"\r\n"])
    assert max(len(reader._status), len(reader._fields)) <= 4_096
    reader.read([b"HTTP/1.1 200 OK\r\n", b"X: " + b"y" * 10_000 + b"\r\n", b"\r\n"])
    assert all(len(line) <= 256 for line in reader._fields)
