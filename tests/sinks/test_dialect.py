from __future__ import annotations

import csv
import io
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from silkline.errors import ConfigError
from silkline.sinks.choose import sink_for
from silkline.sinks.committed import committed
from silkline.sinks.dialect import Dialect
from silkline.sinks.format import Format

EXCEL = Dialect(",", excel=True)
FORMULAS = [
    "=1+1",
    "=HYPERLINK(\"http://127.0.0.1/?\"&A1;'x')",
    "+1+cmd|' /C calc'!A0",
    "-2+3",
    "@SUM(1+1)",
    "\t=1",
    "\r=1",
    "\n=1",
    "\0=1",
    "＝1+1",
    "'=1",
    "--",
    "+49 170 123",
    "-5-6",
    "-",
]
NUMBERS = ["-5", "+5", "-0.5", "+.5", "-1,200.50", "-1e-3", "+1E5", "-12%", "-1.200,50"]


def read(cell: bytes) -> str:
    ((text,),) = csv.reader(io.StringIO(cell.decode(), newline=""))
    return text


@pytest.mark.parametrize("text", FORMULAS)
def test_text_that_a_spreadsheet_would_run_is_made_text(text: str) -> None:
    assert read(EXCEL.cell(text)) == "'" + text
    assert EXCEL.value("'" + text) == text
    assert read(EXCEL.line([EXCEL.cell(text)]).removesuffix(b"\n")) == "'" + text
    assert read(EXCEL.header([text]).removeprefix(b"\xef\xbb\xbf").removesuffix(b"\n")) == "'" + text


@pytest.mark.parametrize("text", [*NUMBERS, "a=1", "'quoted'", " =1", "1-1"])
def test_numbers_and_other_text_stay_as_they_are(text: str) -> None:
    assert read(EXCEL.cell(text)) == text


def test_numbers_that_are_no_text_stay_numbers() -> None:
    assert [EXCEL.cell(value) for value in (-5, -0.5, True, None)] == [b"-5", b"-0.5", b"true", b""]


@pytest.mark.parametrize("text", FORMULAS)
def test_without_excel_cells_are_what_the_pages_say(text: str) -> None:
    assert read(Dialect(",", excel=False).cell(text)) == text
    assert Dialect(",", excel=False).header(["a", "b"]) == b"a,b\n"


@given(st.text(st.sampled_from("'=+-@\t\r\n\0＝a1.,\"e%"), max_size=8))
def test_what_is_made_text_can_be_told_from_what_was_so(text: str) -> None:
    cell = EXCEL.cell(text).decode()
    if cell.startswith('"'):
        cell = cell[1:-1].replace('""', '"')
    assert (EXCEL.value(cell) or "") == text
    assert cell[:1] not in ("=", "@", "\t", "\r", "\n", "\0", "＝")


@pytest.mark.parametrize("ending", [".csv", ".tsv"])
def test_the_header_grows_behind_the_byte_order_mark(tmp_path: Path, items_for, opened, ending: str) -> None:
    path = tmp_path / f"items{ending}"
    sink = sink_for(str(path), Format(excel=True))
    position = sink.write(items_for(sink, {"a": "=x", "-n": -1}), opened(sink, None))
    position = sink.write(items_for(sink, {"later": "é"}), position)
    rows = [{"a": "=x", "-n": "-1", "later": None}, {"a": None, "-n": None, "later": "é"}]
    assert [row.record for row in committed(str(path), position, 2).rows()] == rows
    finished = sink.finish(position)
    d = "," if ending == ".csv" else "\t"
    assert path.read_text() == f"\ufeffa{d}'-n{d}later\n'=x{d}-1{d}\n{d}{d}é\n"
    for known in (position, finished):  # the first one: the rewriting was not committed
        assert [row.record for row in committed(str(path), known, 2).rows()] == rows


@pytest.mark.parametrize("begun", [True, False])
def test_a_file_keeps_the_dialect_that_it_was_begun_with(
    tmp_path: Path, items_for, opened, begun: bool
) -> None:
    path = tmp_path / "items.csv"
    sink = sink_for(str(path), Format(excel=begun))
    position = sink.write(items_for(sink, {"a": 1}), opened(sink, None))
    words = "was begun with --excel and cannot go on without" if begun else "was begun without --excel and"
    with pytest.raises(ConfigError, match=words):
        sink_for(str(path), Format(excel=not begun)).open(position)
    opened(sink_for(str(path), Format(excel=begun)), position)


@pytest.mark.parametrize("begun", [True, False])
def test_a_file_without_items_has_no_dialect_yet(tmp_path: Path, items_for, opened, begun: bool) -> None:
    path = tmp_path / "items.csv"
    position = opened(sink_for(str(path), Format(excel=begun)), None)
    sink = sink_for(str(path), Format(excel=not begun))
    sink.write(items_for(sink, {"a": "=1"}), opened(sink, position))
    assert path.read_text() == ("a\n=1\n" if begun else "\ufeffa\n'=1\n")
