"""Exchanges as text, as `--debug-http` prints them."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import suppress
from http import HTTPStatus

from silkline.fetch.wire.exchange import Exchange, Watcher
from silkline.fetch.wire.redact import redacted_fields, redacted_url
from silkline.response import Response, Timings

_CONTROLS = {code: f"\\x{code:02x}" for code in (*range(9), *range(10, 32), *range(127, 160))}
"""What could move a terminal's cursor, or end a line."""


def printer(write: Callable[[str], object], *, secrets: bool = False) -> Watcher:
    """A watcher that gives each exchange to `write` in one piece, numbered.

    secrets: whether credentials are shown.
    """
    count = 0

    def watch(exchange: Exchange) -> None:
        nonlocal count
        count += 1
        lines = described(exchange, secrets=secrets)
        write("".join(f"{line}\n" for line in [f"--- exchange {count}", *lines, ""]))

    return watch


def to_stderr(text: str) -> None:
    """Nobody may be there to read it."""
    with suppress(OSError, ValueError, AttributeError):
        sys.stderr.write(text)
        sys.stderr.flush()


def described(exchange: Exchange, *, secrets: bool = False) -> list[str]:
    """Lines: "> " for what was sent, "< " for what was received, "* " for what is known of it."""
    request, response = exchange.request, exchange.response
    fields = (lambda pairs: pairs) if secrets else redacted_fields
    url = exchange.url if secrets else redacted_url(exchange.url)
    lines = [f"> {request.method} {url}"]
    lines += [f"> {name}: {value}" for name, value in fields(exchange.sent)]
    if request.body:
        lines.append(f"* {len(request.body):,} bytes of body sent")
    if response is None:
        reason = str(exchange.error or "cancelled")
        lines.append(f"* failed after {_ms(exchange.seconds)}: {reason if secrets else redacted_url(reason)}")
    else:
        lines.append(f"< HTTP/{response.http_version} {response.status} {phrase(response.status)}".rstrip())
        lines += [f"< {name}: {value}" for name, value in fields(exchange.received)]
        lines.append(f"* body: {size_line(response)}")
        lines.append(f"* {timing_line(response.timings)}" + (f" · {response.peer}" if response.peer else ""))
    return [line.translate(_CONTROLS) for line in lines]


def phrase(status: int) -> str:
    """The usual words for a status; "" where there are none."""
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return ""


def size_line(response: Response) -> str:
    """How much body came."""
    if response.saved_to is not None:
        return f"{response.wire_bytes:,} bytes on the wire, saved to {response.saved_to}"
    if response.wire_bytes in (0, len(response.body)):
        return f"{len(response.body):,} bytes"
    return f"{len(response.body):,} bytes, {response.wire_bytes:,} on the wire"


def timing_line(timings: Timings) -> str:
    """The phases of a fetch; those that there were not are left out."""
    phases = [("dns", timings.dns), ("connect", timings.connect), ("tls", timings.tls)]
    spent = sum(seconds for _, seconds in phases)
    phases.append(("wait", max(0.0, timings.first_byte - spent)))
    phases.append(("body", max(0.0, timings.total - timings.first_byte)))
    parts = [f"{name} {_ms(seconds)}" for name, seconds in phases if seconds]
    return f"{_ms(timings.total)}" + (f" ({', '.join(parts)})" if parts else "")


def _ms(seconds: float) -> str:
    return f"{seconds * 1_000:.1f} ms" if seconds < 1 else f"{seconds:.2f} s"
