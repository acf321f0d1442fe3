"""Leases, and what a visit made of one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from silkline.request import Request


class Lease(msgspec.Struct, frozen=True):
    """A request held by one worker until a deadline.

    token: no other lease of this frontier ever has it; a commit with an old one changes nothing.
    host: the politeness key.
    deliveries: how often the request was leased since it was added or resent, this time included.
    starts_in: seconds from the moment the lease was given until the host allows the fetch.
    """

    request: Request
    token: int
    fingerprint: int
    host: str
    deliveries: int = 1
    starts_in: float = 0.0


class LeaseBatch(msgspec.Struct, frozen=True):
    """What `Frontier.lease` gave.

    wake_in: where nothing (more) could be given, seconds until it is worth asking again: the next due
        host, delayed request or expiring lease. None: only a commit or an add can change anything.
    finished: waiting + delayed + leased = 0.
    budget_spent: the page budget allows no further lease (see FrontierOptions.max_pages).
    """

    leases: tuple[Lease, ...] = ()
    wake_in: float | None = None
    finished: bool = False
    budget_spent: bool = False


class Item(msgspec.Struct, frozen=True):
    """One row of the user's. Its identity is (fingerprint of its request, index on that page).

    data: what every sink's `encode` made of it, by sink name.
    """

    fingerprint: int
    index: int
    data: Mapping[str, Any]


class Done(msgspec.Struct, frozen=True):
    """The page is finished."""


class RetryLater(msgspec.Struct, frozen=True):
    """Visit again in `after` seconds; counts as one retry."""

    after: float
    cause: str
    error: str


class Dead(msgspec.Struct, frozen=True):
    """Give up on the request: it becomes a dead letter."""

    cause: str
    error: str


Verdict = Done | RetryLater | Dead


class Outcome(msgspec.Struct, frozen=True):
    """What one visit made of one lease. Items and links are only kept if the lease still holds."""

    lease: Lease
    verdict: Verdict
    items: tuple[Item, ...] = ()
    links: tuple[Request, ...] = ()
    block_host: float = 0.0
    """Seconds for which nobody may be handed a request of this host (Retry-After); 0 for none."""


class Added(msgspec.Struct, frozen=True):
    """Counts of one `add`."""

    added: int = 0
    duplicate: int = 0


class Committed(msgspec.Struct, frozen=True):
    """The outcomes that counted, and the tokens of those that came too late."""

    accepted: tuple[Outcome, ...] = ()
    stale: tuple[int, ...] = ()
    added: int = 0
    """Links of the accepted outcomes that were new."""


class Stats(msgspec.Struct, frozen=True):
    """Sizes of the frontier's structures, counted, not kept."""

    waiting: int = 0
    delayed: int = 0
    leased: int = 0
    done: int = 0
    dead: int = 0

    @property
    def open(self) -> int:
        return self.waiting + self.delayed + self.leased


class DeadLetter(msgspec.Struct, frozen=True):
    """A request that was given up, kept until resent or dropped. `at` is Unix seconds."""

    request: Request
    fingerprint: int
    cause: str
    error: str
    deliveries: int
    worker: str
    at: float


class Whereabouts(msgspec.Struct, frozen=True):
    """Where a request is now. place: waiting, delayed, leased, done, dead or "never seen"; detail: why."""

    place: str
    detail: str = ""
