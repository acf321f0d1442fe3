"""What the memory frontier tells of its requests and hosts; changes nothing."""

from __future__ import annotations

from collections import Counter

from silkline.frontier import rules
from silkline.frontier.memory_limits import delay_of
from silkline.frontier.memory_places import Places
from silkline.frontier.memory_state import Entry, state_of
from silkline.outcome import Blocked, HostState, Stats, Whereabouts, blocked_of


def stats(places: Places) -> Stats:
    live = len(places.waiting) + len(places.delayed) + len(places.leased) + len(places.dead)
    return Stats(
        waiting=len(places.waiting),
        delayed=len(places.delayed),
        leased=len(places.leased),
        done=len(places.seen) - len(places.aliases) - live,
        dead=len(places.dead),
    )


def busy_hosts(places: Places, now: float) -> list[HostState]:
    """The hosts that have something waiting or leased, the busiest first."""
    waiting, leased = Counter(entry.host for entry in places.waiting.values()), places.in_flight()
    busy = [host for host in places.hosts.values() if waiting[host] or leased[host.key]]
    busy.sort(key=lambda host: (-waiting[host], -leased[host.key], host.key))
    return [
        state_of(host, waiting[host], leased[host.key], delay_of(host, places.options), now) for host in busy
    ]


def blocked(places: Places, most: int, now: float) -> Blocked:
    kept = {entry.host for place in (places.waiting, places.delayed) for entry in place.values()}
    found = [(host.key, host.blocked_until) for host in kept if host.blocked_until > now]
    return blocked_of(found, most, now)


def host(places: Places, key: str, now: float) -> HostState | None:
    host = places.hosts.get(key)
    if host is None:
        return None
    waiting = sum(entry.host is host for entry in places.waiting.values())
    return state_of(host, waiting, places.in_flight()[key], delay_of(host, places.options), now)


def explain(places: Places, host: str, fingerprint: int, now: float) -> Whereabouts:
    """host: the politeness key of the request's own URL."""
    if fingerprint not in places.seen:
        return rules.not_seen(host, places.taken[host], places.options.max_pages_per_host)
    for place in (places.waiting, places.delayed, places.leased, places.dead):
        for entry in place.values():
            if entry.fingerprint == fingerprint:
                return rules.on_the_way(_described(places, entry, place, now), entry.request, entry.host.key)
    return rules.ALIAS if fingerprint in places.aliases else rules.DONE


def _described(places: Places, entry: Entry, place: dict[int, Entry], now: float) -> Whereabouts:
    host, priority = entry.host, rules.priority_of(entry.request)
    if place is places.waiting:
        ahead = sum(
            e.host is host and (-rules.priority_of(e.request), e.id) < (-priority, entry.id)
            for e in places.waiting.values()
        )
        return rules.describe_waiting(ahead, host.key, priority, host.blocked_until, now)
    if place is places.delayed:
        return rules.describe_delayed(entry.due, entry.request.retry_count, entry.cause)
    if place is places.leased:
        return rules.describe_leased(entry.worker, entry.expires, entry.deliveries)
    return rules.describe_dead(entry.cause, entry.error, entry.deliveries, entry.at)
