"""Where the answers of the user's own middleware and fetchers come in: no further if they are no Response."""

from __future__ import annotations

from typing import Any

from silkline.errors import PromiseError
from silkline.protocols import CallNext, Middleware
from silkline.request import Request
from silkline.response import Response


def checked_middleware(middleware: Middleware) -> Middleware:
    """Raises PromiseError for what it returns if that is no sound Response."""
    what = f"the middleware {_name(middleware)}"

    async def checked(request: Request, call_next: CallNext) -> Response:
        return sound(await middleware(request, call_next), what)

    return checked


def checked_fetch(fetcher: Any) -> CallNext:
    """The same for the `fetch` of a fetcher."""
    what, fetch = f"the fetcher {type(fetcher).__name__}", fetcher.fetch

    async def checked(request: Request) -> Response:
        return sound(await fetch(request), what)

    return checked


def sound(answer: Any, what: str) -> Response:
    """The answer that `what` gave, if it is what it should be. Raises PromiseError."""
    if not isinstance(answer, Response):
        raise PromiseError(f"{what} gave {_article(type(answer).__name__)}, not a Response")
    if type(answer.status) is not int:
        raise PromiseError(_wrong(what, "status", answer.status, "an int"))
    if type(answer.body) is not bytes:
        raise PromiseError(_wrong(what, "body", answer.body, "bytes"))
    if type(answer.url) is not str or not answer.url.startswith(("http://", "https://")):
        raise PromiseError(f"{what} gave a Response whose url is no absolute http(s) URL")
    if not isinstance(answer.headers, (tuple, list)) or not all(map(_is_field, answer.headers)):
        raise PromiseError(f"{what} gave a Response whose headers are no tuple of pairs of bytes")
    return answer


def _is_field(pair: Any) -> bool:
    return type(pair) is tuple and len(pair) == 2 and type(pair[0]) is type(pair[1]) is bytes


def _wrong(what: str, field: str, value: Any, wanted: str) -> str:
    return f"{what} gave a Response whose {field} is {_article(type(value).__name__)}, not {wanted}"


def _article(name: str) -> str:
    if name == "NoneType":
        return "None"
    return f"{'an' if name[0] in 'aeiou' else 'a'} {name}"


def _name(middleware: Middleware) -> str:
    return getattr(middleware, "__name__", type(middleware).__name__)
