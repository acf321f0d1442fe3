"""Sitemaps (sitemaps.org), plain or as lists of sitemaps, text files of URLs, and RSS or Atom feeds.

Read in pieces: memory does not grow with the file. What is broken is salvaged: every entry that is complete
counts, whatever comes before or after it.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator
from datetime import UTC, date, datetime
from email.utils import parsedate_to_datetime
from functools import lru_cache
from typing import NamedTuple

from silkline.seeds.sitemap_text import MAX_TOKEN, Token, Tokens, UnknownEntity, attributes
from silkline.url import resolve

MAX_LINE = 65_536

_ROOTS = {"urlset": "url", "sitemapindex": "sitemap", "rss": "item", "RDF": "item", "feed": "entry"}
"""Name of the root element -> of what holds one entry."""

_DATES = frozenset({"lastmod", "pubDate", "updated", "date"})
_XML_ENCODING = re.compile(rb"<\?xml[^>]*?encoding\s*=\s*[\"']([A-Za-z0-9._-]+)").match
_W3C = re.compile(
    r"(\d{4})(?:-(\d\d)(?:-(\d\d)(?:[T ](\d\d):(\d\d)(?::(\d\d)(?:\.(\d{1,9}))?)?\s*(Z|[+-]\d\d:?\d\d)?)?)?)?"
)
_PLAIN = {
    name: re.compile(
        rf"\s*<{name}>\s*<loc>([^<&]{{1,8192}})</loc>\s*(?:<lastmod>([^<&]{{0,64}})</lastmod>\s*)?"
        rf"(?:<changefreq>[^<&]{{0,64}}</changefreq>\s*)?(?:<priority>[^<&]{{0,64}}</priority>\s*)?</{name}>"
    ).match
    for name in ("url", "sitemap")
}
_BYTE_ORDER_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)


class Entry(NamedTuple):
    """One URL of a sitemap. lastmod: Unix seconds, None where none is given. sitemap: it is one itself.

    url is None where there is something that is no http(s) URL; written: as it stands there.
    """

    url: str | None
    lastmod: float | None = None
    sitemap: bool = False
    written: str = ""


class SitemapReader:
    """Feed it a file in pieces, then finish. url: where the file is, for relative URLs.

    kind: name of the root element, "text", or "" for what is no sitemap (or nothing yet).
    """

    def __init__(self, url: str) -> None:
        self.kind = ""
        self._url = url
        self._start = b""
        self._decoder: codecs.IncrementalDecoder | None = None
        self._xml: _Xml | None = None
        self._line = ""

    @property
    def is_sitemap(self) -> bool:
        return self.kind == "text" or self.kind in _ROOTS

    def feed(self, data: bytes) -> Iterator[Entry]:
        if self._decoder is None:
            self._start += data
            if len(self._start) < 1_024:
                return
            data = self._begin()
        yield from self._take(self._decode(data, final=False))

    def finish(self) -> Iterator[Entry]:
        """No more comes."""
        data = self._begin() if self._decoder is None else b""
        yield from self._take(self._decode(data, final=True))
        if self._xml is not None:
            yield from self._xml.finish()
            self.kind = self._xml.kind
        else:
            yield from self._lines("\n")

    def _begin(self) -> bytes:
        start, encoding = self._start, "utf-8"
        for mark, name in _BYTE_ORDER_MARKS:
            if start.startswith(mark):
                start, encoding = start[len(mark) :], name
                break
        else:
            if (match := _XML_ENCODING(start.lstrip())) is not None:
                encoding = match[1].decode("ascii")
        try:
            codec = codecs.lookup(encoding)
            if not codec._is_text_encoding or codec.incrementaldecoder is None:
                raise LookupError
        except LookupError:
            codec = codecs.lookup("utf-8")
        assert codec.incrementaldecoder is not None
        self._decoder = codec.incrementaldecoder("replace")
        self._start = b""
        head = codec.incrementaldecoder("replace").decode(start).lstrip()
        if head.startswith("<"):
            self._xml = _Xml(self._url)
        return start

    def _decode(self, data: bytes, *, final: bool) -> str:
        assert self._decoder is not None
        return self._decoder.decode(data, final)

    def _take(self, text: str) -> Iterator[Entry]:
        if self._xml is not None:
            yield from self._xml.feed(text)
            self.kind = self._xml.kind
        else:
            yield from self._lines(text)

    def _lines(self, text: str) -> Iterator[Entry]:
        *lines, self._line = re.split(r"\r\n|\r|\n", self._line + text)
        if len(self._line) > MAX_LINE:
            self._line = ""
        for line in lines:
            line = line.strip().lstrip("\ufeff")
            if line.startswith(("http://", "https://")):
                self.kind = "text"
                yield _entry(self._url, line, None, False)


class _Xml:
    """A sitemap or feed in XML."""

    def __init__(self, url: str) -> None:
        self.kind = ""
        self._base = url
        self._tokens = Tokens()
        self._prefix = ""
        self._nested = False
        self._holder: str | None = None
        self._inside = False
        self._field = ""
        self._text: list[str] = []
        self._found: list[tuple[str, str]] = []
        self._direct: list[str] = []
        self._foreign = 0

    def feed(self, text: str) -> Iterator[Entry]:
        plain = _PLAIN.get(self._holder or "")
        if plain is not None and not self._prefix and not self._inside and self._tokens.idle:
            # Nearly all entries of nearly all sitemaps: a tenth of the cost of their single tokens.
            text, at = self._tokens.take_rest() + text, 0
            while (match := plain(text, at)) is not None:
                changed = w3c_date(match[2]) if match[2] else None
                yield _entry(self._base, match[1].strip(), changed, self._nested)
                at = match.end()
            text = text[at:]
            if len(text) < MAX_TOKEN and f"</{self._holder}>" not in text:
                self._tokens.put_back(text)  # the rest of this entry comes with the next piece
                return
        yield from self._tokenwise(text)

    def _tokenwise(self, text: str) -> Iterator[Entry]:
        for token in self._tokens.feed(text):
            if not token.name:
                if self._field:
                    self._text.append(token.text)
                elif self._inside and not self._foreign:
                    self._direct.append(token.text)
            elif not self.kind:
                self._root(token)
            elif self._holder is not None:
                yield from self._tag(token)

    def finish(self) -> Iterator[Entry]:
        """An entry that was cut off counts with what is complete of it."""
        yield from self._tokenwise("")
        if self._field and self._tokens.rest.startswith("</"):
            self._end_field()
        if self._inside:
            self._direct.clear()
            yield from self._end_entry()

    def _root(self, token: Token) -> None:
        prefix, _, name = token.name.rpartition(":")
        self.kind = name
        self._holder = _ROOTS.get(name)
        self._nested = self._holder == "sitemap"
        self._prefix = "" if name == "RDF" else prefix
        self._rebase(token)

    def _tag(self, token: Token) -> Iterator[Entry]:
        prefix, _, name = token.name.rpartition(":")
        if prefix != self._prefix and not (prefix == "dc" and name == "date"):
            # An extension, such as image:image: whatever is in it is not ours.
            if self._inside:
                self._foreign = max(0, self._foreign + (-1 if token.ends else 1))
        elif self._inside and self._foreign:
            return
        elif name == self._holder and not self._field:
            if self._inside:
                yield from self._end_entry()
            self._inside = not token.ends
        elif self._inside and not token.ends and not self._field:
            self._begin_field(name, token)
        elif token.ends and name == self._field:
            self._end_field()

    def _begin_field(self, name: str, token: Token) -> None:
        if name == "link" and self.kind == "feed":
            given = self._attributes(token)
            if given.get("rel", "alternate") == "alternate" and "href" in given:
                self._found.append(("loc", given["href"]))
        elif name == "loc" or name in _DATES or (self._holder == "item" and name in ("link", "guid")):
            permanent = name != "guid" or self._attributes(token).get("isPermaLink", "true") != "false"
            if permanent:
                self._field = name
                self._text = []

    def _end_field(self) -> None:
        name = {"link": "loc"}.get(self._field, self._field)
        self._found.append(("date" if name in _DATES else name, "".join(self._text)))
        self._field, self._text = "", []

    def _end_entry(self) -> Iterator[Entry]:
        found = self._found
        locations = [text.strip() for name, text in found if name == "loc"]
        if not locations:
            locations = [text.strip() for name, text in found if name == "guid"]
        if not locations and self._holder in ("url", "sitemap") and (text := "".join(self._direct).strip()):
            locations = [text]
        changed = next(
            (moment for name, text in found if name == "date" and (moment := w3c_date(text))), None
        )
        for location in dict.fromkeys(filter(None, locations if self._holder != "entry" else locations[:1])):
            yield _entry(self._base, location, changed, self._nested)
        self._found, self._direct, self._field, self._text = [], [], "", []
        self._inside, self._foreign = False, 0

    def _attributes(self, token: Token) -> dict[str, str]:
        try:
            return attributes(token.text)
        except UnknownEntity:
            return {}

    def _rebase(self, token: Token) -> None:
        base = self._attributes(token).get("xml:base")
        if base:
            self._base = resolve(self._base, base.strip()) or self._base


@lru_cache(maxsize=1_024)
def w3c_date(text: str) -> float | None:
    """Unix seconds of a W3C date and time, or of an RFC 822 one; None for what is neither. UTC where no zone
    is given; a year or month alone means its first day."""
    text = text.strip()
    match = _W3C.fullmatch(text)
    try:
        if match is None:
            return parsedate_to_datetime(text).timestamp() if "," in text else None
        *parts, fraction, zone = match.groups()
        year, month, day, hour, minute, second = (
            int(part or least) for part, least in zip(parts, (1, 1, 1, 0, 0, 0), strict=True)
        )
        moment = datetime(year, month, day, hour, minute, second, tzinfo=UTC)
    except (ValueError, TypeError):
        return None
    seconds = moment.timestamp() + float(f"0.{fraction or 0}")
    if zone and zone != "Z":
        hours, minutes = int(zone[1:3]), int(zone[-2:])
        seconds -= (hours * 3_600 + minutes * 60) * (1 if zone[0] == "+" else -1)
    return seconds


def moment_of(value: str | date | datetime) -> float | None:
    """Unix seconds of what a user gives for a moment; None for what is none."""
    if isinstance(value, datetime):
        return (value if value.tzinfo is not None else value.replace(tzinfo=UTC)).timestamp()
    if isinstance(value, date):
        return datetime(value.year, value.month, value.day, tzinfo=UTC).timestamp()
    return w3c_date(value)


def _entry(base: str, written: str, lastmod: float | None, sitemap: bool) -> Entry:
    url = None if "\0" in written else resolve(base, written)
    return Entry(None if url is None else url.partition("#")[0], lastmod, sitemap, written[:200])
