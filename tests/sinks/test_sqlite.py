from __future__ import annotations

import contextlib
import os
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from silkline.errors import ConfigError, SinkError
from silkline.outcome import Item
from silkline.sinks.columns import column_for
from silkline.sinks.committed import committed
from silkline.sinks.sqlite import MAX_COLUMNS, NAMING, SqliteSink, folded


def query(path: Path, sql: str) -> list[Any]:
    with contextlib.closing(sqlite3.connect(path)) as db:
        return db.execute(sql).fetchall()


def test_a_row_per_item_and_typed_columns(tmp_path: Path, items_for, opened) -> None:
    path = tmp_path / "items.db"
    sink = SqliteSink(path)
    records = [
        {"name": None, "price": 1.5, "stock": 3, "new": True, "tags": ["a"]},
        {"name": "x", "price": None, "stock": 2**63 - 1, "new": False, "tags": None},
    ]
    sink.write(items_for(sink, *records), opened(sink, None))
    assert query(path, "SELECT name, price, stock, new, tags FROM items ORDER BY _id") == [
        (None, 1.5, 3, 1, '["a"]'),
        ("x", None, 2**63 - 1, 0, None),
    ]
    types = dict(query(path, "SELECT name, type FROM pragma_table_info('items')"))
    assert types == {
        "_id": "INTEGER",
        "_fingerprint": "INTEGER",
        "_index": "INTEGER",
        "name": "TEXT",
        "price": "REAL",
        "stock": "INTEGER",
        "new": "INTEGER",
        "tags": "TEXT",
    }


def test_values_that_sqlite_has_no_word_for(tmp_path: Path, items_for, opened) -> None:
    path = tmp_path / "items.db"
    sink = SqliteSink(path)
    sink.write(items_for(sink, {"big": 2**64, "nan": float("nan"), "nul": "a\0b"}), opened(sink, None))
    assert query(path, "SELECT big, nan, nul FROM items") == [(str(2**64), None, "a\0b")]


def test_a_later_field_gets_a_column(tmp_path: Path, items_for, opened, rows_in) -> None:
    sink = SqliteSink(tmp_path / "items.db")
    position = sink.write(items_for(sink, {"a": 1}), opened(sink, None))
    sink.write(items_for(sink, {"b": "x"}, {}, {"b": "y", "a": 2}), position)
    assert rows_in(tmp_path / "items.db") == [
        {"a": 1, "b": None},
        {"a": None, "b": "x"},
        {"a": None, "b": None},
        {"a": 2, "b": "y"},
    ]


def test_a_page_visited_again_replaces_all_of_its_rows(tmp_path: Path, opened, rows_in) -> None:
    sink = SqliteSink(tmp_path / "items.db")

    def page(fingerprint: int, *names: str) -> list[Item]:
        return [Item(fingerprint, n, {sink.name: sink.encode({"name": x})}) for n, x in enumerate(names)]

    position = sink.write(page(1, "a", "b", "c") + page(-2, "z"), opened(sink, None))
    sink.write(page(1, "A"), position)
    assert rows_in(tmp_path / "items.db") == [{"name": "z"}, {"name": "A"}]


def test_rows_whose_page_was_never_committed_are_gone_even_if_it_has_none_next_time(
    tmp_path: Path, items_for, opened, rows_in
) -> None:
    sink = SqliteSink(tmp_path / "items.db")
    position = sink.write(items_for(sink, {"a": 1}), opened(sink, None))
    sink.write(items_for(sink, {"a": 2}), position)  # and the process dies
    survivor = SqliteSink(tmp_path / "items.db")
    opened(survivor, position)
    assert rows_in(tmp_path / "items.db") == [{"a": 1}]


def test_names_that_sqlite_takes_for_the_same_get_columns_of_their_own(
    tmp_path: Path, items_for, opened
) -> None:
    path = tmp_path / "items.db"
    one, other = SqliteSink(path), SqliteSink(path)
    position = opened(one, None)
    position = opened(other, position)
    position = one.write(items_for(one, {"Name": 1, "name": 2, "_id": 3, "É": 4, "é": 5}), position)
    other.write(items_for(other, {"NAME": 6, "name": 7, "_INDEX": 8, "Name": 9}), position)
    columns = [row[0] for row in query(path, "SELECT name FROM pragma_table_info('items')")][3:]
    assert [name.split("_")[0] or name[:7] for name in columns] == [
        *("Name", "name", "_id_664", "É", "é", "NAME", "_INDEX_"),
    ]
    quoted = ", ".join(f'"{name}"' for name in columns)
    assert query(path, f"SELECT {quoted} FROM items ORDER BY _id") == [
        (1, 2, 3, 4, 5, None, None),
        (9, 7, None, None, None, 6, 8),
    ]


