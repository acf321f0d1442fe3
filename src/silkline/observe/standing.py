"""How a job stands, for its operator: what `silkline status` shows."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from silkline.live import MAX_TEXT
from silkline.observe import figures
from silkline.outcome import NONE_REFUSED, HostState, Overview, Refused, Stats, WorkerState
from silkline.resolve import without_passwords

LIVING = 10.0
"""Seconds since its last heartbeat for which a worker counts as living: it beats every two seconds."""

WINDOW = 20.0
"""Seconds over which a rate is taken."""


class Standing(msgspec.Struct, frozen=True):
    """An overview with what follows from it.

    rate: requests done or dead a second; None where it is not known.
    eta: seconds until what is open now is through at that rate, and at the delays of the hosts that wait for
        the most; new links make it later.
    reasons: of the paces of hosts, by their keys. refused: seeds that the last reading left out.
    """

    job: str
    overview: Overview
    rate: float | None = None
    eta: float | None = None
    reasons: Mapping[str, str] = {}
    refused: Refused = NONE_REFUSED

    @property
    def living(self) -> tuple[WorkerState, ...]:
        return tuple(worker for worker in self.overview.workers if worker.seen < LIVING)

    @property
    def complete(self) -> bool:
        """Nothing is left to do, and nobody is there to do it."""
        return not self.overview.stats.open and not self.living


class Pace:
    """Overviews of one job in a row, from which its rate is taken: by what got done between them. Of the
    first one it is what the workers say of themselves.

    delay: of the job, in seconds between two pages of a host."""

    def __init__(self, job: str, delay: float = 0.0) -> None:
        self._job = job
        self._delay = delay
        self._samples: deque[tuple[float, int]] = deque()

    def standing(self, overview: Overview, at: float) -> Standing:
        """`at`: seconds of a clock that never goes back."""
        stats = overview.stats
        self._samples.append((at, stats.done + stats.dead))
        while len(self._samples) > 2 and self._samples[1][0] <= at - WINDOW:
            self._samples.popleft()
        plain = Standing(self._job, overview)
        (since, before), (now, settled) = self._samples[0], self._samples[-1]
        if now > since:
            rate: float | None = max(0, settled - before) / (now - since)
        else:
            rate = sum(worker.beat.rate for worker in plain.living) if plain.living else None
        return Standing(self._job, overview, rate, self._eta(overview, rate))

    def _eta(self, overview: Overview, rate: float | None) -> float | None:
        """None where nothing is left, or nothing gets done."""
        if not rate or not overview.stats.open:
            return None
        delays = (host.waiting * _delay_of(host, self._delay) for host in overview.hosts)
        return max(overview.stats.open / rate, *delays, 0.0)


def _delay_of(host: HostState, usual: float) -> float:
    own = usual if host.delay is None else host.delay
    return own if host.pace is None else max(own, host.pace[1])


def lines(standing: Standing) -> Iterator[str]:
    """As plain text."""
    overview = standing.overview
    yield figures.one_line(standing.job) + (" (paused)" if is_paused(overview.live) else "")
    for place, number in msgspec.structs.asdict(overview.stats).items():
        note = ""
        if place == "leased" and overview.oldest_lease is not None:
            note = f", the oldest for {_short(overview.oldest_lease)}"
        elif place == "done" and overview.with_dead_items:
            note = f", {figures.count(overview.with_dead_items)} of them with dead items"
        yield f"{number:>11,}  {place}{note}"
    if standing.rate is not None:
        yield f"{figures.rate(standing.rate):>11}  done or dead"
    if standing.eta is not None:
        yield f"{figures.elapsed(standing.eta):>11}  until what is known is through"
    if standing.refused.count:
        text = f"{standing.refused.count:>11,}  seeds left out, more than max_pages_per_host: "
        yield text + figures.one_line(without_passwords(standing.refused.example))
    yield from _workers(overview.workers)
    yield from _hosts(overview, standing.reasons)
    if overview.live:
        told = (
            f"{figures.one_line(name, MAX_TEXT)}={figures.one_line(text, MAX_TEXT)}"
            for name, text in overview.live.items()
        )
        yield f"live settings: {', '.join(told)}"
    yield from (figures.one_line(note) for note in overview.notes)


def line(standing: Standing) -> str:
    """As one line, for a log or a pipe."""
    overview, count = standing.overview, figures.count
    parts = [f"{count(number)} {place}" for place, number in msgspec.structs.asdict(overview.stats).items()]
    parts.append(f"{len(standing.living)} workers")
    if standing.rate is not None:
        parts.append(figures.rate(standing.rate))
    if standing.eta is not None:
        parts.append(f"ETA {figures.elapsed(standing.eta)}")
    paused = " (paused)" if is_paused(overview.live) else ""
    return f"{figures.one_line(standing.job)}{paused}: {', '.join(parts)}"


def as_json(standing: Standing) -> bytes:
    """For programs: the sizes at the top, the rest beside them."""
    overview = msgspec.structs.asdict(standing.overview)
    stats: Stats = overview.pop("stats")
    fields: dict[str, Any] = {"job": standing.job, **msgspec.structs.asdict(stats)}
    overview["hosts"] = [host_fields(host, standing.reasons.get(host.key, "")) for host in overview["hosts"]]
    fields |= {"rate": standing.rate, "eta": standing.eta, "refused_seeds": standing.refused}
    return msgspec.json.encode(fields | overview)


def host_fields(host: HostState, reason: str) -> dict[str, Any]:
    """For programs. reason: of its pace."""
    fields = msgspec.structs.asdict(host)
    del fields["pace_state"]
    if host.pace is not None:
        fields["pace"] = {"cap": host.pace[0], "delay": host.pace[1], "why": reason}
    return fields


def host_line(host: HostState, reason: str) -> str:
    """As plain text. reason: of its pace."""
    return f"{figures.one_line(host.key)}  " + ", ".join(_of_host(host, reason))


def _workers(workers: tuple[WorkerState, ...]) -> Iterator[str]:
    if not workers:
        return
    yield f"workers: {len(workers)}"
    for worker in workers:
        beat, count = worker.beat, figures.count
        doing = "paused" if beat.paused else f"{figures.rate(beat.rate)}"
        gone = "" if worker.seen < LIVING else f", last heard of {_short(worker.seen)} ago"
        yield (
            f"  {figures.one_line(worker.id)}  {doing}, {count(beat.pages)} pages, {count(beat.items)} items,"
            f" {beat.in_flight} in flight, {beat.ready} ready{gone}"
        )


def _hosts(overview: Overview, reasons: Mapping[str, str]) -> Iterator[str]:
    if not overview.hosts:
        return
    more = overview.host_count - len(overview.hosts)
    yield f"hosts: {figures.count(overview.host_count)}" + (", the busiest:" if more > 0 else "")
    for host in overview.hosts:
        yield f"  {host_line(host, reasons.get(host.key, ''))}"


def _of_host(host: HostState, reason: str) -> Iterator[str]:
    yield f"{figures.count(host.waiting)} waiting"
    yield f"{host.leased} leased"
    if host.blocked_for:
        yield f"blocked for {_short(host.blocked_for)}"
    elif host.due_in:
        yield f"next in {_short(host.due_in)}"
    if host.delay is not None:
        yield f"delay {host.delay:g} s"
    if host.cap is not None:
        yield f"at most {host.cap} at once"
    if host.pace is not None:
        cap, delay = host.pace
        pace = f"at most {cap} at once" + (f" and {_rate(1.0 / delay)} a second" if delay else "")
        yield f"pace: {pace}" + (f" ({figures.one_line(reason)})" if reason else "")


def _rate(per_second: float) -> str:
    return f"{per_second:.2g}" if per_second < 9.95 else f"{per_second:,.0f}"


def _short(seconds: float) -> str:
    return f"{seconds:.1f} s" if seconds < 60 else figures.elapsed(seconds)


def is_paused(live: Mapping[str, str]) -> bool:
    """Whether these live settings, raw, pause the job."""
    return live.get("paused", "").strip().lower() in ("true", "yes", "on", "1")
