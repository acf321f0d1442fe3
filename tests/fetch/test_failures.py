"""The table from aiohttp's exceptions to ours: nothing falls through, nothing is hidden."""

from __future__ import annotations

import inspect

import aiohttp

from silkline.errors import FetchError, ProtocolError, TooLargeError
from silkline.fetch import failures
from silkline.fetch.failures import failure

URL = "http://u:secret@h.test/path"


BASES = {aiohttp.ClientError, aiohttp.ClientConnectionError, aiohttp.ServerConnectionError}
NEVER_RAISED_HERE = {
    aiohttp.RedirectClientError,
    aiohttp.NonHttpUrlClientError,
    aiohttp.NonHttpUrlRedirectClientError,
    aiohttp.WSMessageTypeError,
}
"""Redirects and schemes are checked before aiohttp is asked, and no WebSocket is opened."""


def test_each_exception_of_aiohttp_that_can_happen_has_a_line_of_its_own() -> None:
    kinds = {kind for kind in vars(aiohttp).values() if inspect.isclass(kind)}
    rest = {
        kind
        for kind in kinds
        if issubclass(kind, aiohttp.ClientError)
        and next(line[0] for line in failures._TABLE if issubclass(kind, line[0])) is aiohttp.ClientError
    }
    assert {kind for kind in rest if not kind.__name__.startswith("Upload")} <= BASES | NEVER_RAISED_HERE


def test_no_line_of_the_table_is_hidden_by_an_earlier_one() -> None:
    kinds = [line[0] for line in failures._TABLE]
    hidden = [
        (kind, earlier)
        for position, kind in enumerate(kinds)
        for earlier in kinds[:position]
        if issubclass(kind, earlier)
    ]
    assert hidden == []


def test_an_unknown_exception_is_named_and_not_disguised() -> None:
    error = failure(ZeroDivisionError("division\nby zero"), URL)
    assert type(error) is FetchError
    assert str(error) == "unexpected ZeroDivisionError: http://h.test (division by zero)"


def test_messages_are_one_line_without_credentials() -> None:
    error = failure(aiohttp.ClientPayloadError("first\nsecond"), URL)
    assert isinstance(error, ProtocolError)
    assert "\n" not in str(error)
    assert "secret" not in str(error)


def test_a_header_limit_is_found_behind_the_exceptions_that_wrap_it() -> None:
    outer = aiohttp.ClientPayloadError("bad")
    outer.__cause__ = aiohttp.http_exceptions.LineTooLong("x")
    assert isinstance(failure(outer, URL), TooLargeError)
