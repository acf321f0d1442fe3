"""The MongoDB sink on a server: the small one of tests/mongodb, or a real one."""

from __future__ import annotations

import asyncio
import re
import signal
import time
import uuid
from collections.abc import Iterator
from typing import Any

import pytest
from pymongo import MongoClient
from pymongo.errors import BulkWriteError

from silkline.errors import ConfigError, RowsRefused, SinkAwayError, SinkError
from silkline.outcome import Item
from silkline.sinks.choose import keyed_sink_for
from silkline.sinks.mongodb import LARGEST, MongoSink
from silkline.sinks.mongodb_errors import met_another, one_line
from tests.mongodb.running import DATABASE, MongoServer, any_url, documents_in, drop
from tests.servers import free_port
from tests.waiting import until


class Table:
    """One collection."""

    def __init__(self, server: str) -> None:
        self.server = server
        self.name = f"items_{uuid.uuid4().hex[:12]}"

    def sink(self, *options: str, create: bool = True) -> MongoSink:
        query = "&".join((f"collection={self.name}", *options))
        return MongoSink(f"{self.server}/{DATABASE}?{query}", create=create)

    def documents(self) -> dict[str, dict[str, Any]]:
        return documents_in(self.server, self.name)

    def command(self, name: str, value: Any = None, **more: Any) -> None:
        with MongoClient[dict[str, Any]](self.server) as client:
            client[DATABASE].command(name, self.name if value is None else value, **more)


@pytest.fixture
def table() -> Iterator[Table]:
    table = Table(any_url())
    yield table
    drop(table.server, table.name)


@pytest.fixture
def server() -> Iterator[MongoServer]:
    server = MongoServer().start()
    yield server
    server.remove()


def item(sink: MongoSink, page: int, index: int = 0, key: str | None = None, /, **fields: Any) -> Item:
    return Item(page, index, {sink.name: sink.encode(fields)}, key=key)


async def test_what_is_written_again_replaces_the_whole_document(table: Table) -> None:
    sink = table.sink()
    await sink.open()
    await sink.write([item(sink, 1, name="a", price=1), item(sink, 2, 0, "sku-7", name="b")])
    await sink.write([item(sink, 1, name="c")])
    await sink.close()
    assert table.documents() == {
        "0000000000000001-0": {"_id": "0000000000000001-0", "_fingerprint": 1, "_index": 0, "name": "c"},
        "sku-7": {"_id": "sku-7", "_fingerprint": 2, "_index": None, "name": "b"},
    }


async def test_trimming_leaves_other_pages_and_items_with_keys_of_their_own(table: Table) -> None:
    sink = table.sink()
    await sink.open()
    await sink.write([item(sink, page, index, n=index) for page in (7, -7) for index in range(12)])
    own = "0000000000000007-99"  # looks like an identity of page 7
    await sink.write([item(sink, 7, 99, own, n=99)])
    await sink.trim({7: 2, 8: 0})
    await sink.close()
    left = sorted((d["_fingerprint"], d["n"]) for d in table.documents().values())
    assert left == [*((-7, n) for n in range(12)), (7, 0), (7, 1), (7, 99)]


async def test_a_document_that_a_rule_of_the_users_forbids_is_refused_and_the_others_are_in(
    table: Table,
) -> None:
    table.command("create", validator={"price": {"$gte": 0}})
    sink = table.sink()
    await sink.open()
    with pytest.raises(RowsRefused, match="failed validation"):
        await sink.write([item(sink, n, price=n - 1) for n in range(5)])
    await sink.close()
    assert sorted(d["price"] for d in table.documents().values()) == [0, 1, 2, 3]


async def test_a_unique_index_of_the_users_refuses_a_document(table: Table) -> None:
    table.command("createIndexes", indexes=[{"key": {"sku": 1}, "name": "sku_1", "unique": True}])
    sink = table.sink()
    await sink.open()
    await sink.write([item(sink, 1, sku="a")])
    with pytest.raises(RowsRefused, match="E11000 duplicate key"):
        await sink.write([item(sink, 2, sku="a")])
    await sink.close()


async def test_a_document_over_16_megabytes_is_refused_before_it_is_sent(table: Table) -> None:
    sink = table.sink()
    await sink.open()
    with pytest.raises(RowsRefused, match=r"takes 16\.0 MB, and MongoDB holds 16 MB"):
        await sink.write([item(sink, 1, text="x" * LARGEST)])
    await sink.write([item(sink, 1, text="x" * (LARGEST - 1000))])
    await sink.close()
    assert len(table.documents()) == 1


@pytest.mark.parametrize(
    ("failure", "meaning", "said"),
    [
        ({"errorCode": 10107}, SinkAwayError, "does not answer"),
        ({"errorCode": 14031}, SinkAwayError, "cannot write now"),
        ({"errorCode": 13}, SinkError, "refuses the user"),
        ({"errorCode": 73}, SinkError, "mend it and run the same command again"),
        ({"closeConnection": True}, SinkAwayError, "does not answer"),
    ],
)
async def test_a_command_that_fails_is_waited_for_or_ends_the_crawl(
    server: MongoServer, failure: dict[str, Any], meaning: type[SinkError], said: str
) -> None:
    table = Table(server.url)
    sink = table.sink()
    await sink.open()
    data = {"failCommands": ["update"], **failure}
    with MongoClient[dict[str, Any]](table.server) as client:
        client.admin.command("configureFailPoint", "failCommand", mode={"times": 1}, data=data)
    with pytest.raises(SinkError, match=said) as caught:
        await sink.write([item(sink, 1, n=1)])
    assert type(caught.value) is meaning
    await sink.write([item(sink, 1, n=1)])
    await sink.close()
    assert len(table.documents()) == 1


