"""docs/outputs.md: the table of values is what the outputs write, and files are treated as it says."""

from __future__ import annotations

import contextlib
import csv
import enum
import os
import re
import shlex
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from silkline import Crawler, Request
from silkline.errors import ConfigError
from silkline.outcome import Item
from silkline.sinks import csv as csv_sink
from silkline.sinks import parquetfile, schema
from silkline.sinks import sqlite as sqlite_sink
from silkline.sinks.choose import ARCHIVES, KINDS, sink_for
from silkline.sinks.dialect import Dialect
from silkline.sinks.outputfile import TAIL
from silkline.sinks.record import record_of
from silkline.testing import MockFetcher
from tests.documents import blocks, run, section, snippet, text_of
from tests.sinks.conftest import unpacked
from tests.site import Site

OUTPUTS = "docs/outputs.md"
SHOP = "https://shop.example"


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def crawl(*numbers: int, job: str = "shop", **settings: Any) -> Any:
    """Crawl these pages; each gives an item with its number."""
    fetcher = MockFetcher({f"{SHOP}/{n}": f"<h1>{n}</h1>" for n in numbers})
    crawler = Crawler(job, fetcher=fetcher, quiet=True)
    crawler.handler(lambda page: {"n": int(page.text("h1"))})
    return crawler.run(*(f"{SHOP}/{n}" for n in numbers), **settings)


def query(sql: str, path: str = "shop.db") -> list[Any]:
    with contextlib.closing(sqlite3.connect(path)) as db:
        rows = db.execute(sql).fetchall()
        db.commit()
        return rows


def lines(path: str) -> list[str]:
    return unpacked(Path(path)).decode().splitlines()


# Formats and values.


def test_every_ending_is_named() -> None:
    table = text_of(OUTPUTS).partition("## ")[0]
    assert set(re.findall(r"`(\.[\w.]+)`", table)) == {*KINDS, *ARCHIVES}


class Size(enum.Enum):
    LARGE = "L"


VALUES = re.findall(
    r"^\| `(.+?)`.*? \| `(.+)` \| (?:`(.+)` )?\| `(.+)` \|$", section(OUTPUTS, "Values"), re.M
)
SPEECH = {"date": date, "datetime": datetime, "UTC": UTC, "Decimal": Decimal, "Size": Size}


@pytest.mark.parametrize(("value", "in_json", "in_csv", "in_sqlite"), VALUES, ids=[row[0] for row in VALUES])
def test_values_are_written_as_the_table_says(value: str, in_json: str, in_csv: str, in_sqlite: str) -> None:
    record = record_of({"v": eval(value, dict(SPEECH)), "w": 0})
    for path in ("a.jsonl", "a.csv", "a.db"):
        sink = sink_for(path)
        sink.open(None)
        sink.write([Item(1, 0, {sink.name: sink.encode(record)})], sink.write((), None))
        sink.close()
    assert lines("a.jsonl") == [f'{{"v":{in_json},"w":0}}']
    assert lines("a.csv")[1] == f"{in_csv},0"
    assert query("SELECT v FROM items", "a.db") == query(f"SELECT {in_sqlite}", ":memory:")


def test_the_table_of_values_has_all_rows_checked() -> None:
    rows = section(OUTPUTS, "Values").count("\n| `")
    assert len(VALUES) == rows > 15


def test_every_block_is_run_by_a_test() -> None:
    assert [block.name for block in blocks(OUTPUTS)] == [
        "packed",
        "csv",
        "excel",
        "parquet",
        "sqlite",
        "report",
        "fields",
    ]


def test_the_field_report_is_as_shown(capsys: pytest.CaptureFixture[str]) -> None:
    def shop(filled: int, of: int, **names: Any) -> Crawler:
        crawler = Crawler("shop", fetcher=MockFetcher({f"{SHOP}/": "x"}), outputs=["shop.jsonl"], **names)
        items = [{"name": "Chair", "price": 9.5 if n < filled else None} for n in range(of)]
        crawler.handler(lambda page: items)
        return crawler

    shop(490, 500, quiet=True).run(f"{SHOP}/")
    run(OUTPUTS, "fields", {"crawler": shop(12, 100)})
    said = capsys.readouterr()
    assert said.out == "name ('text',) 1.0 1.0\nprice ('number',) 0.12 0.98\n"
    for line in snippet(OUTPUTS, "report").splitlines()[2:]:
        assert f"{line}\n" in said.err


