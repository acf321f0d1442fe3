"""One robots.txt file: which lines speak to us, and what they allow."""

from __future__ import annotations

import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from silkline.errors import BadUrlError
from silkline.politeness.robots_txt import (
    MAX_BYTES,
    is_product_token,
    path_of,
    product_token,
    read_robots_txt,
)
from silkline.url import host_of
from tests.politeness.conformance import body_of, cases

URL = "https://example.com/robots.txt"


def allows(case: dict[str, Any]) -> bool:
    return read_robots_txt(body_of(case), case["user_agent"], URL).allows(case["url"])


@pytest.mark.parametrize(("name", "count"), [("cases", 1203), ("rfc_only", 31), ("lenient", 21)])
def test_every_agreed_verdict_is_ours(name: str, count: int) -> None:
    wrong = [case for case in cases(name) if allows(case) != case["allowed"]]
    assert not wrong
    assert len(cases(name)) == count


def test_a_refusal_names_the_rule_that_refuses() -> None:
    for case in [*cases("cases"), *cases("rfc_only"), *cases("lenient")]:
        robots = read_robots_txt(body_of(case), case["user_agent"], URL)
        rule = robots.deciding(case["url"])
        if not case["allowed"]:
            assert rule is not None, case
        if rule is not None:
            assert rule.allow == case["allowed"], case
            assert rule in robots.rules


ARGUED = {
    "missing colon": "most parsers read such lines: not to is to fetch what was refused",
    "UTF-16 file": "RFC 9309 2.2 lets a crawler bridge encodings, and its author meant the rules",
    "protego also takes a final $": "where a rule can be read in two ways, the careful one",
    "protego takes the value as a path": "such a rule refuses only what nobody serves",
    "Google and protego take /index.html": "authors of robots.txt test against what Google does",
    "see GoogleOnly_IndexHTMLisDirectory": "the same",
    "/ against /*": "the same",
}
"""Where we do not follow the RFC's reading of a disputed case, and why."""


def test_disputed_cases_follow_the_rfc_but_for_what_is_argued() -> None:
    others = [case for case in cases("disputed") if allows(case) != case["rfc9309_reading"]]
    used = {key for key in ARGUED for case in others if key in case["why"]}
    assert used == ARGUED.keys()
    assert all(any(key in case["why"] for key in ARGUED) for case in others)


def test_the_delay_is_the_one_that_is_asked_of_us() -> None:
    for case in cases("crawl_delay"):
        assert read_robots_txt(body_of(case), case["user_agent"], URL).delay == case["crawl_delay"], case


@pytest.mark.parametrize(
    ("lines", "delay"),
    [
        ("Request-rate: 1/5", 5.0),
        ("Request-rate: 30/1m", 2.0),
        ("Request-rate: 1/1m 0600-0845", 60.0),
        ("Crawl-delay: 2\nRequest-rate: 1/10s", 10.0),
        ("Crawl-delay: 20\nRequest-rate: 1/10s", 20.0),
        ("Request-rate: 0/0", None),
        ("Crawl-delay: inf", None),
        ("Crawl-delay: -1", None),
    ],
)
def test_a_request_rate_is_a_delay_and_the_longer_one_counts(lines: str, delay: float | None) -> None:
    assert read_robots_txt(f"User-agent: *\n{lines}\n".encode(), "silkline", URL).delay == delay


def test_sitemaps_are_found_wherever_they_stand_each_once_and_absolute() -> None:
    for case in cases("sitemaps"):
        found = read_robots_txt(body_of(case), "anybot", case["robots_url"]).sitemaps
        assert list(found) == case["sitemaps"], case


@pytest.mark.parametrize("case", cases("size_limit"), ids=lambda case: case["case"])
def test_500_kib_are_read_and_large_files_cost_little(case: dict[str, Any]) -> None:
    body = (case["prefix"] + case["filler"] * case["filler_repeat"] + case["suffix"]).encode()
    began = time.process_time()
    robots = read_robots_txt(body, case["user_agent"], URL)
    allowed = robots.allows(case["url"])
    assert time.process_time() - began < 5.0
    assert case["allowed"] in (allowed, None)


