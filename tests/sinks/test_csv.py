from __future__ import annotations

import csv
import io
import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from silkline.errors import ConfigError, SinkError
from silkline.sinks.csv import MAX_COLUMNS, CsvSink, widened


def test_records_stand_under_the_fields_of_the_first_write(tmp_path: Path, items_for, opened) -> None:
    sink = CsvSink(tmp_path / "items.csv")
    sink.write(items_for(sink, {"b": "x", "a": 1}, {"a": 2, "b": "y", "c": "z"}), opened(sink, None))
    assert (tmp_path / "items.csv").read_bytes() == b"b,a,c\nx,1,\ny,2,z\n"


def test_declared_columns_come_first_also_where_no_item_has_them(tmp_path: Path, items_for, opened) -> None:
    sink = CsvSink(tmp_path / "items.csv", ["url", "price"])
    sink.write(items_for(sink, {"extra": 1, "price": 2}), opened(sink, None))
    assert (tmp_path / "items.csv").read_bytes() == b"url,price,extra\n,2,1\n"


def test_a_crawl_without_items_leaves_the_declared_header(tmp_path: Path, opened, items_for) -> None:
    sink = CsvSink(tmp_path / "items.csv", ["url", "price"])
    position = sink.finish(opened(sink, None))
    assert (tmp_path / "items.csv").read_bytes() == b"url,price\n"
    sink.write(items_for(sink, {"url": "u"}), position)
    assert (tmp_path / "items.csv").read_bytes() == b"url,price\nu,\n"


def test_values_are_written_as_readers_expect_them(tmp_path: Path, items_for, opened, rows_in) -> None:
    sink = CsvSink(tmp_path / "items.csv")
    values = {
        "text": ' "quoted", and\r\nlong ',
        "none": None,
        "yes": True,
        "no": False,
        "float": 0.1,
        "nan": float("nan"),
        "big": 2**70,
        "list": ["a", 1],
        "dict": {"é": None},
        "empty": [],
    }
    sink.write(items_for(sink, values), opened(sink, None))
    assert rows_in(tmp_path / "items.csv") == [
        {
            "text": ' "quoted", and\r\nlong ',
            "none": "",
            "yes": "true",
            "no": "false",
            "float": "0.1",
            "nan": "",
            "big": str(2**70),
            "list": '["a",1]',
            "dict": '{"é":null}',
            "empty": "[]",
        }
    ]


def test_a_record_with_nothing_in_it_is_no_empty_line(tmp_path: Path, items_for, opened, rows_in) -> None:
    sink = CsvSink(tmp_path / "items.csv")
    position = sink.write(items_for(sink, {"a": None}, {}), opened(sink, None))
    sink.finish(sink.write(items_for(sink, {"b": 1}), position))
    assert rows_in(tmp_path / "items.csv") == [{"a": "", "b": ""}, {"a": "", "b": ""}, {"a": "", "b": "1"}]


def test_tabs_separate_where_asked(tmp_path: Path, items_for, opened) -> None:
    sink = CsvSink(tmp_path / "items.tsv", delimiter="\t")
    sink.write(items_for(sink, {"a": "x,y", "b": "t\tt"}), opened(sink, None))
    assert (tmp_path / "items.tsv").read_bytes() == b'a\tb\nx,y\t"t\tt"\n'


def test_a_later_column_reaches_the_header_when_the_job_finishes(tmp_path: Path, items_for, opened) -> None:
    path = tmp_path / "items.csv"
    sink = CsvSink(path)
    position = sink.write(items_for(sink, {"a": 'x"\n'}), opened(sink, None))
    os.chmod(path, 0o640)
    position = sink.write(items_for(sink, {"b": 2}), position)
    assert path.read_bytes() == b'a\n"x""\n"\n,2\n'
    position = sink.finish(position)
    assert path.read_bytes() == b'a,b\n"x""\n",\n,2\n'
    assert path.stat().st_mode & 0o777 == 0o640
    assert sink.finish(position) == position
    sink.write(items_for(sink, {"b": 3, "a": 4}), position)
    assert path.read_bytes() == b'a,b\n"x""\n",\n,2\n4,3\n'


def test_a_rewritten_file_whose_commit_was_lost_is_taken_over(tmp_path: Path, items_for, opened) -> None:
    path = tmp_path / "items.csv"
    sink = CsvSink(path)
    position = sink.write(items_for(sink, {"a": 1}), opened(sink, None))
    position = sink.write(items_for(sink, {"b": 2}), position)
    sink.finish(position)  # and the process dies before the commit
    sink.write(items_for(sink, {"lost": 1}), position)  # so does the next one, after a write

    survivor = CsvSink(path)
    position = survivor.write(items_for(survivor, {"c": 3}), opened(survivor, position))
    survivor.finish(position)
    assert path.read_bytes() == b"a,b,c\n1,,\n,2,\n,,3\n"


