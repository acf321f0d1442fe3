from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from silkline.cli.show import PREVIEW_COLUMNS, PREVIEW_ROWS, exit_code, items_table, print_items
from silkline.config import Settings
from silkline.observe.report import Report


def printed(items: list[dict[str, Any]], width: int = 80) -> list[str]:
    console = Console(file=io.StringIO(), width=width)
    console.print(items_table(items, width, "the items"))
    assert isinstance(console.file, io.StringIO)
    return [line.rstrip() for line in console.file.getvalue().splitlines()]


def test_wide_columns_share_what_the_narrow_ones_leave() -> None:
    item = {"url": "https://shop.example/" + "x" * 90, "price": "9.99", "text": "y" * 90}
    lines = printed([item])
    assert {len(line) for line in lines[1:]} == {80}
    assert "│ 9.99  │" in lines[4]
    assert lines[4].count("…") == 2


def test_what_a_page_says_is_no_markup_and_moves_no_cursor() -> None:
    lines = printed([{"a[b]": "[red]x[/red]\x1b[2J\ny", "n": 5, "list": [1, None], "none": None}])
    assert "[red]x[/red]" in lines[4]
    assert "a[b]" in lines[2]
    assert "\x1b" not in "".join(lines)
    assert "[1,null]" in lines[4]


def test_urls_of_one_site_are_shown_without_it() -> None:
    lines = printed([{"url": f"http://127.0.0.1:8000/{n}", "a": "b"} for n in (1, 2)])
    assert lines[0] == "the items of http://127.0.0.1:8000"
    assert "│ /1  │" in lines[4]
    mixed = "\n".join(printed([{"url": "http://a/1"}, {"url": "http://b/1"}]))
    assert "http://a/1" in mixed


def test_a_screen_of_columns_is_shown_and_the_others_are_named() -> None:
    lines = printed([{f"field{n}": n for n in range(PREVIEW_COLUMNS + 2)}], width=100)
    assert f"not shown: field{PREVIEW_COLUMNS}, field{PREVIEW_COLUMNS + 1}" in lines[-1]


def test_only_the_first_items_of_a_long_file_are_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "items.jsonl"
    path.write_text("".join(f'{{"n": "item {n}"}}\n' for n in range(PREVIEW_ROWS)) + '{"n": "la')
    print_items([str(path)])
    out = capsys.readouterr().out
    assert "the first items" in out
    assert out.count("item ") == PREVIEW_ROWS


@pytest.mark.parametrize("text", [None, ""])
def test_no_items_is_no_table(tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str | None) -> None:
    if text is not None:
        (tmp_path / "items.jsonl").write_text(text)
    print_items([str(tmp_path / "items.jsonl")])
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize(
    ("reason", "dead", "strict", "code"),
    [
        ("finished", {}, True, 0),
        ("finished", {"dns": 1}, False, 0),
        ("finished", {"dns": 1}, True, 1),
        ("already finished", {"dns": 1}, True, 1),
        ("budget", {}, True, 0),
        ("interrupted", {"dns": 1}, True, 130),
    ],
)
def test_exit_codes(reason: str, dead: dict[str, int], strict: bool, code: int) -> None:
    assert exit_code(Report(job="x", reason=reason, dead=dead), Settings(strict=strict)) == code
