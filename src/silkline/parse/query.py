"""The query of a link, in the encoding of the page that it stands on (URL Standard, 1.3 and 4.4).

Everything else of a URL is UTF-8 whatever the page is. A browser on a windows-1251 page sends `?q=п` as
`?q=%EF`, and the site expects that. The encoders are the Encoding Standard's, made by turning its decoders
around, since Python's codecs of the same names differ from them.
"""

from __future__ import annotations

import codecs
import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from functools import cache

from silkline.parse.charset import encoding_named

_OTHERS = frozenset({None, "UTF-8", "UTF-16LE", "UTF-16BE", "replacement"})
"""Their output encoding is UTF-8 (Encoding Standard, 4.3)."""

_TWO_BYTES = frozenset({"Big5", "EUC-JP", "EUC-KR", "GBK", "Shift_JIS", "gb18030"})
_LAST_IN_BIG5 = frozenset("\u2550\u255e\u2561\u256a\u5341\u5345")
_EXTRA = {"\xa5": b"\\", "\u203e": b"~"}
"""What the Japanese encoders write for the yen sign and the overline."""
_KANA_MARKS = {"\uff9e": "\u309b", "\uff9f": "\u309c"}
"""Half-width katakana become full-width ones in ISO-2022-JP; for these two Unicode would say otherwise."""
_JIS_MODES = {"ascii": b"\x1b(B", "roman": b"\x1b(J", "jis0208": b"\x1b$B"}

_raw = re.compile(rb"[^!$%&()*+,\-./0-9:;=?@A-Z\[\\\]^_`a-z{|}~]").sub
"""The special-query percent-encode set."""
_ERROR = "%26%23{}%3B"


def in_encoding(hrefs: Iterable[str], encoding: str | None) -> list[str]:
    """The links with their queries percent-encoded in `encoding`; as they are for UTF-8 and None."""
    name = encoding_named(encoding) if encoding else None
    if name is None or name in _OTHERS:
        return list(hrefs)
    return [href if href.isascii() and name != "ISO-2022-JP" else _encoded(href, name) for href in hrefs]


def _encoded(href: str, encoding: str) -> str:
    front, hash_, fragment = href.partition("#")
    front, mark, query = front.partition("?")
    if not mark or (query.isascii() and not _escapes_in(query)):
        return href
    if not hash_:
        query = query.rstrip("".join(map(chr, range(33))))
    query = re.sub(r"[\t\n\r]", "", query)
    return f"{front}?{percent_encoded(query, encoding)}{hash_}{fragment}"


def _escapes_in(query: str) -> bool:
    return any(character in query for character in "\x0e\x0f\x1b")


def percent_encoded(query: str, encoding: str) -> str:
    """A query as bytes of that encoding; what it lacks becomes a numeric reference, as in forms."""
    written = _iso_2022_jp(query) if encoding == "ISO-2022-JP" else _simple(query, encoding)
    return "".join(
        _ERROR.format(piece) if isinstance(piece, int) else _raw(_escape, piece).decode("ascii")
        for piece in written
    )


def _escape(match: re.Match[bytes]) -> bytes:
    return b"%%%02X" % match[0][0]


def _simple(text: str, encoding: str) -> Iterator[bytes | int]:
    table = _table(encoding)
    for character in text:
        if character < "\x80":
            yield character.encode()
            continue
        known = table.get(character)
        if known is None and encoding == "gb18030" and character != "\ue5e5":
            known = character.encode("gb18030")
        yield ord(character) if known is None else known


def _iso_2022_jp(text: str) -> Iterator[bytes | int]:
    mode = "ascii"
    table = _table("EUC-JP")
    for character in text:
        if "\uff61" <= character <= "\uff9f":
            character = _KANA_MARKS.get(character) or unicodedata.normalize("NFKC", character)
        pair = table.get(character, b"")
        if len(pair) == 2:
            wanted, data = "jis0208", bytes(byte - 0x80 for byte in pair)
        elif character in _EXTRA:
            wanted, data = "roman", _EXTRA[character]
        elif character < "\x80" and character not in "\x0e\x0f\x1b":
            wanted = "roman" if mode == "roman" and character not in "\\~" else "ascii"
            data = character.encode()
        else:
            if mode == "jis0208":
                yield _JIS_MODES["ascii"]
                mode = "ascii"
            yield 0xFFFD if character in "\x0e\x0f\x1b" else ord(character)
            continue
        if wanted != mode:
            yield _JIS_MODES[wanted]
            mode = wanted
        yield data
    if mode != "ascii":
        yield _JIS_MODES["ascii"]


@cache
def _table(encoding: str) -> Mapping[str, bytes]:
    """Character to bytes, where a character has several the one that the standard's encoder picks."""
    decoder = codecs.lookup(f"whatwg-{encoding}").decode
    table: dict[str, bytes] = {}
    for pair in _candidates(encoding):
        text = decoder(pair)[0]
        if len(text) != 1 or text == "\ufffd":
            continue
        if text not in table or (encoding == "Big5" and text in _LAST_IN_BIG5):
            table[text] = pair
    if encoding in ("EUC-JP", "Shift_JIS"):
        table |= _EXTRA
        table["\u2212"] = table["\uff0d"]
    return table


def _candidates(encoding: str) -> Iterator[bytes]:
    if encoding != "gb18030":
        yield from (bytes((byte,)) for byte in range(0x80, 0x100))
    if encoding not in _TWO_BYTES:
        return
    for first in range(0x81, 0xFF):
        if encoding == "Big5" and first < 0xA1:
            continue  # Hong Kong's additions are only read
        for second in range(0x40 if encoding != "EUC-JP" else 0xA1, 0x100):
            pair = bytes((first, second))
            # Shift_JIS has NEC's selection of IBM's characters twice; the encoder takes the other ones.
            if encoding != "Shift_JIS" or not 8_272 <= _pointer(first, second) <= 8_835:
                yield pair


def _pointer(first: int, second: int) -> int:
    """In the index jis0208."""
    lead = first - (0x81 if first < 0xA0 else 0xC1)
    return lead * 188 + second - (0x40 if second < 0x7F else 0x41)