async def test_a_server_that_is_killed_in_mid_batch_and_restarted_has_every_document(
    server: MongoServer,
) -> None:
    table = Table(server.url)
    sink = table.sink("serverSelectionTimeoutMS=300")
    await sink.open()
    items = [item(sink, n, text="x" * 1000) for n in range(20_000)]
    writing = asyncio.create_task(sink.write(items))
    await until(lambda: table.documents())
    server.kill()
    with pytest.raises(SinkAwayError, match="does not answer"):
        await writing
    server.start()
    assert 0 < len(table.documents()) < 20_000
    await sink.write(items)
    await sink.close()
    assert len(table.documents()) == 20_000


async def test_a_server_that_hangs_is_noticed_in_the_time_that_the_url_gives(server: MongoServer) -> None:
    sink = Table(server.url).sink("timeout=0.3")
    await sink.open()
    server.signal(signal.SIGSTOP)
    began = time.monotonic()
    with pytest.raises(SinkAwayError, match="does not answer"):
        await sink.write([item(sink, 1, n=1)])
    assert time.monotonic() - began < 5
    server.signal(signal.SIGCONT)
    await sink.write([item(sink, 1, n=1)])
    await sink.close()


async def test_a_server_that_is_not_there_is_away() -> None:
    port = free_port()
    sink = MongoSink(f"mongodb://127.0.0.1:{port}/shop?serverSelectionTimeoutMS=100")
    with pytest.raises(SinkAwayError) as caught:
        await sink.open()
    await sink.close()
    assert re.fullmatch(
        rf"mongodb://127.0.0.1:{port}/shop\?collection=items does not answer: 127.0.0.1:{port}: .{{5,80}}",
        str(caught.value),
    )


async def test_who_has_the_password_gets_in_and_nobody_is_told_it() -> None:
    server = MongoServer(("ann", "p@ss/w%d")).start()
    try:
        for password, wrong in (("p%40ss%2Fw%25d", False), ("sesame-open", True)):
            url = f"mongodb://ann:{password}@127.0.0.1:{server.port}/shop"
            sink = MongoSink(url)
            if not wrong:
                await sink.open()
                await sink.write([item(sink, 1, n=1)])
            else:
                with pytest.raises(ConfigError, match="refuses the user: Authentication failed") as caught:
                    await sink.open()
                assert "sesame" not in str(caught.value)
                assert "\n" not in str(caught.value)
            await sink.close()
    finally:
        server.remove()


async def test_without_leave_to_create_there_must_be_a_collection(table: Table) -> None:
    sink = table.sink(create=False)
    with pytest.raises(ConfigError, match=rf"make it with db\.createCollection\('{table.name}'\)"):
        await sink.open()
    table.command("create")
    await sink.open()
    await sink.write([item(sink, 1, n=1)])
    await sink.close()
    assert len(table.documents()) == 1


@pytest.mark.parametrize(
    ("output", "said"),
    [
        ("mongodb://h", "name the database"),
        ("mongodb:///shop", "name the server"),
        ("mongodb://h/a.b", "name the database"),
        ("mongodb://h/shop?collection=$x", "can be no collection's name"),
        ("mongodb://h/shop?collection=system.users", "can be no collection's name"),
        ("mongodb://h/shop?colection=x", "there is no option 'colection'"),
        ("mongodb://h/shop?timeoutMS=soon", "timeoutMS"),
        ("mongodb://h/shop?w=0", "would lose items"),
    ],
)
def test_a_url_that_cannot_be_one_is_refused_before_anything_starts(output: str, said: str) -> None:
    with pytest.raises(ConfigError, match=said) as caught:
        MongoSink(output.replace("//h", "//ann:sesame@h"))
    assert "sesame" not in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_url_of_mongodb_makes_a_mongodb_sink() -> None:
    for scheme in ("mongodb", "mongodb+srv"):
        sink = keyed_sink_for(f"{scheme}://ann:sesame@cluster.example/shop?collection=products")
        assert isinstance(sink, MongoSink)
        assert sink.name == f"{scheme}://cluster.example/shop?collection=products"


async def test_two_workers_that_write_the_same_documents_at_once_leave_each_of_them_once(
    table: Table,
) -> None:
    sinks = [table.sink() for _ in range(4)]
    for sink in sinks:
        await sink.open()
    await asyncio.gather(*(s.write([item(s, page, n=page) for page in range(800)]) for s in sinks))
    for sink in sinks:
        await sink.close()
    assert len(table.documents()) == 800


def test_a_document_that_came_in_at_the_same_moment_is_no_refusal() -> None:
    def refused(*patterns: dict[str, int]) -> RowsRefused:
        error = RowsRefused("duplicate")
        found = [{"index": 0, "code": 11000, "errmsg": "E11000", "keyPattern": each} for each in patterns]
        error.__cause__ = BulkWriteError({"writeErrors": found})
        return error

    assert met_another(refused({"_id": 1}, {"_id": 1}))
    assert not met_another(refused({"_id": 1}, {"sku": 1}))
    assert not met_another(RowsRefused("too large"))


def test_the_drivers_own_state_stays_out_of_messages() -> None:
    error = BulkWriteError({"writeErrors": [{"code": 1, "errmsg": "x"}]})
    assert one_line(error) == "batch op errors occurred"
