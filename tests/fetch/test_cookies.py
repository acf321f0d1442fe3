"""Cookies against the http-state suite and RFC 6265bis; tests/data/conformance/cookies names the sources."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pytest
from tests.conformance import cases

from silkline.fetch.cookies.cookie import is_public_suffix, place_of
from silkline.fetch.cookies.date import cookie_date
from silkline.fetch.cookies.jar import Jar
from silkline.fetch.target import wire_url


def seconds(text: str) -> float:
    return datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()


def replay(steps: list[dict[str, Any]], now: float) -> list[tuple[str, str | None, str | None]]:
    """The requests of a case: URL, the Cookie header it got, the one it should get."""
    jar = Jar()
    asked = []
    for step in steps:
        if "set" in step:
            jar.take([step["set"].encode()], place_of(wire_url(step["url"])), now)
        else:
            sent = jar.header(place_of(wire_url(step["request"])), now) or None
            asked.append((step["request"], sent, step["cookie"]))
    return asked


@pytest.mark.parametrize("case", cases("cookies/http_state"), ids=lambda case: case["id"])
def test_the_http_state_suite(case: dict[str, Any]) -> None:
    expected = case.get("rfc6265bis_cookie", case["cookie"])
    steps = [{"set": line, "url": case["url"]} for line in case["set_cookie"]]
    asked = {"request": case["request_url"], "cookie": expected}
    [(_, sent, _)] = replay([*steps, asked], seconds(case["now"]))
    assert sent == expected


@pytest.mark.parametrize("case", cases("cookies/rfc6265bis"), ids=lambda case: case["name"])
def test_what_6265bis_says(case: dict[str, Any]) -> None:
    for url, sent, expected in replay(case["steps"], seconds(case["now"])):
        assert sent == expected, url


@pytest.mark.parametrize("case", cases("cookies/dates"), ids=lambda case: case["input"][:40])
def test_the_dates_of_cookies(case: dict[str, Any]) -> None:
    expected = case["expected"]
    assert cookie_date(case["input"]) == (None if expected is None else seconds(expected))


def test_a_public_suffix_is_one_in_either_writing_and_an_address_is_none() -> None:
    for suffix in ("com", "co.uk", "github.io", "公司.cn", "xn--55qx5d.cn", "localhost"):
        assert is_public_suffix(suffix), suffix
    for domain in ("example.com", "example.co.uk", "me.github.io", "127.0.0.1", "[::1]"):
        assert not is_public_suffix(domain), domain


@pytest.mark.parametrize(
    ("url", "host", "path", "secure"),
    [
        ("http://example.com", "example.com", "/", False),
        ("https://u:p@Example.com:8443/a/b?c=/d", "example.com", "/a/b", True),
        ("http://[::1]:8080/x", "[::1]", "/x", False),
        ("http://[::1]/", "[::1]", "/", False),
    ],
)
def test_host_and_path_of_a_url(url: str, host: str, path: str, secure: bool) -> None:
    place = place_of(url)
    assert (place.host, place.path, place.secure) == (host, path, secure)
