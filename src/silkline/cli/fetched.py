"""One fetch as text and as JSON."""

from __future__ import annotations

from typing import Any

import msgspec

from silkline.engine.once import Fetched
from silkline.fetch.wire.har import entry_of
from silkline.fetch.wire.redact import redacted_url
from silkline.fetch.wire.show import described, phrase, size_line, timing_line
from silkline.parse.page import Page
from silkline.response import Response

PREVIEW_LINES = 12
PREVIEW_WIDTH = 160

_SOURCES = {
    "bom": "its byte-order mark",
    "http": "the Content-Type header",
    "meta": "a <meta>",
    "xml": "its XML declaration",
    "content": "its bytes: nothing declares one",
    "default": "the standard's default: nothing tells",
    "binary": "its bytes: they are no text",
}
_CONTROLS = dict.fromkeys((*range(9), *range(10, 32), *range(127, 160)), "·")


def as_text(fetched: Fetched, *, secrets: bool = False) -> str:
    """Everything, for people to read."""
    lines: list[str] = []
    for exchange in fetched.exchanges:
        lines += [*described(exchange, secrets=secrets), ""]
    response = fetched.response
    if response is None:
        reason = f"{getattr(fetched.error, 'cause', '')}: {fetched.error}"
        lines.append(_row("failed", reason if secrets else redacted_url(reason)))
    else:
        lines += _answer(response, secrets=secrets)
    if fetched.robots is not None:
        delay = fetched.robots.crawl_delay
        asked = "" if delay is None else f"; asks for {delay:g} s between two requests"
        lines.append(_row("robots.txt", f"{fetched.robots}{asked}"))
    elif fetched.robots_error is not None:
        lines.append(_row("robots.txt", redacted_url(f"cannot be had: {fetched.robots_error}")))
    if response is not None and response.body:
        lines += ["", *_preview(Page(response))]
    return "\n".join(lines)


def as_json_object(fetched: Fetched, *, secrets: bool = False) -> str:
    """Everything, for programs: one line."""
    response, error = fetched.response, fetched.error
    shown = (lambda url: url) if secrets else redacted_url
    made: dict[str, Any] = {"error": None}
    if error is not None:
        made["error"] = {"cause": error.cause, "message": shown(str(error))}
    if response is not None:
        page = Page(response)
        made |= {
            "url": shown(response.url),
            "status": response.status,
            "history": [shown(url) for url in response.history],
            "http_version": response.http_version,
            "tls": response.tls,
            "peer": response.peer,
            "timings": msgspec.structs.asdict(response.timings),
            "body_bytes": len(response.body),
            "wire_bytes": response.wire_bytes,
            "saved_to": response.saved_to,
            "kind": page.kind,
            "charset": page.charset,
            "charset_source": page.charset_source,
            "title": page.title,
        }
    if fetched.robots is not None:
        made["robots"] = msgspec.structs.asdict(fetched.robots)
    elif fetched.robots_error is not None:
        made["robots"] = {"error": redacted_url(str(fetched.robots_error))}
    made["exchanges"] = [entry_of(exchange, secrets=secrets) for exchange in fetched.exchanges]
    return msgspec.json.encode(made).decode()


def _answer(response: Response, *, secrets: bool) -> list[str]:
    shown = (lambda url: url) if secrets else redacted_url
    lines = [_row("redirected", shown(url)) for url in response.history]
    lines.append(_row("answer", f"{response.status} {phrase(response.status)} from {shown(response.url)}"))
    spoken = (f"HTTP/{response.http_version}", response.tls, response.peer)
    lines.append(_row("protocol", ", ".join(filter(None, spoken))))
    lines.append(_row("time", timing_line(response.timings)))
    lines.append(_row("body", size_line(response)))
    if response.body:
        page = Page(response)
        kind = page.media_type.essence or "no Content-Type"
        lines.append(_row("kind", f"{page.kind} ({kind})"))
        lines.append(_row("charset", f"{page.charset or 'none'}, by {_SOURCES[page.charset_source]}"))
        if page.title:
            lines.append(_row("title", " ".join(page.title.split())))
    return lines


def _row(name: str, value: str) -> str:
    return f"{name:<11} {value.translate(_CONTROLS)}"


def _preview(page: Page) -> list[str]:
    if page.charset is None:
        return [f"{page.body[:64].hex(' ')}{' …' if len(page.body) > 64 else ''}"]
    lines = page.source[: PREVIEW_LINES * PREVIEW_WIDTH * 4].splitlines()
    shown = [line[:PREVIEW_WIDTH].translate(_CONTROLS) for line in lines[:PREVIEW_LINES]]
    return [*shown, "…"] if len(lines) > PREVIEW_LINES else shown