@pytest.mark.parametrize(
    "name", ["", 'quo"te', "semi;colon--", "new\nline", "[x]", "select", "a\0b", "x" * 5_000]
)
def test_any_text_can_name_a_field(tmp_path: Path, items_for, opened, name: str) -> None:
    path = tmp_path / "items.db"
    sink = SqliteSink(path)
    position = sink.write(items_for(sink, {name: "value", "b": 1}), opened(sink, None))
    sink.write(items_for(sink, {name: "other"}), position)
    rows = query(path, "SELECT * FROM items ORDER BY _id")
    assert any("value" in str(value) for value in rows[0])
    assert any("other" in str(value) for value in rows[1])


def test_columns_are_bounded_and_what_is_beyond_is_kept_as_json(tmp_path: Path, items_for, opened) -> None:
    path = tmp_path / "items.db"
    sink = SqliteSink(path)
    record = {f"n{n}": n for n in range(MAX_COLUMNS + 5)} | {"_more": "mine"}
    position = sink.write(items_for(sink, record), opened(sink, None))
    sink.write(items_for(sink, {"n0": 0, "late": [1]}), position)
    assert len(query(path, "SELECT 1 FROM pragma_table_info('items')")) == MAX_COLUMNS - 1  # and `_key`
    more = [row[0] for row in query(path, "SELECT _more FROM items ORDER BY _id")]
    assert '"n1004":1004,"_more":"mine"}' in more[0]
    assert more[1] == '{"late":"[1]"}'


def test_a_column_is_found_again_whatever_came_first() -> None:
    taken: dict[bytes, str] = {}
    for field in ("Name", "name", "NAME"):
        column = column_for(field, taken, NAMING)
        assert column is not None
        taken[folded(column)] = column
    assert len(taken) == 3
    assert [column_for(field, taken, NAMING) for field in ("Name", "name", "NAME")] == list(taken.values())


def test_a_failed_transaction_takes_its_columns_along(tmp_path: Path, items_for, opened, rows_in) -> None:
    sink = SqliteSink(tmp_path / "items.db")
    position = sink.write(items_for(sink, {"a": 1}), opened(sink, None))
    twice = items_for(sink, {"b": 1})
    with pytest.raises(SinkError, match="UNIQUE"):
        sink.write(twice + twice, position)
    sink.write(items_for(sink, {"b": 2}), position)
    assert rows_in(tmp_path / "items.db") == [{"a": 1, "b": None}, {"a": None, "b": 2}]


def test_text_that_is_no_unicode_is_refused_in_one_line(tmp_path: Path, opened) -> None:
    sink = SqliteSink(tmp_path / "items.db")
    item = Item(1, 0, {sink.name: sink.encode({"a": "\ud800"})})  # not made plain, as a crawl's are
    with pytest.raises(SinkError, match="surrogate"):
        sink.write([item], opened(sink, None))


def test_an_integer_beyond_64_bits_leaves_the_rows_around_it_alone(
    tmp_path: Path, items_for, opened, rows_in
) -> None:
    sink = SqliteSink(tmp_path / "items.db")
    position = sink.write(items_for(sink, {"n": -1}), opened(sink, None))
    sink.write(items_for(sink, *({"n": n} for n in (0, 1, 2**63, 3))), position)
    assert rows_in(tmp_path / "items.db") == [{"n": n} for n in (-1, 0, 1, float(2**63), 3)]


def test_a_table_of_another_name(tmp_path: Path, items_for, opened) -> None:
    sink = SqliteSink(tmp_path / "shop.db", table='the "goods"')
    sink.write(items_for(sink, {"a": 1}), opened(sink, None))
    assert query(tmp_path / "shop.db", 'SELECT a FROM "the ""goods"""') == [(1,)]


def test_a_crawl_without_items_leaves_an_empty_table(tmp_path: Path, opened, items_for, rows_in) -> None:
    sink = SqliteSink(tmp_path / "items.db")
    position = sink.finish(opened(sink, None))
    assert rows_in(tmp_path / "items.db") == []
    sink.write(items_for(sink, {"a": 1}), position)
    assert rows_in(tmp_path / "items.db") == [{"a": 1}]


