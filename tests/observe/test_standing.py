from __future__ import annotations

import json

import msgspec
import pytest

from silkline.observe.standing import Pace, Standing, as_json, host_line, line, lines
from silkline.outcome import Heartbeat, HostState, Overview, Stats, WorkerState

BEAT = Heartbeat("box", 7, 0.0, pages=1_200, items=3, in_flight=8, ready=16, rate=60.25)
STATS = Stats(waiting=12_345, leased=24, done=5_000, dead=2)


def overview(**fields: object) -> Overview:
    return Overview(**{"stats": STATS, **fields})  # type: ignore[arg-type]


class TestPace:
    def test_the_first_rate_is_what_living_workers_say(self) -> None:
        workers = (WorkerState("a", 1.0, BEAT), WorkerState("b", 2.0, BEAT), WorkerState("gone", 30.0, BEAT))
        found = Pace("shop").standing(overview(workers=workers), 0.0)
        assert (found.rate, found.eta) == (120.5, STATS.open / 120.5)
        assert [worker.id for worker in found.living] == ["a", "b"]

    def test_later_ones_are_what_got_done_in_the_last_seconds(self) -> None:
        pace = Pace("shop")
        found = [pace.standing(overview(stats=Stats(waiting=50, done=d)), t) for t, d in ((0, 0), (10, 100))]
        assert (found[0].rate, found[0].eta) == (None, None)
        assert (found[1].rate, found[1].eta) == (10.0, 5.0)
        for second in range(11, 60):
            last = pace.standing(overview(stats=Stats(waiting=50, done=100)), second)
        assert (last.rate, last.eta) == (0.0, None)

    def test_a_host_with_a_delay_is_not_through_sooner_than_that_allows(self) -> None:
        slow = HostState("https://a:443", waiting=100, delay=30.0)
        usual = HostState("https://b:443", waiting=400, pace=(1, 2.0))
        stats = Stats(waiting=500, done=0)
        for delay, eta in ((0.0, 3_000.0), (10.0, 4_000.0)):
            pace = Pace("shop", delay)
            pace.standing(overview(stats=stats, hosts=(slow, usual)), 0.0)
            later = msgspec.structs.replace(stats, done=10)
            assert pace.standing(overview(stats=later, hosts=(slow, usual)), 1.0).eta == eta

    def test_a_job_is_complete_when_nothing_is_open_and_nobody_is_at_it(self) -> None:
        worker = (WorkerState("a", 1.0, BEAT),)
        assert Standing("shop", overview(stats=Stats(done=3))).complete
        assert not Standing("shop", overview(stats=Stats(done=3), workers=worker)).complete
        assert not Standing("shop", overview(stats=Stats(inbox=1))).complete


FULL = Standing(
    "shop",
    overview(
        hosts=(
            HostState("https://a:443", 12_000, 8, delay=2.0, cap=3, due_in=0.44),
            HostState("https://b:443", 345, 16, due_in=90.0, blocked_for=90.0, pace=(4, 0.25)),
        ),
        host_count=5,
        workers=(
            WorkerState("box-7-ab", 1.0, BEAT),
            WorkerState("box-8-cd", 25.0, Heartbeat("box", 8, 0.0, paused=True)),
        ),
        oldest_lease=3.25,
        live={"paused": "true", "delay": "2"},
        notes=("dedup: none",),
    ),
    rate=120.5,
    eta=102.6,
    reasons={"https://b:443": "12% failures"},
)


def test_all_of_it_as_text() -> None:
    assert list(lines(FULL)) == [
        "shop (paused)",
        "     12,345  waiting",
        "          0  delayed",
        "         24  leased, the oldest for 3.2 s",
        "      5,000  done",
        "          2  dead",
        "          0  inbox",
        "      120/s  done or dead",
        "       1:42  until what is known is through",
        "workers: 2",
        "  box-7-ab  60.2/s, 1,200 pages, 3 items, 8 in flight, 16 ready",
        "  box-8-cd  paused, 0 pages, 0 items, 0 in flight, 0 ready, last heard of 25.0 s ago",
        "hosts: 5, the busiest:",
        "  https://a:443  12,000 waiting, 8 leased, next in 0.4 s, delay 2 s, at most 3 at once",
        "  https://b:443  345 waiting, 16 leased, blocked for 1:30,"
        " pace: at most 4 at once and 4 a second (12% failures)",
        "live settings: paused=true, delay=2",
        "dedup: none",
    ]


@pytest.mark.parametrize(
    ("delay", "said"), [(3.25, "0.31"), (0.25, "4"), (0.075, "13"), (0.01, "100"), (0.0005, "2,000")]
)
def test_a_pace_is_said_in_plain_numbers(delay: float, said: str) -> None:
    host = HostState("https://a:443", pace=(8, delay))
    assert f"pace: at most 8 at once and {said} a second" in host_line(host, "")


def test_in_one_line() -> None:
    assert line(FULL) == (
        "shop (paused): 12,345 waiting, 0 delayed, 24 leased, 5,000 done, 2 dead, 0 inbox,"
        " 1 workers, 120/s, ETA 1:42"
    )


def test_for_programs() -> None:
    found = json.loads(as_json(FULL))
    assert (found["job"], found["waiting"], found["rate"], found["eta"]) == ("shop", 12_345, 120.5, 102.6)
    assert found["workers"][0]["beat"]["pages"] == 1_200
    assert found["hosts"][1]["blocked_for"] == 90.0
    assert found["hosts"][1]["pace"] == {"cap": 4, "delay": 0.25, "why": "12% failures"}
    assert found["hosts"][0]["pace"] is None
    assert (found["host_count"], found["oldest_lease"], found["live"]["delay"]) == (5, 3.25, "2")


def test_what_other_programs_wrote_moves_no_cursor() -> None:
    hostile = overview(
        workers=(WorkerState("a\x1b[2J", 0.0, BEAT),),
        hosts=(HostState("http://\n"),),
        live={"x\n": "\x1b]0;"},
        notes=("\r",),
    )
    for text in [*lines(Standing("j\n", hostile)), line(Standing("j\n", hostile))]:
        assert text.isprintable()


def test_pages_with_dead_items_are_told_beside_the_done_ones() -> None:
    text = list(lines(Standing("shop", overview(stats=Stats(done=5_000), with_dead_items=1_200))))
    assert "      5,000  done, 1,200 of them with dead items" in text