def test_columns_that_another_process_found_are_known(tmp_path: Path, items_for, opened) -> None:
    one, other = CsvSink(tmp_path / "items.csv"), CsvSink(tmp_path / "items.csv")
    position = opened(one, None)
    position = opened(other, position)
    position = one.write(items_for(one, {"a": 1, "b": 2}), position)
    position = other.write(items_for(other, {"c": 3, "a": 1}), position)
    position = one.write(items_for(one, {"c": 3}), position)
    position = other.finish(position)
    one.write(items_for(one, {"d": 4}), position)
    assert (tmp_path / "items.csv").read_bytes() == b"a,b,c\n1,2,\n1,,3\n,,3\n,,,4\n"


def test_a_file_edited_in_mid_crawl_is_not_rewritten(tmp_path: Path, items_for, opened) -> None:
    path = tmp_path / "items.csv"
    sink = CsvSink(path)
    position = sink.write(items_for(sink, {"a": "1234"}), opened(sink, None))
    position = sink.write(items_for(sink, {"b": 2}), position)
    path.write_bytes(b"a\n1,,,\n,2\n")  # as long as before
    with pytest.raises(SinkError, match="was changed while the crawl was writing it"):
        sink.finish(position)
    assert path.read_bytes() == b"a\n1,,,\n,2\n"
    assert os.listdir(tmp_path) == ["items.csv"]


def test_a_remainder_of_an_interrupted_rewrite_is_in_nobodys_way(tmp_path: Path, items_for, opened) -> None:
    (tmp_path / ".items.csv.rewriting").write_text("half a ")
    sink = CsvSink(tmp_path / "items.csv")
    position = sink.write(items_for(sink, {"a": 1}), opened(sink, None))
    sink.finish(sink.write(items_for(sink, {"b": 2}), position))
    assert (tmp_path / "items.csv").read_bytes() == b"a,b\n1,\n,2\n"
    assert os.listdir(tmp_path) == ["items.csv"]


def test_a_link_keeps_being_one_when_its_target_is_rewritten(tmp_path: Path, items_for, opened) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "link.csv").symlink_to("data/target.csv")
    sink = CsvSink(tmp_path / "link.csv")
    position = sink.write(items_for(sink, {"a": 1}), opened(sink, None))
    sink.finish(sink.write(items_for(sink, {"b": 2}), position))
    assert (tmp_path / "link.csv").is_symlink()
    assert (tmp_path / "data/target.csv").read_bytes() == b"a,b\n1,\n,2\n"


def test_a_spreadsheet_that_saved_the_file_anew_is_noticed(tmp_path: Path, items_for, opened) -> None:
    path = tmp_path / "items.csv"
    sink = CsvSink(path)
    position = sink.write(items_for(sink, *({"a": n} for n in range(50))), opened(sink, None))
    path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
    with pytest.raises(ConfigError, match="was changed since this job wrote it"):
        CsvSink(path).open(position)


def test_columns_are_bounded_and_what_is_beyond_is_kept_as_json(
    tmp_path: Path, items_for, opened, rows_in
) -> None:
    sink = CsvSink(tmp_path / "items.csv")
    position = opened(sink, None)
    for start in range(0, MAX_COLUMNS + 200, 100):
        position = sink.write(items_for(sink, {f"n{n}": n for n in range(start, start + 100)}), position)
    sink.finish(sink.write(items_for(sink, {"n0": 0, "x": [1], "y": 'a"'}), position))
    rows = rows_in(tmp_path / "items.csv")
    assert len(rows[0]) == MAX_COLUMNS + 1
    assert [row["_more"] for row in rows[:10]] == [""] * 10
    assert (rows[-1]["n0"], rows[-1]["_more"]) == ("0", '{"x":[1],"y":"a\\""}')
    assert rows[-2]["_more"].startswith('{"n1100":1100,')


CELLS = st.lists(st.text(st.sampled_from('a,"\n '), max_size=4), min_size=1, max_size=4)


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(CELLS, max_size=6), st.integers(4, 6))
def test_widening_adds_empty_cells_and_changes_nothing_else(records: list[list[str]], width: int) -> None:
    text = io.StringIO(newline="")
    csv.writer(text, lineterminator="\n").writerows(records)
    lines = io.BytesIO(text.getvalue().encode())
    wide = b"".join(widened(lines, width, b",")).decode()
    assert list(csv.reader(io.StringIO(wide, newline=""))) == [
        record + [""] * (width - len(record)) for record in records
    ]
