"""Exchanges as a HAR 1.2 file, which the developer tools of browsers open.

The file is complete after every exchange: each one is a line of its own, and takes the place of the file's
end together with a new end. One that finds no space is cut off again. Several processes may write to one
file. Where one was killed in the middle of a write, the next one to write cuts its half line off.
"""

from __future__ import annotations

import base64
import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import msgspec

from silkline.errors import ConfigError
from silkline.fetch.wire.exchange import Exchange, Fields
from silkline.fetch.wire.redact import redacted_fields, redacted_url
from silkline.fetch.wire.show import phrase
from silkline.response import Response
from silkline.version import __version__

_CREATOR = msgspec.json.encode({"name": "silkline", "version": __version__})
_START = b'{"log":{"version":"1.2","creator":%s,"entries":[\n' % _CREATOR
_MARK = b'{"log":{"version":"1.2","creator":{"name":"silkline"'
_END = b"]}}\n"
_LOOK = 65_536
_encode = msgspec.json.encode


class HarFile:
    """A HAR file to watch exchanges with: `wire_hop([har.watch], ...)`.

    secrets: whether credentials, and what forms send, are recorded. tell: gets a line when an exchange cannot
    be written; once.
    """

    def __init__(self, path: str, tell: Callable[[str], object], *, secrets: bool = False) -> None:
        """Raises ConfigError where it cannot be written, or is another program's."""
        self._secrets = secrets
        self._tell = tell
        self._path = Path(path)
        self._failed = False
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            self._handle = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            with self._locked():
                size = os.fstat(self._handle).st_size
                ours = os.pread(self._handle, len(_MARK), 0) == _MARK[:size]
                if ours and size < len(_START):
                    _write_all(self._handle, _START + _END, 0)
        except OSError as error:
            raise ConfigError(f"{path}: cannot be written: {error.strerror}") from error
        if not ours:
            self.close()
            raise ConfigError(f"{path} is no HAR file of silkline's: give another name, or remove it")

    def watch(self, exchange: Exchange) -> None:
        """Add it. One that cannot be written is left out; others are tried again, there may be space then."""
        line = _encode(entry_of(exchange, secrets=self._secrets))
        try:
            with self._locked():
                end = self._end()
                comma = b"," if end > len(_START) else b""
                self._put(comma + line + b"\n" + _END, end)
        except OSError as error:
            if not self._failed:
                self._tell(f"{self._path} cannot be written: {error.strerror}; exchanges are lost")
            self._failed = True

    def close(self) -> None:
        os.close(self._handle)

    def _put(self, data: bytes, at: int) -> None:
        """All of it, or nothing: a disk that fills up takes a part, and says so only by its size.

        The file is cut to where it ended before, and not shorter: what is given back to the disk may be gone
        to somebody else before the end stands again. It is cut first, so that a kill in between leaves no
        more than half a line.
        """
        try:
            _write_all(self._handle, data, at)
        except OSError:
            if os.fstat(self._handle).st_size > at + len(_END):
                os.ftruncate(self._handle, at + len(_END))
            os.pwrite(self._handle, _END, at)
            raise

    def _end(self) -> int:
        """Where the last whole line ends; what a killed process left behind it is cut off."""
        size = os.fstat(self._handle).st_size
        end = size - len(_END)
        if os.pread(self._handle, len(_END), end) == _END:
            return end
        while size > len(_START):
            begin = max(len(_START), size - _LOOK)
            newline = os.pread(self._handle, size - begin, begin).rfind(b"\n")
            if newline >= 0:
                size = begin + newline + 1
                break
            size = begin
        os.ftruncate(self._handle, size)
        return size

    @contextmanager
    def _locked(self) -> Iterator[None]:
        fcntl.flock(self._handle, fcntl.LOCK_EX)
        try:
            yield
        finally:
            fcntl.flock(self._handle, fcntl.LOCK_UN)


def _write_all(handle: int, data: bytes, at: int) -> None:
    view = memoryview(data)
    while view:
        written = os.pwrite(handle, view, at)
        view, at = view[written:], at + written


