"""What a body is: its media type, and whether it is worth parsing as HTML or XML.

Sniffing is kept minimal (MIME Sniffing Standard): a Content-Type that says something is believed. Only where
there is none, or one that servers send for everything (text/plain, application/octet-stream), do the first
bytes decide, and only between HTML, XML and neither: a mistake there costs links, never safety, since nothing
is ever executed. application/xhtml+xml is read as HTML: much of it is not well-formed.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Literal, NamedTuple

Kind = Literal["html", "xml", "other"]

_HTML = frozenset({"text/html", "application/xhtml+xml"})
_XML = frozenset({"text/xml", "application/xml"})
_UNKNOWN = frozenset({"", "unknown/unknown", "application/unknown", "*/*"})
_VAGUE = frozenset({"text/plain", "application/octet-stream", "binary/octet-stream"})

_SNIFFED = 1_445
"""Bytes that are looked at (MIME Sniffing Standard, resource header)."""

_TOKEN = r"[A-Za-z0-9!#$%&'*+.^_`|~-]+"
_essence = re.compile(rf"[\t\n\r ]*({_TOKEN}/{_TOKEN})[\t\n\r ]*(?:;|$)").match
_parameters = re.compile(r""";[\t\n\r ]*([^;=]*)(?:=(?:"((?:[^"\\]|\\.)*+)[^;]*|([^;]*)))?""", re.S).finditer
_binary = re.compile(rb"[\x00-\x08\x0b\x0e-\x1a\x1c-\x1f]").search
_html_start = re.compile(
    rb"(?:\xef\xbb\xbf)?[\t\n\f\r ]*<(?:!--|(?:!doctype\s+html|html|head|body|title|meta|link|script|style"
    rb"|iframe|h1|div|main|section|article|font|table|ul|a|b|br|p)[\s>])",
    re.I,
).match
_xml_start = re.compile(rb"(?:\xef\xbb\xbf)?[\t\n\f\r ]*<\?xml").match


class MediaType(NamedTuple):
    """A Content-Type: essence in lower case ("text/html"), "" for none; charset label, None for none."""

    essence: str
    charset: str | None


@lru_cache(maxsize=256)
def media_type(header: str | None) -> MediaType:
    """Read a Content-Type header (MIME Sniffing Standard, "parse a MIME type")."""
    essence = _essence(header or "")
    if not header or not essence:
        return MediaType("", None)
    label = ""
    for parameter in _parameters(header, essence.end(1)):
        name, quoted, bare = parameter.groups()
        if name.lower() == "charset" and (quoted is not None or bare):
            label = re.sub(r"\\(.)", r"\1", quoted) if quoted is not None else bare
            break
    return MediaType(essence[1].lower(), label.strip("\t\n\r ") or None)


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


def is_json(essence: str) -> bool:
    return essence.endswith(("/json", "+json"))


def looks_binary(body: bytes) -> bool:
    """Whether its first bytes hold what no text does (MIME Sniffing Standard, "binary data byte")."""
    return _binary(body[:_SNIFFED]) is not None
