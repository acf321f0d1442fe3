"""Keyed sinks: written before the commit, waited for, and relieved of rows that they will not have."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest

from silkline import Crawler, OwnSink, Page
from silkline.engine import delivery as module
from silkline.engine.commit import before_rivals
from silkline.engine.delivery import Delivery
from silkline.engine.refused_rows import REASONS
from silkline.errors import ConfigError, RowsRefused, SinkAwayError, SinkError
from silkline.events import Event, Trouble
from silkline.outcome import Alias, Batch, Committed, Dead, Done, Item, Lease, Outcome, RetryLater
from silkline.request import Request
from silkline.testing import MockFetcher


class Table(OwnSink):
    """Rows by identity, and what was asked of it."""

    def __init__(self, name: str = "table", batch: Batch | None = None) -> None:
        super().__init__(name, batch)
        self.rows: dict[str, Any] = {}
        self.places: dict[str, tuple[int, int]] = {}
        self.calls: list[int] = []
        self.bad: set[Any] = set()
        self.away_until = 0.0
        self.closed = False

    async def write(self, items: Sequence[Item]) -> None:
        await asyncio.sleep(0)
        self.calls.append(len(items))
        if time.monotonic() < self.away_until:
            raise SinkAwayError(f"{self.name} does not answer")
        for item in items:
            if self.row(item)["n"] in self.bad:
                raise RowsRefused("n must be good")
        for item in items:
            self.rows[item.identity] = dict(self.row(item))
            self.places[item.identity] = (item.fingerprint, item.index)

    async def trim(self, pages: Mapping[int, int]) -> None:
        for identity, (page, index) in list(self.places.items()):
            if index >= pages.get(page, index + 1):
                del self.rows[identity], self.places[identity]

    async def close(self) -> None:
        self.closed = True


def outcome(page: int, *numbers: int, deliveries: int = 1, sink: str = "table") -> Outcome:
    lease = Lease(Request(f"https://shop.example/{page}"), page, page, "https://shop.example:443", deliveries)
    items = tuple(
        Item(page, index, {sink: {"n": n}}, fields={"n": n}, size=10) for index, n in enumerate(numbers)
    )
    return Outcome(lease, Done(), items)


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "FIRST_WAIT", 0.01)


async def test_a_row_that_is_refused_becomes_a_dead_item_and_the_others_go_in() -> None:
    table = Table()
    table.bad = {3, 40, 41}
    written = await Delivery([table], lambda event: None).write([outcome(n, n) for n in range(100)])
    assert sorted(row["n"] for row in table.rows.values()) == [n for n in range(100) if n not in table.bad]
    dead = [item for outcome in written for item in outcome.dead_items]
    assert [(d.fingerprint, d.record, d.cause, d.error, d.sink) for d in dead] == [
        (n, f'{{"n":{n}}}', "refused", "n must be good", "table") for n in (3, 40, 41)
    ]
    assert dead[0].url == "https://shop.example/3"
    assert [len(outcome.items) for outcome in written] == [1] * 100
    assert len(table.calls) < 45


async def test_refused_rows_are_warned_of_once_for_each_reason_and_counted_at_the_end() -> None:
    class Strict(Table):
        async def write(self, items: Sequence[Item]) -> None:
            for item in items:
                n = self.row(item)["n"]
                if n < 5:
                    raise RowsRefused(f'invalid input for type integer: "{n}" (Failing row has {n})')
                if n == 5:
                    raise RowsRefused('text 5 does not fit the column "n" (bigint)')
            await super().write(items)

    heard: list[Event] = []
    delivery = Delivery([Strict()], heard.append)
    await delivery.write([outcome(n, n) for n in range(9)])
    first = 'invalid input for type integer: "0" (Failing row has 0)'
    advice = "which is a dead item now (silkline dead items list --cause refused)"
    said = [event.message for event in heard if isinstance(event, Trouble)]
    assert said == [
        f"table refuses a row of https://shop.example/0, {advice}: {first}",
        f"table refuses a row of https://shop.example/5, {advice}: "
        'text 5 does not fit the column "n" (bigint)',
    ]
    delivery.refused.told()
    assert [event.message for event in heard[2:]] == [f"table has refused 5 rows: {first}"]


async def test_reasons_that_differ_from_row_to_row_do_not_fill_the_log() -> None:
    class Fickle(Table):
        async def write(self, items: Sequence[Item]) -> None:
            word = "".join(chr(97 + int(digit)) for digit in str(self.row(items[0])["n"]))
            raise RowsRefused(f"no {word}")

    heard: list[Event] = []
    delivery = Delivery([Fickle()], heard.append)
    await delivery.write([outcome(n, n) for n in range(50)])
    assert len(heard) == REASONS + 1
    delivery.refused.told()
    assert [event.message for event in heard[REASONS + 1 :]] == ["table has refused 40 rows: other reasons"]


async def test_a_sink_that_is_away_is_waited_for_and_said_to_be_once(quick: None) -> None:
    table, heard = Table(), []
    table.away_until = time.monotonic() + 0.2
    await Delivery([table], heard.append).write([outcome(1, 1)])
    assert len(table.rows) == 1
    lines = [event.message for event in heard if isinstance(event, Trouble)]
    assert lines[0] == "table does not answer; waiting for it, nothing is lost"
    assert lines[1].startswith("table is back after 0.")
    assert len(lines) == 2


async def test_who_leaves_waits_for_a_sink_no_longer_than_the_patience(quick: None) -> None:
    table = Table()
    table.away_until = time.monotonic() + 3600
    delivery = Delivery([table], lambda event: None)
    writing = asyncio.create_task(delivery.write([outcome(1, 1)]))
    await asyncio.sleep(0.05)
    delivery.leave(0.1)
    began = time.monotonic()
    with pytest.raises(BaseExceptionGroup) as caught:
        await writing
    assert isinstance(caught.value.exceptions[0], SinkError)
    assert time.monotonic() - began < 2.0


async def test_a_page_that_is_visited_again_leaves_no_row_of_an_earlier_visit() -> None:
    table = Table()
    delivery = Delivery([table], lambda event: None)
    await delivery.write([outcome(1, 10, 11, 12), outcome(2, 20)])
    await delivery.write([outcome(1, 13, deliveries=2)])
    assert sorted(row["n"] for row in table.rows.values()) == [13, 20]
    await delivery.write([outcome(2, deliveries=2), outcome(3, 30)])
    assert sorted(row["n"] for row in table.rows.values()) == [13, 30]


async def test_rows_of_a_page_that_another_request_has_too_are_taken_back() -> None:
    table = Table()
    delivery = Delivery([table], lambda event: None)
    outcomes = [outcome(1, 10), outcome(2, 20)]
    await delivery.write(outcomes)
    accepted = (outcomes[0], Outcome(outcomes[1].lease, Done(), aliases=(Alias("h", 1),)))
    await delivery.settle(outcomes, Committed(accepted, duplicates=1))
    assert [row["n"] for row in table.rows.values()] == [10]


async def test_rows_stay_until_a_page_that_is_visited_for_its_dead_items_is_done_again() -> None:
    table = Table()
    delivery = Delivery([table], lambda event: None)
    first = outcome(1, 10, 11)
    await delivery.write([first])
    request = msgspec.structs.replace(first.lease.request, redo=((2, "table"),), retry_count=1)
    lease = msgspec.structs.replace(first.lease, request=request)
    for verdict in (RetryLater(1.0, "timeout", ""), Dead("http_404", "")):
        await delivery.write([Outcome(lease, verdict)])
        assert [row["n"] for row in table.rows.values()] == [10, 11]
    await delivery.write([msgspec.structs.replace(outcome(1, 12), lease=lease)])
    assert [row["n"] for row in table.rows.values()] == [12]


async def test_a_page_without_items_any_more_leaves_no_row_of_an_earlier_visit() -> None:
    table = Table()
    delivery = Delivery([table], lambda event: None)
    await delivery.write([outcome(1, 10)])
    await delivery.write([outcome(1, deliveries=2)])
    assert table.rows == {}


def test_pages_that_may_be_one_are_not_delivered_at_once() -> None:
    one, other = (Alias("h", 7),), (Alias("h", 8),)
    a, b, c, d = (
        msgspec.structs.replace(outcome(n, *numbers), aliases=aliases)
        for n, (numbers, aliases) in enumerate([((1,), one), ((), one), ((2,), other), ((3,), one)])
    )
    assert before_rivals([a, b, c, d]) == [a, b, c]
    assert before_rivals([d, c]) == [d, c]
    assert before_rivals([]) == []


async def test_of_two_items_with_one_key_the_later_counts() -> None:
    table = Table()
    items = tuple(Item(1, n, {"table": {"n": n}}, key="sku-1") for n in range(3))
    await Delivery([table], lambda event: None).write([Outcome(outcome(1).lease, Done(), items)])
    assert table.rows == {"sku-1": {"n": 2}}
    assert table.calls == [1]


def shop(count: int) -> MockFetcher:
    links = "".join(f'<a href="/{n}"></a>' for n in range(count))
    pages = {f"https://shop.example/{n}": f"<title>{n}</title>" for n in range(count)}
    return MockFetcher({"https://shop.example/": links, **pages})


def crawled(tmp_path: Path, table: OwnSink, count: int, **settings: Any) -> Any:
    heard: list[Event] = []
    crawler = Crawler(
        "job",
        fetcher=shop(count),
        frontier=f"sqlite:///{tmp_path}/job.db",
        sinks=[table],
        hooks=[heard.append],
        quiet=True,
        **{"per_host": 64, "robots": False, "adaptive": False, **settings},
    )

    @crawler.handler
    def page(page: Page) -> Any:
        if page.title:
            yield {"n": int(page.title)}
        yield page.follow("a")

    return crawler.run("https://shop.example/"), heard


def test_a_crawl_delivers_every_item_in_batches_and_closes_the_sink(tmp_path: Path) -> None:
    table = Table(batch=Batch(count=100, seconds=0.5))
    report, _ = crawled(tmp_path, table, 300)
    assert report.items == 300
    assert sorted(row["n"] for row in table.rows.values()) == list(range(300))
    assert table.closed


def test_a_sink_that_is_away_holds_back_the_leasing_and_the_crawl_goes_on(
    tmp_path: Path, quick: None
) -> None:
    table = Table(batch=Batch(count=10))
    table.away_until = time.monotonic() + 1.5
    report, _ = crawled(tmp_path, table, 500, concurrency=4)
    assert len(table.rows) == report.items == 500
    assert max(table.calls) <= 50


def test_a_sink_that_fails_for_good_ends_the_crawl_and_nothing_is_committed(tmp_path: Path) -> None:
    class Broken(Table):
        async def write(self, items: Sequence[Item]) -> None:
            raise SinkError("the table is gone")

    with pytest.raises(SinkError, match="the table is gone"):
        crawled(tmp_path, Broken(), 10)
    table = Table()
    report, _ = crawled(tmp_path, table, 10)
    assert len(table.rows) == report.items == 10


@pytest.mark.parametrize("frontier", ["sqlite", "memory"])
def test_what_another_page_has_too_is_never_written(tmp_path: Path, frontier: str) -> None:
    class Noting(Table):
        async def write(self, items: Sequence[Item]) -> None:
            await super().write(items)
            written.extend(self.row(item)["n"] for item in items)

    written: list[int] = []
    table = Noting(batch=Batch(count=50, seconds=0.05))
    home = "".join(f'<a href="/{n}"></a>' for n in range(60))
    moved = {
        f"https://shop.example/{n}": (302, {"Location": f"/login/{n % 3}"}, "<title>moved</title>")
        for n in range(60)
    }
    logins = {f"https://shop.example/login/{n}": f"<title>{n}</title>" for n in range(3)}
    crawler = Crawler(
        "job",
        fetcher=MockFetcher({"https://shop.example/": home, **moved, **logins}),
        frontier="memory:" if frontier == "memory" else f"sqlite:///{tmp_path}/job.db",
        sinks=[table],
        quiet=True,
        per_host=64,
        robots=False,
        adaptive=False,
    )

    @crawler.handler
    def page(page: Page) -> Any:
        yield {"n": int(page.title)} if page.title else None
        yield page.follow("a")

    report = crawler.run("https://shop.example/")
    assert sorted(written) == [0, 1, 2]
    assert (report.items, report.duplicates) == (3, 57)


def test_two_outputs_of_one_name_are_refused(tmp_path: Path) -> None:
    crawler = Crawler("job", sinks=[Table("a"), Table("a")], frontier="memory:", quiet=True)
    crawler.handler(lambda page: None)
    with pytest.raises(ConfigError, match="two outputs have the name 'a'"):
        crawler.run("https://shop.example/")


async def test_a_server_that_is_away_at_the_start_ends_the_run_and_says_so() -> None:
    class Away(Table):
        async def open(self) -> None:
            raise SinkAwayError("table is away")

    delivery = Delivery([Away()], lambda event: None)
    with pytest.raises(SinkAwayError, match="table is away; when a crawl starts it has to answer"):
        await delivery.open()
    await delivery.close()


def test_a_sink_of_ones_own_is_in_the_report(tmp_path: Path) -> None:
    report, _ = crawled(tmp_path, Table("shelf"), 1)
    assert report.outputs == ("shelf",)


@pytest.mark.parametrize(
    ("method", "kind", "line"),
    [
        ("open", ConfigError, "output 'shelf' cannot open: RuntimeError: no luck; --debug shows where"),
        ("write", SinkError, "output 'shelf' cannot write: RuntimeError: no luck; --debug shows where"),
    ],
)
def test_what_a_sinks_own_code_raises_names_the_sink(
    tmp_path: Path, method: str, kind: type[Exception], line: str
) -> None:
    async def broken(self: Any, *_: Any) -> None:
        raise RuntimeError("no\nluck")

    with pytest.raises(kind) as caught:
        crawled(tmp_path, type("Shelf", (Table,), {method: broken})("shelf"), 1)
    assert str(caught.value) == line


class Heap:
    """A sink with positions of its own, see `protocols.Sink`."""

    name = "heap"

    def open(self, position: str | None) -> None:
        """Nothing to do."""

    def encode(self, item: Mapping[str, Any]) -> Any:
        return dict(item)

    def write(self, items: Sequence[Item], position: str | None) -> str:
        return str(int(position or 0) + len(items))

    def finish(self, position: str | None) -> str | None:
        return position

    def close(self) -> None:
        """Nothing to do."""


@pytest.mark.parametrize(
    ("method", "kind"), [("open", ConfigError), ("write", SinkError), ("finish", SinkError)]
)
def test_what_the_code_of_a_sink_with_positions_raises_names_the_sink(
    tmp_path: Path, method: str, kind: type[Exception]
) -> None:
    def broken(self: Any, items: Any, position: Any = None) -> Any:
        if method != "write" or items:
            raise RuntimeError("no\nluck")

    with pytest.raises(kind) as caught:
        crawled(tmp_path, type("Broken", (Heap,), {method: broken})(), 1)
    assert str(caught.value) == f"output 'heap' cannot {method}: RuntimeError: no luck; --debug shows where"


def test_a_sink_that_cannot_write_is_refused_at_once(tmp_path: Path) -> None:
    class Plain(OwnSink):
        def write(self, items: Any) -> None:  # type: ignore[override]
            """Not async."""

    class Nameless(OwnSink):
        def __init__(self) -> None:
            """Without its base's."""

    for sink in (OwnSink("shelf"), Plain("shelf")):
        with pytest.raises(ConfigError, match=r"the sink 'shelf': \w+ has no method `async def write"):
            crawled(tmp_path, sink, 1)
    with pytest.raises(ConfigError, match="the sink Nameless has no name"):
        crawled(tmp_path, Nameless(), 1)
