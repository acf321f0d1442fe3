"""Requests, links to follow, and the task line that other programs write."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from silkline.errors import TaskError
from silkline.request import (
    MAX_TASK_BYTES,
    Follow,
    Request,
    request_from_fields,
    request_from_task,
    storable,
)

URL = "https://shop.example/"


def test_a_bare_url_is_a_task() -> None:
    assert request_from_task(f" {URL}\r\n") == Request(URL)
    assert request_from_task(URL.encode()) == Request(URL)


def test_a_json_task_gives_every_field() -> None:
    task = {
        "url": URL,
        "method": "post",
        "headers": {"Accept": "*/*"},
        "body": "eA==",
        "label": "author",
        "priority": 5,
        "depth": 2,
        "retry_count": 1,
        "extra": {"page": 3},
        "key": "again",
    }
    assert request_from_task(json.dumps(task)) == Request(
        URL, "POST", {"Accept": "*/*"}, b"x", "author", 5, 2, 1, {"page": 3}, "again"
    )


def test_a_json_task_needs_no_more_than_its_url() -> None:
    assert request_from_task(b'{"url": "https://shop.example/"}') == Request(URL)


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("", "empty"),
        ("shop.example", "no scheme"),
        ('{"url": "shop.example"}', "no scheme"),
        ("{}", "missing required field `url`"),
        ('{"url": 3}', "Expected `str`"),
        ('{"url": "https://shop.example/", "uri": 1}', "unknown field `uri`"),
        ('{"url": "https://shop.example/"', "truncated"),
        ('{"url": "https://shop.example/"} {}', "trailing"),
        ('{"url": "https://shop.example/", "priority": 1001}', "outside -1000..1000"),
        ('{"url": "https://shop.example/", "depth": -1}', "must not be negative"),
        ('{"url": "https://shop.example/", "body": "?"}', "base64"),
        ('{"url": "https://shop.example/", "method": "GET / HTTP/1.1\\r\\nX: y"}', "not an HTTP method"),
        ('{"url": "https://shop.example/", "method": "connect"}', "CONNECT asks for a tunnel"),
        ('{"url": "https://shop.example/", "headers": {"A": "b\\r\\nX: y"}}', "not an HTTP header"),
        ('{"url": "https://shop.example/", "headers": {"A:": "b"}}', "not an HTTP header"),
        ('{"url": "https://shop.example/", "headers": {":path": "/"}}', "not an HTTP header"),
        ('{"url": "https://shop.example/", "headers": {"Content-Length ": "5"}}', "not an HTTP header"),
        ('{"url": "https://shop.example/", "headers": {"CONTENT-length": "5"}}', "comes from the body"),
        ('{"url": "https://shop.example/", "headers": {"Connection": "x"}}', "is the client's own"),
        ('{"url": "https://shop.example/", "headers": {"Host": "a", "hosT": "b"}}', "'Host' is there twice"),
        ('{"url": "https://shop.example/", "extra": {"a": ' + "[" * 100_000 + "}", "nested too deeply"),
        (
            '{"url": "https://shop.example/", "extra": {"a": ' + "[" * 100 + "]" * 100 + "}}",
            "nested too deeply",
        ),
        (b"https://shop.example/\xff", "not UTF-8"),
        ("https://shop.example/\ud800", "not UTF-8"),
        (b" " + b"x" * (MAX_TASK_BYTES + 1), "over the limit"),
    ],
    ids=lambda value: str(value)[:30],
)
def test_a_bad_task_is_refused_with_the_reason_in_one_line(line: str | bytes, reason: str) -> None:
    with pytest.raises(TaskError) as caught:
        request_from_task(line)
    assert reason in str(caught.value)
    assert "\n" not in str(caught.value)


@given(st.binary() | st.binary().map(lambda data: b"{" + data) | st.text())
def test_a_task_of_any_bytes_is_a_request_or_a_task_error(line: str | bytes) -> None:
    try:
        request = request_from_task(line)
    except TaskError:
        return
    assert request.url.startswith(("http", "HTTP"))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)


@given(
    st.builds(
        Request,
        st.sampled_from([URL, "http://[::1]:8080/a?b#c"]),
        st.sampled_from(["GET", "POST"]),
        st.dictionaries(
            st.sampled_from(["Accept", "X-A"]), st.text(st.characters(codec="ascii", categories=["L"]))
        ),
        st.none() | st.binary(),
        st.text(),
        st.integers(-1000, 1000),
        st.integers(0, 99),
        st.integers(0, 99),
        st.dictionaries(st.text(), JSON, max_size=3),
        st.none() | st.text(),
    )
)
def test_a_request_survives_being_written_as_a_task(request: Request) -> None:
    assert request_from_task(msgspec.json.encode(request)) == request


def test_a_request_refuses_a_priority_out_of_range() -> None:
    for priority in (-1000, 1000):
        assert Request(URL, priority=priority).priority == priority
    for priority in (-1001, 1001):
        with pytest.raises(ValueError, match="outside"):
            Request(URL, priority=priority)


def test_the_fingerprint_sees_method_body_and_key() -> None:
    requests = [
        Request(URL),
        Request(URL, method="POST"),
        Request(URL, method="POST", body=b"a"),
        Request(URL, key="1"),
        Request(URL + "a"),
    ]
    assert len({request.fingerprint for request in requests}) == len(requests)


def test_the_fingerprint_does_not_see_how_a_request_is_handled() -> None:
    handled = Request(
        URL, label="author", priority=5, depth=3, retry_count=2, extra={"a": 1}, headers={"A": "b"}
    )
    assert handled.fingerprint == Request(URL + "#top").fingerprint


def test_follow_gives_requests_with_its_label_priority_and_extra() -> None:
    follow = Follow((URL, URL + "2"), "author", 5, {"a": 1})
    assert list(follow) == [
        Request(URL, label="author", priority=5, extra={"a": 1}),
        Request(URL + "2", label="author", priority=5, extra={"a": 1}),
    ]
    assert len(follow) == 2
    assert follow.request(URL, depth=4) == Request(URL, label="author", priority=5, extra={"a": 1}, depth=4)


def test_a_post_of_json_or_form_fields_says_what_it_is() -> None:
    api = Request.post("https://h.example/api", json={"q": ["ü", 1]}, label="found", headers={"X-Key": "1"})
    assert (api.method, api.label, api.body) == ("POST", "found", '{"q":["ü",1]}'.encode())
    assert api.headers == {"Content-Type": "application/json", "X-Key": "1"}
    form = Request.post("https://h.example/", form={"a": "1 2", "b": "&"})
    assert form.body == b"a=1+2&b=%26"
    assert form.headers == {"Content-Type": "application/x-www-form-urlencoded"}


@pytest.mark.parametrize("bodies", [{}, {"json": 1, "form": {}}])
def test_a_post_has_one_body(bodies: dict[str, Any]) -> None:
    with pytest.raises(TypeError, match="either json= or form="):
        Request.post("https://h.example/", **bodies)


def test_what_is_nested_as_deeply_as_a_task_may_be_is_read_on_a_deep_stack_too() -> None:
    extra = '{"a": ' + "[" * 99 + "]" * 99 + "}"
    text = f'{{"url": "https://shop.example/", "extra": {extra}}}'

    def read(frames: int) -> Request:
        return read(frames - 1) if frames else request_from_task(text)

    assert read(500) == request_from_task(text)


def test_a_link_is_not_nested_more_deeply_than_a_task() -> None:
    inner: list[Any] = []
    for _ in range(200):
        inner = [inner]
    with pytest.raises(TaskError, match="more than 100 levels"):
        storable(Request("https://shop.example/", extra={"a": inner}))
    with pytest.raises(TaskError, match="nested too deeply"):
        request_from_fields({"url": "https://shop.example/", "extra": {"a": inner}})