def test_a_line_that_is_cut_at_the_limit_is_no_rule() -> None:
    head = b"User-agent: *\nDisallow: /a\n"
    rule = b"Disallow: /secret/\n"
    cut = head + b"#" * (MAX_BYTES - len(head) - 13) + b"\n" + rule
    assert MAX_BYTES - len(cut) == -7
    robots = read_robots_txt(cut, "silkline", URL)
    assert [str(found) for found in robots.rules] == ["Disallow: /a"]


def test_rules_keep_the_number_of_their_line() -> None:
    body = b"# us\r\n\r\nUser-agent: other\r\nDisallow: /\r\n\r\nUser-agent: *\rDisallow: /a\nAllow: /a/b # x"
    robots = read_robots_txt(body, "silkline", URL)
    assert [(rule.line, str(rule)) for rule in robots.rules] == [(7, "Disallow: /a"), (8, "Allow: /a/b")]
    assert robots.deciding("http://e.com/a/b/c") == robots.rules[1]
    assert robots.deciding("http://e.com/a/x") == robots.rules[0]
    assert robots.deciding("http://e.com/z") is None


def test_robots_txt_itself_is_always_allowed() -> None:
    robots = read_robots_txt(b"User-agent: *\nDisallow: /\n", "silkline", URL)
    assert robots.allows("https://example.com/robots.txt")
    assert not robots.allows("https://example.com/robots.txt.html")


@pytest.mark.parametrize(
    "url",
    [
        "http://e.com/a/../private/x",
        "http://e.com/./private/x",
        "http://e.com/%70rivate/x",
        "http://e.com/%2e/private/x",
        "HTTP://E.com\\private\\x",
        "http://user:word@e.com/private/x",
        "http://e.com/pri\tvate/x",
        "http://e.com/private",
    ],
)
def test_no_spelling_of_a_url_gets_around_a_rule(url: str) -> None:
    assert not read_robots_txt(b"User-agent: *\nDisallow: /private\n", "silkline", URL).allows(url)


def test_what_rules_see_of_a_url() -> None:
    for case in cases("path_query"):
        assert path_of(case["url"]) == case["path"]
    with pytest.raises(BadUrlError):
        path_of("http://")


def test_a_robots_txt_is_about_its_own_scheme_host_and_port() -> None:
    for case in cases("same_scope"):
        if case["robots_url"].startswith("http"):
            assert (host_of(case["robots_url"]) == host_of(case["url"])) == case["applies"], case


def test_product_tokens_are_letters_and_two_signs() -> None:
    for case in cases("product_tokens"):
        assert is_product_token(case["token"]) == case["valid"], case


@pytest.mark.parametrize(
    ("user_agent", "token"),
    [
        ("", "silkline"),
        ("hostilebot/1.0 (+http://127.0.0.1/)", "hostilebot"),
        ("Shop-Watch", "Shop-Watch"),
        ("Mozilla/5.0 (compatible; Foobot/2.1; +http://foo/)", "Foobot"),
        ("Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 Chrome/140.0", "silkline"),
        ("123/4", "silkline"),
    ],
)
def test_the_product_token_is_the_name_in_the_user_agent(user_agent: str, token: str) -> None:
    assert product_token(user_agent) == token


PIECES = ["/", "g", "x", "*", "$", "%3F", "%3f", "%67", "?", "=", ".", "é", " "]
paths = st.lists(st.sampled_from(PIECES), max_size=8).map("".join)


@given(rules=st.lists(st.tuples(st.booleans(), paths), max_size=8), path=paths)
def test_the_short_way_says_what_all_rules_say(rules: list[tuple[bool, str]], path: str) -> None:
    lines = "".join(f"{'allow' if allow else 'disallow'}: /{rule}\n" for allow, rule in rules)
    robots = read_robots_txt(f"user-agent: *\n{lines}".encode(), "silkline", URL)
    allowed = robots.allows(f"http://e.com/{path}")
    assert allowed == robots.allows(f"HTTP://e.com/{path}"), "spelled so that the full parser is asked"
    rule = robots.deciding(f"http://e.com/{path}")
    if rule is None:
        assert allowed
    else:
        assert rule.allow == allowed


@given(st.binary(max_size=300))
def test_any_bytes_are_a_robots_txt(body: bytes) -> None:
    robots = read_robots_txt(body, "silkline", URL)
    robots.allows("http://e.com/a?b=c")
    robots.deciding("http://e.com/a%3Fb")
