from __future__ import annotations

import pytest

from silkline.cli.scope import Scope, site_of
from silkline.errors import ConfigError
from silkline.parse.page import Page
from silkline.request import Request
from silkline.response import Response

HTML = ((b"Content-Type", b"text/html"),)


def page_with(*hrefs: str, url: str, requested: str | None = None, depth: int = 1) -> Page:
    body = "".join(f'<a href="{href}">x</a>' for href in hrefs).encode()
    return Page(Response(url, 200, HTML, body, Request(requested or url, depth=depth)))


def test_links_of_the_same_host_and_port_are_in_scope() -> None:
    page = page_with(
        "/b",
        "https://shop.example/c",
        "http://shop.example/d",
        "https://SHOP.example:443/e",
        "https://user:pw@shop.example/f",
        "https://shop.example:8443/no",
        "https://www.shop.example/no",
        "https://shop.example.evil.example/no",
        "https://evil.example/shop.example",
        url="https://shop.example/a",
    )
    inside = Scope([], []).links(page)
    assert [url.rpartition("/")[2] for url in inside] == list("bcdef")


def test_every_seed_is_in_scope_from_every_page() -> None:
    page = page_with("http://two.example/", "http://three.example/", url="http://one.example:8000/")
    scope = Scope(["http://one.example:8000/", "http://TWO.example:80/x"], [])
    assert scope.links(page) == ("http://two.example/",)


def test_where_a_seed_redirects_to_is_in_scope_and_where_other_pages_do_is_not() -> None:
    moved = {"url": "https://www.shop.example/", "requested": "http://shop.example/"}
    scope = Scope([], [])
    assert len(scope.links(page_with("/a", "http://shop.example/b", **moved, depth=0))) == 2
    assert scope.links(page_with("/a", "http://shop.example/b", **moved)) == ("http://shop.example/b",)


@pytest.mark.parametrize(
    ("allowed", "url", "held"),
    [
        ("cdn.example", "http://cdn.example/", True),
        ("CDN.example", "http://cdn.example:8080/", True),
        ("cdn.example", "http://x.cdn.example/", False),
        ("cdn.example:8080", "http://cdn.example:8080/", True),
        ("cdn.example:8080", "http://cdn.example/", False),
        ("cdn.example:443", "https://cdn.example/", True),
        ("*.example", "http://x.y.example:8080/", True),
        ("*.example", "http://example/", False),
        ("*.ample", "http://example/", False),
        ("bücher.example", "http://xn--bcher-kva.example/", True),
        ("[::1]", "http://[::1]:8080/", True),
        ("127.0.0.1", "http://127.0.0.1:9/", True),
    ],
)
def test_allowed_hosts_widen_the_scope(allowed: str, url: str, held: bool) -> None:
    links = Scope([], [allowed]).links(page_with(url, url="http://shop.test/"))
    assert (url in links) is held


@pytest.mark.parametrize("host", ["", "https://cdn.example", "cdn.example/x", "a b", "*.", "a@b", "a:99999"])
def test_an_allowed_host_that_is_none_is_refused(host: str) -> None:
    with pytest.raises(ConfigError, match=r"--allow-host: .* is no host; write "):
        Scope([], [host])


@pytest.mark.parametrize(
    ("url", "site"),
    [
        ("https://a.example/x", "a.example"),
        ("https://a.example:80/x", "a.example:80"),
        ("http://A.example:80", "a.example"),
        ("http://[::1]:80/", "[::1]"),
    ],
)
def test_the_port_of_the_scheme_is_no_part_of_a_site(url: str, site: str) -> None:
    assert site_of(url) == site
