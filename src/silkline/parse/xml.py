"""XML: feeds, sitemaps, whatever is no HTML.

The parser knows no entities but the five of XML itself and character references: a DTD is skipped, none of
it is fetched, nothing it declares is expanded. So external entities and "billion laughs" are no more than an
undefined entity, which makes the document not well-formed.
"""

from __future__ import annotations

import re

import turbohtml
from turbohtml import Document

_opener = re.compile(r"<!--|<\?|<!\[CDATA\[").search
_CLOSERS = {"<!--": "-->", "<?": "?>", "<![CDATA[": "]]>"}
_ESCAPES = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;"})


def parse_xml(text: str) -> Document:
    """The document. CDATA sections are text in it; white space before the declaration is forgiven.

    Raises turbohtml.HTMLParseError for what is not well-formed.
    """
    if "<![CDATA[" in text:
        text = _with_cdata_as_text(text)
    return turbohtml.parse_xml(text.lstrip("\t\n\r "))


def _with_cdata_as_text(text: str) -> str:
    pieces: list[str] = []
    done = 0
    while opened := _opener(text, done):
        closer = _CLOSERS[opened[0]]
        end = text.find(closer, opened.end())
        if end < 0:
            break  # not well-formed, as the parser will say
        pieces.append(text[done : opened.start()])
        done = end + len(closer)
        if opened[0] == "<![CDATA[":
            pieces.append(text[opened.end() : end].translate(_ESCAPES))
        else:
            pieces.append(text[opened.start() : done])
    return "".join(pieces) + text[done:]
