from __future__ import annotations

import io
from typing import Any

import msgspec
import pytest
from rich.console import Console

from silkline.events import Kept, ProxyFailed, Seeded, Trouble, Visited
from silkline.observe.report import FIELDS_SHOWN, Report, lines, next_steps, render, report_of
from silkline.observe.snapshot import Snapshot
from silkline.observe.tally import Tally
from silkline.outcome import Dead, Done, Lease, Outcome, RetryLater, Stats
from silkline.request import Request

LEASE = Lease(Request("http://127.0.0.1/a"), token=1, fingerprint=2, host="http://127.0.0.1:80")
STATS = Stats(waiting=3, done=20)


def report_after(
    *events: Any,
    reason: str = "finished",
    dead: dict[str, int] | None = None,
    stats: Stats = STATS,
    **more: Any,
) -> Report:
    tally = Tally()
    for event in events:
        tally(event)
    snapshot = Snapshot(job="shop", started=100.0, at=110.0, tally=tally, stats=stats)
    return report_of(snapshot, reason=reason, dead=dead or {}, **more)


def visits(*verdicts: Any) -> list[Visited]:
    return [Visited(Outcome(LEASE, verdict), None, seconds=0.1) for verdict in verdicts]


BUSY = [
    *visits(
        *[Done()] * 7, RetryLater(1.0, "timeout", "slow"), Dead("http_404", "gone"), Dead("dns", "no host")
    ),
    Kept(pages=7, retried=1, dead=2, items=21, links=4, stale=0),
    Seeded(added=1, duplicate=0, invalid=2, reasons=("line 3: no scheme", "line 9: \x1b[2Jnot a URL")),
    Trouble("the site asked for a pause"),
    Trouble("the site asked for a pause"),
]


def shown(report: Report, width: int = 80) -> str:
    console = Console(file=io.StringIO(), width=width, color_system=None)
    console.print(render(report))
    return console.file.getvalue()  # type: ignore[attr-defined]


def test_the_figures_follow_from_the_snapshot() -> None:
    report = report_after(*BUSY, dead={"http_404": 1, "dns": 1}, outputs=["items.csv"])
    assert (report.pages, report.items, report.requests, report.retried) == (7, 21, 10, 1)
    assert (report.seconds, report.pages_per_second) == (10.0, 0.7)
    assert report.success_rate == pytest.approx(0.7)
    assert report.latency is not None
    assert report.latency.p99 == pytest.approx(0.1, rel=0.02)
    assert report.failed == {"timeout": 1, "http_404": 1, "dns": 1}
    assert report.stats == Stats(waiting=3, done=20)


def test_the_proxies_that_failed_most_are_named() -> None:
    failed = [ProxyFailed(f"http://proxy:{n}", "away") for n in range(1, 8) for _ in range(n)]
    report = report_after(*failed)
    assert list(report.proxies_failed.items())[:2] == [("http://proxy:7", 7), ("http://proxy:6", 6)]
    text = "\n".join(lines(report))
    assert "  proxies   http://proxy:7 failed 7 times\n            http://proxy:6 failed 6 times\n" in text
    assert "http://proxy:3 failed 3 times\n            and 2 more have failed" in text
    assert "http://proxy:1 failed once" in "\n".join(lines(report_after(failed[0])))


def test_items_that_are_dead_or_were_dropped_are_counted_by_what_they_are_for() -> None:
    dropped = [
        Visited(Outcome(LEASE, Done()), None, 0.1, items_dropped=by)
        for by in ({"too old": 1}, {"too old": 2, "name is missing": 1})
    ]
    kept = Kept(pages=2, retried=0, dead=0, items=1, links=0, stale=0, dead_items=2)
    report = report_after(*dropped, kept, dead_items={"item": 3, "refused": 1})
    assert report.items_dropped == {"too old": 3, "name is missing": 1}
    text = "\n".join(lines(report))
    assert "  dropped   4 items: too old 3, name is missing 1" in text
    assert "  dead      4 items: item 3, refused 1" in text
    assert "  > silkline dead items list --job shop" in text
    assert "dead items list" not in "\n".join(lines(report_after(frontier="memory:", dead_items={"item": 1})))
    with_letters = "\n".join(lines(report_after(*dropped, dead={"dns": 1}, dead_items={"item": 1})))
    assert "  dead      1: dns 1\n            1 item: item 1" in with_letters


def test_pages_refused_by_rules_that_are_not_shown_are_counted() -> None:
    refusals = [Dead("robots", f"line {rule}") for rule in range(1, 6) for _ in range(6 - rule)]
    report = report_after(*visits(*refusals), dead={"robots": 15})
    assert (report.refused_by, report.refused_more) == ({"line 1": 5, "line 2": 4, "line 3": 3}, 3)
    text = "            3 line 3\n            and 3 more, by other rules"
    assert text in "\n".join(lines(report))
    few = report_after(*visits(*refusals[:12]), dead={"robots": 12})
    assert "more, by" not in "\n".join(lines(few))


