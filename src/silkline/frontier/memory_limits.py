"""From when on, and how fast, the hosts of the memory frontier may be asked."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import inf

from silkline.config import FrontierOptions
from silkline.frontier import rules
from silkline.frontier.memory_state import Host
from silkline.outcome import HostPace


def delay_of(host: Host, options: FrontierOptions) -> float:
    own = options.delay if host.delay is None else host.delay
    return own if host.pace is None or options.ceiling is None else max(own, host.pace.delay)


def free_slots(host: Host, options: FrontierOptions, in_flight: int) -> int:
    pace_cap = None if host.pace is None else host.pace.cap
    return rules.pace_of(host.cap, options.per_host, pace_cap, options.ceiling) - in_flight


def room(host: Host, options: FrontierOptions, in_flight: int) -> int:
    """How many requests a due host may get in one lease: free slots, and starts inside the window. There is
    no other worker here that could be left without (see `rules.LEAST_SHARE`)."""
    free, delay = free_slots(host, options, in_flight), delay_of(host, options)
    return free if delay <= 0 else min(free, 1 + int(options.window / delay))


def set_pace(host: Host, pace: HostPace, now: float) -> None:
    """The caller settles the host."""
    host.pace = pace
    if pace.block > 0:
        host.blocked_until = max(host.blocked_until, now + pace.block)
    forget_due(host)


def forget_due(host: Host) -> None:
    """Limits have changed: what the old ones said about when it is due counts no more."""
    for queue in host.queues.values():
        queue.due = inf


def settle(hosts: Iterable[Host], options: FrontierOptions, in_flight: Mapping[str, int], now: float) -> None:
    """Say again from when on each queue of these hosts is due, after anything changed there."""
    for host in set(hosts):
        free = free_slots(host, options, in_flight[host.key])
        earliest = max(host.last_start + delay_of(host, options), host.blocked_until)
        for priority, queue in list(host.queues.items()):
            if not queue.ids:
                del host.queues[priority]
            elif free <= 0:
                queue.due = inf
            else:
                queue.due = max(now if queue.due == inf else queue.due, earliest)
            queue.turn = host.last_token
