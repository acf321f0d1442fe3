from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any
from unittest import mock

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from silkline.errors import ConfigError, SinkError
from silkline.outcome import Item
from silkline.sinks import choose, parquet, parquetfile
from silkline.sinks.block import Block, block_of
from silkline.sinks.committed import committed
from silkline.sinks.parquet import ParquetSink
from silkline.sinks.record import fields_of, json_of
from tests.sinks.conftest import Items


def typed(sink: ParquetSink, *records: dict[str, Any]) -> list[Item]:
    return [Item(n, 0, {sink.name: sink.encode(fields_of(record))}) for n, record in enumerate(records)]


def finished(path: Path, *batches: list[dict[str, Any]], each: bool = False) -> str:
    """each: finish after every batch, and go on."""
    sink = ParquetSink(path)
    sink.open(None)
    position = sink.write((), None)
    for batch in batches:
        position = sink.write(typed(sink, *batch), position)
        if each:
            position = sink.finish(position)
    position = sink.finish(position)
    sink.close()
    return position


def test_values_keep_their_types(tmp_path: Path) -> None:
    path = tmp_path / "items.parquet"
    cet = timezone(timedelta(hours=1))
    record = {
        "text": "é",
        "whole": 7,
        "real": 1.5,
        "yes": True,
        "day": date(2030, 1, 31),
        "instant": datetime(2030, 1, 31, 13, tzinfo=cet),
        "clock": datetime(2030, 1, 31, 13, 0, 0, 5),
        "price": Decimal("9.50"),
        "tags": ["a", 1],
        "none": None,
    }
    position = finished(path, [record, {"price": Decimal("1000"), "real": 2}])
    table = pq.read_table(path)
    assert [str(field.type) for field in table.schema] == [
        "string",
        "int64",
        "double",
        "bool",
        "date32[day]",
        "timestamp[us, tz=UTC]",
        "timestamp[us]",
        "decimal128(6, 2)",
        "string",
        "string",
    ]
    first, second = table.to_pylist()
    assert first == record | {"instant": datetime(2030, 1, 31, 12, tzinfo=UTC), "tags": '["a",1]'}
    assert {name: value for name, value in second.items() if value is not None} == {
        "price": Decimal("1000.00"),
        "real": 2.0,
    }
    row = next(iter(committed(str(path), position).rows())).record
    assert row == first | {"tags": ["a", 1]}
    assert json_of(row["instant"]) == b'"2030-01-31T12:00:00Z"'


@pytest.mark.parametrize("batch", [1, 300])
def test_fields_without_a_column_are_told_of_the_items_that_have_them(tmp_path: Path, batch: int) -> None:
    """However many items are written at once."""
    late: list[dict[str, Any]] = [{"n": n} for n in range(300)]
    late[200] |= {"late": 7, "other": 8}
    late[201] |= {"late": None}
    batches = [late[start : start + batch] for start in range(0, 300, batch)]
    finished(tmp_path / "a.parquet", [{"n": 0} | {f"f{n}": n for n in range(999)}], *batches)
    shared = pq.read_table(tmp_path / "a.parquet")["_more"].to_pylist()
    assert shared[1:] == [None] * 200 + ['{"late":7,"other":8}', '{"late":null}'] + [None] * 98
    assert shared[0] is None


def test_a_column_changes_with_what_comes_later_also_in_a_finished_file(tmp_path: Path) -> None:
    path = tmp_path / "items.parquet"
    batches = [
        [{"a": 1, "b": None, "c": "x", "d": Decimal("1.5"), "e": [1]}],
        [{"a": 1.5, "b": 2, "c": 7, "d": Decimal("100"), "e": "x", "new": True}],
        [{"b": {"x": 1}, "d": None}],
    ]
    finished(path, *batches, each=True)
    rows = [
        {"a": 1.0, "b": None, "c": "x", "d": Decimal("1.5"), "e": "[1]", "new": None},
        {"a": 1.5, "b": "2", "c": "7", "d": Decimal("100.0"), "e": "x", "new": True},
        {"a": None, "b": '{"x":1}', "c": None, "d": None, "e": None, "new": None},
    ]
    assert pq.read_table(path).to_pylist() == rows
    assert pq.ParquetFile(path).num_row_groups == 1
    finished(tmp_path / "once.parquet", *batches)
    assert pq.read_table(tmp_path / "once.parquet").to_pylist() == rows


values = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**64), 2**64),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(max_size=4),
    st.lists(st.integers(0, 9), max_size=2),
    st.dates(),
    st.datetimes(timezones=st.none() | st.just(UTC)),
    st.decimals(allow_nan=False, allow_infinity=False, places=2),
)
records = st.dictionaries(st.sampled_from(["a", "b", "c.d", "_more", ""]), values, max_size=4)


@settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(records, min_size=1, max_size=5))
def test_a_block_gives_back_the_values_that_it_was_made_of(made: list[dict[str, Any]]) -> None:
    block = block_of(made)
    names = {name for record in made for name in record}
    assert (block is None) == (not names or len(names) * len(made) > 4 * sum(map(len, made)))
    if block is not None:
        found = Block(block).records()
        assert found == made
        kinds = [{name: type(value) for name, value in record.items()} for record in found]
        assert kinds == [{name: type(value) for name, value in record.items()} for record in made]


@settings(deadline=None, max_examples=90, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.lists(st.lists(records, min_size=1, max_size=3), max_size=4), st.booleans(), st.sampled_from([1, 2, 9])
)
def test_every_value_comes_back_as_itself_or_as_text(
    batches: list[list[dict[str, Any]]], each: bool, many: int
) -> None:
    with tempfile.TemporaryDirectory() as folder, mock.patch.object(parquet, "MANY", many):
        path = Path(folder) / "items.parquet"
        position = finished(path, *batches, each=each)
        found = [row.record for row in committed(str(path), position).rows()]
        given_ = [record for batch in batches for record in batch]
        assert len(found) == len(given_) == pq.ParquetFile(path).metadata.num_rows
        for row, record in zip(found, given_, strict=True):
            for name, value in row.items():
                assert same(value, record.get(name)), (value, record.get(name))


def same(found: Any, value: Any) -> bool:
    if value is None or found is None:
        return found is value
    if type(found) is type(value) or {type(found), type(value)} == {int, float}:
        return bool(found == value)
    return isinstance(found, str) and (found == json_of(value).decode().strip('"') or float(found) == value)


def test_columns_that_are_declared_come_first(tmp_path: Path, items_for: Items) -> None:
    sink = ParquetSink(tmp_path / "items.parquet", ["url", "price"])
    sink.open(None)
    position = sink.finish(sink.write((), None))
    assert pq.read_table(sink.name).schema.names == ["url", "price"]
    position = sink.finish(sink.write(items_for(sink, {"name": "x", "price": 2}), position))
    table = pq.read_table(sink.name)
    assert table.schema.names == ["url", "price", "name"]
    assert table.schema.field("price").type == pa.int64()
    sink.close()


def test_row_groups_bound_the_memory_and_small_ones_are_joined(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parquetfile, "GROUP_ROWS", 10)
    path = tmp_path / "items.parquet"
    monkeypatch.setattr("silkline.sinks.spool.BATCH", 30)
    finished(path, *([{"n": n}] for n in range(32)), each=True)
    file = pq.ParquetFile(path)
    assert [file.metadata.row_group(n).num_rows for n in range(file.num_row_groups)] == [10, 10, 10, 2]
    assert file.read().column("n").to_pylist() == list(range(32))


def test_finishing_twice_changes_nothing(tmp_path: Path, items_for: Items) -> None:
    sink = ParquetSink(tmp_path / "items.parquet")
    sink.open(None)
    position = sink.finish(sink.write(items_for(sink, {"a": 1}), sink.write((), None)))
    found = os.stat(sink.name)
    assert sink.finish(position) == position
    assert os.stat(sink.name).st_mtime_ns == found.st_mtime_ns
    assert os.listdir(tmp_path) == ["items.parquet"]


