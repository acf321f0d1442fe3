from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from silkline.keys import USUAL, KeyRules, agreed, expanded
from silkline.request import Request
from silkline.url import canonical

PLAIN, USUALLY = KeyRules(), KeyRules(["default"])
HOST = "https://shop.example"
names = st.sampled_from(["a", "page", "utm_source", "sid", "jsessionid", "ref", ""])
values = st.sampled_from(["", "=", "=1", "=0123456789abcdef", "=a=b", "=%26"])
pairs = st.lists(st.builds(lambda name, value: name + value, names, values), max_size=4)


@pytest.mark.parametrize(
    ("url", "key"),
    [
        ("/?utm_source=mail&utm_medium=x&id=1", "/?id=1"),
        ("/?gclid=Cj0&fbclid=IwAR&msclkid=1", "/"),
        ("/?ID=1&UTM_Source=mail", "/?ID=1"),
        ("/?PHPSESSID=abc&id=1", "/?id=1"),
        ("/a;jsessionid=AB12.node1?id=1", "/a?id=1"),
        ("/a;JSESSIONID=AB12/b;v=2", "/a/b;v=2"),
        ("/?ASPSESSIONIDQQ=A", "/"),
        ("/?sid=0123456789abcdef", "/"),
        ("/?utm%5Fsource=mail", "/"),
    ],
)
def test_parameters_of_campaigns_and_sessions_are_no_part_of_the_key(url: str, key: str) -> None:
    assert USUALLY.canonical(HOST + url) == HOST + key
    assert USUALLY.fingerprint(HOST + url) == USUALLY.fingerprint(HOST + key) == PLAIN.fingerprint(HOST + key)


@pytest.mark.parametrize(
    "url",
    [
        "/?sid=12345",
        "/?session=spring-2026",
        "/?sid=a+long+text+of+words",
        "/?utm=1",
        "/?xgclid=1",
        "/a;v=1",
        "/gclid",
        "/a?b=gclid=1",
        "/?id=1&",
        "/utm_source=1/",
        "/?s=jsessionid",
    ],
)
def test_everything_else_makes_another_page(url: str) -> None:
    assert USUALLY.canonical(HOST + url) == canonical(HOST + url)


def test_a_list_of_ones_own_replaces_the_usual_one_or_adds_to_it() -> None:
    url = f"{HOST}/?Ref=1&aff_id=2&aff_name=3&gclid=4&token=0123456789abcdef"
    own = ["ref", "aff_*", "token=token"]
    assert KeyRules(own).canonical(url) == f"{HOST}/?gclid=4"
    assert KeyRules([*own, "default"]).canonical(url) == f"{HOST}/"
    assert KeyRules([]).canonical(url) == canonical(url)


@given(pairs, pairs)
def test_a_key_is_its_own_key_and_depends_on_what_is_kept_alone(query: list[str], path: list[str]) -> None:
    url = f"{HOST}/a{''.join(';' + one for one in path if '%' not in one)}/b?{'&'.join(query)}"
    key = USUALLY.canonical(url)
    assert USUALLY.canonical(key) == key
    assert USUALLY.canonical(url + "&fbclid=1") == key
    assert USUALLY.of(Request(url)) == USUALLY.fingerprint(key)


def test_requests_are_told_apart_by_method_body_and_key_as_without_the_list() -> None:
    url = f"{HOST}/?a=1"
    for fields in ({}, {"method": "POST"}, {"method": "POST", "body": b"x"}, {"key": "k"}):
        assert USUALLY.of(Request(url, **fields)) == Request(url, **fields).fingerprint
        assert (USUALLY.of(Request(url + "&gclid=1", **fields))) == Request(url, **fields).fingerprint


def test_a_job_goes_on_with_its_own_list_unless_another_is_asked_for() -> None:
    assert agreed(["default"], ())
    assert agreed(["default"], ("ref",))
    assert agreed(["REF"], ("ref",))
    assert agreed(["gclid", "default"], expanded(USUAL))
    assert not agreed([], ("ref",))
    assert not agreed(["ref", "default"], ("ref",))
