"""An origin and a clock for tests of the cache: both do what the test says."""

from __future__ import annotations

from collections.abc import Callable
from email.utils import formatdate, parsedate_to_datetime

from silkline.errors import ConnectError
from silkline.request import Request
from silkline.response import Response

Fields = list[tuple[str, str]]
Answer = Callable[[Request], Response]

START = parsedate_to_datetime("Wed, 01 Jun 2011 00:00:00 GMT").timestamp()


class Clock:
    def __init__(self, now: float = START) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now


class Origin:
    """The end of the middleware: counts what reaches it."""

    def __init__(self, answer: Answer) -> None:
        self.answer = answer
        self.requests: list[Request] = []

    async def __call__(self, request: Request) -> Response:
        self.requests.append(request)
        return self.answer(request)


def answer_of(request: Request, status: int, fields: Fields, body: bytes = b"body") -> Response:
    headers = tuple((name.encode("latin-1"), value.encode("latin-1")) for name, value in fields)
    return Response(request.url, status, headers, body, request, wire_bytes=len(body))


def refuse(request: Request) -> Response:
    raise ConnectError("refused")


def date_at(moment: float) -> str:
    return formatdate(moment, usegmt=True)


def field(request: Request, name: str) -> str | None:
    for key, value in request.headers.items():
        if key.lower() == name.lower():
            return value
    return None


def fields_of(response: Response, name: str) -> list[str]:
    wanted = name.lower().encode()
    return [value.decode("latin-1") for key, value in response.headers if key.lower() == wanted]