def test_compressed_lines_are_read_as_shown(capsys: pytest.CaptureFixture[str]) -> None:
    crawler = Crawler("shop", fetcher=MockFetcher({f"{SHOP}/": "x"}), outputs=["shop.jsonl.gz"], quiet=True)
    crawler.handler(lambda page: [{"name": "Chair"}, {"name": "Lamp"}])
    crawler.run(f"{SHOP}/")
    run(OUTPUTS, "packed", {})
    assert capsys.readouterr().out == "Chair\nLamp\n"


def test_csv_columns_are_those_declared_and_those_that_come_up() -> None:
    names: dict[str, Any] = {}
    run(OUTPUTS, "csv", names)
    names["crawler"]._fetcher = MockFetcher(
        {f"{SHOP}/": "<h1 data-sku=7>Chair</h1>", f"{SHOP}/later": "<h1>Lamp</h1>"}
    )
    names["crawler"].handler("later")(lambda page: {"colour": "red", "name": page.text("h1")})
    names["crawler"].run(f"{SHOP}/", quiet=True)
    assert lines("shop.csv") == ["name,price,sku", "Chair,,7"]
    names["crawler"].run(Request(f"{SHOP}/later", label="later"), quiet=True)
    assert lines("shop.csv") == ["name,price,sku,colour", "Chair,,7,", "Lamp,,,red"]


def test_the_commands_for_spreadsheets_run_as_written() -> None:
    with Site({"/": "<h1>=1+1</h1><p class=price>-5</p>"}) as site:
        for line in snippet(OUTPUTS, "excel").splitlines():
            words = [word.replace("https://shop.example", site.url) for word in shlex.split(line)]
            done = subprocess.run([sys.executable, "-m", *words], capture_output=True, text=True, timeout=60)
            assert done.returncode == 0, done.stderr
    for path in ("shop.csv", "again.csv"):
        text = Path(path).read_text()
        assert text.startswith("\ufeff")
        assert text.splitlines()[1].endswith("'=1+1,-5")


def test_the_numbers_that_stay_numbers_are() -> None:
    dialect = Dialect(",", excel=True)
    text = section(OUTPUTS, "CSV").partition("Numbers stay numbers")[2].partition(". `silkline export`")[0]
    examples = re.findall(r"`([^`]+)`", text)
    assert len(examples) == 5
    for number in examples:
        assert dialect.cell(number).decode().strip('"') == number


def test_a_parquet_file_is_written_by_the_crawler_as_shown() -> None:
    names: dict[str, Any] = {}
    run(OUTPUTS, "parquet", names)
    html = "<h1>Chair</h1><p class=price>9.50</p><i class=tag>oak</i><i class=tag>new</i>"
    names["crawler"]._fetcher = MockFetcher({f"{SHOP}/": html})
    names["crawler"].run(f"{SHOP}/", quiet=True)
    table = pq.read_table("shop.parquet")
    (row,) = table.to_pylist()
    assert isinstance(row.pop("seen"), datetime)
    assert row == {"name": "Chair", "price": Decimal("9.50"), "tags": '["oak","new"]'}
    assert not Path("shop.parquet.spool").exists()


TYPES = re.findall(r"^\| (`.+`) \| `(.+?)`.* \|$", section(OUTPUTS, "Parquet"), re.M)


@pytest.mark.parametrize(("values", "kind"), TYPES, ids=[row[0] for row in TYPES])
def test_columns_have_the_types_that_the_table_says(values: str, kind: str) -> None:
    found = [eval(value, dict(SPEECH)) for value in re.findall(r"`([^`]+)`", values)]
    crawl_items([{"v": value, "w": 0} for value in found], "a.parquet")
    assert str(pq.read_table("a.parquet").schema.field("v").type) == kind


