"""What one process counted since it started."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from itertools import islice

import msgspec

from silkline.errors import ALLOW_PRIVATE
from silkline.events import Event, Kept, LeftAlone, ProxyFailed, Seeded, Trouble, Visited
from silkline.observe import fields, histogram
from silkline.observe.fields import FieldTally
from silkline.observe.histogram import Histogram
from silkline.outcome import NONE_REFUSED, REFUSALS, Dead, Done, Moved, Refused

REASONS_KEPT = 5
TEXTS_KEPT = 20
REFUSALS_KEPT = 50
OTHER_REASONS = "other reasons"
OTHER_PROXIES = "other proxies"
FULL_HOST = "more than max_pages_per_host"


class Tally(msgspec.Struct):
    """Counts of this run, as a `Hook`: call it with every event. Sizes in bytes, durations in seconds.

    Pages, items and links are counted when they are committed (`Kept`); everything about fetching when
    the visit ended (`Visited`), so a visit whose lease was lost counts as a request but not as a page.

    requests: visits that ended and had asked for their page, whatever came of them. unfetched: those that
    failed before they did; they count in `retried` or `dead`, too.
    pages: visits whose page was kept as done.
    links_added: links that were new to the frontier. links_dropped: links that were not followed.
    bytes: of decoded bodies, of saved files as transferred. wire_bytes: of bodies as transferred.
    unmodified: responses whose body the server did not send again. cached: those it was not asked for.
    stale: outcomes that came too late to count.
    duplicates: of the pages, those that another request has, too: their items are dropped.
    dead_items: those that could not be delivered. items_dropped: those that pipeline steps have dropped, by
        the reason, when the visit ended.
    links_refused: links that the crawl's own rules refuse, by the reason; those of pages are dropped, too.
    retried, dead: failed visits by cause, by what they led to.
    private: of the dead, those whose address is one that only `allow_private` lets a crawl connect to.
    refused: pages that the crawl's own rules (robots.txt) kept it from, by cause; they count nowhere else.
    refused_by: the same by the rule, the first few different ones.
    statuses: responses by HTTP status.
    latency: seconds per fetch, failed ones included.
    seeded: what the seeds brought, with the first few reasons of the invalid ones.
    troubles: how often each of the first few different messages came.
    fields: what the items hold, as they are made: those of pages that are visited again count again.
    proxies_failed: how often each of the first few proxies did not do its part; no page need have suffered.
    left_alone: until when (Unix seconds) the last few hosts want to be left alone that have asked for it.
    """

    requests: int = 0
    unfetched: int = 0
    pages: int = 0
    items: int = 0
    links_added: int = 0
    links_dropped: int = 0
    bytes: int = 0
    wire_bytes: int = 0
    unmodified: int = 0
    cached: int = 0
    stale: int = 0
    duplicates: int = 0
    dead_items: int = 0
    items_dropped: dict[str, int] = {}
    links_refused: dict[str, Refused] = {}
    private: int = 0
    retried: dict[str, int] = {}
    dead: dict[str, int] = {}
    refused: dict[str, int] = {}
    refused_by: dict[str, int] = {}
    statuses: dict[int, int] = {}
    latency: Histogram = msgspec.field(default_factory=Histogram)
    seeded: Seeded = Seeded(0, 0, 0)
    troubles: dict[str, int] = {}
    fields: FieldTally = msgspec.field(default_factory=FieldTally)
    proxies_failed: dict[str, int] = {}
    left_alone: dict[str, float] = {}

    @property
    def failed(self) -> dict[str, int]:
        """Failed visits by cause: those to be retried and those given up."""
        return dict(Counter(self.retried.copy()) + Counter(self.dead.copy()))

    @property
    def visits(self) -> int:
        """Those that ended."""
        return self.requests + self.unfetched

    def __call__(self, event: Event) -> None:
        if isinstance(event, Visited):
            self._visited(event)
        elif isinstance(event, Kept):
            self._kept(event)
        elif isinstance(event, Seeded):
            self.seeded = _sum_seeded((self.seeded, event))
        elif isinstance(event, Trouble):
            _count_text(self.troubles, event.message, 1)
        elif isinstance(event, ProxyFailed):
            _count_reason(self.proxies_failed, event.proxy, 1, OTHER_PROXIES)
        elif isinstance(event, LeftAlone):
            _count_text(self.troubles, event.message, 1)
            self.left_alone.pop(event.host, None)
            self.left_alone[event.host] = event.until
            if len(self.left_alone) > TEXTS_KEPT:
                del self.left_alone[next(iter(self.left_alone))]

    def _visited(self, event: Visited) -> None:
        verdict = event.outcome.verdict
        if not isinstance(verdict, Done):
            if isinstance(verdict, Moved):
                return  # it has not ended: it goes on at another host
            if isinstance(verdict, Dead) and verdict.cause in REFUSALS:
                self.refused[verdict.cause] = self.refused.get(verdict.cause, 0) + 1
                _count_text(self.refused_by, verdict.error, 1)
                return
            self.private += verdict.cause == "blocked" and verdict.error.endswith(ALLOW_PRIVATE)
            causes = self.dead if isinstance(verdict, Dead) else self.retried
            causes[verdict.cause] = causes.get(verdict.cause, 0) + 1
        if not event.fetched:
            self.unfetched += 1
            return
        self.requests += 1
        response = event.response
        seconds = event.seconds
        if response is not None:
            # What was saved is not in memory: by what came over the wire.
            self.bytes += len(response.body) if response.saved_to is None else response.wire_bytes
            self.wire_bytes += response.wire_bytes
            if response.from_cache:
                self.unmodified += response.not_modified
                self.cached += not response.not_modified
            status = response.status
            self.statuses[status] = self.statuses.get(status, 0) + 1
            seconds = response.timings.total or seconds
        self.latency.add(seconds)
        if event.dropped_links:
            self.links_dropped += event.dropped_links
            for reason, refused in event.refused.items():
                _count_refused(self.links_refused, reason, refused)
        if event.items_dropped:
            for reason, number in event.items_dropped.items():
                _count_reason(self.items_dropped, reason, number)

    def _kept(self, event: Kept) -> None:
        self.pages += event.pages
        self.items += event.items
        self.links_added += event.links
        self.stale += event.stale
        self.duplicates += event.duplicates
        self.dead_items += event.dead_items
        if event.refused.count:
            _count_refused(self.links_refused, FULL_HOST, event.refused)


def merge(tallies: Iterable[Tally]) -> Tally:
    """All of them in a new one that shares nothing with them."""
    parts = list(tallies)
    return Tally(
        requests=sum(t.requests for t in parts),
        unfetched=sum(t.unfetched for t in parts),
        pages=sum(t.pages for t in parts),
        items=sum(t.items for t in parts),
        links_added=sum(t.links_added for t in parts),
        links_dropped=sum(t.links_dropped for t in parts),
        bytes=sum(t.bytes for t in parts),
        wire_bytes=sum(t.wire_bytes for t in parts),
        unmodified=sum(t.unmodified for t in parts),
        cached=sum(t.cached for t in parts),
        stale=sum(t.stale for t in parts),
        duplicates=sum(t.duplicates for t in parts),
        dead_items=sum(t.dead_items for t in parts),
        items_dropped=_sum_reasons(t.items_dropped for t in parts),
        links_refused=_sum_refused(t.links_refused for t in parts),
        private=sum(t.private for t in parts),
        retried=dict(sum((Counter(t.retried) for t in parts), Counter())),
        dead=dict(sum((Counter(t.dead) for t in parts), Counter())),
        refused=dict(sum((Counter(t.refused) for t in parts), Counter())),
        refused_by=_sum_texts(t.refused_by for t in parts),
        statuses=dict(sum((Counter(t.statuses) for t in parts), Counter())),
        latency=histogram.merge(t.latency for t in parts),
        seeded=_sum_seeded(t.seeded for t in parts),
        troubles=_sum_texts(t.troubles for t in parts),
        fields=fields.merge(t.fields for t in parts),
        proxies_failed=_sum_reasons((t.proxies_failed for t in parts), OTHER_PROXIES),
        left_alone={host: until for t in parts for host, until in t.left_alone.copy().items()},
    )


def _sum_seeded(events: Iterable[Seeded]) -> Seeded:
    parts = list(events)
    return Seeded(
        added=sum(s.added for s in parts),
        duplicate=sum(s.duplicate for s in parts),
        invalid=sum(s.invalid for s in parts),
        refused=sum((s.refused for s in parts), NONE_REFUSED),
        reasons=tuple(islice((reason for s in parts for reason in s.reasons), REASONS_KEPT)),
    )


def _sum_refused(counts: Iterable[dict[str, Refused]]) -> dict[str, Refused]:
    summed: dict[str, Refused] = {}
    for part in counts:
        for reason, refused in part.copy().items():
            _count_refused(summed, reason, refused)
    return summed


def _count_refused(counts: dict[str, Refused], reason: str, refused: Refused) -> None:
    if reason not in counts and len(counts) >= REFUSALS_KEPT:
        reason = OTHER_REASONS
    counts[reason] = counts.get(reason, NONE_REFUSED) + refused


def _sum_reasons(counts: Iterable[dict[str, int]], other: str = OTHER_REASONS) -> dict[str, int]:
    summed: dict[str, int] = {}
    for part in counts:
        for reason, number in part.copy().items():
            _count_reason(summed, reason, number, other)
    return summed


def _count_reason(counts: dict[str, int], reason: str, number: int, other: str = OTHER_REASONS) -> None:
    if reason not in counts and len(counts) >= REFUSALS_KEPT:
        reason = other
    counts[reason] = counts.get(reason, 0) + number


def _sum_texts(counts: Iterable[dict[str, int]]) -> dict[str, int]:
    summed: dict[str, int] = {}
    for part in counts:
        for text, times in part.copy().items():
            _count_text(summed, text, times)
    return summed


def _count_text(counts: dict[str, int], text: str, times: int) -> None:
    if text in counts or len(counts) < TEXTS_KEPT:
        counts[text] = counts.get(text, 0) + times
