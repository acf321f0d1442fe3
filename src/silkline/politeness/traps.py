"""Traps: places that make up links for ever. Each worker finds them itself, in bounded memory.

By its URL alone a link is refused whose path repeats itself or is endlessly deep, and whose query says
the same again and again. Everything else is told by what pages bring. A *pattern* is the folder of a
URL, with its numbers and tokens left out; with a query, its file, too. A page is *barren* if what it
has of new links is all of its own pattern: a calendar, an endless list, a generator of pages that do
not exist. Many barren pages in a row, with no fruitful one between them, are suspicious, and then their
texts and names are compared. Where they say the same as earlier ones the pattern is a trap: its pages
lead no further into it. A page of the pattern that has other new links opens it again. A long list is no
trap: it links to what it lists, or its pages differ.
"""

from __future__ import annotations

import re
from collections import Counter, deque
from collections.abc import Callable, Iterable
from functools import lru_cache

from silkline.outcome import NONE_REFUSED, Refused
from silkline.politeness.simhash import Sketches, alike, simhash
from silkline.request import Request

DEEP_PATH = 40
"""Segments of a path."""

SAME_SEGMENT = 4
"""Times that a path may have the same segment."""

MANY_PARAMETERS = 40
SAME_PARAMETER = 3
"""Parameters of one query; and how often one may say the same in it."""

CHAIN, CHAIN_DEPTH = 30, 12
"""Barren pages in a row, that far from the start, that make their pattern suspicious."""

CROWD = 300
"""Barren pages in a row that make it suspicious at any depth."""

PROBE, SAME_SHARE = 30, 0.9
"""So many pages of a suspicious pattern are compared; so many of them must say what an earlier one says."""

LONGEST_TITLE = 500
PATTERNS_KEPT = 4_096
TEXTS_KEPT = 256

_NUMBERS = re.compile(r"\d+(?:[-_.,:/]+\d+)*")
_TOKENS = re.compile(r"(?<=/)(?=[A-Za-z_~-]*\d)[A-Za-z0-9_~-]{16,}(?=/)")
_numbers_of = re.compile(r"\d+").findall
_words_of = re.compile(r"[^\W_]+").findall


Found = Callable[[str, str], None]
"""`found(pattern, reason)`"""


class Pattern:
    """What is known of one. barren: pages in a row that brought nothing else; wanted: how many it takes."""

    __slots__ = ("barren", "compared", "same", "sketches", "trap", "wanted")

    def __init__(self) -> None:
        self.barren = 0
        self.wanted = 1
        self.compared = self.same = 0
        self.sketches: deque[tuple[int, str]] = deque(maxlen=TEXTS_KEPT)
        self.trap = ""

    def clear(self) -> None:
        """It is fruitful, or was compared and found different: look again only after twice as many pages."""
        self.barren = self.compared = self.same = 0
        self.trap = ""


class Traps:
    """The traps that one worker meets.

    tell: gets a line for each new one; found: its pattern, and the reason for which links are refused.
    budget: links into one pattern that are taken; None for any number. looks_for_traps: without it, only
    the budget counts.
    """

    def __init__(
        self,
        tell: Callable[[str], None],
        budget: int | None = None,
        *,
        looks_for_traps: bool = True,
        found: Found = lambda pattern, reason: None,
    ) -> None:
        self._looks = looks_for_traps
        self._tell = tell
        self._note = found
        self._budget = budget
        self._taken: dict[str, int] = {}
        self._young: dict[str, Pattern] = {}
        self._old: dict[str, Pattern] = {}

    def shape(self, url: str) -> str:
        """Why a link is refused for its URL alone; "" where it is not."""
        if url.count("/") > 7 and (reason := _path_trap(url)):
            return reason
        if url.count("&") >= SAME_PARAMETER - 1 and (reason := _query_trap(url)):
            return reason
        return ""

    def outside(self, urls: list[str], refused: dict[str, Refused]) -> list[str]:
        """The links that neither their URLs alone nor the budgets of their patterns refuse. The others are
        counted in `refused`, by the reason."""
        bad: set[str] = set()
        looks, budget = self._looks, self._budget is not None
        # Of most URLs that is all there is to see.
        suspects = urls if budget else [url for url in urls if "&" in url or url.count("/") > 7]
        for url in suspects:
            reason = ""
            if looks and (url.count("/") > 7 or url.count("&") > 1):
                reason = self.shape(url)
            if budget and not reason:
                reason = self._full(url)
            if reason:
                bad.add(url)
                refused[reason] = refused.get(reason, NONE_REFUSED) + Refused(1, url)
        return [url for url in urls if url not in bad] if bad else urls

    def _full(self, url: str) -> str:
        """Why a link is refused by the budget of its pattern, which it is counted in; "" where it is not."""
        pattern = pattern_of(url)
        taken = self._taken.get(pattern, 0)
        if self._budget is not None and taken >= self._budget:
            return f"more than max_pages_per_pattern of {pattern}"
        if len(self._taken) >= PATTERNS_KEPT:
            self._taken.pop(next(iter(self._taken)))
        self._taken[pattern] = taken + 1
        return ""

    def barred(
        self,
        url: str,
        depth: int,
        links: Iterable[Request],
        text: Callable[[], str],
        title: Callable[[], str] = str,
    ) -> str:
        """Note what new links a page has brought. Why none of them may be followed: they lead further into a
        trap; "" where that is not so.

        links: one at least. text, title: give the page's, where they have to be looked at.
        """
        if not self._looks:
            return ""
        name = pattern_of(url)
        for link in links:
            if pattern_of(link.url) != name:
                if name in self._young or name in self._old:
                    self._pattern(name).clear()
                return ""
        pattern = self._pattern(name)
        pattern.barren += 1
        if not pattern.trap:
            self._judge(pattern, name, url, depth, text, title)
        return pattern.trap

    def _judge(
        self,
        pattern: Pattern,
        name: str,
        url: str,
        depth: int,
        text: Callable[[], str],
        title: Callable[[], str],
    ) -> None:
        chain = pattern.barren >= CHAIN * pattern.wanted and depth >= CHAIN_DEPTH
        if not chain and pattern.barren < CROWD * pattern.wanted:
            return
        sketch = simhash(text(), leave_out=_own_numbers(url))
        if sketch is None:
            return  # pages without text, such as those that scripts fill, say nothing, and so not the same
        pattern.compared += 1
        # A name among much that all pages say is no more than noise in the text.
        named = _own_name(title(), url)
        if any(named == known and alike(sketch, other) for other, known in pattern.sketches):
            pattern.same += 1
        else:
            pattern.sketches.append((sketch, named))
        # The first ones have little to be compared with: a calendar says the same every twelve months.
        if pattern.compared < 2 * PROBE:
            if pattern.compared == PROBE:
                pattern.same = 0
            return
        if pattern.same >= SAME_SHARE * PROBE:
            self._found(pattern, name, f"trap: pages without end at {name}", url)
        else:
            wanted = min(2 * pattern.wanted, 1_024)
            pattern.clear()
            pattern.wanted = wanted

    def _found(self, pattern: Pattern, name: str, reason: str, url: str) -> None:
        pattern.trap = reason
        self._note(name, reason)
        self._tell(f"{reason}, which bring nothing new; their links into it are not followed, see {url}")

    def _pattern(self, name: str) -> Pattern:
        pattern = self._young.get(name)
        if pattern is None:
            pattern = self._young[name] = self._old.get(name) or Pattern()
            if len(self._young) >= PATTERNS_KEPT // 2:
                self._old, self._young = self._young, {}
        return pattern


