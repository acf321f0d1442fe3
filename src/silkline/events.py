"""What happened, as frozen values. Hooks get them; nothing comes back."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime

import msgspec

from silkline.outcome import NONE_REFUSED, Outcome, Refused
from silkline.response import Response


class Visited(msgspec.Struct, frozen=True):
    """A visit ended. `response` is None where the fetch failed; `seconds` is the whole visit. Where redirects
    lead to another host the visit goes on there with a lease of its own; the verdict is then Moved.

    dropped_links: those that were not followed. refused: those among them that the rules of the crawl refuse,
    by the reason. items_dropped: items that pipeline steps have dropped, by the reason. elsewhere: it is
    another politeness group than the lease's that has answered, as a fetcher of the user's own may have it.
    fetched: whether its page was asked for; what has no handler, or no robots.txt that can be read, is not.
    """

    outcome: Outcome
    response: Response | None
    seconds: float
    dropped_links: int = 0
    refused: Mapping[str, Refused] = {}
    items_dropped: Mapping[str, int] = {}
    elsewhere: bool = False
    fetched: bool = True


class Kept(msgspec.Struct, frozen=True):
    """A group of outcomes was committed: `pages` done, `items` delivered, `links` newly added.

    duplicates: of the pages, those that another request has, too. refused: links beyond max_pages_per_host.
    dead_items: those that could not be delivered.
    """

    pages: int
    retried: int
    dead: int
    items: int
    links: int
    stale: int
    duplicates: int = 0
    refused: Refused = NONE_REFUSED
    dead_items: int = 0


class Seeded(msgspec.Struct, frozen=True):
    """Seeds were read: counts, and the reasons of the invalid ones (at most a few). refused: those beyond
    max_pages_per_host."""

    added: int
    duplicate: int
    invalid: int
    reasons: tuple[str, ...] = ()
    refused: Refused = NONE_REFUSED


class Trouble(msgspec.Struct, frozen=True):
    """Something the operator should know, in one line; the crawl goes on."""

    message: str


class LeftAlone(msgspec.Struct, frozen=True):
    """A host asks to be left alone (429 or 503) until then, in Unix seconds: nobody requests anything of it.
    Comes once per host and block, and not for a few seconds."""

    host: str
    until: float

    @property
    def message(self) -> str:
        """As one line, with the time in UTC."""
        until = datetime.fromtimestamp(self.until, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
        return f"{self.host} asks to be left alone until {until} (it answered 429 or 503)"


class Stopping(msgspec.Struct, frozen=True):
    """The crawl is shutting down: "finished", "interrupted", "budget", or an error's line."""

    reason: str


class Steered(msgspec.Struct, frozen=True):
    """Live settings changed what this worker does: the new values by name."""

    changes: Mapping[str, str]


class ProxyFailed(msgspec.Struct, frozen=True):
    """A proxy did not do its part, and another one was tried if there was one. proxy: its URL without user
    and password, and its place in the list. error: what went wrong, in one line."""

    proxy: str
    error: str


Event = Visited | Kept | Seeded | Trouble | LeftAlone | Stopping | Steered | ProxyFailed
