"""docs/items.md: every block runs, and what it says of items holds."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path
from typing import Any

import msgspec
import pytest

from silkline import Crawler, steps
from silkline.cli.main import main
from silkline.steps.choose import REMEMBERED
from silkline.testing import MockFetcher
from tests.documents import blocks, run, section, snippet, text_of

ITEMS = "docs/items.md"
HOME = "https://shop.example/"
PRODUCTS = """
<div class=product><h2>Chair</h2><b class=price>9.50</b><time datetime=2030-01-31></time></div>
<div class=product><h2>Table</h2><b class=price>ask us</b></div>
<div class=product><b class=price>3</b></div>
"""


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def made(name: str, page: str) -> dict[str, Any]:
    """The names of a snippet, whose crawler has crawled this page."""
    names: dict[str, Any] = {}
    run(ITEMS, name, names)
    crawl(names["crawler"], page)
    return names


def crawl(crawler: Crawler, page: str) -> Any:
    crawler._fetcher = MockFetcher({HOME: page})
    crawler.configure(msgspec.structs.replace(crawler.settings, quiet=True))
    return crawler.run(HOME)


def rows(path: str) -> list[Any]:
    return [json.loads(line) for line in Path(path).read_text().splitlines()]


def silkline(capsys: pytest.CaptureFixture[str], *arguments: str) -> list[str]:
    assert main([*arguments]) == 0
    return capsys.readouterr().out.splitlines()


def test_every_block_is_run_by_a_test() -> None:
    text = Path(__file__).read_text()
    for block in blocks(ITEMS):
        assert f'"{block.name}"' in text, f"no test runs {block.name}"


def test_every_heading_is_in_the_contents() -> None:
    headings = re.findall(r"^## (.+)$", text_of(ITEMS), re.M)
    contents = re.findall(r"\[([^]]+)\]\(#[\w-]+\)", text_of(ITEMS).partition("## ")[0])
    assert contents == headings


SALE = """
<div class=product><a href=/chair> Ein
 Stuhl </a><b class=price>1.009,50 €</b><time>31. Januar 2030</time></div>
<div class=product><a href=/chair>Ein Stuhl</a><b class=price>5 €</b></div>
<div class=product><a href=/gift>Geschenk</a><b class=price>0,00 €</b></div>
<div class=product><a href=/lamp>Lampe</a><b class=price>auf Anfrage</b></div>
<div class=product><a href=/none></a><b class=price>3 €</b></div>
"""


def test_items_go_through_the_steps_that_are_shown() -> None:
    names: dict[str, Any] = {}
    run(ITEMS, "steps", names)
    report = crawl(names["crawler"], SALE)
    assert rows("products.jsonl") == [
        {
            "name": "Ein Stuhl",
            "price": "1009.50",
            "link": f"{HOME}chair",
            "since": "2030-01-31",
            "currency": "€",
        }
    ]
    assert report.items_dropped == {"seen before": 1, "free": 1}
    assert report.dead_items == {"step": 2}


def test_every_step_that_ships_is_named() -> None:
    table = section(ITEMS, "Steps").partition("| `silkline.steps` |")[2]
    named = set(re.findall(r"`(\w+)\(", table))
    assert named == {name for name in steps.__all__ if name[0].islower()}
    assert f"{REMEMBERED:,} in one worker" in table


def test_fields_are_checked_and_dead_items_handled_as_shown(capsys: pytest.CaptureFixture[str]) -> None:
    made("types", PRODUCTS)
    assert rows("shop.jsonl") == [{"name": "Chair", "price": "9.50", "since": "2030-01-31"}]
    commands = [
        shlex.split(line, comments=True)[1:] for line in snippet(ITEMS, "commands").splitlines() if line
    ]
    stats, listed, export, resend, drop = commands
    assert [line.split() for line in silkline(capsys, *stats)] == [["2", "item"], ["2", "all"]]
    first, second = silkline(capsys, *listed)
    assert "Product: field 'price' is 'ask us': invalid decimal string" in first
    assert "Product: field 'name' is None: expected `str`, got `null`" in second
    assert silkline(capsys, *export) == []
    assert [line["item"]["price"] for line in rows("bad.jsonl")] == ["ask us", "3"]
    assert silkline(capsys, *resend) == ["1 page put back; run the job again to visit them"]
    names: dict[str, Any] = {}
    run(ITEMS, "types", names)
    mended = PRODUCTS.replace("ask us", "12").replace("<b class=price>3", "<h2>Bed</h2><b class=price>3")
    crawl(names["crawler"], mended)
    assert [row["name"] for row in rows("shop.jsonl")] == ["Chair", "Table", "Bed"]
    assert silkline(capsys, *drop, "--yes") == ["no dead items"]


def test_the_causes_are_named() -> None:
    named = set(re.findall(r"^\| `(\w+)` \|", section(ITEMS, "Dead items"), re.M))
    assert named == {"item", "step", "refused"}


def test_items_have_the_keys_that_are_shown() -> None:
    names: dict[str, Any] = {}
    run(ITEMS, "keys", names)
    crawler = names["crawler"]
    keys = crawler.item_keys.with_dicts(crawler.settings.item_key)
    assert keys.of(names["Product"]("A", "Chair")) == keys.of({"sku": "A"}) == "A"
    assert keys.of(names["Offer"]("ulm", 7, 1.0)) == '["ulm","7"]'


def test_items_go_to_the_outputs_that_are_shown() -> None:
    made("to", "<h1>Chair</h1><p class=review>Good</p><p class=review>Bad</p>")
    assert rows("products.jsonl") == [{"name": "Chair"}, {"seen": HOME}]
    assert Path("reviews.csv").read_text().splitlines() == ["text,seen", "Good,", "Bad,", f",{HOME}"]
