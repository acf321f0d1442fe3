"""What to fetch, and the task line that other programs write."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import urlencode

import msgspec

from silkline.errors import BadUrlError, TaskError
from silkline.header import fault_of
from silkline.url import check, fingerprint_of

DEFAULT_LABEL = "default"
PRIORITY_LIMIT = 1_000
MAX_TASK_BYTES = 1_048_576
MAX_NESTING = 100
"""Levels of lists and objects in `extra`: what is read here must be read on a deeper stack, too."""


class Onward(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """Where redirects have led a request that waits there for its turn.

    url, method, headers, body: what is to be asked for next. via: the URLs that redirected there, first one
    first. since: Unix seconds. anew: how often it had to begin again at its first URL.
    """

    url: str
    via: tuple[str, ...]
    method: str = "GET"
    headers: dict[str, str] = {}
    body: bytes | None = None
    since: float = 0.0
    anew: int = 0


class Request(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """One thing to fetch. Frozen and JSON-serialisable; never pickled.

    url: absolute http(s) URL, requested as it was written.
    label: which handler gets the page.
    priority: -1000 to 1000, higher first.
    depth: links from the nearest seed, set by the engine.
    retry_count: failed visits so far, set by the frontier.
    spared: failed visits that have cost no retry, set by the frontier.
    extra: the user's own JSON-serialisable data, seen again as `page.request.extra`.
    key: the identity for dedup in place of method + canonical URL + body; give one to visit a URL again.
    body: bytes, base64 in JSON.
    save_to: stream the response's body to this file; never taken from a task of another program.
    proxy: URL of the proxy to go through (http, https, socks5, socks5h), "region:TAG" for one of the
        crawl's with that tag, "" for none at all, None where the crawl's settings decide.
    session: name of the cookies and identity to use; None for the crawl's usual one.
    redo: of a page that was done and is visited again for its dead items, these, as (index, output or "" for
        all of them): files get no others of its items again. Set by the frontier.
    onward: where its redirects have led so far; None before the first one. Set by the frontier.
    """

    url: str
    method: str = "GET"
    headers: dict[str, str] = {}
    body: bytes | None = None
    label: str = DEFAULT_LABEL
    priority: int = 0
    depth: int = 0
    retry_count: int = 0
    extra: dict[str, Any] = {}
    key: str | None = None
    save_to: str | None = None
    proxy: str | None = None
    session: str | None = None
    redo: tuple[tuple[int, str], ...] = ()
    onward: Onward | None = None
    spared: int = 0

    def __post_init__(self) -> None:
        if not -PRIORITY_LIMIT <= self.priority <= PRIORITY_LIMIT:
            raise ValueError(f"priority {self.priority} is outside -{PRIORITY_LIMIT}..{PRIORITY_LIMIT}")

    @classmethod
    def post(
        cls, url: str, *, json: Any = None, form: Mapping[str, str] | None = None, **fields: Any
    ) -> Request:
        """A POST of JSON, or of URL-encoded form fields. fields: all others of a Request, such as label.

        Raises TypeError for both bodies or none, and for what JSON cannot hold.
        """
        if (json is None) == (form is None):
            raise TypeError("Request.post takes either json= or form=")
        body = msgspec.json.encode(json) if form is None else urlencode(form).encode()
        kind = "application/json" if form is None else "application/x-www-form-urlencoded"
        headers = {"Content-Type": kind, **fields.pop("headers", {})}
        return cls(url, method="POST", headers=headers, body=body, **fields)

    @property
    def target(self) -> str:
        """The URL that is to be asked for next: its own, or where redirects have led."""
        return self.url if self.onward is None else self.onward.url

    @property
    def fingerprint(self) -> int:
        """The signed 64-bit dedup key (fits an SQLite INTEGER and a Redis intset)."""
        return fingerprint_of(self.url, self.method, self.body, self.key)


class Follow(msgspec.Struct, frozen=True):
    """Links to follow, resolved but not yet requests: iterate to get `Request`s, or just yield it.

    It stays a list of strings so that links known to be seen cost no object.
    """

    urls: tuple[str, ...]
    label: str = DEFAULT_LABEL
    priority: int = 0
    extra: dict[str, Any] = {}

    def __iter__(self) -> Iterator[Request]:
        return map(self.request, self.urls)

    def __len__(self) -> int:
        return len(self.urls)

    def request(self, url: str, depth: int = 0) -> Request:
        return Request(url, label=self.label, priority=self.priority, extra=self.extra, depth=depth)


_encoder = msgspec.json.Encoder()
_task_decoder = msgspec.json.Decoder(Request)
_is_token = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+").fullmatch
_is_field_value = re.compile(r"[^\0\r\n]*").fullmatch
_is_proxy = re.compile(r"(?:(?:https?|socks5h?)://[^\s/?#]+/?|region:[\w.-]+)?", re.I).fullmatch
_is_session = re.compile(r"\w[\w.@:-]{0,199}").fullmatch


def request_from_task(line: str | bytes) -> Request:
    """Read one task: a bare URL, or a JSON object with at least "url" (DESIGN: wire contract).

    Raises TaskError with a one-line reason; never anything else.
    """
    text = line.encode("utf-8", "surrogatepass") if isinstance(line, str) else line
    text = text.strip()
    if len(text) > MAX_TASK_BYTES:
        raise TaskError(f"task of {len(text)} bytes is over the limit of {MAX_TASK_BYTES}")
    try:
        if text.startswith(b"{"):
            return _checked(_task_decoder.decode(text))
        return Request(check(text.decode("utf-8")))
    except UnicodeDecodeError as error:
        raise TaskError(f"task is not UTF-8 text: {error.reason} at byte {error.start}") from error
    except RecursionError as error:
        raise TaskError("task is nested too deeply") from error
    except (ValueError, BadUrlError, msgspec.MsgspecError) as error:
        raise TaskError(str(error)) from error


def request_from_fields(fields: Mapping[str, Any]) -> Request:
    """Make a request of the fields of one, such as the columns of a database row, that come from outside.

    Raises TaskError with a one-line reason; never anything else.
    """
    try:
        return _checked(msgspec.convert(fields, Request, builtin_types=(bytes,)))
    except RecursionError as error:
        raise TaskError("task is nested too deeply") from error
    except (ValueError, BadUrlError, msgspec.MsgspecError) as error:
        raise TaskError(str(error)) from error


def _checked(request: Request) -> Request:
    """A request from outside, fit to be sent (RFC 9110: tokens and field values)."""
    if _is_nested(request.extra, MAX_NESTING):
        raise TaskError(f"extra is nested too deeply: {MAX_NESTING} levels are allowed")
    if not _is_token(request.method):
        raise TaskError(f"method {request.method[:40]!r} is not an HTTP method")
    if request.method.upper() == "CONNECT":
        raise TaskError("method CONNECT asks for a tunnel, which no page comes through")
    for name, value in request.headers.items():
        if not _is_token(name) or not _is_field_value(value):
            raise TaskError(f"header {name[:40]!r} is not an HTTP header")
    if fault := fault_of(request.headers):
        raise TaskError(fault)
    if request.save_to is not None:
        raise TaskError("save_to names a local file: a task from outside must not carry it")
    if request.redo:
        raise TaskError("redo is set by the frontier: a task from outside must not carry it")
    if request.onward is not None:
        raise TaskError("onward is set by the frontier: a task from outside must not carry it")
    if request.proxy is not None and not _is_proxy(request.proxy):
        raise TaskError("proxy is no URL such as http://host:3128, and no region such as region:de")
    if request.session is not None and not _is_session(request.session):
        raise TaskError(
            f"session {request.session[:40]!r} is no name of letters, digits, '.', '-', '_', ':' and '@'"
        )
    if min(request.depth, request.retry_count, request.spared) < 0:
        raise TaskError("depth, retry_count and spared must not be negative")
    return msgspec.structs.replace(request, url=check(request.url), method=request.method.upper())


def storable(request: Request) -> Request:
    """The request as it will come back from a store.

    Raises TaskError where it would not: a field of another type than declared, or an `extra` that is no JSON.
    """
    try:
        if _is_nested(request.extra, MAX_NESTING):
            raise ValueError(f"its extra has more than {MAX_NESTING} levels")
        return _task_decoder.decode(_encoder.encode(request))
    except (TypeError, ValueError, RecursionError, msgspec.MsgspecError) as error:
        raise TaskError(f"a request for {str(request.url)[:200]!r} cannot be kept: {error}") from error


def _is_nested(value: Any, levels: int) -> bool:
    """Whether lists and objects stand in each other in more levels than that."""
    if isinstance(value, dict):
        value = value.values()
    elif not isinstance(value, (list, tuple)):
        return False
    return levels == 0 or any(_is_nested(inner, levels - 1) for inner in value)
