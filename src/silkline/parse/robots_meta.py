"""What a page asks of robots: X-Robots-Tag headers, <meta name=robots>, and rel=nofollow of single links.

Of several rules the strictest counts. A rule for another robot does not; what is no rule is passed over.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec
from turbohtml import Document

_VALUED = frozenset({"unavailable_after", "max-snippet", "max-image-preview", "max-video-preview"})
"""Rules with a value behind a colon, where else a robot's name stands before one."""


class RobotsMeta(msgspec.Struct, frozen=True):
    """index: the page may be shown in an index. follow: its links may be followed."""

    index: bool = True
    follow: bool = True


ANYTHING = RobotsMeta()


def asked_of_robots(
    headers: Iterable[tuple[bytes, bytes]], document: Document | None, agent: str
) -> RobotsMeta:
    """What a page asks of the robot `agent`. document: None where it is not HTML."""
    words: set[str] = set()
    for name, value in headers:
        if len(name) == 12 and name.lower() == b"x-robots-tag":
            words.update(_words_for(agent, value.decode("latin-1")))
    if document is not None:
        names = ("robots", agent.lower())
        for meta in document.select("meta[name]"):
            if (meta.attr("name") or "").strip().lower() in names and meta.closest("template") is None:
                words.update(word.strip().lower() for word in (meta.attr("content") or "").split(","))
    if not words:
        return ANYTHING
    none = "none" in words
    return RobotsMeta(index=not (none or "noindex" in words), follow=not (none or "nofollow" in words))


def nofollow_hrefs(document: Document) -> set[str]:
    """The href of each link that says rel=nofollow, as it stands, unless it stands there without, too."""
    marked = document.select('a[rel~="nofollow" i][href], area[rel~="nofollow" i][href]')
    if not marked:
        return set()
    hrefs = {element.attr("href") or "" for element in marked}
    plain = document.select('a[href]:not([rel~="nofollow" i]), area[href]:not([rel~="nofollow" i])')
    return hrefs - {element.attr("href") or "" for element in plain}


def _words_for(agent: str, value: str) -> Iterator[str]:
    """The rules of one header line for us: "noindex", or "ourbot: noindex, nofollow"."""
    ours = True
    for part in value.split(","):
        name, colon, rule = (text.strip().lower() for text in part.partition(":"))
        if colon and name not in _VALUED:
            ours = name == agent.lower()
            name = rule
        if ours:
            yield name