def test_a_kill_right_after_the_start_does_not_lock_the_job_out(tmp_path: Path) -> None:
    for _ in range(2):  # the position of the first start was never committed
        sink = SqliteSink(tmp_path / "items.db")
        sink.open(None)
        sink.write((), None)
        sink.close()


@pytest.mark.parametrize("content", ["foreign", "database"])
def test_a_file_of_somebody_else_is_refused_and_left_alone(tmp_path: Path, content: str) -> None:
    path = tmp_path / "items.db"
    if content == "database":
        query(path, "CREATE TABLE items (precious)")
    else:
        path.write_text("precious")
    before = path.read_bytes()
    with pytest.raises(ConfigError, match="exists and was not written by this job"):
        SqliteSink(path).open(None)
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["items.db"]


def test_what_became_of_the_output_between_two_runs_is_told(tmp_path: Path, items_for, opened) -> None:
    path = tmp_path / "items.db"
    sink = SqliteSink(path)
    position = sink.write(items_for(sink, {"a": 1}), opened(sink, None))
    sink.close()
    path.unlink()
    with pytest.raises(ConfigError, match="is gone"):
        SqliteSink(path).open(position)
    path.write_text("no database" * 100)
    with pytest.raises(ConfigError, match="is not an SQLite database"):
        SqliteSink(path).open(position)
    path.unlink()
    query(path, "CREATE TABLE other (x)")
    with pytest.raises(ConfigError, match=r"items\.db: the table items is gone, .* start over with --fresh"):
        SqliteSink(path).open(position)


def test_an_output_replaced_while_the_crawl_runs_stops_it(tmp_path: Path, items_for, opened) -> None:
    path = tmp_path / "items.db"
    sink = SqliteSink(path)
    position = sink.write(items_for(sink, {"a": 1}), opened(sink, None))
    path.rename(tmp_path / "moved.db")
    with pytest.raises(SinkError, match="is gone"):
        sink.write(items_for(sink, {"a": 2}), position)
    query(path, "CREATE TABLE items (precious)")
    with pytest.raises(SinkError, match="was replaced by another file"):
        sink.write(items_for(sink, {"a": 2}), position)


def test_a_table_that_is_dropped_while_the_crawl_runs_stops_it(tmp_path: Path, items_for, opened) -> None:
    """What is missing in a trigger of the user's is no loss of ours."""
    path = tmp_path / "items.db"
    sink = SqliteSink(path, "odd 'name'")
    position = sink.write(items_for(sink, {"a": 1}), opened(sink, None))
    query(path, """CREATE TRIGGER t AFTER INSERT ON "odd 'name'" BEGIN INSERT INTO log VALUES (1); END""")
    with pytest.raises(SinkError, match=r"no such table: main\.log; nothing is lost"):
        sink.write(items_for(sink, {"a": 2}), position)
    query(path, """DROP TABLE "odd 'name'\"""")
    for _ in range(2):
        with pytest.raises(SinkError, match="the table odd 'name' is gone, with what was written to it"):
            sink.write(items_for(sink, {"a": 2}), position)


def test_a_reader_is_not_in_the_way(tmp_path: Path, items_for, opened, rows_in) -> None:
    sink = SqliteSink(tmp_path / "items.db")
    position = sink.write(items_for(sink, {"a": 1}), opened(sink, None))
    with contextlib.closing(sqlite3.connect(tmp_path / "items.db")) as reader:
        reader.execute("BEGIN")
        assert reader.execute("SELECT count(*) FROM items").fetchone() == (1,)
        sink.finish(sink.write(items_for(sink, {"a": 2}), position))
        assert reader.execute("SELECT count(*) FROM items").fetchone() == (1,)
    assert rows_in(tmp_path / "items.db") == [{"a": 1}, {"a": 2}]


def test_one_file_is_left_when_the_sink_is_closed(tmp_path: Path, items_for) -> None:
    sink = SqliteSink(tmp_path / "items.db")
    sink.open(None)
    sink.write(items_for(sink, {"a": 1}), None)
    sink.close()
    assert os.listdir(tmp_path) == ["items.db"]


