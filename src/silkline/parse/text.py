"""The text of an element, as a reader sees it."""

from __future__ import annotations

from turbohtml import Element, PlainText, Text

_AS_READ = PlainText(layout="strict", bullet="", table_cell_separator=" ")


def text_of(element: Element) -> str:
    """In one line: no scripts, styles, comments; blocks and table cells apart; white space as one space."""
    children = len(element)
    bare = children == 0 or (children == 1 and type(element[0]) is Text)
    return " ".join((element.text if bare else element.to_text(_AS_READ)).split())
