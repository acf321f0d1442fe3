from __future__ import annotations

import msgspec
import pytest

from silkline.events import Kept, ProxyFailed, Seeded, Stopping, Trouble, Visited
from silkline.observe.tally import OTHER_PROXIES, REASONS_KEPT, REFUSALS_KEPT, TEXTS_KEPT, Tally, merge
from silkline.outcome import Dead, Done, Lease, Outcome, RetryLater, Verdict
from silkline.request import Request
from silkline.response import Response, Timings

LEASE = Lease(Request("http://127.0.0.1/a"), token=1, fingerprint=2, host="http://127.0.0.1:80")


def visited(verdict: Verdict, *, status: int | None = None, dropped: int = 0) -> Visited:
    response = None
    if status is not None:
        timings = Timings(first_byte=0.1, total=0.2)
        response = Response(
            LEASE.request.url, status, (), b"x" * 100, LEASE.request, timings=timings, wire_bytes=40
        )
    return Visited(Outcome(LEASE, verdict), response, seconds=3.0, dropped_links=dropped)


def tally_of(*events: Visited | Kept | Seeded | Trouble | Stopping) -> Tally:
    tally = Tally()
    for event in events:
        tally(event)
    return tally


def test_pages_and_items_count_only_when_they_are_committed() -> None:
    tally = tally_of(visited(Done(), status=200), visited(Done(), status=200))
    assert (tally.requests, tally.pages, tally.items) == (2, 0, 0)
    tally(Kept(pages=1, retried=0, dead=0, items=5, links=7, stale=1))
    assert (tally.requests, tally.pages, tally.items) == (2, 1, 5)
    assert (tally.links_added, tally.stale) == (7, 1)


def test_a_failed_visit_counts_once_under_its_cause() -> None:
    tally = tally_of(
        visited(RetryLater(1.0, "timeout", "too slow")),
        visited(RetryLater(1.0, "http_503", "HTTP status 503"), status=503),
        visited(Dead("timeout", "too slow")),
        visited(Dead("http_404", "HTTP status 404"), status=404),
    )
    assert tally.retried == {"timeout": 1, "http_503": 1}
    assert tally.dead == {"timeout": 1, "http_404": 1}
    assert tally.failed == {"timeout": 2, "http_503": 1, "http_404": 1}
    assert tally.statuses == {503: 1, 404: 1}
    assert tally.requests == 4


def test_a_visit_that_asked_for_nothing_is_no_request() -> None:
    unfetched = msgspec.structs.replace(visited(Dead("label", "no handler")), fetched=False)
    tally = tally_of(visited(Done(), status=200), unfetched)
    assert (tally.requests, tally.unfetched, tally.dead) == (1, 1, {"label": 1})
    assert tally.latency.quantile(0.99) == pytest.approx(0.2, rel=0.02)
    both = merge([tally, tally])
    assert (both.requests, both.unfetched, both.visits) == (2, 2, 4)


def test_bytes_are_of_the_body_and_of_the_wire() -> None:
    tally = tally_of(visited(Done(), status=200, dropped=3))
    assert (tally.bytes, tally.wire_bytes, tally.links_dropped) == (100, 40, 3)


def test_latency_is_the_fetch_or_else_the_visit() -> None:
    assert tally_of(visited(Done(), status=200)).latency.quantile(0.5) == pytest.approx(0.2, rel=0.02)
    assert tally_of(visited(Dead("dns", "no such host"))).latency.quantile(0.5) == pytest.approx(
        3.0, rel=0.02
    )


def test_seeds_add_up_and_keep_the_first_reasons() -> None:
    first = Seeded(added=5, duplicate=1, invalid=4, reasons=("a", "b", "c", "d"))
    second = Seeded(added=2, duplicate=0, invalid=3, reasons=("e", "f", "g"))
    tally = tally_of(first, second)
    assert (tally.seeded.added, tally.seeded.duplicate, tally.seeded.invalid) == (7, 1, 7)
    assert tally.seeded.reasons == ("a", "b", "c", "d", "e")
    assert len(tally.seeded.reasons) == REASONS_KEPT