class NearDuplicates:
    """Pages that say what an earlier page says: soft 404s, copies under other URLs. Nothing is dropped."""

    def __init__(self) -> None:
        self._sketches = Sketches()
        self._counts: dict[str, int] = {}

    def look(self, url: str, text: str) -> None:
        sketch = simhash(text)
        if sketch is None:
            return
        first = self._sketches.find(sketch)
        if first is None:
            self._sketches.add(sketch, url)
        elif first in self._counts or len(self._counts) < PATTERNS_KEPT:
            self._counts[first] = self._counts.get(first, 0) + 1

    def lines(self, most: int = 5) -> list[str]:
        """Of the largest groups, one each."""
        largest = sorted(self._counts.items(), key=lambda pair: -pair[1])[:most]
        return [
            f"{count:,} more {'page is' if count == 1 else 'pages are'} nearly identical to {url}"
            for url, count in largest
        ]


def pattern_of(url: str) -> str:
    """The folder of a URL with numbers as 0 and long tokens as *, dates as one number; with a query, the file
    and a question mark, too."""
    if "?" in url:
        return _folder_pattern(url[: url.index("?")]) + "?"
    return _folder_pattern(url[: url.rfind("/") + 1])


@lru_cache(maxsize=8_192)
def _folder_pattern(folder: str) -> str:
    cut = folder.find("/", 8)
    path = _NUMBERS.sub("0", _TOKENS.sub("*", folder[cut:]))
    if path.count("/") > 4:  # whoever walks in circles sees the same names
        path = "/".join(dict.fromkeys(path[1:].removesuffix("/").split("/"))).join("//")
    return folder[:cut] + path


def _path_trap(url: str) -> str:
    cut = url.find("/", 8)
    segments = url[cut + 1 :].partition("?")[0].split("/")
    if len(segments) > DEEP_PATH:
        return f"trap: a path of more than {DEEP_PATH} segments at {pattern_of(url)}"
    for part, times in Counter(segments).items():
        if times > SAME_SEGMENT and part and not part.isdigit():
            return f"trap: the path goes in circles at {pattern_of(url)}"
    for period in (1, 2, 3, 4):
        times = 4 if period == 1 else 3
        equal = 0  # segments in a row that are as those one period before
        for place in range(period, len(segments)):
            equal = equal + 1 if segments[place] == segments[place - period] else 0
            if equal >= period * (times - 1):
                again = segments[place - period + 1 : place + 1]
                if any(part and not part.isdigit() for part in again):
                    return f"trap: the path goes in circles at {pattern_of(url)}"
    return ""


def _query_trap(url: str) -> str:
    pairs = url.partition("?")[2].split("&")
    if len(pairs) > MANY_PARAMETERS:
        return f"trap: a query of more than {MANY_PARAMETERS} parameters at {pattern_of(url)}"
    if len(pairs) - len(set(pairs)) >= SAME_PARAMETER - 1:
        for pair in pairs:
            if pair and pairs.count(pair) >= SAME_PARAMETER:
                return f"trap: the query says {pair} again and again at {pattern_of(url)}"
    return ""


def _own_numbers(url: str) -> frozenset[str]:
    """The numbers of a URL and their neighbours: what makes pages of a list differ if nothing else does."""
    found: set[str] = set()
    for digits in _numbers_of(url)[:20]:
        number = int(digits[:15])
        found.update((digits, str(number - 1), str(number), str(number + 1)))
    return frozenset(found)


def _own_name(title: str, url: str) -> str:
    """What a title says beside the words and numbers of its URL, which those of made-up pages have, too."""
    said_there = set(_words_of(url.lower())) | _own_numbers(url)
    return " ".join(word for word in _words_of(title[:LONGEST_TITLE].lower()) if word not in said_there)