def test_two_tables_in_one_file(tmp_path: Path, items_for, opened, rows_in) -> None:
    items, goods = SqliteSink(tmp_path / "x.db"), SqliteSink(tmp_path / "x.db", table="goods")
    assert items.name != goods.name
    at_items, at_goods = opened(items, None), opened(goods, None)
    at_items = items.write(items_for(items, {"a": 1}), at_items)
    goods.write(items_for(goods, {"b": 2}), at_goods)
    items.write(items_for(items, {"a": 2}), at_items)
    assert rows_in(tmp_path / "x.db") == [{"a": 1}, {"a": 2}]
    assert query(tmp_path / "x.db", "SELECT b FROM goods") == [(2,)]


def keyed(sink: SqliteSink, page: int, *pairs: tuple[str | None, int]) -> list[Item]:
    """Items of one page by key and number."""
    return [
        Item(page, place, {sink.name: sink.encode({"n": n})}, key) for place, (key, n) in enumerate(pairs)
    ]


def test_an_item_with_a_key_takes_the_place_of_the_earlier_row(tmp_path: Path) -> None:
    path = tmp_path / "items.db"
    sink = SqliteSink(path)
    sink.open(None)
    position = sink.write(keyed(sink, 1, ("a", 1), ("b", 2), (None, 3)), sink.write((), None))
    position = sink.write(keyed(sink, 2, ("a", 4), ("c", 5), ("c", 6), ("A", 7), (None, 8)), position)
    found = "SELECT _key, n FROM items ORDER BY _id"
    assert query(path, found)[0] == ("a", 1)  # until it is certain that its successor counts
    assert [row.record["n"] for row in committed(str(path), position, None).rows()] == [2, 3, 4, 6, 7, 8]
    position = sink.finish(position)
    sink.close()
    assert query(path, found) == [("b", 2), (None, 3), ("a", 4), ("c", 6), ("A", 7), (None, 8)]
    assert query(path, "SELECT _key FROM items WHERE n = 3") == [(None,)]


def test_a_row_comes_back_when_what_took_its_place_was_never_committed(tmp_path: Path) -> None:
    path = tmp_path / "items.db"
    sink = SqliteSink(path)
    sink.open(None)
    position = sink.write(keyed(sink, 1, ("a", 1)), sink.write((), None))
    sink.write(keyed(sink, 2, ("a", 2), ("b", 3)), position)
    sink.close()  # killed before the commit
    again = SqliteSink(path)
    again.open(position)
    position = again.finish(again.write(keyed(again, 3, ("c", 4)), again.write((), position)))
    again.close()
    assert query(path, "SELECT _key, n FROM items ORDER BY _id") == [("a", 1), ("c", 4)]


def test_keys_of_items_do_not_clash_with_a_field(tmp_path: Path) -> None:
    path = tmp_path / "items.db"
    sink = SqliteSink(path)
    sink.open(None)
    item = Item(1, 0, {sink.name: sink.encode({"_key": "mine", "n": 1})}, "theirs")
    sink.finish(sink.write([item], sink.write((), None)))
    sink.close()
    columns = [name for (name,) in query(path, "SELECT name FROM pragma_table_info('items')")]
    [field] = [name for name in columns if name.startswith("_key_")]
    assert query(path, f"SELECT _key, {field}, n FROM items") == [("theirs", "mine", 1)]


def test_in_another_ones_transaction_nothing_is_left_of_what_is_rolled_back(tmp_path: Path) -> None:
    path = tmp_path / "job.db"
    sink = SqliteSink(path)
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as owner:

        def made(records: list[dict[str, Any]], position: str | None, first: int) -> str:
            items = [Item(n, 0, {sink.name: sink.encode(record)}) for n, record in enumerate(records, first)]
            return sink.write(items, position)

        sink.share(lambda: owner)
        owner.execute("BEGIN IMMEDIATE")
        sink.open(None)
        position = sink.write((), None)
        owner.execute("COMMIT")
        owner.execute("BEGIN IMMEDIATE")
        made([{"n": 1, "lost": "x"}], position, 1)
        owner.execute("ROLLBACK")
        owner.execute("BEGIN IMMEDIATE")
        position = made([{"n": 2, "lost": "y"}], position, 2)
        assert owner.in_transaction, "the owner ends it, nobody else"
        owner.execute("COMMIT")
        sink.close()
        assert owner.execute("SELECT _id, n, lost FROM items").fetchall() == [(1, 2, "y")]
    assert position == "1"
