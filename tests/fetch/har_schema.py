"""HAR 1.2, as its specification lists the fields: what must be there, and of which type."""

from __future__ import annotations

import datetime
from pathlib import Path

import msgspec
import pytest


class Pair(msgspec.Struct):
    name: str
    value: str


class PostData(msgspec.Struct):
    mimeType: str  # noqa: N815
    text: str


class SentRequest(msgspec.Struct):
    method: str
    url: str
    httpVersion: str  # noqa: N815
    cookies: list[Pair]
    headers: list[Pair]
    queryString: list[Pair]  # noqa: N815
    headersSize: int  # noqa: N815
    bodySize: int  # noqa: N815
    postData: PostData | msgspec.UnsetType = msgspec.UNSET  # noqa: N815


class Content(msgspec.Struct):
    size: int
    mimeType: str  # noqa: N815
    text: str | msgspec.UnsetType = msgspec.UNSET
    encoding: str | msgspec.UnsetType = msgspec.UNSET


class Received(msgspec.Struct):
    status: int
    statusText: str  # noqa: N815
    httpVersion: str  # noqa: N815
    cookies: list[Pair]
    headers: list[Pair]
    content: Content
    redirectURL: str  # noqa: N815
    headersSize: int  # noqa: N815
    bodySize: int  # noqa: N815


class Spent(msgspec.Struct):
    send: float
    wait: float
    receive: float
    blocked: float = -1
    dns: float = -1
    connect: float = -1
    ssl: float = -1


class Entry(msgspec.Struct):
    startedDateTime: datetime.datetime  # noqa: N815
    time: float
    request: SentRequest
    response: Received
    cache: dict[str, object]
    timings: Spent
    serverIPAddress: str | msgspec.UnsetType = msgspec.UNSET  # noqa: N815
    connection: str | msgspec.UnsetType = msgspec.UNSET


class Creator(msgspec.Struct):
    name: str
    version: str


class Log(msgspec.Struct):
    version: str
    creator: Creator
    entries: list[Entry]


class Har(msgspec.Struct):
    log: Log


def entries(path: Path) -> list[Entry]:
    """The entries of a file that is a valid HAR."""
    har = msgspec.json.decode(path.read_bytes(), type=Har)
    assert har.log.version == "1.2"
    for entry in har.log.entries:
        assert entry.startedDateTime.tzinfo is not None
        spent = entry.timings
        parts = (spent.blocked, spent.dns, spent.connect, spent.send, spent.wait, spent.receive)
        assert sum(part for part in parts if part > 0) == pytest.approx(entry.time)
        assert spent.ssl <= max(spent.connect, 0) or spent.ssl == -1
    return har.log.entries
