"""The links of a document as they stand there: of which elements, and in which attributes.

| kind | what |
|---|---|
| a, area | what a reader can follow |
| link | <link>: style sheets, feeds, the canonical address |
| img | pictures, and those of <input type=image> |
| srcset | pictures of other sizes, of <img> and <source> |
| script, iframe, form | scripts; frames; where forms are sent |
| media | sound, film, their posters, embedded objects |
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import repeat
from typing import Literal, cast, get_args

import turbohtml
from turbohtml import Document, Element

from silkline.parse.srcset import candidates

LinkKind = Literal["a", "area", "link", "img", "srcset", "script", "iframe", "media", "form"]

_LINKS = turbohtml.XPath("//a/@href | //area/@href")
_PLACES: dict[LinkKind, tuple[tuple[str, str], ...]] = {
    "a": (("a", "href"),),
    "area": (("area", "href"),),
    "link": (("link", "href"),),
    "img": (("img", "src"), ("input[type=image]", "src")),
    "srcset": (("img", "srcset"), ("source", "srcset"), ("link", "imagesrcset")),
    "script": (("script", "src"),),
    "iframe": (("iframe", "src"), ("frame", "src")),
    "media": (
        *(("video", "src"), ("video", "poster"), ("audio", "src"), ("source", "src"), ("track", "src")),
        *(("embed", "src"), ("object", "data")),
    ),
    "form": (("form", "action"), ("button", "formaction"), ("input", "formaction")),
}
_NOTHING = ("src", "poster", "data")
"""Attributes that name nothing where they are empty; elsewhere that is the page itself."""

LONGEST_SRCSET = 8_192


def links_in(document: Document) -> list[str]:
    """The links of a whole document as they stand there; those in templates are not part of the page."""
    if document.select_one("template") is None and document.select_one("svg") is None:
        return cast("list[str]", _LINKS(document))
    links = [link for link in document.select("a, area") if link.closest("template") is None]
    hrefs = (link.attr("href", link.attr("xlink:href")) for link in links)
    return [href for href in hrefs if href is not None]


def own_links(elements: list[Element]) -> list[str]:
    hrefs = list(map(Element.attr, elements, repeat("href")))
    if None not in hrefs:
        return cast("list[str]", hrefs)
    hrefs = [element.attr("href", element.attr("src")) for element in elements]
    return [href for href in hrefs if href is not None]


def links_of_kinds(document: Document, inside: str, kinds: Iterable[LinkKind]) -> list[str]:
    """In the order of the document. inside: a selector of what holds them, or is them; "" for everything.

    Raises ValueError for a kind that does not exist.
    """
    places: dict[str, list[str]] = {}
    for kind in kinds:
        if kind not in _PLACES:
            raise ValueError(
                f"there is no kind of links {kind!r}; there are: {', '.join(get_args(LinkKind))}"
            )
        for element, attribute in _PLACES[kind]:
            places.setdefault(element, []).append(attribute)
    wanted = ", ".join(f"{element}[{name}]" for element, names in places.items() for name in names)
    if inside:
        wanted = f":is({inside}):is({wanted}), :is({inside}) :is({wanted})"
    attributes: dict[str, list[str]] = {}
    for element, names in places.items():
        attributes.setdefault(element.partition("[")[0], []).extend(names)
    found: list[str] = []
    for link in document.select(wanted) if places else ():
        if link.closest("template") is None:
            for name in attributes[link.tag]:
                value = link.attr(name)
                if value or (value is not None and name not in _NOTHING):
                    found += candidates(value[:LONGEST_SRCSET]) if name.endswith("srcset") else (value,)
    return found
