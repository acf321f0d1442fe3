"""Pages for tests, made from text."""

from __future__ import annotations

from typing import Any

from silkline.parse.page import Page
from silkline.request import Request
from silkline.response import Response

URL = "https://shop.example/list/index.html?page=1"


def page_of(
    body: str | bytes,
    content_type: str | None = "text/html; charset=utf-8",
    url: str = URL,
    **request: Any,
) -> Page:
    data = body if isinstance(body, bytes) else body.encode()
    headers = () if content_type is None else ((b"Content-Type", content_type.encode("latin-1")),)
    return Page(Response(url, 200, headers, data, Request(url, **request)))
