"""Items on their way to outputs: dead ones, visited again, with keys, and for some outputs only."""

from __future__ import annotations

import asyncio
import contextlib
import json
import sqlite3
import uuid
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any, TypeVar

import pytest
from tests import servers

from silkline import Crawler, OwnSink, Page
from silkline.config import FrontierOptions
from silkline.engine.items import ItemMaker
from silkline.errors import ItemError, RowsRefused
from silkline.events import Event, Visited
from silkline.frontier.open import frontier_from
from silkline.items import To
from silkline.outcome import DeadItem, Item, Lease
from silkline.protocols import Frontier
from silkline.request import Request
from silkline.sinks.choose import called
from silkline.testing import MockFetcher

T = TypeVar("T")
HOME = "https://shop.example/"
PAGES: dict[str, Any] = {
    HOME: "<h1>x</h1>",
    f"{HOME}old": (301, {"Location": "/new"}, ""),
    f"{HOME}new": "<h1>y</h1>",
}


class Table(OwnSink):
    """Rows by identity; `bad` ones are refused, and `odd` ones cannot be encoded."""

    def __init__(self, name: str = "table") -> None:
        super().__init__(name)
        self.rows: dict[str, Any] = {}
        self.bad: set[Any] = set()
        self.odd: set[Any] = set()

    def encode(self, fields: Mapping[str, Any]) -> Any:
        if fields["n"] in self.odd:
            raise ItemError("too odd")
        return fields

    async def write(self, items: Sequence[Item]) -> None:
        if any(self.row(item)["n"] in self.bad for item in items):
            raise RowsRefused("n must be good")
        self.rows |= {item.identity: dict(self.row(item)) for item in items}


@dataclass
class Product:
    n: int
    price: Decimal | None = None


class Job:
    """A job of which every run may have other code."""

    def __init__(self, folder: Path, url: str = "") -> None:
        self.folder = folder
        self.url = url or f"sqlite:///{folder}/job.db"
        self.name = f"job-{uuid.uuid4().hex[:8]}"
        self.lines = folder / "out.jsonl"
        self.other = folder / "other.csv"

    def crawler(self, *sinks: Any, **settings: Any) -> Crawler:
        return Crawler(
            self.name,
            fetcher=MockFetcher(PAGES),
            frontier=self.url,
            sinks=sinks,
            quiet=True,
            **{"outputs": [str(self.lines)], **settings},
        )

    def run(self, values: Sequence[Any], *sinks: Any, seeds: Sequence[str] = (HOME,), **settings: Any) -> Any:
        crawler = self.crawler(*sinks, **settings)
        crawler.handler(lambda page: list(values))
        return crawler.run(*seeds)

    def ask(self, verb: Callable[[Frontier], Awaitable[T]]) -> T:
        async def asked() -> T:
            frontier = frontier_from(self.url, FrontierOptions(job=self.name))
            await frontier.open()
            try:
                return await verb(frontier)
            finally:
                await frontier.close()

        return asyncio.run(asked())

    def dead(self) -> list[DeadItem]:
        return list(self.ask(lambda frontier: frontier.dead_items.newest()))

    def resend(self) -> int:
        return self.ask(lambda frontier: frontier.dead_items.resend())

    def written(self, path: Path | None = None) -> list[Any]:
        return [json.loads(line)["n"] for line in (path or self.lines).read_text().splitlines()]


@pytest.fixture
def job(tmp_path: Path) -> Job:
    return Job(tmp_path)


def test_a_dead_item_is_told_with_its_page_and_goes_in_when_it_is_mended(job: Job) -> None:
    wrong = [Product(1), Product(2, "n/a"), Product(3), {"n": object()}]  # type: ignore[arg-type]
    report = job.run(wrong)
    assert (report.pages, report.items, report.dead, report.dead_items) == (1, 2, {}, {"item": 2})
    assert job.written() == [1, 3]
    price, odd = job.dead()
    assert (price.url, price.index, price.cause, price.sink) == (HOME, 1, "item", "")
    assert price.error == "Product: field 'price' is 'n/a': invalid decimal string"
    assert price.record == '{"n":2,"price":"n/a"}'
    assert odd.error.startswith("item field 'n': object cannot be written")
    assert json.loads(odd.record)["n"].startswith("<object object at")

    assert job.resend() == 1
    mended = [Product(1), Product(2, Decimal(5)), Product(3), {"n": 4}]
    report = job.run(mended, seeds=())
    assert (report.pages, report.items, report.dead_items) == (1, 2, {})
    assert job.written() == [1, 3, 2, 4]
    assert job.dead() == []


def test_a_mended_item_goes_beside_the_good_ones_of_its_page_in_sqlite(job: Job) -> None:
    own, shared = job.folder / "out.db", job.folder / "job.db"
    outputs = [str(own), str(shared)]
    job.run([Product(1), Product(2, "n/a"), Product(3)], outputs=outputs)  # type: ignore[arg-type]
    assert job.resend() == 1
    job.run([Product(1), Product(2, Decimal(5)), Product(3)], seeds=(), outputs=outputs)
    for path in (own, shared):
        with contextlib.closing(sqlite3.connect(path)) as db:
            assert db.execute("SELECT _index, n FROM items ORDER BY n").fetchall() == [(0, 1), (1, 2), (2, 3)]


