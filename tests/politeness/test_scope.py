from __future__ import annotations

import time
from typing import Any

import pytest

from silkline.errors import ConfigError
from silkline.outcome import Refused
from silkline.politeness.scope import MEDIA_EXTENSIONS, Scope, ScopeRules, site_of, sites_of


def inside(
    *urls: str, page: str, reached: str | None = None, depth: int = 1, **rules: Any
) -> tuple[list[str], dict[str, Refused]]:
    refused: dict[str, Refused] = {}
    kind = rules.pop("kind", "host")
    scope = Scope(ScopeRules(kind=kind, **rules))
    return scope.admitted(urls, page, reached or page, depth, refused), refused


def test_links_of_the_same_host_and_port_are_in_scope() -> None:
    links = [
        "https://shop.example/b",
        "http://shop.example/c",
        "https://user:pw@shop.example/d",
        "https://shop.example:8443/no",
        "https://www.shop.example/no",
        "https://shop.example.evil.example/no",
        "https://evil.example/shop.example",
        "https://shop.example@evil.example/no",
    ]
    admitted, refused = inside(*links, page="https://shop.example/a")
    assert admitted == links[:3]
    assert refused == {"on another host": Refused(5, links[3])}


def test_every_start_is_in_scope_from_every_page() -> None:
    sites = sites_of(["http://one.example:8000/", "http://TWO.example:80/x", "no url"])
    assert sites == ("one.example:8000", "two.example")
    links = ["http://two.example/", "http://three.example/"]
    assert inside(*links, page="http://one.example:8000/", sites=sites)[0] == links[:1]


def test_where_a_start_redirects_to_is_in_scope_and_where_other_pages_do_is_not() -> None:
    links = ["https://www.shop.example/a", "http://shop.example/b"]
    moved = {"page": "http://shop.example/", "reached": "https://www.shop.example/"}
    assert inside(*links, **moved, depth=0)[0] == links
    assert inside(*links, **moved)[0] == links[1:]


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
@pytest.mark.parametrize("kind", ["auto", "host", "site"])
def test_allowed_hosts_widen_the_scope(allowed: str, url: str, held: bool, kind: str) -> None:
    links, _ = inside(url, page="http://shop.test/", allow_hosts=(allowed,), kind=kind)
    assert (url in links) is held


@pytest.mark.parametrize(
    "host", ["", "https://cdn.example", "cdn.example/x", "a b", "*.", "*", "*.*", "a.*.b", "a@b", "a:99999"]
)
def test_an_allowed_host_that_is_none_is_refused(host: str) -> None:
    with pytest.raises(ConfigError, match=r"^allow_hosts .* is no host; write "):
        Scope(ScopeRules(allow_hosts=(host,)))


@pytest.mark.parametrize(
    ("page", "url", "held"),
    [
        ("https://www.shop.co.uk/", "http://cdn.shop.co.uk:8080/", True),
        ("https://www.shop.co.uk/", "https://other.co.uk/", False),
        ("https://me.github.io/", "https://you.github.io/", False),
        ("https://xn--bcher-kva.de/", "https://www.xn--bcher-kva.de/", True),
        ("http://127.0.0.1:1/", "http://127.0.0.1:2/", True),
        ("http://127.0.0.1/", "http://126.0.0.1/", False),
        ("http://localhost/", "http://localhost:8/", True),
        ("http://[::1]:1/", "http://[::1]/", True),
    ],
)
def test_a_site_is_what_somebody_has_registered(page: str, url: str, held: bool) -> None:
    assert (inside(url, page=page, kind="site")[0] == [url]) is held


@pytest.mark.parametrize(
    ("rules", "url", "reason"),
    [
        ({"paths": ("/p/", "/q/")}, "/q/1", ""),
        ({"paths": ("/p/", "/q/")}, "/p", "not below /p/ or /q/"),
        ({"deny": ("/login", "sort=")}, "/a?sort=1", "denied by sort="),
        ({"deny": (r"^https://shop\.example/$",)}, "/a", ""),
        ({"allow": (r"/p/\d+", "/list")}, "/p/12?x=1", ""),
        ({"allow": (r"/p/\d+$", "/list")}, "/p/a", "matched by no allow pattern"),
        ({"allow": ("/p/",), "deny": ("/p/1",)}, "/p/1", "denied by /p/1"),
        ({"schemes": ("http",)}, "/a", "not http"),
        ({"skip_extensions": ("pdf", ".DOC")}, "/a.PDF?x=1", "a .pdf file"),
        ({"skip_extensions": ("pdf", ".DOC")}, "/a.doc", "a .doc file"),
        ({"skip_extensions": ("pdf",)}, "/a.pdf/b", ""),
        ({"skip_extensions": ("pdf",)}, "/a?file=b.pdf", ""),
        ({"skip_extensions": ("example",)}, "/", ""),
        ({"skip_extensions": ("media", "pdf")}, "/a.jpg", "a .jpg file"),
        ({"skip_extensions": ("media",)}, "/a.html", ""),
    ],
)
def test_each_rule_says_what_it_refuses(rules: dict[str, Any], url: str, reason: str) -> None:
    scope = Scope(ScopeRules(**rules))
    assert scope.refusal(f"https://shop.example{url}") == reason
    assert scope.rules.any


def test_pages_and_documents_are_no_media() -> None:
    assert not MEDIA_EXTENSIONS & {
        "html",
        "htm",
        "php",
        "asp",
        "aspx",
        "xml",
        "json",
        "txt",
        "pdf",
        "doc",
        "com",
    }


@pytest.mark.parametrize("option", ["allow", "deny"])
@pytest.mark.parametrize("pattern", ["", " "])
def test_a_pattern_that_says_nothing_is_refused(option: str, pattern: str) -> None:
    with pytest.raises(ConfigError, match=f"^{option} has an empty pattern, which matches every URL"):
        Scope(ScopeRules(**{option: ("/p/", pattern)}))


def test_a_pattern_that_would_take_for_ever_refuses_and_says_so() -> None:
    started = time.monotonic()
    scope = Scope(ScopeRules(deny=(r"^https://(x+x+)+y$",)))
    reason = scope.refusal("https://" + "x" * 4_000 + "/")
    assert reason == "the deny pattern ^https://(x+x+)+y$ takes too long"
    assert time.monotonic() - started < 10
    with pytest.raises(ConfigError, match=r"^allow '\(' is no regular expression: missing \)"):
        Scope(ScopeRules(allow=("(",)))


def test_a_start_may_redirect_anywhere_but_to_what_is_denied_and_other_pages_only_inside() -> None:
    scope = Scope(ScopeRules(kind="host", paths=("/p/",), deny=("/login",)))
    start, elsewhere = "https://shop.example/", "https://www.shop.example/en/"
    assert scope.redirect(elsewhere, start, depth=0) == ""
    assert scope.redirect(elsewhere, start, depth=1) == "on another host"
    assert scope.redirect("https://shop.example/x", start, depth=1) == "not below /p/"
    assert scope.redirect("https://shop.example/p/x", start, depth=1) == ""
    assert scope.redirect("https://shop.example/login", start, depth=0) == "denied by /login"


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
