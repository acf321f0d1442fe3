"""What a body is: its media type, its charset, whether it is worth parsing as HTML or XML."""

from __future__ import annotations

import codecs
import re
from functools import lru_cache
from typing import Literal, NamedTuple

import turbohtml.detect  # noqa: F401  registers the Encoding Standard's decoders as whatwg-*

Kind = Literal["html", "xml", "other"]

_HTML = frozenset({"text/html", "application/xhtml+xml"})
_XML = frozenset({"text/xml", "application/xml"})
_UNKNOWN = frozenset({"", "unknown/unknown", "application/unknown", "*/*"})
_VAGUE = frozenset({"text/plain", "application/octet-stream", "binary/octet-stream"})

_SNIFFED = 1_445
"""Bytes that are looked at (MIME Sniffing Standard, resource header)."""

_TOKEN = r"[A-Za-z0-9!#$%&'*+.^_`|~-]+"
_essence = re.compile(rf"\s*({_TOKEN}/{_TOKEN})\s*(?:;|$)").match
_charset = re.compile(r""";\s*charset\s*=\s*(?:"([^"]*)|([^\s;"]+))""", re.I).search
_binary = re.compile(rb"[\x00-\x08\x0b\x0e-\x1a\x1c-\x1f]").search
_html_start = re.compile(
    rb"(?:\xef\xbb\xbf)?[\t\n\f\r ]*<(?:!--|(?:!doctype\s+html|html|head|body|title|meta|link|script|style"
    rb"|iframe|h1|div|main|section|article|font|table|ul|a|b|br|p)[\s>])",
    re.I,
).match
_xml_start = re.compile(rb"(?:\xef\xbb\xbf)?[\t\n\f\r ]*<\?xml").match
_xml_encoding = re.compile(rb"<\?xml[^>]*?\sencoding\s*=\s*[\"']([A-Za-z0-9._-]+)").match
_BYTE_ORDER_MARKS = ((b"\xef\xbb\xbf", "utf-8"), (b"\xff\xfe", "utf-16le"), (b"\xfe\xff", "utf-16be"))


class MediaType(NamedTuple):
    """A Content-Type: essence in lower case ("text/html"), "" for none; charset label, None for none."""

    essence: str
    charset: str | None


@lru_cache(maxsize=256)
def media_type(header: str | None) -> MediaType:
    """Read a Content-Type header."""
    essence = _essence(header or "")
    charset = _charset(header or "")
    label = (charset[1] or charset[2] or "").strip() if charset else None
    return MediaType(essence[1].lower() if essence else "", label or None)


def kind_of(essence: str, body: bytes) -> Kind:
    """How to parse a body. The Content-Type is believed; where it says nothing, the body is sniffed."""
    if essence in _HTML:
        return "html"
    if essence in _XML or essence.endswith("+xml"):
        return "xml"
    if essence in _UNKNOWN or essence in _VAGUE:
        start = body[:_SNIFFED]
        if _xml_start(start):
            return "xml"
        if _html_start(start) or (essence in _UNKNOWN and not _binary(start)):
            return "html"
    return "other"


def decode(body: bytes, label: str) -> str:
    """Decode as the Encoding Standard says, without the byte-order mark; UTF-8 if there is no such label."""
    try:
        text = codecs.decode(body, f"whatwg-{label}")
    except (LookupError, ValueError):
        text = body.decode("utf-8", "replace")
    return text.removeprefix("\ufeff")


def text_charset(body: bytes, declared: str | None) -> str:
    """The charset of what is no HTML: byte-order mark, HTTP, XML declaration, else UTF-8."""
    for mark, label in _BYTE_ORDER_MARKS:
        if body.startswith(mark):
            return label
    match = None if declared else _xml_encoding(body[:_SNIFFED])
    return declared or (match[1].decode("ascii") if match else "utf-8")
