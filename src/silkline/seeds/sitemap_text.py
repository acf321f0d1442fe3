"""The text of a sitemap or feed, token by token: XML that need not be well-formed, in bounded memory.

Only what a sitemap can hold is understood: tags, text, CDATA, comments. There are no entities but XML's own
five and character references: a DTD is passed over, so that nothing is ever expanded or fetched.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

MAX_TOKEN = 65_536
"""Characters of one tag or text; what is longer is no URL."""

_TAG = re.compile(r"<(/?)([A-Za-z_][\w.:-]*+)((?:[^<>\"']++|\"[^\"<]*+\"|'[^'<]*+')*+)>")
_ATTRIBUTE = re.compile(r"([\w.:-]++)\s*=\s*(?:\"([^\"]*)\"|'([^']*)')")
_ENTITY = re.compile(r"&(?:#(\d{1,7})|#[xX]([0-9A-Fa-f]{1,6})|([A-Za-z][\w.-]*));")
_NAMED = {"amp": "&", "lt": "<", "gt": ">", "quot": '"', "apos": "'"}
_TO_SKIP = (("<!--", "-->"), ("<?", "?>"), ("<!DOCTYPE", ">"), ("<!", ">"))
_CDATA, _CDATA_END = "<![CDATA[", "]]>"
_DTD_END = re.compile(r"\]\s*>")


class Token(NamedTuple):
    """A start tag (name and the text of its attributes), an end tag (name), or text (name is "")."""

    name: str
    text: str = ""
    ends: bool = False


class UnknownEntity(ValueError):
    """A reference to an entity that is not one of XML's own."""


class Tokens:
    """Feed it text in pieces; it gives the tokens that are complete."""

    def __init__(self) -> None:
        self._text = ""
        self._until: re.Pattern[str] | str | None = None
        self._cdata = False

    @property
    def rest(self) -> str:
        """What has come and is no complete token yet."""
        return self._text

    @property
    def idle(self) -> bool:
        """Nothing is being passed over."""
        return self._until is None

    def take_rest(self) -> str:
        rest, self._text = self._text, ""
        return rest

    def put_back(self, rest: str) -> None:
        self._text = rest

    def feed(self, piece: str) -> Iterator[Token]:
        text, at = self._text + piece, 0
        while at < len(text):
            if self._until is not None:
                end = self._find_end(text, at)
                if end < 0:
                    at = max(at, len(text) - 3)
                    break
                self._until, at = None, end
            elif text[at] != "<":
                end = text.find("<", at)
                if end < 0:
                    if len(text) - at > MAX_TOKEN:
                        at = len(text)
                    break
                yield Token("", _resolved(text[at:end]) if end - at <= MAX_TOKEN else "")
                at = end
            elif (match := _TAG.match(text, at)) is not None:
                yield Token(match[2], match[3], bool(match[1]))
                at = match.end()
                if match[3].endswith("/") and not match[1]:
                    yield Token(match[2], "", True)
            else:
                before = at
                at = self._special(text, at)
                if self._cdata:
                    end = text.find(_CDATA_END, at)
                    self._cdata = False
                    if end < 0 and len(text) - at <= MAX_TOKEN:
                        at = before
                        break
                    if end >= 0:
                        yield Token("", text[at:end])
                        at = end + 3
                elif at == before and self._until is None:
                    if len(text) - at <= MAX_TOKEN and ">" not in text[at:] and "<" not in text[at + 1 :]:
                        break
                    at += 1  # a bare "<"
        self._text = text[at:]

    def _special(self, text: str, at: int) -> int:
        """Where to go on after "<!" or "<?"; the same place where it is neither."""
        if text.startswith(_CDATA, at):
            self._cdata = True
            return at + len(_CDATA)
        if len(text) - at < len(_CDATA) and _CDATA.startswith(text[at:]) and text[at:] != "<":
            return at
        for start, end in _TO_SKIP:
            if text[at : at + len(start)].upper() == start:
                bracket, close = text.find("[", at), text.find(">", at)
                has_subset = start == "<!DOCTYPE" and bracket >= 0 and (close < 0 or bracket < close)
                self._until = _DTD_END if has_subset else end
                return at + len(start)
        return at

    def _find_end(self, text: str, at: int) -> int:
        if isinstance(self._until, str):
            end = text.find(self._until, at)
            return end + len(self._until) if end >= 0 else -1
        assert self._until is not None
        match = self._until.search(text, at)
        return match.end() if match else -1


def attributes(text: str) -> dict[str, str]:
    """Of a start tag, by name. Raises UnknownEntity."""
    return {name: unescaped(double or single) for name, double, single in _ATTRIBUTE.findall(text)}


def unescaped(text: str) -> str:
    """Text with its references resolved. Raises UnknownEntity."""
    return _ENTITY.sub(_character, text) if "&" in text else text


def _resolved(text: str) -> str:
    """The same; where there is an unknown one the text stands as it is, with the mark of what cannot be."""
    try:
        return unescaped(text)
    except UnknownEntity:
        return "\0"


def _character(match: re.Match[str]) -> str:
    decimal, hexadecimal, name = match.groups()
    if name is not None:
        if name not in _NAMED:
            raise UnknownEntity(name)
        return _NAMED[name]
    code = int(decimal) if decimal is not None else int(hexadecimal, 16)
    return chr(code) if 0 < code < 0x110000 and not 0xD800 <= code < 0xE000 else "\ufffd"
