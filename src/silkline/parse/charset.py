"""Which charset a body is in, and why.

HTML: byte-order mark, HTTP, <meta>, XML declaration, then detection (HTML Standard, "encoding sniffing
algorithm"; the decoders are the Encoding Standard's). XML: byte-order mark, HTTP, declaration, else UTF-8
(RFC 7303, section 3; XML 1.0, appendix F). JSON: UTF-8, and what RFC 4627, section 3, tells from the first
bytes. Other text: byte-order mark, HTTP, then detection. A label that does not exist counts as none.
"""

from __future__ import annotations

import codecs
import json
import re
from functools import lru_cache
from typing import Literal, NamedTuple

import turbohtml
import turbohtml.detect  # registers the Encoding Standard's decoders as whatwg-*
from turbohtml import Document

Source = Literal["bom", "http", "meta", "xml", "content", "default", "binary"]
"""bom, http, meta, xml: declared there. content: detected. default: nothing tells (all of it is ASCII).
binary: no text at all."""

_MARKS = ((b"\xef\xbb\xbf", "UTF-8"), (b"\xff\xfe", "UTF-16LE"), (b"\xfe\xff", "UTF-16BE"))
_XML_UTF_16 = ((b"<\0?\0x\0", "UTF-16LE"), (b"\0<\0?\0x", "UTF-16BE"))
"""How an XML declaration begins in UTF-16 without a mark."""

_DECLARED_IN = 1_024
"""Bytes that are searched for an XML declaration."""
_DETECTED_IN = 65_536
"""Bytes, from the first that is not ASCII on, that detection looks at: it takes 80 ms a megabyte."""
_LONGEST_LABEL = 100
"""With white space around it; what is longer is not worth remembering."""

_xml_encoding = re.compile(rb"<\?xml\s[^>]*?\bencoding\s*=\s*(?:\"([^\">]+)\"|'([^'>]+)')").match
_meta_charset = re.compile(r"""charset\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s;]+))""", re.I).search
_not_ascii = re.compile(rb"[\x80-\xff]").search
_METAS = "meta[charset], meta[http-equiv='content-type' i][content]"


class Charset(NamedTuple):
    """name: as the Encoding Standard writes it ("UTF-8", "windows-1251"); None for what is no text."""

    name: str | None
    source: Source


def encoding_named(label: str) -> str | None:
    """The encoding that a label means (any case, white space around it); None if it means none."""
    return _encoding_named(label) if len(label) <= _LONGEST_LABEL else None


@lru_cache(maxsize=512)
def _encoding_named(label: str) -> str | None:
    try:
        return turbohtml.parse(b"", encoding=label).encoding
    except (LookupError, ValueError):
        return None


def decode(body: bytes, encoding: str) -> str:
    """Decode as the Encoding Standard says, without the byte-order mark; UTF-8 if there is no such label."""
    try:
        codec = encoding if encoding.startswith("UTF-32") else f"whatwg-{encoding}"
        text = codecs.decode(body, codec, "replace")
    except (LookupError, ValueError):
        text = body.decode("utf-8", "replace")
    return text.removeprefix("\ufeff")


def parse_html(body: bytes, declared: str | None) -> Document:
    """The document, its `encoding` chosen as for HTML. declared: the label of the Content-Type header."""
    if declared and encoding_named(declared):
        return turbohtml.parse(body, encoding=declared, positions=False)
    for start, encoding in _XML_UTF_16:
        if body.startswith(start):
            return turbohtml.parse(body, encoding=encoding, positions=False)
    document = _detecting(body)
    if body.startswith(b"<?xml") and not _declared_by_meta(document):
        encoding_found = _declared_by_xml(body)
        if encoding_found and encoding_found != document.encoding:
            return turbohtml.parse(body, encoding=encoding_found, positions=False)
    return document