def test_a_finished_file_keeps_its_permissions(tmp_path: Path, items_for: Items) -> None:
    path = tmp_path / "items.parquet"
    sink = ParquetSink(path)
    sink.open(None)
    position = sink.finish(sink.write(items_for(sink, {"a": 1}), None))
    path.chmod(0o640)
    sink.finish(sink.write(items_for(sink, {"a": 2}), position))
    assert path.stat().st_mode & 0o777 == 0o640


def begun(path: Path, items_for: Items, *, finish: bool = True) -> tuple[ParquetSink, str]:
    sink = ParquetSink(path)
    sink.open(None)
    position = sink.write(items_for(sink, {"a": 1}), sink.write((), None))
    return sink, sink.finish(position) if finish else position


Spoil = Callable[[Path], object]


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (lambda path: path.unlink(), "is gone"),
        (lambda path: os.truncate(path, 50), "was changed since this job wrote it"),
        (
            lambda path: path.write_bytes(path.read_bytes()[:-9] + bytes(9)),
            "was changed since this job wrote",
        ),
        (lambda path: pq.write_table(pa.table({"a": [9]}), path), "was changed since this job wrote it"),
        (lambda path: path.write_bytes(b""), "was changed since this job wrote it"),
    ],
    ids=["deleted", "cut", "edited", "another", "emptied"],
)
def test_a_finished_file_that_was_spoiled_is_refused(
    tmp_path: Path, items_for: Items, spoil: Spoil, words: str
) -> None:
    path = tmp_path / "items.parquet"
    _, position = begun(path, items_for)
    spoil(path)
    with pytest.raises(ConfigError, match=f"{words}.*--fresh"):
        ParquetSink(path).open(position)
    with pytest.raises(SinkError, match=r"was changed since its worker wrote it|cannot read"):
        list(committed(str(path), position).rows())


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (lambda path: path.unlink(), r"items.parquet.spool is gone"),
        (lambda path: os.truncate(path, 3), r"items.parquet.spool has 3 bytes, but 8 were written"),
        (lambda path: path.write_bytes(b'{"b":1}\n'), r"items.parquet.spool was changed since this job"),
    ],
    ids=["deleted", "cut", "edited"],
)
def test_a_spool_that_was_spoiled_is_refused(
    tmp_path: Path, items_for: Items, spoil: Spoil, words: str
) -> None:
    path = tmp_path / "items.parquet"
    _, position = begun(path, items_for, finish=False)
    spoil(path.with_name("items.parquet.spool"))
    with pytest.raises(ConfigError, match=f"{words}.*--fresh"):
        ParquetSink(path).open(position)


def test_a_spool_with_a_line_that_is_no_item_is_one_line(tmp_path: Path, items_for: Items) -> None:
    path = tmp_path / "items.parquet"
    sink = ParquetSink(path)
    sink.open(None)
    position = sink.write(items_for(sink, {"a": "x" * 400}), None)
    spool = path.with_name("items.parquet.spool")
    spool.write_bytes(b"?" + spool.read_bytes()[1:])
    with pytest.raises(SinkError, match="was changed while the crawl was writing it"):
        sink.finish(position)
    assert os.listdir(tmp_path) == ["items.parquet.spool"]
    with pytest.raises(SinkError, match="was changed since its worker wrote it"):
        list(committed(str(path), position).rows())


@pytest.mark.parametrize("place", [0, 1, 3, 100, 400, -40])
def test_a_spool_with_a_block_that_was_spoiled_is_one_line(
    tmp_path: Path, items_for: Items, place: int
) -> None:
    path = tmp_path / "items.parquet"
    sink = ParquetSink(path)
    sink.open(None)
    position = sink.write(items_for(sink, *({"a": f"x{n}"} for n in range(20))), None)
    spool = path.with_name("items.parquet.spool")
    block = bytearray(spool.read_bytes())
    block[place] ^= 0x55
    spool.write_bytes(block)
    with pytest.raises(SinkError, match="was changed while the crawl was writing it"):
        sink.finish(position)
    assert os.listdir(tmp_path) == ["items.parquet.spool"]


