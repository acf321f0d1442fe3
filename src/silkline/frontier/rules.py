"""Rules that hold on every backend: bounds of one step, the price of a crash, the words for places."""

from __future__ import annotations

import os
import secrets
import socket
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from typing import Any

import msgspec

from silkline.errors import TaskError
from silkline.outcome import DeadItem, Done, Outcome, Whereabouts
from silkline.request import PRIORITY_LIMIT, Onward, Request

SWEEP = 1_000
"""How many delayed requests, and how many expired leases, one `lease` moves at most."""

LEAST_SHARE = 4
"""While other workers are hungry, one `lease` takes at most half of a host's free slots, or this many."""

HUNGER = 3.0
"""Seconds for which a worker is hungry after it got fewer leases than it asked for; it asks again sooner."""

SECOND_HELPING = 0.1
"""Seconds until such a worker takes of what it left to the others, should they not want it."""

ON_THE_WAY = PRIORITY_LIMIT + 1
"""The priority of what redirects have led on: a visit that has begun is ended before others begin."""

QUICK_RETURNS = 2
"""A request whose lease was lost this often at most is waiting again at once."""


def priority_of(request: Request) -> int:
    """The one by which it waits."""
    return request.priority if request.onward is None else ON_THE_WAY


def without_repeats(requests: Iterable[Request]) -> Iterator[Request]:
    """Without the GETs of a URL that came before, which pages of one site have many of: to see that by
    their fingerprints costs more."""
    plain: set[str] = set()
    for request in requests:
        if request.key is None and request.body is None and request.method == "GET":
            if request.url in plain:
                continue
            plain.add(request.url)
        yield request


def moved(request: Request, onward: Onward) -> Request:
    return msgspec.structs.replace(request, onward=onward)


def without_items(outcome: Outcome) -> Outcome:
    """What counts of a duplicate."""
    return msgspec.structs.replace(outcome, items=(), dead_items=())


def distinct(outcomes: Iterable[Outcome], seen: Callable[[int], bool]) -> list[Outcome]:
    """See `protocols.Frontier.distinct`. What another of the outcomes would claim does not count: its
    lease may have ended."""
    return [without_items(outcome) if _is_seen_elsewhere(outcome, seen) else outcome for outcome in outcomes]


def _is_seen_elsewhere(outcome: Outcome, seen: Callable[[int], bool]) -> bool:
    if not (outcome.aliases and isinstance(outcome.verdict, Done)):
        return False
    own = outcome.lease.fingerprint
    return any(alias.fingerprint != own and seen(alias.fingerprint) for alias in outcome.aliases)


def dead_items(outcome: Outcome, now: float) -> tuple[DeadItem, ...]:
    """What a commit keeps of them, by index and sink; nothing unless the page is done."""
    if not (outcome.dead_items and isinstance(outcome.verdict, Done)):
        return ()
    unique = {(item.index, item.sink): item for item in outcome.dead_items}
    return tuple(
        msgspec.structs.replace(
            item,
            fingerprint=outcome.lease.fingerprint,
            at=now,
            **{name: storable(getattr(item, name)) for name in ("url", "cause", "error", "record", "sink")},
        )
        for _, item in sorted(unique.items())
    )


def redone(request: Request, items: Iterable[tuple[int, str]]) -> Request:
    """The request of a page that is visited again for these: index and sink."""
    return msgspec.structs.replace(request, retry_count=0, spared=0, redo=tuple(items))


def retried(request: Request, *, cost: bool) -> Request:
    """The request after a visit that is to be repeated."""
    if cost:
        return msgspec.structs.replace(request, retry_count=request.retry_count + 1)
    return msgspec.structs.replace(request, spared=request.spared + 1)


def first_claims(outcomes: Iterable[Outcome], seen: Callable[[int], bool]) -> tuple[set[int], list[int]]:
    """Of outcomes in their order: the tokens of the duplicates, and the fingerprints that become seen.

    seen: whether a fingerprint was seen before this commit.
    """
    duplicates: set[int] = set()
    claimed: dict[int, None] = {}
    for outcome in outcomes:
        if outcome.aliases and isinstance(outcome.verdict, Done):
            mine = {alias.fingerprint for alias in outcome.aliases} - {outcome.lease.fingerprint}
            fresh = [alias for alias in mine if alias not in claimed and not seen(alias)]
            if len(fresh) < len(mine):
                duplicates.add(outcome.lease.token)
            claimed.update(dict.fromkeys(fresh))
    return duplicates, list(claimed)