def test_troubles_are_bounded_and_repeats_are_counted() -> None:
    tally = tally_of(*(Trouble(f"trouble {n % 100}") for n in range(300)))
    assert len(tally.troubles) == TEXTS_KEPT
    assert tally.troubles["trouble 0"] == 3
    assert len(merge([tally, tally_of(Trouble("one more"))]).troubles) == TEXTS_KEPT


def test_stopping_counts_nothing() -> None:
    assert tally_of(Stopping("finished")) == Tally()


def test_what_the_cache_gave_is_counted_by_whether_the_server_was_asked() -> None:
    fetched = visited(Done(), status=200)
    assert fetched.response is not None
    unmodified, cached = (
        msgspec.structs.replace(
            fetched, response=msgspec.structs.replace(fetched.response, from_cache=True, not_modified=asked)
        )
        for asked in (True, False)
    )
    parts = [tally_of(fetched, unmodified, unmodified), tally_of(unmodified, cached)]
    assert [(part.unmodified, part.cached) for part in parts] == [(2, 0), (1, 1)]
    assert (merge(parts).unmodified, merge(parts).cached) == (3, 1)


def test_a_merge_equals_one_tally_of_all_events() -> None:
    one = [visited(Done(), status=200, dropped=2), Kept(1, 0, 0, 2, 3, 0), Trouble("x"), Seeded(1, 0, 0)]
    other = [
        visited(RetryLater(1.0, "timeout", "slow")),
        visited(Dead("http_404", "HTTP status 404"), status=404),
        Kept(0, 1, 1, 0, 4, 1),
        Trouble("x"),
        Seeded(0, 2, 1, ("line 3: no URL",)),
    ]
    assert merge([tally_of(*one), tally_of(*other)]) == tally_of(*one, *other)


def test_a_merge_shares_nothing_with_its_parts() -> None:
    part = tally_of(visited(Dead("dns", "no such host")), Trouble("x"))
    before = msgspec.msgpack.encode(part)
    merged = merge([part])
    for event in (visited(Dead("dns", "no such host")), Trouble("x"), Kept(1, 0, 0, 1, 1, 1)):
        merged(event)
    assert msgspec.msgpack.encode(part) == before


def test_dropped_items_count_by_a_bounded_number_of_reasons() -> None:
    tallies = [Tally(), Tally()]
    for n in range(REFUSALS_KEPT + 30):
        event = Visited(Outcome(LEASE, Done()), None, seconds=0.1, items_dropped={f"reason {n}": 2})
        tallies[n % 2](event)
    both = merge(tallies)
    assert len(both.items_dropped) <= REFUSALS_KEPT + 1
    assert sum(both.items_dropped.values()) == 2 * (REFUSALS_KEPT + 30)
    kept = Kept(pages=1, retried=0, dead=0, items=0, links=0, stale=0, dead_items=3)
    tallies[0](kept)
    assert merge(tallies).dead_items == 3


def test_failures_of_proxies_count_for_a_bounded_number_of_proxies() -> None:
    tallies = [Tally(), Tally()]
    for n in range(REFUSALS_KEPT + 30):
        tallies[n % 2](ProxyFailed(f"http://proxy:{n}", "the proxy cannot be reached"))
    both = merge(tallies)
    assert len(both.proxies_failed) == REFUSALS_KEPT + 1
    assert both.proxies_failed[OTHER_PROXIES] == 30


def test_the_bytes_of_a_saved_file_are_those_that_came() -> None:
    event = visited(Done(), status=200)
    saved = msgspec.structs.replace(event.response, body=b"", wire_bytes=12_345, saved_to="/tmp/f")
    tally = tally_of(msgspec.structs.replace(event, response=saved))
    assert tally.bytes == 12_345
