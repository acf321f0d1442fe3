from __future__ import annotations

import msgspec
import pytest

from silkline.events import Kept
from silkline.observe.snapshot import Phase, Snapshot, merge
from silkline.observe.tally import Tally
from silkline.outcome import Stats


def snapshot(
    worker: str, at: float, *, pages: int = 0, stats: Stats | None = None, phase: Phase = "crawling"
):
    tally = Tally()
    tally(Kept(pages=pages, retried=0, dead=0, items=0, links=0, stale=0))
    return Snapshot(
        job="shop",
        worker=worker,
        started=100.0,
        at=at,
        in_flight=3,
        ready=2,
        stats=stats,
        tally=tally,
        phase=phase,
    )


def test_a_snapshot_survives_the_wire_and_stays_small() -> None:
    before = snapshot("1", 105.0, pages=7, stats=Stats(waiting=4))
    before.tally.statuses[200] = 7
    data = msgspec.msgpack.encode(before)
    assert msgspec.msgpack.decode(data, type=Snapshot) == before
    assert len(data) < 2_000


def test_what_is_no_snapshot_is_refused() -> None:
    with pytest.raises(msgspec.DecodeError):
        msgspec.msgpack.decode(b"\x93\x01\x02\x03", type=Snapshot)


def test_merging_adds_what_each_process_did() -> None:
    merged = merge([snapshot("1", 105.0, pages=7), snapshot("2", 106.0, pages=5)])
    assert (merged.tally.pages, merged.in_flight, merged.ready, merged.processes) == (12, 6, 4, 2)
    assert (merged.started, merged.at, merged.seconds) == (100.0, 106.0, 6.0)


def test_the_shared_frontier_is_not_added_up_but_taken_from_the_newest() -> None:
    merged = merge(
        [
            snapshot("1", 105.0, stats=Stats(waiting=10)),
            snapshot("2", 106.0, stats=Stats(waiting=8)),
            snapshot("3", 107.0),
        ]
    )
    assert merged.stats == Stats(waiting=8)
    assert merge([snapshot("1", 105.0)]).stats is None


@pytest.mark.parametrize(
    ("phases", "expected"),
    [
        (["starting", "starting"], "starting"),
        (["starting", "crawling"], "crawling"),
        (["crawling", "stopping"], "stopping"),
        (["finished", "crawling"], "crawling"),
        (["finished", "finished"], "finished"),
        (["finished", "interrupted"], "interrupted"),
        (["interrupted", "spent"], "interrupted"),
        (["interrupted", "crawling"], "crawling"),
    ],
)
def test_the_phase_of_several_processes(phases: list[Phase], expected: Phase) -> None:
    assert merge([snapshot(str(n), 105.0, phase=phase) for n, phase in enumerate(phases)]).phase == expected


def test_merging_nothing_is_a_mistake() -> None:
    with pytest.raises(ValueError, match="no snapshots"):
        merge([])