def _detecting(body: bytes) -> Document:
    """Parse what no header speaks of. Every document is parsed once, but large ones that declare nothing."""
    if len(body) <= _DETECTED_IN or body.isascii():
        return turbohtml.parse(body, detect_encoding=True, positions=False)
    document = turbohtml.parse(body, positions=False)
    if document.encoding == "windows-1252" and not _declared_by_meta(document):
        detected = _detected(body)
        if detected != document.encoding:
            return turbohtml.parse(body, encoding=detected, positions=False)
    return document


def _detected(body: bytes) -> str | None:
    first = _not_ascii(body)
    start = first.start() if first else 0
    sample = body[start : start + _DETECTED_IN]
    if len(body) > start + _DETECTED_IN:
        # Half a character at the end would speak against the right charset; these are never part of one.
        sample = sample[: max(sample.rfind(b"<"), sample.rfind(b"\n"), sample.rfind(b" ")) + 1] or sample
    return turbohtml.detect.detect(sample).encoding


def html_charset(body: bytes, declared: str | None, document: Document) -> Charset:
    """What `parse_html` decided for this document, and why."""
    return Charset(document.encoding, _html_source(body, declared, document))


def _html_source(body: bytes, declared: str | None, document: Document) -> Source:
    if _marked(body):
        return "bom"
    if declared and encoding_named(declared):
        return "http"
    if any(body.startswith(start) for start, _ in _XML_UTF_16):
        return "xml"
    if _declared_by_meta(document):
        return "meta"
    if _declared_by_xml(body):
        return "xml"
    return "default" if body.isascii() and b"\x1b" not in body else "content"


def _declared_by_meta(document: Document) -> bool:
    for meta in document.select(_METAS):
        label = meta.attr("charset")
        if label is None and (match := _meta_charset(meta.attr("content") or "")):
            label = match[1] or match[2] or match[3]
        if label and encoding_named(label):
            return True
    return False


def _declared_by_xml(body: bytes) -> str | None:
    match = _xml_encoding(body[:_DECLARED_IN])
    encoding = encoding_named((match[1] or match[2]).decode("latin-1")) if match else None
    # Whoever could read the declaration as ASCII is not reading UTF-16.
    return "UTF-8" if encoding in ("UTF-16LE", "UTF-16BE") else encoding


def _marked(body: bytes) -> str | None:
    for mark, encoding in _MARKS:
        if body.startswith(mark):
            return encoding
    return None


def xml_charset(body: bytes, declared: str | None) -> Charset:
    """For XML; white space before the declaration is forgiven, as feeds have it."""
    if marked := _marked(body):
        return Charset(marked, "bom")
    if declared and (encoding := encoding_named(declared)):
        return Charset(encoding, "http")
    for start, encoding in _XML_UTF_16:
        if body.startswith(start):
            return Charset(encoding, "xml")
    if found := _declared_by_xml(body[:_DECLARED_IN].lstrip()):
        return Charset(found, "xml")
    return Charset("UTF-8", "default")


def json_charset(body: bytes) -> Charset:
    """For JSON, which has no charset parameter (RFC 8259, section 11).

    It may be UTF-32 here, which the Encoding Standard does not have.
    """
    name = json.detect_encoding(body[:4])
    if name.startswith("utf-32"):
        order = "BE" if body.startswith(b"\0") else "LE"
        return Charset(f"UTF-32{order}", "bom" if name == "utf-32" else "content")
    if marked := _marked(body):
        return Charset(marked, "bom")
    if name.startswith("utf-16"):
        return Charset("UTF-16BE" if name.endswith("be") else "UTF-16LE", "content")
    return Charset("UTF-8", "default")


def text_charset(body: bytes, declared: str | None, *, binary: bool = False) -> Charset:
    """For text that is no document. binary: whether it looks like no text at all."""
    if marked := _marked(body):
        return Charset(marked, "bom")
    if declared and (encoding := encoding_named(declared)):
        return Charset(encoding, "http")
    if binary:
        return Charset(None, "binary")
    try:
        body.decode()
    except UnicodeDecodeError:
        return Charset(_detected(body) or "UTF-8", "content")
    return Charset("UTF-8", "default" if body.isascii() else "content")
