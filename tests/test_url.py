"""URLs: conformance, the short ways held equal to the full parser, keys, and errors."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import ada_url
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from silkline import url as url_module
from silkline.errors import BadUrlError
from silkline.url import (
    MAX_URL_LENGTH,
    canonical,
    check,
    fingerprint_of,
    host_of,
    resolve,
    resolve_all,
)

DATA = Path(__file__).parent / "data" / "conformance" / "url"


def cases(name: str) -> list[dict[str, Any]]:
    return json.loads((DATA / f"{name}.json").read_text())


# What stands in links, and its nasty neighbours.

SCHEMES = st.sampled_from(
    ["http://", "https://"] * 4 + ["HTTP://", "http:", "https:/", "http:///", "ftp://", "mailto:"]
)
USERS = st.sampled_from([""] * 8 + ["u@", "u:p@", "@", "u%40:@"])
HOSTS = st.sampled_from(
    ["shop.example", "a.b-c.example", "localhost", "127.0.0.1"] * 3
    + [
        "Shop.Example",
        "m\xfcller.de",
        "xn--mller-kva.de",
        "xn--a",
        "ex%61mple.com",
        "shop.example.",
        "a..b",
        ".a",
    ]
    + [
        "0x7f.1",
        "2130706433",
        "127.1",
        "1.2.3.4.5",
        "256.1.1.1",
        "[::1]",
        "[::0:1]",
        "[",
        "a_b",
        "-a-",
        "ex ample",
    ]
    + ["a" * 63 + ".example", "a" * 64 + ".example", ""]
)
PORTS = st.sampled_from([""] * 6 + [":80", ":443", ":8080", ":", ":0", ":08080", ":99999"])
SEGMENTS = st.sampled_from(
    ["p", "item-1.html", "caf%C3%A9", "~joe", "a;b=c", "x:y", "a+b", ""] * 3
    + [
        ".",
        "..",
        "...",
        ".a",
        "a.",
        "%2e",
        "%2E%2e",
        ".%2e",
        "%2f",
        "%41",
        "%zz",
        "%",
        "a b",
        "\xe9",
        "a\\b",
        "c|",
    ]
    + ["a\tb", "a\nb", "a'b", 'a"b', "a<b", "a^b", "[x]", "{x}", "\0", "\ud800", "a@b", "\u3002"]
)
PATHS = st.lists(SEGMENTS, max_size=4).map("/".join)
QUERIES = st.sampled_from(
    [""] * 4
    + ["?q=1", "?b=2&a=1", "?", "??", "?q='x'", "?q=a/../b", "?q=\xe9", "?a b", "?a&&b", "?q=%2d", "?x=[1]"]
)
FRAGMENTS = st.sampled_from([""] * 6 + ["#", "#top", "#a#b", "#/route"])
ABSOLUTE = st.builds("{}{}{}{}/{}{}".format, SCHEMES, USERS, HOSTS, PORTS, PATHS, QUERIES)
BARE = st.builds(
    "{}{}{}{}".format, SCHEMES, USERS, HOSTS, st.sampled_from(["", "?q=1", "\\a", "#x/y", "?x/y"])
)
RELATIVE = st.builds(
    "{}{}{}".format, st.sampled_from(["/"] * 4 + ["", "//", "./", "../", "\\"]), PATHS, QUERIES
)
SCHEMED = st.sampled_from(
    [
        "javascript:void(0)",
        "tel:+1",
        "data:,a",
        "shop.example:80/x",
        "httpx:y",
        "https:y",
        "http:",
        "HTTP:y",
        "a:b",
        ":",
    ]
)
PADDED = st.builds(
    "{}{}{}".format, st.sampled_from([" ", "\t", "\n", "\x1f"]), RELATIVE, st.sampled_from(["", " "])
)
HREFS = (
    st.builds(
        "{}{}".format, st.one_of(RELATIVE, RELATIVE, ABSOLUTE, BARE, PADDED, QUERIES, SCHEMED), FRAGMENTS
    )
    | st.text()
)
BASES = st.builds("{}{}".format, ABSOLUTE | BARE, FRAGMENTS)
PLAIN_BASE = "https://shop.example/catalogue/list.html?page=2"


def scalars(text: str) -> str:
    return "".join("\ufffd" if "\ud800" <= character <= "\udfff" else character for character in text)


def fully_resolved(base: str, href: str) -> str | None:
    try:
        url = ada_url.join_url(scalars(base), scalars(href))
    except ValueError:
        return None
    return url if url.startswith(("http:", "https:")) else None


def fits_dns(host: str) -> bool:
    labels = host.removesuffix(".").split(".")
    return all(1 <= len(label) <= 63 for label in labels) and len(host.removesuffix(".")) <= 253


def without_fragment(url: str) -> str:
    return url.partition("#")[0]


# Conformance.


@pytest.mark.parametrize("name", ["urltestdata", "ada_extra", "crawl_urls", "rfc3986_resolution"])
def test_resolve_agrees_with_the_url_standard(name: str) -> None:
    wrong = []
    for case in cases(name):
        href = case["href"]
        wanted = href if href is not None and href.startswith(("http:", "https:")) else None
        got = resolve(case["base"] or "about:blank", case["input"])
        if got != wanted:
            wrong.append((case, got))
    assert wrong == []


@pytest.mark.parametrize("name", ["toascii", "idna_test_v2"])
def test_hosts_become_ascii_as_the_url_standard_says(name: str) -> None:
    wrong = []
    for case in cases(name):
        url = resolve("https://example.com/", f"https://{case['input']}/x")
        if (url and url[len("https://") : -len("/x")]) != case["output"]:
            wrong.append((case, url))
    assert wrong == []


def test_only_what_can_be_crawled_becomes_a_link() -> None:
    for case in cases("crawl_urls"):
        url = resolve(case["base"] or "about:blank", case["input"])
        assert (url is not None) == case["crawlable"], case
        if url is not None and fits_dns(ada_url.URL(url).hostname):
            assert resolve_all(case["base"] or "about:blank", [case["input"]]) == [without_fragment(url)]
        else:
            assert resolve_all(case["base"] or "about:blank", [case["input"]]) == []


@pytest.mark.parametrize("case", cases("equivalence"), ids=lambda case: case["why"][:40])
def test_equivalent_urls_have_one_key(case: dict[str, Any]) -> None:
    policy = {
        "http://example.com/?a=1&b=2": True,
        "http://example.com/?": True,
        "http://example.com/?a=": False,
        "http://example.com/index.html": False,
        "http://example.com./": False,
        "http://example.com/?utm_source=x": False,
        "http://example.com/?q=a+b": False,
    }
    same = policy[case["a"]] if case["same"] is None else case["same"]
    assert (canonical(case["a"]) == canonical(case["b"])) == same
    assert (fingerprint_of(case["a"]) == fingerprint_of(case["b"])) == same


def test_hosts_that_the_dns_cannot_hold_are_refused() -> None:
    for case in cases("dns_length"):
        if case["failure"]:
            with pytest.raises(BadUrlError, match="host name that cannot exist"):
                check(case["input"])
            assert resolve_all(PLAIN_BASE, [case["input"]]) == []
        else:
            assert check(case["input"]) == case["input"]
            assert len(resolve_all(PLAIN_BASE, [case["input"]])) == 1


# The short ways against the full parser.


@given(BASES, HREFS)
@settings(max_examples=300, deadline=None)
def test_resolve_equals_the_full_parser(base: str, href: str) -> None:
    assert resolve(base, href) == fully_resolved(base, href)


@given(HREFS)
@settings(max_examples=300, deadline=None)
def test_resolve_equals_the_full_parser_on_a_plain_page(href: str) -> None:
    assert resolve(PLAIN_BASE, href) == fully_resolved(PLAIN_BASE, href)


@given(BASES | st.just(PLAIN_BASE), st.lists(HREFS, max_size=6) | st.lists(RELATIVE, max_size=6))
@example(PLAIN_BASE, ["/a\n/b"])
@example(PLAIN_BASE, ["/a", "/b\n/c", "/d"])
@settings(max_examples=300, deadline=None)
def test_resolve_all_equals_the_full_parser_link_by_link(base: str, hrefs: list[str]) -> None:
    resolved = [fully_resolved(base, href) for href in hrefs]
    wanted = [without_fragment(url) for url in resolved if url is not None]
    fetchable = [url for url in wanted if fits_dns(ada_url.URL(url).hostname)]
    assert resolve_all(base, hrefs) == list(dict.fromkeys(fetchable))


@given(ABSOLUTE | BARE)
@settings(max_examples=300, deadline=None)
def test_the_key_of_a_plain_url_equals_the_full_parsers(url: str) -> None:
    """A fragment forces the long way, and never counts."""
    url = url.rstrip("".join(map(chr, range(33))))
    try:
        key = canonical(url)
    except BadUrlError:
        with pytest.raises(BadUrlError):
            canonical(url + "#x")
    else:
        assert key == canonical(url + "#x")
        assert canonical(key) == key


@given(ABSOLUTE | BARE)
@settings(max_examples=300, deadline=None)
def test_host_of_equals_the_full_parser(url: str) -> None:
    try:
        parsed = ada_url.URL(scalars(url))
    except ValueError:
        with pytest.raises(BadUrlError):
            host_of(url)
    else:
        port = parsed.port or {"http:": "80", "https:": "443"}.get(parsed.protocol, "80")
        assert host_of(url) == f"{parsed.protocol}//{parsed.hostname}:{port}"


@given(ABSOLUTE | BARE | st.text())
@settings(max_examples=300, deadline=None)
def test_check_lets_pass_what_can_be_requested_and_means_the_same(text: str) -> None:
    try:
        url = check(text)
    except BadUrlError:
        return
    assert url.isascii()
    assert url.isprintable()
    assert " " not in url
    assert url.lower().startswith(("http://", "https://"))
    assert canonical(url) == canonical(text)
    assert check(url) == url


def test_plain_links_never_reach_the_full_parser(monkeypatch: pytest.MonkeyPatch) -> None:
    resolve(PLAIN_BASE, "/warm")
    resolve(PLAIN_BASE, "http://other.example:8080/warm")

    def refuse(*_: object) -> str:
        raise AssertionError("the full parser was asked")

    monkeypatch.setattr(url_module.ada_url, "join_url", refuse)
    monkeypatch.setattr(url_module.ada_url, "URL", refuse)
    hrefs = ["/p/1.html", "/", "/a/b-c?q=1&p=2", "page2.html", "?page=3", "http://other.example:8080/x"]
    wanted = [
        "https://shop.example/p/1.html",
        "https://shop.example/",
        "https://shop.example/a/b-c?q=1&p=2",
        "https://shop.example/catalogue/page2.html",
        "https://shop.example/catalogue/list.html?page=3",
        "http://other.example:8080/x",
    ]
    assert [resolve(PLAIN_BASE, href) for href in hrefs] == wanted
    assert resolve_all(PLAIN_BASE, hrefs) == wanted
    assert resolve_all(PLAIN_BASE, hrefs[:3]) == wanted[:3]
    assert [canonical(url) for url in wanted[:2]] == wanted[:2]
    assert host_of(wanted[0]) == "https://shop.example:443"


# What is decided here and by no standard.


def test_resolve_keeps_the_fragment_and_resolve_all_drops_it() -> None:
    assert resolve(PLAIN_BASE, "/a#top") == "https://shop.example/a#top"
    assert resolve_all(PLAIN_BASE, ["/a#top", "/a", "/a#end", "#x"]) == ["https://shop.example/a", PLAIN_BASE]


@pytest.mark.parametrize("href", ["/" + "a" * MAX_URL_LENGTH, "x" * MAX_URL_LENGTH, "/\xe9" * 2_000])
def test_links_over_the_length_limit_are_dropped(href: str) -> None:
    assert resolve(PLAIN_BASE, href) is None
    assert resolve_all(PLAIN_BASE, [href]) == []
    assert resolve_all(PLAIN_BASE, [href, "/a", "./b"]) == [
        "https://shop.example/a",
        "https://shop.example/catalogue/b",
    ]


def test_a_link_of_exactly_the_limit_is_kept() -> None:
    longest = "/" + "a" * (MAX_URL_LENGTH - len("https://shop.example/"))
    assert resolve_all(PLAIN_BASE, [longest]) == ["https://shop.example" + longest]
    assert resolve(PLAIN_BASE, longest) == "https://shop.example" + longest
    assert resolve_all(PLAIN_BASE, [longest + "a"]) == []


def test_repeated_parameters_keep_their_order_in_the_key() -> None:
    assert canonical("http://a.example/?b=2&a=2&a=1") == "http://a.example/?a=2&a=1&b=2"


def test_only_escapes_of_unreserved_characters_are_undone_in_the_key() -> None:
    assert canonical("http://a.example/%7e%2f%3f%c3") == "http://a.example/~%2F%3F%C3"


def test_malformed_escapes_do_not_build_new_ones_in_the_key() -> None:
    assert canonical("http://a.example/%%36%31") != canonical("http://a.example/%61")
    assert canonical(canonical("http://a.example/%%36%31")) == canonical("http://a.example/%%36%31")


def test_fingerprints_never_change_between_releases() -> None:
    """Stored frontiers hold them: a change here forgets what was seen."""
    assert fingerprint_of("https://example.com/") == -1713509531495075358
    assert fingerprint_of("https://example.com/?b=1&a=2", "POST", b"x") == 4489521578858532567
    assert fingerprint_of("https://example.com/", key="k") == -7257373321681282202


def test_fingerprints_depend_on_method_url_and_body_or_on_the_key_alone() -> None:
    url = "https://example.com/"
    different = [
        fingerprint_of(url),
        fingerprint_of(url + "a"),
        fingerprint_of(url, "POST"),
        fingerprint_of(url, "POST", b"x"),
        fingerprint_of(url, key="k"),
        fingerprint_of(url, key="l"),
    ]
    assert len(set(different)) == len(different)
    assert all(-(2**63) <= fingerprint < 2**63 for fingerprint in different)
    assert fingerprint_of(url, "POST", b"x", "k") == fingerprint_of("https://other.example/", key="k")


# Errors.


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "empty"),
        ("  \t", "empty"),
        ("shop.example", "no scheme; write https://shop.example"),
        ("shop.example:8080/x", "no scheme; write https://shop.example:8080/x"),
        ("//shop.example/x", "no scheme; write https://shop.example/x"),
        ("/x", "no scheme"),
        ("ftp://shop.example/", "not an http or https URL"),
        ("mailto:a@shop.example", "not an http or https URL"),
        ("javascript:alert(1)", "not an http or https URL"),
        ("http://", "no host"),
        ("https:///?x", "no host"),
        ("http://:80/", "no host"),
        ("http://u@/", "no host"),
        ("http://shop.example http://other.example", "space in its host"),
        ("http://shop.example:99999/", "port"),
        ("http://shop.example:http/", "port"),
        ("http://1.2.3.4.5/", "its host '1.2.3.4.5'"),
        ("http://[::1/", "not a valid URL"),
        ("http://a..b/", "host name that cannot exist"),
        ("http://" + "a" * 64 + ".example/", "host name that cannot exist"),
        ("http://shop.example/" + "a" * MAX_URL_LENGTH, "over the limit of 8192"),
    ],
)
def test_bad_urls_are_refused_with_the_reason(text: str, message: str) -> None:
    with pytest.raises(BadUrlError) as caught:
        check(text)
    assert message in str(caught.value)
    assert len(str(caught.value)) < 600


@pytest.mark.parametrize(
    ("text", "url"),
    [
        (" https://shop.example/a\r\n", "https://shop.example/a"),
        ("https://shop.example", "https://shop.example"),
        ("HTTPS://Shop.Example/../a", "HTTPS://Shop.Example/../a"),
        ("https://shop.example/a b", "https://shop.example/a%20b"),
        ("https://m\xfcller.de/\xe4", "https://xn--mller-kva.de/%C3%A4"),
        ("http:\\\\shop.example\\a", "http://shop.example/a"),
        ("http:shop.example", "http://shop.example/"),
        ("https://[::1]:8080/", "https://[::1]:8080/"),
    ],
)
def test_good_urls_stay_as_written_unless_no_server_could_read_them(text: str, url: str) -> None:
    assert check(text) == url


def test_a_bad_url_is_quoted_without_its_password() -> None:
    with pytest.raises(BadUrlError) as caught:
        check("http://u:TOPSECRET@[::1/")
    assert "TOPSECRET" not in str(caught.value)


@pytest.mark.parametrize("userinfo", ["me:TOPSECRET", "TOPSECRET", ":TOPSECRET"])
def test_a_url_with_a_password_is_refused_and_says_where_it_belongs(userinfo: str) -> None:
    for text in (
        f"http://{userinfo}@h.test:81/x",
        f"http://{userinfo}@h.test:81?q",
        f"HTTP:{userinfo}@h.test:81",
    ):
        with pytest.raises(BadUrlError, match=r"--auth 'http://h\.test:81 basic USER:PASSWORD'") as error:
            check(text)
        assert "TOPSECRET" not in str(error.value)
    assert check("http://h.test/@x?mail=a@b.test") == "http://h.test/@x?mail=a@b.test"
    assert check("http://h.test?mail=a@b.test") == "http://h.test?mail=a@b.test"