def entry_of(exchange: Exchange, *, secrets: bool = False) -> dict[str, Any]:
    """One entry of HAR 1.2. Bodies are text where they are UTF-8, base64 where they are not."""
    response = exchange.response
    answer = _no_response(exchange, secrets) if response is None else _response(exchange, response, secrets)
    total = response.timings.total if response is not None else exchange.seconds
    entry: dict[str, Any] = {
        "startedDateTime": datetime.fromtimestamp(exchange.started, UTC).isoformat(timespec="milliseconds"),
        "time": total * 1_000,
        "request": _request(exchange, secrets),
        "response": answer,
        "cache": {},
        "timings": _timings(exchange),
    }
    if response is not None and response.peer:
        address, _, port = response.peer.rpartition(":")
        entry |= {"serverIPAddress": address.strip("[]"), "connection": port}
    return entry


def _request(exchange: Exchange, secrets: bool) -> dict[str, Any]:
    request = exchange.request
    fields = exchange.sent if secrets else redacted_fields(exchange.sent)
    url = exchange.url if secrets else redacted_url(exchange.url)
    made: dict[str, Any] = {
        "method": request.method,
        "url": url,
        "httpVersion": _version(exchange.response),
        "cookies": _cookies(_value(fields, "cookie").split(";")),
        "headers": _pairs(fields),
        "queryString": _pairs(parse_qsl(urlsplit(url).query, keep_blank_values=True)),
        "headersSize": -1,
        "bodySize": len(request.body or b""),
    }
    if request.body is not None:
        text = request.body.decode("utf-8", "replace") if secrets else ""
        made["postData"] = {"mimeType": _value(fields, "content-type"), "text": text}
        if not secrets:
            made["postData"]["comment"] = f"{len(request.body)} bytes, left out: they may hold credentials"
    return made


def _response(exchange: Exchange, response: Response, secrets: bool) -> dict[str, Any]:
    fields = exchange.received if secrets else redacted_fields(exchange.received)
    content: dict[str, Any] = {
        "size": len(response.body),
        "mimeType": _value(fields, "content-type") or "x-unknown",
    }
    if response.saved_to is not None:
        content["comment"] = f"saved to {response.saved_to}"
    elif response.body:
        content |= _text(response.body)
    return {
        "status": response.status,
        "statusText": phrase(response.status),
        "httpVersion": _version(response),
        "cookies": _cookies(v.partition(";")[0] for n, v in fields if n.lower() == "set-cookie"),
        "headers": _pairs(fields),
        "content": content,
        "redirectURL": _value(fields, "location"),
        "headersSize": -1,
        "bodySize": response.wire_bytes,
    }


def _no_response(exchange: Exchange, secrets: bool) -> dict[str, Any]:
    """As browsers write it where there was none."""
    reason = str(exchange.error or "cancelled")
    return {
        "status": 0,
        "statusText": "",
        "httpVersion": "unknown",
        "cookies": [],
        "headers": [],
        "content": {"size": 0, "mimeType": "x-unknown"},
        "redirectURL": "",
        "headersSize": -1,
        "bodySize": -1,
        "_error": reason if secrets else redacted_url(reason),
    }


def _timings(exchange: Exchange) -> dict[str, float]:
    """In milliseconds; -1 for a phase that there was not. HAR counts TLS as a part of connecting."""
    if exchange.response is None:
        return {"send": 0, "wait": exchange.seconds * 1_000, "receive": 0}
    spent = exchange.response.timings
    connect = spent.connect + spent.tls
    return {
        "blocked": -1,
        "dns": spent.dns * 1_000 if spent.dns else -1,
        "connect": connect * 1_000 if connect else -1,
        "ssl": spent.tls * 1_000 if spent.tls else -1,
        "send": 0,
        "wait": max(0.0, spent.first_byte - spent.dns - connect) * 1_000,
        "receive": max(0.0, spent.total - spent.first_byte) * 1_000,
    }


def _text(body: bytes) -> dict[str, str]:
    try:
        return {"text": body.decode()}
    except UnicodeDecodeError:
        return {"text": base64.b64encode(body).decode(), "encoding": "base64"}


def _version(response: Response | None) -> str:
    return "unknown" if response is None else f"HTTP/{response.http_version}"


def _value(fields: Fields, wanted: str) -> str:
    return next((value for name, value in fields if name.lower() == wanted), "")


def _pairs(pairs: Any) -> list[dict[str, str]]:
    return [{"name": name, "value": value} for name, value in pairs]


def _cookies(pairs: Any) -> list[dict[str, str]]:
    split = (pair.strip().partition("=") for pair in pairs if pair.strip())
    return [{"name": name, "value": value} for name, _, value in split]
