"""The URL on the wire is the one a browser would send."""

from __future__ import annotations

import ada_url
import pytest
from hypothesis import given
from hypothesis import strategies as st

from silkline.errors import BadUrlError, BlockedError
from silkline.fetch.target import origin, split_credentials, wire_url


@pytest.mark.parametrize(
    ("written", "sent"),
    [
        ("http://h.test/a%2Fb/%7efoo?q=%C3%A9+%20&x", "http://h.test/a%2Fb/%7efoo?q=%C3%A9+%20&x"),
        ("http://h.test/cmp/Foo%25#part", "http://h.test/cmp/Foo%25"),
        ("http://h.test//a///b", "http://h.test//a///b"),
        ("http://h.test/p?", "http://h.test/p?"),
        ("http://h.test/caf\u00e9 au lait?q=\u00e9", "http://h.test/caf%C3%A9%20au%20lait?q=%C3%A9"),
        ("http://b\u00fccher.test/", "http://xn--bcher-kva.test/"),
        ("HTTP://H.Test:80", "http://h.test/"),
        ("http://h.test/a/../b/./c", "http://h.test/b/c"),
        ("http:\\\\h.test\\a", "http://h.test/a"),
        ("http://127.1/", "http://127.0.0.1/"),
        ("http://[0:0::1]:8080/", "http://[::1]:8080/"),
    ],
)
def test_only_what_is_not_valid_in_a_url_is_changed(written: str, sent: str) -> None:
    assert wire_url(written) == sent


def test_the_port_where_everything_is_discarded_is_tried() -> None:
    assert wire_url("http://127.0.0.1:9/") == "http://127.0.0.1:9/"


@pytest.mark.parametrize("port", ["25", "6379", "11211", "22", "0", "6667", "0025"])
def test_a_port_of_another_protocol_is_blocked(port: str) -> None:
    for url in (f"http://h.test:{port}/", f"https://[::1]:{port}/a b"):
        with pytest.raises(BlockedError, match=f"port {int(port)}, where another protocol lives"):
            wire_url(url)


_URLISH = st.text(alphabet="htps:/?#.a-zA09%20&=;|^'\"<>{}[]@\\ \t\u00e9", max_size=25)


_PORTS = st.sampled_from(["", ":80", ":443", ":81", ":08", ":65535", ":65536", ":"])
_HOSTS = st.sampled_from(
    ["http://h.test", "https://a.b-c.test", "http://10.0.0.1", "http://1.2.3", "https://xn--a"]
)


@given(st.one_of(st.just("http://"), st.builds("{}{}/".format, _HOSTS, _PORTS)), _URLISH)
def test_the_fast_path_agrees_with_the_url_standard(start: str, rest: str) -> None:
    try:
        expected = ada_url.normalize_url(start + rest).partition("#")[0]
    except ValueError:
        with pytest.raises(BadUrlError):
            wire_url(start + rest)
    else:
        assert wire_url(start + rest) == expected


@pytest.mark.parametrize("url", ["", "h.test/a", "http://", "http://[::1/", "http://a b/", "http://h:99999/"])
def test_what_is_no_url_is_a_bad_url(url: str) -> None:
    with pytest.raises(BadUrlError):
        wire_url(url)


@pytest.mark.parametrize("url", ["ftp://h.test/", "data:text/html,x", "file:///etc/passwd", "javascript:x()"])
def test_other_schemes_are_blocked(url: str) -> None:
    with pytest.raises(BlockedError):
        wire_url(url)


def test_credentials_come_out_of_the_url() -> None:
    assert split_credentials("http://us%40er:p%3Aw@h.test:81/a@b") == (
        "http://h.test:81/a@b",
        "Basic dXNAZXI6cDp3",
    )
    assert split_credentials("http://h.test/a@b:c") == ("http://h.test/a@b:c", None)


def test_an_origin_is_scheme_host_and_port() -> None:
    assert origin("http://u:p@h.test:81/a?b") == "http://h.test:81"
    assert origin("https://h.test/") != origin("http://h.test/")
