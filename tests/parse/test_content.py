"""Media types, and which bodies are documents."""

from __future__ import annotations

import time

import pytest

from silkline.parse.charset import decode, text_charset, xml_charset
from silkline.parse.content import MediaType, kind_of, media_type


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        (None, MediaType("", None)),
        ("", MediaType("", None)),
        ("text/html", MediaType("text/html", None)),
        (" Text/HTML ; charset=UTF-8", MediaType("text/html", "UTF-8")),
        ('text/html;charset="windows-1251"; a=b', MediaType("text/html", "windows-1251")),
        ("text/html; a=b;CHARSET=gbk", MediaType("text/html", "gbk")),
        ('text/html; charset=""', MediaType("text/html", None)),
        ("text/html; charset=", MediaType("text/html", None)),
        ("html", MediaType("", None)),
        ("text/html, text/html", MediaType("", None)),
        ("application/ld+json", MediaType("application/ld+json", None)),
    ],
)
def test_a_content_type_has_an_essence_and_a_charset(header: str | None, expected: MediaType) -> None:
    assert media_type(header) == expected


@pytest.mark.parametrize(
    "piece", ['"', '\\"', ";", " ", "; ", ';a="', ";charset=", "a", "a/", "=", ";charset =", "\t;"]
)
def test_a_content_type_without_end_is_read_in_no_time(piece: str) -> None:
    started = time.perf_counter()
    for start in ("", "text/html", "text/html;"):
        media_type(start + piece * (65_536 // len(piece)))
    assert time.perf_counter() - started < 5


@pytest.mark.parametrize(
    ("essence", "body", "kind"),
    [
        ("text/html", b"\0\1", "html"),
        ("application/xhtml+xml", b"", "html"),
        ("text/xml", b"<html>", "xml"),
        ("application/rss+xml", b"", "xml"),
        ("image/svg+xml", b"", "xml"),
        ("application/json", b"<html>", "other"),
        ("image/png", b"<html>", "other"),
        ("application/pdf", b"%PDF-1.7", "other"),
        ("", b"<p>x", "html"),
        ("", b"just words", "html"),
        ("", b"", "html"),
        ("", b"\x89PNG\r\n\x1a\n", "other"),
        ("", b"<?xml version='1.0'?><rss/>", "xml"),
        ("text/plain", b"just words", "other"),
        ("text/plain", b" \n<!DOCTYPE html><p>", "html"),
        ("application/octet-stream", b"\xef\xbb\xbf<HTML>", "html"),
        ("application/octet-stream", b"\0\1\2", "other"),
    ],
)
def test_the_content_type_is_believed_where_it_says_something(essence: str, body: bytes, kind: str) -> None:
    assert kind_of(essence, body) == kind


@pytest.mark.parametrize(
    ("body", "declared", "text"),
    [
        (b"\xe9", "iso-8859-1", "\xe9"),
        (b"\x80", "iso-8859-1", "\u20ac"),
        (b"\xef\xbb\xbf\xc3\xa9", "iso-8859-1", "\xe9"),
        (b"\xff\xfea\0", None, "a"),
        (b"\xfe\xff\0a", "utf-8", "a"),
        (
            b"<?xml version='1.0' encoding='windows-1251'?>\xcf",
            None,
            "<?xml version='1.0' encoding='windows-1251'?>\u041f",
        ),
        (b"\xc3\xa9", None, "\xe9"),
        (b"\xc3\xa9", "no-such-charset", "\xe9"),
        (b"\xc3\xa9", "nul\0", "\xe9"),
    ],
)
def test_text_is_decoded_by_mark_then_header_then_declaration(
    body: bytes, declared: str | None, text: str
) -> None:
    charset = xml_charset if body.startswith(b"<?xml") else text_charset
    assert decode(body, charset(body, declared).name or "") == text