def test_a_run_that_fetched_nothing_has_no_rates() -> None:
    report = report_after(reason="already finished")
    assert report.success_rate is None
    assert report.latency is None
    assert "pages " not in "\n".join(lines(report))


def test_a_report_can_be_written_as_json_and_read_back() -> None:
    report = report_after(*BUSY, dead={"dns": 1})
    assert msgspec.json.decode(msgspec.json.encode(report), type=Report) == report


@pytest.mark.parametrize(
    ("reason", "step"),
    [
        ("interrupted", "run the same command again to go on"),
        ("the disk is full", "run the same command again to go on"),
        ("budget", "run the same command with a higher --max-pages to go on"),
        ("already finished", "--fresh starts over"),
    ],
)
def test_each_ending_says_what_to_do_next(reason: str, step: str) -> None:
    report = report_after(reason=reason)
    assert next_steps(report) == [step]
    assert step in shown(report)
    assert step in "\n".join(lines(report))


def test_with_nothing_to_go_a_spent_budget_asks_for_no_more() -> None:
    report = report_after(reason="budget", stats=Stats(done=20))
    assert next_steps(report) == []
    assert "the page budget is spent" in shown(report)


def test_a_finished_run_without_dead_letters_asks_for_nothing() -> None:
    assert next_steps(report_after(*BUSY)) == []


def test_dead_letters_come_with_the_command_that_lists_them() -> None:
    report = report_after(*BUSY, dead={"dns": 1})
    assert next_steps(report) == ["silkline dead list --job shop"]
    assert "s3cret" not in repr(
        report_after(frontier="redis://u:s3cret@h/0", outputs=["mysql://u:s3cret@h/db"])
    )
    elsewhere = report_after(*BUSY, dead={"dns": 1}, frontier="sqlite:///my crawls/a.db")
    assert next_steps(elsewhere) == ["silkline dead list --job shop --frontier 'sqlite:///my crawls/a.db'"]


def test_pages_that_were_mostly_blocked_come_with_the_setting_that_lets_them_through() -> None:
    step = (
        "if you meant your own network: the same command with --allow-private, after silkline dead resend "
        "--job shop --cause blocked"
    )
    private = Dead("blocked", "refused to connect to 10.0.0.1:80 (a private network); or --allow-private")
    port = Dead("blocked", "'http://h:25/' has port 25, where another protocol lives")
    assert step in next_steps(report_after(*visits(*[private] * 3), dead={"blocked": 3, "dns": 2}))
    for dead, found in ((private, {"blocked": 1, "dns": 1}), (port, {"blocked": 1})):
        assert "--allow-private" not in "".join(next_steps(report_after(*visits(dead), dead=found)))


def test_nothing_can_be_done_with_a_frontier_that_was_in_memory() -> None:
    assert next_steps(report_after(reason="interrupted", dead={"dns": 1}, frontier="memory:")) == []


@pytest.mark.parametrize("width", [60, 80, 120])
def test_every_line_fits_the_terminal(width: int) -> None:
    text = shown(
        report_after(*BUSY, dead={f"http_{n}": n for n in range(400, 430)}, outputs=["x" * 200]), width
    )
    assert max(map(len, text.splitlines())) <= width
    assert "http_429" in text


def test_text_from_the_network_cannot_steer_the_terminal() -> None:
    report = report_after(*BUSY, reason="bad \x1b]0;title\x07 \u202e line\nnext")
    for text in (shown(report), "\n".join(lines(report))):
        assert "not a URL" in text
        assert not {"\x1b", "\x07", "\u202e"} & set(text)


def test_repeated_troubles_are_shown_once() -> None:
    text = "\n".join(lines(report_after(*BUSY)))
    assert text.count("the site asked for a pause") == 1
    assert "the site asked for a pause (2 times)" in text


def test_part_files_are_named_with_their_whole_ending() -> None:
    report = report_after(
        outputs=["out.jsonl.gz"], parts={"out.jsonl.gz": ("out.a.jsonl.gz", "out.b.jsonl.gz")}
    )
    assert "2 part files out.*.jsonl.gz" in "\n".join(lines(report))


def test_each_field_of_the_items_has_a_line_and_very_many_are_summed_up() -> None:
    tally = Tally()
    tally.fields.add("Product", {"name": "Chair", "price": 9.5} | {f"f{n}\x1b[2J": None for n in range(60)})
    tally.fields.add("Product", {"name": "Table", "price": "on request"})
    tally.fields.add("Product", {"name": ""})
    snapshot = Snapshot(job="shop", started=100.0, at=110.0, tally=tally)
    text = lines(report_of(snapshot, reason="finished", dead={}))
    assert text[1:4] == [
        "  filled    Product.name: 66.7 % text",
        "            Product.price: 66.7 % number, text",
        "            Product.f0 [2J: 0 %",
    ]
    assert text[FIELDS_SHOWN + 1] == f"            and {62 - FIELDS_SHOWN} fields more"