def test_the_table_of_types_has_all_rows_checked() -> None:
    assert len(TYPES) == section(OUTPUTS, "Parquet").count("\n| `") == 12


def crawl_items(items: list[dict[str, Any]], path: str) -> None:
    crawler = Crawler("items", fetcher=MockFetcher({f"{SHOP}/": "x"}), outputs=[path], quiet=True)
    crawler.handler(lambda page: items)
    crawler.run(f"{SHOP}/")


def test_the_database_is_read_as_shown(capsys: pytest.CaptureFixture[str]) -> None:
    crawler = Crawler("shop", fetcher=MockFetcher({f"{SHOP}/": "x"}), outputs=["shop.db"], quiet=True)
    crawler.handler(
        lambda page: [{"name": "Chair", "price": 9.5}, {"name": "Lamp", "price": None, "Name": 1}]
    )
    crawler.run(f"{SHOP}/")
    names: dict[str, Any] = {}
    run(OUTPUTS, "sqlite", names)
    names["db"].close()
    assert capsys.readouterr().out == "Chair 9.5\nLamp None\n"
    table = section(OUTPUTS, "SQLite")
    for column in (*sqlite_sink.KEYS, sqlite_sink.MORE):
        assert f"| `{column}` |" in table
    assert query("SELECT _id, _index, _fingerprint FROM items") == [
        (index + 1, index, Request(f"{SHOP}/").fingerprint) for index in range(2)
    ]
    kinds = [kind for name, kind in query("SELECT name, type FROM pragma_table_info('items')")]
    assert kinds == ["INTEGER"] * 3 + ["TEXT", "REAL", "INTEGER"]


def test_numbers_in_the_text_are_the_programs() -> None:
    text = text_of(OUTPUTS)
    assert csv_sink.MAX_COLUMNS == sqlite_sink.MAX_COLUMNS == schema.MAX_COLUMNS
    assert f"about {parquetfile.GROUP_ROWS:,} rows or {parquetfile.GROUP_BYTES >> 20} MB" in text
    assert f"Beyond {csv_sink.MAX_COLUMNS:,} columns" in text
    assert f"names of over {sqlite_sink.MAX_NAME} characters" in text
    assert f"the last {TAIL} bytes" in text


# Files that somebody touched.


def edited(row: str) -> None:
    assert f"\n| {row} |" in section(OUTPUTS, "If you change a file"), row


DELETED = "it was deleted, cut, or saved anew by a spreadsheet"
APPENDED = "something was appended to a `.jsonl` (compressed or not), `.csv` or `.tsv` file, or to a spool"


@pytest.mark.parametrize("ending", [".jsonl", ".jsonl.gz", ".jsonl.zst", ".csv", ".tsv"])
@pytest.mark.parametrize(
    "change",
    [
        os.unlink,
        lambda path: os.truncate(path, 3),
        lambda path: Path(path).write_bytes(b"\r" + Path(path).read_bytes()),
    ],
    ids=["deleted", "cut", "saved anew"],
)
def test_a_changed_file_is_refused(ending: str, change: Callable[[str], None]) -> None:
    edited(DELETED)
    path = f"shop{ending}"
    crawl(1, 2, outputs=[path])
    change(path)
    with pytest.raises(ConfigError, match=r"put (the original|it) back"):
        crawl(3, outputs=[path])
    assert crawl(3, outputs=[path], fresh=True).reason == "finished"
    assert lines(path)[-1].strip('{"n:}') == "3"


@pytest.mark.parametrize("ending", [".jsonl", ".jsonl.gz", ".jsonl.zst", ".csv", ".tsv"])
def test_what_was_appended_is_cut_off(ending: str) -> None:
    edited(APPENDED)
    path = f"shop{ending}"
    crawl(1, outputs=[path])
    before = lines(path)
    with Path(path).open("a") as file:
        file.write("mine\n")
    crawl(2, outputs=[path])
    assert lines(path)[:-1] == before
    assert lines(path)[-1].strip('{"n:}') == "2"