def test_a_spool_of_lines_alone_goes_on_with_blocks(tmp_path: Path, items_for: Items) -> None:
    path = tmp_path / "items.parquet"
    sink = ParquetSink(path)
    sink.open(None)
    position = sink.write((), None)
    for first, count in ((0, 2), (2, 20), (22, 1), (23, 30)):
        position = sink.write(items_for(sink, *({"n": n} for n in range(first, first + count))), position)
    assert [row.record["n"] for row in committed(str(path), position).rows()] == list(range(53))
    sink.finish(position)
    assert pq.read_table(path).column("n").to_pylist() == list(range(53))


@pytest.mark.parametrize("name", ["items.parquet", "items.parquet.spool"])
def test_a_file_of_somebody_else_is_refused_and_left_alone(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("precious\n")
    with pytest.raises(ConfigError, match=rf"{name} exists and was not written by this job"):
        ParquetSink(tmp_path / "items.parquet").open(None)
    with pytest.raises(ConfigError, match=rf"{name} exists and was not written by this job"):
        choose.refuse_foreign([str(tmp_path / "items.parquet")], frozenset())
    assert (tmp_path / name).read_text() == "precious\n"


def test_nobody_is_told_to_remove_what_another_job_has_not_written_out_yet(tmp_path: Path) -> None:
    (tmp_path / "items.parquet.spool").write_text('{"a":1}\n')
    for refused in (
        lambda: ParquetSink(tmp_path / "items.parquet").open(None),
        lambda: choose.refuse_foreign([str(tmp_path / "items.parquet")], frozenset()),
    ):
        with pytest.raises(ConfigError, match="items of a job that has not ended") as raised:
            refused()
        assert "remove it" not in str(raised.value)


def test_a_parquet_file_that_took_the_place_of_ours_is_not_taken_for_it(
    tmp_path: Path, items_for: Items
) -> None:
    sink, position = begun(tmp_path / "items.parquet", items_for, finish=False)
    begun(tmp_path / "other.parquet", items_for)
    os.replace(tmp_path / "other.parquet", tmp_path / "items.parquet")
    with pytest.raises(SinkError, match="was not written by this job"):
        sink.write(items_for(sink, {"a": 2}), position)
    with pytest.raises(SinkError, match="was not written by this job"):
        sink.finish(position)


def test_discarding_removes_the_spool_and_no_other_ones(tmp_path: Path) -> None:
    for name in ("a.parquet", "a.parquet.spool", ".a.parquet.rewriting", "b.csv", "b.csv.spool"):
        (tmp_path / name).touch()
    choose.discard(str(tmp_path / "a.parquet"))
    choose.discard(str(tmp_path / "b.csv"))
    assert os.listdir(tmp_path) == ["b.csv.spool"]


def test_a_reader_goes_on_while_the_file_is_finished_and_grows(tmp_path: Path, items_for: Items) -> None:
    path = tmp_path / "items.parquet"
    sink, position = begun(path, items_for)
    position = sink.write(items_for(sink, {"a": 2}), position)
    source = committed(str(path), position)
    reading = source.rows()
    found = [next(reading).record]
    later = sink.finish(sink.write(items_for(sink, {"a": 3}), sink.finish(position)))
    found += [row.record for row in reading]
    assert [row["a"] for row in found] == [1, 2]
    assert [row.record["a"] for row in source.rows()] == [1, 2]  # of a file that was finished twice since
    assert [row.record["a"] for row in committed(str(path), later).rows()] == [1, 2, 3]


def test_without_pyarrow_one_line_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(ConfigError, match=r"'a\.parquet' needs the package pyarrow: pip install 'silkline"):
        choose.sink_for("a.parquet")
