"""Header fields that are the client's own: whoever gives one could cut the next request in two.

A length that is not the body's, or a connection that ends otherwise than the client believes, makes the
server take a part of one request for another: that of an innocent page on the same connection (RFC 9112,
section 11.2).
"""

from __future__ import annotations

from collections.abc import Mapping

_BODY = "it comes from the body"
_CONNECTION = "the connection is the client's own"

FRAMING = {
    "content-length": _BODY,
    "transfer-encoding": _BODY,
    "trailer": _BODY,
    "expect": "the body is sent at once",
    "connection": _CONNECTION,
    "http2-settings": _CONNECTION,
    "keep-alive": _CONNECTION,
    "proxy-connection": _CONNECTION,
    "te": _CONNECTION,
    "upgrade": _CONNECTION,
}
"""What frames a message (RFC 9112, section 6; RFC 9110, 6.4, 10.1.1) or steers its connection (RFC 9110,
7.6.1), each with the reason why a request does not say it."""


def fault_of(headers: Mapping[str, str]) -> str:
    """Why a request cannot have these fields, "" if it can."""
    has_host = False
    for name in headers:
        lower = name.lower()
        if lower in FRAMING:
            return f"header {name!r} must not be given: {FRAMING[lower]}"
        if lower == "host":
            if has_host:
                return "header 'Host' is there twice"
            has_host = True
    return ""
