"""The jar's bounds: whatever a server sets, a jar and a Cookie header stay small."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from silkline.fetch.cookies.cookie import Place, place_of
from silkline.fetch.cookies.jar import MAX_BYTES, MAX_COOKIES, MAX_HEADER, MAX_PER_DOMAIN, TOMBSTONE, Jar

HERE = place_of("http://shop.example/")
NOW = 1_800_000_000.0


def names(header: str) -> set[str]:
    return {pair.partition("=")[0] for pair in header.split("; ") if pair}


def test_a_domain_keeps_the_newest_of_too_many_cookies() -> None:
    jar = Jar()
    jar.take([f"c{n}=1".encode() for n in range(MAX_PER_DOMAIN + 20)], HERE, NOW)
    kept = names(jar.header(HERE, NOW))
    assert len(kept) == MAX_PER_DOMAIN
    assert kept == {f"c{n}" for n in range(20, MAX_PER_DOMAIN + 20)}


def test_a_jar_keeps_the_newest_of_too_many_domains() -> None:
    jar = Jar()
    for n in range(MAX_COOKIES + 1):
        jar.take([b"a=1"], Place(f"h{n}.example", "/", False), NOW + n)
    assert len(jar) <= MAX_COOKIES
    assert jar.header(Place(f"h{MAX_COOKIES}.example", "/", False), NOW) == "a=1"
    assert jar.header(Place("h0.example", "/", False), NOW) == ""


def test_a_jar_is_bounded_in_bytes() -> None:
    jar = Jar()
    for n in range(2 * MAX_BYTES // 4_000):
        jar.take([b"a=" + b"x" * 4_000], Place(f"h{n}.example", "/", False), NOW + n)
    assert sum(cookie.size for cookie in jar) <= MAX_BYTES


def test_a_cookie_header_is_bounded() -> None:
    jar = Jar()
    jar.take([f"c{n}=".encode() + b"x" * 4_000 for n in range(100)], HERE, NOW)
    header = jar.header(HERE, NOW)
    assert 0.5 * MAX_HEADER < len(header) <= MAX_HEADER


def test_what_is_expired_is_not_sent_and_goes_first() -> None:
    jar = Jar()
    jar.take([b"short=1; Max-Age=10", b"long=1"], HERE, NOW)
    assert jar.header(HERE, NOW + 9) == "short=1; long=1"
    assert jar.header(HERE, NOW + 10) == "long=1"
    assert [cookie.name for cookie in jar.kept(NOW + TOMBSTONE + 11)] == ["long"]


def test_the_same_cookie_again_is_no_change_and_another_value_is_one() -> None:
    jar = Jar()
    jar.take([b"a=1", b"b=1; Max-Age=100"], HERE, NOW)
    before = jar.version
    jar.take([b"a=1"], HERE, NOW + 5)
    assert jar.version == before
    jar.take([b"a=2"], HERE, NOW + 5)
    jar.take([b"b=1; Max-Age=100"], HERE, NOW + 5)
    assert jar.version == before + 2


def test_a_line_that_is_no_utf8_is_left_out_alone() -> None:
    jar = Jar()
    jar.take([b"bad=\xff\xfe", "good=ü".encode()], HERE, NOW)
    assert jar.header(HERE, NOW) == "good=ü"


def test_same_site_none_needs_secure() -> None:
    jar = Jar()
    https = place_of("https://shop.example/")
    jar.take([b"a=1; SameSite=None", b"b=1; SameSite=None; Secure"], https, NOW)
    assert jar.header(https, NOW) == "b=1"


@pytest.mark.parametrize("name", [b"__Secure-a", b"__host-a"])
def test_a_nameless_cookie_cannot_pose_as_one_with_a_prefix(name: bytes) -> None:
    jar = Jar()
    https = place_of("https://shop.example/")
    jar.take([name, b"=" + name + b"=1; Secure"], https, NOW)
    assert jar.header(https, NOW) == ""


LINES = st.builds(
    "{}={}; {}{}".format,
    st.sampled_from("abc"),
    st.sampled_from(["1", "2", ""]),
    st.sampled_from(["Max-Age=0", "Max-Age=50", "x"]),
    st.sampled_from(["", "; Path=/p", "; Domain=shop.example"]),
)


@settings(max_examples=150, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 2), LINES), max_size=30), st.randoms(use_true_random=False))
def test_workers_that_merge_each_others_cookies_agree(
    events: list[tuple[int, str]], chance: random.Random
) -> None:
    jars = [Jar(), Jar(), Jar()]
    now = NOW
    for worker, line in events:
        now += 1
        jars[worker].take([line.encode()], HERE, now)
    for _ in range(3):
        order = list(range(3))
        chance.shuffle(order)
        for one in order:
            for other in order:
                jars[one].merge(jars[other].kept(now))
    contents = [sorted((c.key, c.domain, c.value, c.updated) for c in jar) for jar in jars]
    assert contents[0] == contents[1] == contents[2]
    headers = {jar.header(place_of("http://shop.example/p/q"), now) for jar in jars}
    assert len({frozenset(header.split("; ")) for header in headers}) == 1