def test_an_item_that_one_output_cannot_hold_goes_to_the_others(job: Job) -> None:
    table = Table()
    table.odd, table.bad = {2}, {3}
    items = [{"n": n} for n in range(5)]
    report = job.run(items, table)
    assert (report.items, report.dead_items) == (5, {"item": 1, "refused": 1})
    assert job.written() == [0, 1, 2, 3, 4]
    assert sorted(row["n"] for row in table.rows.values()) == [0, 1, 4]
    assert [(d.index, d.cause, d.error, d.sink) for d in job.dead()] == [
        (2, "item", "too odd", "table"),
        (3, "refused", "n must be good", "table"),
    ]
    table.odd, table.bad = set(), {4}
    assert job.resend() == 1
    job.run(items, table, seeds=())
    assert job.written() == [0, 1, 2, 3, 4]
    assert sorted(row["n"] for row in table.rows.values()) == [0, 1, 2, 3, 4]
    assert [d.index for d in job.dead()] == [4]


def test_a_page_that_was_redirected_is_no_duplicate_of_itself_when_it_is_visited_again(
    job: Job,
) -> None:
    job.run([{"n": 1}, {"n": object()}], seeds=[f"{HOME}old"])
    assert job.resend() == 1
    report = job.run([{"n": 1}, {"n": 2}], seeds=())
    assert (report.items, report.duplicates) == (1, 0)
    assert job.written() == [1, 2]


def test_an_output_that_is_not_there_any_more_keeps_its_dead_items(job: Job) -> None:
    table = Table()
    table.odd = {1}
    job.run([{"n": 1}], table)
    job.resend()
    job.run([{"n": 1}], seeds=())
    (item,) = job.dead()
    assert (item.sink, item.error) == ("table", "this run has no output table")
    job.resend()
    table.odd = set()
    job.run([{"n": 1}], table, seeds=())
    assert (len(table.rows), job.written(), job.dead()) == (1, [1], [])


def test_another_worker_of_a_job_on_a_server_writes_what_was_missing(tmp_path: Path) -> None:
    job = Job(tmp_path, servers.valkey_url())
    job.run([{"n": 1}, {"n": object()}, {"n": 3}])
    assert job.resend() == 1
    job.run([{"n": 1}, {"n": 2}, {"n": 3}], seeds=())
    parts = sorted(tmp_path.glob("out.*.jsonl"))
    assert sorted(job.written(part) for part in parts) == [[1, 3], [2]]


def test_items_with_a_key_are_told_apart_by_it(job: Job) -> None:
    table = Table()
    report = job.run([{"n": 1, "sku": "A"}, {"n": 2, "sku": "A"}, {"n": 3}], table, item_key="sku")
    assert table.rows == {"A": {"n": 2, "sku": "A"}}
    assert report.dead_items == {"item": 1}
    assert (job.dead())[0].error == "the key field 'sku' is missing"


def test_a_class_has_the_key_that_it_is_declared_with(job: Job) -> None:
    table = Table()
    crawler = job.crawler(table)
    crawler.item(key="n")(Product)
    crawler.handler(lambda page: [Product(7, "9.50"), {"n": 8}])  # type: ignore[arg-type]
    (crawler.run(HOME))
    first = table.rows.pop("7")
    assert first == {"n": 7, "price": Decimal("9.50")}
    (identity,) = table.rows
    assert identity.endswith("-1")


def test_an_item_goes_where_it_is_sent(job: Job) -> None:
    table = Table()
    report = job.run(
        [
            To(str(job.other), {"n": 1}),
            To((str(job.lines), "table"), {"n": 2}),
            {"n": 3},
            To("nowhere.csv", {"n": 4}),
        ],
        table,
        outputs=[str(job.lines), str(job.other)],
    )
    assert job.written() == [2, 3]
    assert job.other.read_text().splitlines() == ["n", "1", "3"]
    assert sorted(row["n"] for row in table.rows.values()) == [2, 3]
    assert (report.items, report.dead_items) == (3, {"item": 1})
    (lost,) = job.dead()
    assert lost.error.startswith("no output is called 'nowhere.csv'; there are: table, ")
    assert lost.record == '{"n":4}'


def test_a_wrong_name_of_an_output_tells_no_password() -> None:
    names = called(["to.jsonl", "postgresql://u:s3cret@h/db?table=a"])
    lease = Lease(Request(HOME), 1, 1, HOME, 1)
    values = [To(name, {"n": 1}) for name in ("nope.csv", "postgresql://u:s3cret@h/db?table=b")]
    errors = [dead.error for dead in ItemMaker((), called=names).made(values, lease).dead]
    known = "there are: to.jsonl, postgresql://h/db?table=a"
    assert errors == [
        f"no output is called 'nope.csv'; {known}",
        f"no output is called 'postgresql://h/db?table=b'; {known}",
    ]


def test_to_names_an_output() -> None:
    with pytest.raises(TypeError, match=r"name an output, as in To\('a.csv', item\)"):
        To((), {"n": 1})
    with pytest.raises(TypeError, match="name an output"):
        To({"n": 1}, "a.csv")  # type: ignore[arg-type]


def test_the_visit_tells_of_its_dead_items(job: Job) -> None:
    heard: list[Event] = []
    crawler = job.crawler(hooks=[heard.append])

    @crawler.handler
    def page(page: Page) -> Any:
        yield {"n": object()}

    crawler.run(HOME)
    (visited,) = [event for event in heard if isinstance(event, Visited)]
    assert [item.index for item in visited.outcome.dead_items] == [0]


def test_an_item_that_cannot_be_shown_costs_none_of_its_page(tmp_path: Path) -> None:
    class Mute:
        def __repr__(self) -> str:
            raise RuntimeError("no words")

    deep: dict[str, Any] = {}
    for _ in range(1_200):
        deep = {"in": deep}
    job = Job(tmp_path)
    result = job.run([{"n": 1}, deep, {"n": 10**5_000}, {"n": Mute()}, Mute(), {"n": 2}])
    assert (result.items, result.dead_items, result.dead) == (2, {"item": 4}, {})
    assert job.written() == [1, 2]
