"""OpenGraph (ogp.me) and Twitter cards: what pages say of themselves in <meta>, for those who share them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
from turbohtml import Document

MAX_PROPERTIES = 1_000
"""Values of a page that are read."""

_PREFIXES = ("og:", "article:", "product:", "book:", "profile:", "music:", "video:", "twitter:")
_MEDIA = ("og:image", "og:video", "og:audio")
_URLS = frozenset({"og:url", "twitter:image", "twitter:image:src", "twitter:url", "twitter:player"})
_URLS |= {f"{kind}{part}" for kind in _MEDIA for part in ("", ":url", ":secure_url")}

Absolute = Callable[[str], str | None]


class Media(msgspec.Struct, frozen=True):
    """A picture, film or sound. url: absolute. width, height: pixels, as stated. type: a media type."""

    url: str
    secure_url: str | None = None
    type: str | None = None
    width: int | None = None
    height: int | None = None
    alt: str | None = None


class OpenGraph(msgspec.Struct, frozen=True):
    """properties: all values of each property in order, by its whole name in lower case ("og:title",
    "product:price:amount", "twitter:card"); URLs are absolute. images, videos, audios: with what is stated
    of each."""

    properties: dict[str, list[str]] = {}
    images: tuple[Media, ...] = ()
    videos: tuple[Media, ...] = ()
    audios: tuple[Media, ...] = ()

    def get(self, name: str) -> str | None:
        """The first value of a property that is not empty; `og:` may be left out. None for none."""
        values = self.properties.get(name) or self.properties.get(f"og:{name}") or ()
        return next((value for value in values if value), None)

    def get_all(self, name: str) -> list[str]:
        """All values of a property, such as `article:tag`; `og:` may be left out."""
        return self.properties.get(name) or self.properties.get(f"og:{name}") or []


def open_graph(document: Document, absolute: Absolute) -> OpenGraph:
    """absolute: makes a link absolute."""
    stated = _stated(document, absolute)
    properties: dict[str, list[str]] = {}
    for name, value in stated:
        properties.setdefault(name, []).append(value)
    images, videos, audios = (
        _media(stated, kind) if kind in properties or f"{kind}:url" in properties else () for kind in _MEDIA
    )
    return OpenGraph(properties, images, videos, audios)


def _stated(document: Document, absolute: Absolute) -> list[tuple[str, str]]:
    stated: list[tuple[str, str]] = []
    for meta in document.select("meta[content]"):
        name = (meta.attr("property") or meta.attr("name") or "").strip().lower()
        if name.startswith(_PREFIXES) and meta.closest("template") is None:
            value = (meta.attr("content") or "").strip()
            stated.append((name, absolute(value) or value if value and name in _URLS else value))
            if len(stated) == MAX_PROPERTIES:
                break
    return stated


def _media(stated: list[tuple[str, str]], kind: str) -> tuple[Media, ...]:
    """Each `og:image` begins another picture; `og:image:width` and the like are said of the last one."""
    found: list[dict[str, Any]] = []
    for name, value in stated:
        if name in (kind, f"{kind}:url"):
            if value and not (name == f"{kind}:url" and found and found[-1]["url"] == value):
                found.append({"url": value})
        elif name.startswith(f"{kind}:") and found and value:
            part = name[len(kind) + 1 :]
            if part in ("width", "height"):
                if value.isascii() and value.isdigit() and len(value) < 10:
                    found[-1].setdefault(part, int(value))
            elif part in ("secure_url", "type", "alt"):
                found[-1].setdefault(part, value)
    return tuple(Media(**parts) for parts in found)