def new_worker_id() -> str:
    return f"{socket.gethostname()}-{os.getpid()}-{secrets.token_hex(4)}"


def encode(batch: Sequence[Any]) -> bytes:
    """JSON of a batch that holds requests; raises TaskError if JSON cannot hold one of them."""
    try:
        return msgspec.json.encode(batch)
    except (TypeError, ValueError, msgspec.MsgspecError) as error:
        raise TaskError(f"a request cannot be kept as JSON: {error}") from error


def storable(message: str) -> str:
    """An error message may quote anything from the network; no store takes NUL or half a surrogate pair."""
    return message.replace("\0", "\ufffd").encode("utf-8", "replace").decode("utf-8")


def other_keys(job: str, kept: Sequence[str]) -> str:
    shown = ", ".join(kept[:8]) + (", …" if len(kept) > 8 else "")
    return (
        f"the job {job!r} was created with ignore_params = {shown or 'none'}: that cannot change; "
        "leave it out, choose another --job, or start over with --fresh"
    )


def other_grouping(job: str, kept: str, asked: str) -> str:
    return (
        f"the job {job!r} was created with politeness_by = {kept}, not {asked}: that cannot change; "
        "leave it out, choose another --job, or start over with --fresh"
    )


def check_limits(delay: float | None, cap: int | None) -> None:
    if delay is not None and not 0 <= delay < float("inf"):
        raise ValueError(f"a delay of {delay} seconds: it must be 0 or more")
    if cap is not None and cap < 1:
        raise ValueError(f"a cap of {cap} requests in flight: it must be at least 1")


def pace_of(cap: int | None, per_host: int, pace_cap: int | None, ceiling: int | None) -> int:
    """Requests in flight that a host may have. cap: its own; pace_cap: what its answers have led to."""
    if pace_cap is None or ceiling is None:
        return per_host if cap is None else cap
    return min(pace_cap, ceiling) if cap is None else min(cap, pace_cap, ceiling)


def crash_backoff(deliveries: int, token: int) -> float:
    """Seconds until a request is leased again whose lease was lost for the `deliveries`-th time.

    The jitter comes from the token, so that a page that kills its worker does not meet the same
    innocent neighbours again. `verbs/sweep.sql` computes the same.
    """
    if deliveries <= QUICK_RETURNS:
        return 0.0
    return float(min(60, 1 << min(deliveries - 3, 6))) * (0.5 + token * 619 % 1000 / 1000)


def crash_error(deliveries: int) -> str:
    return f"its worker died or hung {deliveries} times"


def describe_waiting(ahead: int, host: str, priority: int, blocked_until: float, now: float) -> Whereabouts:
    """`ahead`: requests of the same host that go first."""
    if priority == ON_THE_WAY:
        detail = f"waiting for {host}, behind {ahead} others"
    else:
        detail = f"behind {ahead} of {host}, priority {priority}"
    if blocked_until > now:
        detail += f"; the host is blocked until {_moment(blocked_until)}"
    return Whereabouts("waiting", detail)


def on_the_way(found: Whereabouts, request: Request, host: str) -> Whereabouts:
    """With where redirects have led the request, if they have. host: the politeness key there."""
    if request.onward is None:
        return found
    return Whereabouts(found.place, f"redirected to {request.onward.url[:500]}; {found.detail}", host)


def describe_delayed(due: float, retry_count: int, cause: str) -> Whereabouts:
    return Whereabouts("delayed", f"until {_moment(due)}, retry {retry_count}, cause {cause}")


def describe_leased(worker: str, expires: float, deliveries: int) -> Whereabouts:
    return Whereabouts("leased", f"by worker {worker} until {_moment(expires)}, delivery {deliveries}")


def describe_dead(cause: str, error: str, deliveries: int, at: float) -> Whereabouts:
    times = "delivery" if deliveries == 1 else "deliveries"
    return Whereabouts("dead", f"{cause}: {error}; {deliveries} {times}, given up {_moment(at)}")


DONE = Whereabouts("done")
ALIAS = Whereabouts(
    "done", "another address of a page that is done: that page was redirected to it, or has it as canonical"
)
NEVER_SEEN = Whereabouts("never seen")


def not_seen(host: str, taken: int, most: int | None) -> Whereabouts:
    """taken: requests of the host that were counted."""
    if most is None or taken < most:
        return NEVER_SEEN
    return Whereabouts("never seen", f"{host} has its {most:,} pages already (max_pages_per_host)")


def _moment(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds")
