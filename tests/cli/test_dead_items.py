from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Call
from tests.site import Site

SPIDER = """
from dataclasses import dataclass
from silkline import Crawler

crawler = Crawler("shop", outputs=["things.jsonl"])

@dataclass
class Thing:
    title: str
    number: int

@crawler.handler
def page(page):
    yield Thing(page.title, NUMBER)
    yield page.follow("a")
"""


@pytest.fixture
def spider(tmp_path: Path) -> Path:
    return tmp_path / "spider.py"


@pytest.fixture
def bad(inside: Call, shop: Site, spider: Path) -> int:
    """Every page of job "shop" has an item with text for a number; returns how many."""
    spider.write_text(SPIDER.replace("NUMBER", "'many'"))
    done = inside("run", "spider.py", f"{shop.url}/")
    assert done.returncode == 0, done.stderr
    assert "silkline dead items list --job shop" in done.stderr
    return int(json.loads(inside("status", "--json").stdout)["done"])


def test_they_are_listed_counted_exported_and_go_in_when_mended(
    inside: Call, bad: int, spider: Path, tmp_path: Path, shop: Site
) -> None:
    assert bad > 3
    assert inside("dead", "items", "stats").stdout.split() == [str(bad), "item", str(bad), "all"]
    assert json.loads(inside("dead", "items", "stats", "--json").stdout) == {"item": bad}
    listed = inside("dead", "items", "list", "--limit", "2")
    assert len(listed.stdout.splitlines()) == 2
    assert "item  http://127.0.0.1:" in listed.stdout
    assert "[0]  Thing: field 'number' is 'many': expected `int`, got `str`  {\"title\":" in listed.stdout
    assert listed.stderr == f"2 of {bad} dead items\n"
    line = "no dead items with cause 'items'; their causes are: item\n"
    assert inside("dead", "items", "list", "--cause", "items") == (0, "", line)
    assert inside("dead", "items", "resend", "--cause", "items") == (0, line, "")
    (line,) = inside("dead", "items", "list", "--limit", "1", "--json").stdout.splitlines()
    told = json.loads(line)
    assert (told["index"], told["cause"], told["output"], told["item"]["number"]) == (0, "item", "", "many")

    assert inside("dead", "items", "export", "-o", "bad.jsonl").stderr == f"{bad} written to bad.jsonl\n"
    lines = [json.loads(line) for line in (tmp_path / "bad.jsonl").read_text().splitlines()]
    assert len({line["url"] for line in lines}) == bad
    assert f"{bad} of them with dead items" in inside("status").stdout

    other = inside("dead", "items", "resend", "--host", "shop.example")
    assert other.stdout == "no such dead items\n"
    assert inside("dead", "items", "resend", "--limit", "2", "--cause", "item").stdout.startswith(
        "2 pages put"
    )
    spider.write_text(SPIDER.replace("NUMBER", "7"))
    assert inside("run", "spider.py").returncode == 0
    assert len((tmp_path / "things.jsonl").read_text().splitlines()) == 2
    assert json.loads(inside("dead", "items", "stats", "--json").stdout) == {"item": bad - 2}


def test_dropping_asks_first(inside: Call, bad: int) -> None:
    refused = inside("dead", "items", "drop")
    assert (refused.returncode, "add --yes" in refused.stderr) == (2, True)
    assert inside("dead", "items", "drop", "--yes", "--limit", "1").stdout == "1 dropped\n"
    assert inside("dead", "items", "drop", "--yes").stdout == f"{bad - 1} dropped\n"
    gone = inside("dead", "items", "list")
    assert (gone.returncode, gone.stdout, gone.stderr) == (0, "", "no dead items\n")
    assert inside("dead", "items", "drop", "--yes").stdout == "no dead items\n"


def test_they_make_a_strict_run_fail(inside: Call, bad: int) -> None:
    assert inside("run", "spider.py", "--strict", "--quiet").returncode == 1


def test_a_fresh_start_forgets_them(inside: Call, bad: int, spider: Path, shop: Site) -> None:
    spider.write_text(SPIDER.replace("NUMBER", "7"))
    assert inside("run", "spider.py", f"{shop.url}/", "--fresh", "--quiet").returncode == 0
    assert json.loads(inside("dead", "items", "stats", "--json").stdout) == {}


def test_a_job_that_is_not_there_is_named(inside: Call) -> None:
    done = inside("dead", "items", "list", "--job", "nothing")
    assert done.returncode == 2
    assert "there is no job 'nothing'" in done.stderr
