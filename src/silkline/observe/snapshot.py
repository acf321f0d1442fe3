"""The state of a running crawl at one moment, as one process sends it to another."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import msgspec

from silkline.observe import tally as tallies
from silkline.observe.tally import Tally
from silkline.outcome import Stats

Phase = Literal["starting", "crawling", "paused", "stopping", "finished", "spent", "interrupted"]

ENDED: tuple[Phase, ...] = ("interrupted", "spent", "finished")
"""The phases of a process that has ended; of several, the first one is said of all of them."""


class Snapshot(msgspec.Struct, frozen=True, kw_only=True):
    """What is known at the moment `at`.

    worker: which process this is from; "" for several merged.
    processes: how many processes are counted here.
    started, at: Unix seconds.
    in_flight: visits that are running. ready: leased, but not started.
    stats: sizes of the whole frontier, however many processes share it; None where nobody asked it.
    tally: may be the live one of this process, which goes on counting.
    seeding: seeds are still being read.
    allowed: visits that may run at once, as the machine can bear. late: seconds, of the event loop.
    memory: bytes that this process takes, or its container where that has a limit.
    """

    job: str
    started: float
    at: float
    tally: Tally
    worker: str = ""
    processes: int = 1
    in_flight: int = 0
    ready: int = 0
    stats: Stats | None = None
    phase: Phase = "starting"
    seeding: bool = False
    allowed: int = 0
    late: float = 0.0
    memory: int = 0

    @property
    def seconds(self) -> float:
        """How long the crawl has been running."""
        return max(0.0, self.at - self.started)


def merge(snapshots: Sequence[Snapshot]) -> Snapshot:
    """One snapshot for several processes of one job; of a process that has ended, pass its last one.

    Raises ValueError if there are none.
    """
    if not snapshots:
        raise ValueError("no snapshots to merge")
    counted = [s for s in snapshots if s.stats is not None]
    return Snapshot(
        job=snapshots[0].job,
        started=min(s.started for s in snapshots),
        at=max(s.at for s in snapshots),
        tally=tallies.merge(s.tally for s in snapshots),
        worker=snapshots[0].worker if len(snapshots) == 1 else "",
        processes=sum(s.processes for s in snapshots),
        in_flight=sum(s.in_flight for s in snapshots),
        ready=sum(s.ready for s in snapshots),
        stats=max(counted, key=lambda s: s.at).stats if counted else None,
        phase=_merge_phases({s.phase for s in snapshots}),
        seeding=any(s.seeding for s in snapshots),
        allowed=sum(s.allowed for s in snapshots),
        late=max(s.late for s in snapshots),
        memory=max(s.memory for s in snapshots),
    )


def _merge_phases(phases: set[Phase]) -> Phase:
    if "stopping" in phases:
        return "stopping"
    if phases <= set(ENDED):
        return next(phase for phase in ENDED if phase in phases)
    if "crawling" not in phases and "paused" in phases:
        return "paused"
    return "starting" if phases == {"starting"} else "crawling"