def test_a_database_may_be_changed_but_not_added_to() -> None:
    edited("a row was added to `items` in a database")
    edited("rows of a database were changed or deleted; it got an index, a view or a table")
    crawl(1, outputs=["shop.db"])
    crawl(2, outputs=["shop.db"])
    query("UPDATE items SET n = 10 WHERE n = 1")
    query("DELETE FROM items WHERE n = 2")
    query("CREATE INDEX by_number ON items (n)")
    query("CREATE VIEW numbers AS SELECT n FROM items")
    query("CREATE TABLE notes (text)")
    query("INSERT INTO items (_id, _fingerprint, _index, n) VALUES (99, 0, 0, 99)")
    crawl(3, outputs=["shop.db"])
    assert query("SELECT n FROM numbers ORDER BY n") == [(3,), (10,)]


@pytest.mark.parametrize("path", ["shop.jsonl", "shop.jsonl.zst", "shop.csv", "shop.db"])
def test_a_file_that_was_copied_back_goes_on(path: str) -> None:
    edited("it was moved and put back, or copied back")
    crawl(1, outputs=[path])
    data = Path(path).read_bytes()
    os.rename(path, "elsewhere")
    Path(path).write_bytes(data)
    assert crawl(2, outputs=[path]).items == 1


@pytest.mark.parametrize("path", ["shop.jsonl", "shop.jsonl.zst", "shop.csv", "shop.db"])
def test_a_file_at_another_path_is_refused(
    path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    edited("it is at another path, also because its folder was moved")
    edited("it was there before the job was")
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    crawl(1, outputs=[path])
    os.rename(tmp_path / "here", tmp_path / "there")
    monkeypatch.chdir(tmp_path / "there")
    for job in ("shop", "another"):
        with pytest.raises(ConfigError, match="was not written by this job"):
            crawl(2, outputs=[path], job=job)


def test_another_output_gets_the_items_from_then_on() -> None:
    crawl(1, outputs=["a.jsonl"])
    crawl(2, outputs=["a.jsonl", "b.jsonl"])
    assert lines("a.jsonl") == ['{"n":1}', '{"n":2}']
    assert lines("b.jsonl") == ['{"n":2}']


# Starting over.


def test_fresh_removes_what_the_job_has_written_and_nothing_else() -> None:
    crawl(1, outputs=["a.jsonl", "earlier.csv"])
    Path("theirs.jsonl").write_text("precious\n")
    with pytest.raises(ConfigError, match="was not written by this job"):
        crawl(2, outputs=["a.jsonl", "theirs.jsonl"], fresh=True)
    assert lines("theirs.jsonl") == ["precious"]
    assert lines("a.jsonl") == ['{"n":1}']
    crawl(2, outputs=["a.jsonl"], fresh=True)
    assert lines("a.jsonl") == ['{"n":2}']
    assert lines("earlier.csv") == ["n", "1"]


def test_fresh_spares_tables_and_jobs_of_others() -> None:
    crawl(1, outputs=["shop.db"])
    query("CREATE TABLE notes (text)")
    with pytest.raises(ConfigError, match="something else than items"):
        crawl(1, outputs=["shop.db"], fresh=True)
    with pytest.raises(ConfigError, match="belongs to the job 'shop'"):
        crawl(1, job="another", frontier="sqlite:///.silkline/shop.db", fresh=True)
    assert query("SELECT n FROM items") == [(1,)]


def test_a_crawl_in_memory_has_outputs_but_no_memory_of_them() -> None:
    crawl(1, frontier="memory:", outputs=["a.csv"])
    assert [row["n"] for row in csv.DictReader(lines("a.csv"))] == ["1"]
    with pytest.raises(ConfigError, match="was not written by this job"):
        crawl(2, frontier="memory:", outputs=["a.csv"])
    crawl(2, frontier="memory:", outputs=["a.csv"], fresh=True)
    assert [row["n"] for row in csv.DictReader(lines("a.csv"))] == ["2"]
    query("CREATE TABLE notes (text)", "b.db")
    with pytest.raises(ConfigError, match="something else than items"):
        crawl(2, frontier="memory:", outputs=["b.db"], fresh=True)
    assert not Path(".silkline").exists()
