"""What a file is by its first bytes (MIME Sniffing Standard, sections 6.1 to 6.4, and a few more)."""

from __future__ import annotations

import mimetypes

HEAD = 1_445
"""Bytes that are looked at."""

STARTS: tuple[tuple[bytes, str], ...] = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
    (b"BM", "image/bmp"),
    (b"\x00\x00\x01\x00", "image/x-icon"),
    (b"II*\x00", "image/tiff"),
    (b"MM\x00*", "image/tiff"),
    (b"%PDF-", "application/pdf"),
    (b"PK\x03\x04", "application/zip"),
    (b"\x1f\x8b\x08", "application/gzip"),
    (b"7z\xbc\xaf\x27\x1c", "application/x-7z-compressed"),
    (b"Rar!\x1a\x07", "application/x-rar-compressed"),
    (b"OggS\x00", "application/ogg"),
    (b"fLaC", "audio/flac"),
    (b"ID3", "audio/mpeg"),
    (b"MThd\x00\x00\x00\x06", "audio/midi"),
    (b"\x1aE\xdf\xa3", "video/webm"),
    (b"wOFF", "font/woff"),
    (b"wOF2", "font/woff2"),
    (b"OTTO", "font/otf"),
    (b"\x00\x01\x00\x00\x00", "font/ttf"),
)
RIFF = {b"WEBP": "image/webp", b"WAVE": "audio/wave", b"AVI ": "video/avi"}
BRANDS = {b"avif": "image/avif", b"heic": "image/heic", b"M4A ": "audio/mp4", b"qt  ": "video/quicktime"}
CONTAINERS = {
    "application/zip": (
        "application/vnd.",
        "application/epub+zip",
        "application/java-archive",
        "application/x-",
    ),
    "application/ogg": ("audio/ogg", "video/ogg", "audio/opus"),
    "video/webm": ("audio/webm", "video/x-matroska"),
    "application/gzip": ("application/x-gzip", "application/x-tar"),
}
"""Types that a more exact one in the Content-Type may stand for."""

ENDINGS = {
    "image/jpeg": ".jpg",
    "image/webp": ".webp",
    "image/avif": ".avif",
    "image/heic": ".heic",
    "image/x-icon": ".ico",
    "audio/wave": ".wav",
    "video/avi": ".avi",
    "video/webm": ".webm",
    "font/woff": ".woff",
    "font/woff2": ".woff2",
    "application/ogg": ".ogg",
    "application/gzip": ".gz",
}


def file_type(body: bytes, said: str) -> str:
    """The media type: what the first bytes show, unless `said` (a Content-Type's essence) is a more exact
    name of that; and what is said where they show nothing."""
    shown = _shown(body[:HEAD])
    if not shown or said.startswith(CONTAINERS.get(shown, (shown,))):
        return said or shown or "application/octet-stream"
    return shown


def ending_of(kind: str) -> str:
    """The usual ending of files of that type; "" where there is none."""
    return ENDINGS.get(kind) or mimetypes.guess_extension(kind, strict=True) or ""


def _shown(head: bytes) -> str:
    for start, kind in STARTS:
        if head.startswith(start):
            return kind
    if head[:4] == b"RIFF":
        return RIFF.get(head[8:12], "")
    if head[4:8] == b"ftyp":
        return BRANDS.get(head[8:12], "video/mp4")
    return ""
