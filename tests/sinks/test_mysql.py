"""What is MySQL's and MariaDB's own: unique indexes, packets, names that they hold for the same, digits."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from decimal import Decimal

import pytest

from silkline.errors import RowsRefused
from silkline.protocols import KeyedSink
from silkline.sinks import mysql
from tests.sinks.contract.sql import MysqlTarget
from tests.sinks.contract.target import item, own


@pytest.fixture
def target() -> Iterator[MysqlTarget]:
    made = MysqlTarget()
    yield made
    made.drop()


@pytest.fixture
async def sink(target: MysqlTarget) -> AsyncIterator[KeyedSink]:
    made = target.sink(timeout="10")
    await made.open()
    yield made
    await made.close()


async def test_a_row_found_by_another_unique_index_is_not_replaced(
    target: MysqlTarget, sink: KeyedSink
) -> None:
    await sink.write([item(sink, {"sku": 7, "name": "Chair"}, key="a")])
    target.run(f"ALTER TABLE {target.quoted} ADD UNIQUE (sku)")
    with pytest.raises(RowsRefused, match="the same value in a unique index"):
        await sink.write([item(sink, {"sku": 8}, key="b"), item(sink, {"sku": 7, "name": "Stool"}, key="c")])
    await sink.write([item(sink, {"sku": 7, "name": "Table"}, key="a")])
    assert [(row["_key"], row["name"]) for row in target.rows()] == [("a", "Table")]


async def test_batches_are_split_by_what_the_server_takes(
    target: MysqlTarget, sink: KeyedSink, monkeypatch: pytest.MonkeyPatch
) -> None:
    await sink.write([item(sink, {"text": ""}, page=1000)])
    assert isinstance(sink, mysql.MysqlSink)
    sink._most = 5_000
    await sink.write([item(sink, {"text": n * "é"}, page=n) for n in range(0, 2_000, 50)])
    found = {row["_fingerprint"]: len(row["text"]) for row in target.rows()}
    assert found == {n: n for n in range(0, 2_000, 50)} | {1000: 1000}


async def test_json_too_deep_for_mariadb_says_so(target: MysqlTarget, sink: KeyedSink) -> None:
    def nested(depth: int) -> list[object]:
        return [nested(depth - 1)] if depth > 1 else []

    await sink.write([item(sink, {"deep": nested(31)}, page=1)])
    with pytest.raises(RowsRefused, match=r"^deep: MariaDB's JSON nests 32 levels at most \(CONSTRAINT "):
        await sink.write([item(sink, {"deep": nested(33)}, page=2)])
    target.run(f"ALTER TABLE {target.quoted} ADD n int, ADD CONSTRAINT n CHECK (n > 0)")
    with pytest.raises(RowsRefused, match=r"^CONSTRAINT "):
        await sink.write([item(sink, {"n": -1}, page=3)])


async def test_a_text_larger_than_a_statement_is_written(target: MysqlTarget, sink: KeyedSink) -> None:
    await sink.write([item(sink, {"text": 3_000_000 * "x"}, page=1)])
    assert [len(row["text"]) for row in target.rows()] == [3_000_000]


async def test_names_that_the_server_holds_for_the_same_get_columns_of_their_own(
    target: MysqlTarget, sink: KeyedSink
) -> None:
    names = ["name", "NAME", "nâme", "straße", "strase", "İ", "i", "ı", "ﬁ", "æ", "ae", "ω", "Ω", "end "]
    for n, name in enumerate(names):  # one by one, as items bring them
        await sink.write([item(sink, {name: n}, page=n)])
    values = [{**own(row), **(row.get("_more") or {})} for row in target.rows()]
    assert [list(row.values()) for row in values] == [[n] for n in range(len(names))]
    again = target.sink()
    try:
        await again.open()
        await again.write([item(again, {name: n for n, name in enumerate(names)}, page=99)])
    finally:
        await again.close()
    [last] = [row for row in target.rows() if row["_fingerprint"] == 99]
    assert sorted({**own(last), **(last.get("_more") or {})}.values()) == list(range(len(names)))


@pytest.mark.parametrize("number", ["1e35", "1e-31", "NaN", "123456789.1234567890123456789012345678901"])
async def test_digits_are_refused_rather_than_rounded(sink: KeyedSink, number: str) -> None:
    await sink.write([item(sink, {"n": Decimal("9.5")})])
    with pytest.raises(RowsRefused, match="n"):
        await sink.write([item(sink, {"n": Decimal(number)}, page=2)])


async def test_errors_of_the_data_are_refused_and_the_session_goes_on(
    target: MysqlTarget, sink: KeyedSink
) -> None:
    await sink.write([item(sink, {"code": "ab", "n": 1}, page=1)])
    target.run(f"ALTER TABLE {target.quoted} MODIFY code varchar(3), MODIFY n tinyint, ADD CHECK (n <> 13)")
    for wrong in ({"code": "abcd"}, {"n": 300}, {"n": 13}):
        with pytest.raises(RowsRefused) as caught:
            await sink.write([item(sink, {"n": 5}, page=2), item(sink, wrong, page=3)])
        assert "\n" not in str(caught.value)
    assert [own(row) for row in target.rows()] == [{"code": "ab", "n": 1}]
