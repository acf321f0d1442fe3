from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from benchmarks.sinks import CASES, by_sink, measure, records, table

from tests.sinks.conftest import read_rows


@pytest.mark.parametrize("name", CASES)
def test_both_sides_leave_the_same_rows(tmp_path: Path, name: str) -> None:
    made = records(30)
    batches = [made[:20], made[20:]]
    (tmp_path / "ours").mkdir()
    spent = by_sink(tmp_path / "ours" / name, batches)
    assert 0 < spent.write < spent.total
    CASES[name].alone(tmp_path / name, batches)
    ours, alone = (by_sku(read_rows(folder / name)) for folder in (tmp_path / "ours", tmp_path))
    assert ours == alone
    assert len(ours) == 30


def by_sku(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """The names of booleans and of the table's own columns differ."""
    return {row["sku"]: (row["name"], float(row["price"]), row["text"]) for row in rows}


def test_the_table_has_a_line_for_each_output() -> None:
    made = records(10)
    found = {name: measure(name, CASES[name], [made], 2) for name in ("items.jsonl", "items.csv")}
    lines = table(found).splitlines()
    assert [line.split(" | ")[0] for line in lines[2:]] == ["| items.jsonl", "| items.csv"]
    assert {line.count("|") for line in lines} == {15}
