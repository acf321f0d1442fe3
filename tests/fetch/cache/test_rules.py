"""The rules are total: whatever a server writes, they answer, at once and on the safe side."""

from __future__ import annotations

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.fetch.cache.origin import START, date_at

from silkline.fetch.cache import rules
from silkline.fetch.cache.entry import Meta, packed_meta, unpacked_meta
from silkline.fetch.cache.fields import MAX_DELTA, directives, seconds
from silkline.fetch.http_date import http_date

NAMES = st.sampled_from(
    [
        *(b"Cache-Control", b"cache-control", b"Expires", b"Date", b"Age", b"Last-Modified", b"ETag"),
        *(b"Vary", b"Connection", b"Set-Cookie", b"X-\xe9"),
    ]
)
PIECES = st.sampled_from(
    [
        *(
            "max-age=",
            "60",
            "-1",
            "99999999999999999999",
            "no-store",
            "no-cache",
            "must-revalidate",
            "public",
        ),
        *(",", " ", '"', "\\", "=", "stale-if-error=60", "immutable", "must-understand", "0", "W/", "*"),
        *("Wed, 01 Jun 2011 00:00:00 GMT", "Wednesday, 99-Jun-11 99:99:99 GMT", "accept", "\xff", "\0"),
    ]
)
VALUES = st.lists(PIECES, max_size=8).map(lambda pieces: "".join(pieces).encode("latin-1"))
HEADERS = st.lists(st.tuples(NAMES, VALUES | st.binary(max_size=30)), max_size=6).map(tuple)
STATUSES = st.sampled_from([200, 203, 204, 206, 301, 302, 304, 404, 410, 500, 503, 599, 999])


@given(STATUSES, HEADERS, HEADERS, st.floats(START - 1e6, START + 1e10))
@settings(max_examples=300, deadline=None)
def test_no_header_breaks_a_rule(
    status: int, headers: rules.Headers, later: rules.Headers, now: float
) -> None:
    meta = Meta(status, rules.storable_headers(headers), START, START + 1, rules.varied_fields(headers, {}))
    assert unpacked_meta(packed_meta(meta)) == meta
    asked = rules.request_directives({"cache-control": "max-age=5"})
    assert rules.lifetime(meta) >= 0
    assert rules.age(meta, now) >= 0
    assert rules.use_of(meta, asked, now) in rules.Use
    rules.may_serve_on_error(meta, asked, now)
    rules.conditions([meta, meta])
    rules.freshens(meta, later)
    fresh = rules.freshened(meta, later, now, now)
    assert fresh.status == status
    control = rules.response_directives(headers)
    if "no-store" in control and "must-understand" not in control:
        assert not rules.may_store("GET", {}, status, headers)
        assert not rules.may_replay("GET", {}, status, headers)


@given(HEADERS, st.integers(0, 10**7))
@settings(max_examples=200, deadline=None)
def test_what_is_served_without_asking_is_younger_than_its_lifetime(
    headers: rules.Headers, later: int
) -> None:
    meta = Meta(200, headers, START, START)
    now = START + later
    if rules.use_of(meta, {}, now) is rules.Use.SERVE:
        assert rules.age(meta, now) < rules.lifetime(meta)
        assert "no-cache" not in rules.response_directives(headers)


@pytest.mark.parametrize("piece", ['"', '\\"', "a=", 'a="', "a=\\", ",", " ", "a,", "=", 'a="b', "a=b\\"])
def test_directives_without_end_are_read_in_no_time(piece: str) -> None:
    started = time.perf_counter()
    directives([piece * (65_536 // len(piece))])
    assert time.perf_counter() - started < 5


@pytest.mark.parametrize(
    ("text", "value"),
    [
        *(("0", 0), ("003600", 3600), ("9" * 5_000, MAX_DELTA), ("2147483648", MAX_DELTA), ("", None)),
        *((text, None) for text in ("-1", "+1", "1.0", "1 ", "'1'", "\u0661", "1e3")),
    ],
)
def test_seconds_are_digits_and_bounded(text: str, value: int | None) -> None:
    assert seconds(text) == value


def test_the_first_of_two_equal_directives_counts_and_quotes_hide_what_is_in_them() -> None:
    found = directives(['max-age=1, x="max-age=5, no-store", MAX-AGE=9', 'private="a, b"'])
    assert found == {"max-age": "1", "x": "max-age=5, no-store", "private": "a, b"}


@given(st.integers(0, 4_102_444_799))
def test_a_date_comes_back_as_it_was_written(moment: int) -> None:
    assert http_date(date_at(moment), START) == moment
    assert http_date(date_at(moment).replace("GMT", "UTC"), START) is None
    assert http_date(date_at(moment).replace("GMT", "UTC"), START, lenient=True) == moment
