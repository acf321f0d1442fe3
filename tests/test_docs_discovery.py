"""docs/discovery.md: its commands run as they stand there, and its words are the program's."""

from __future__ import annotations

import shlex
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any, get_args

import pytest

from silkline.parse.links import LinkKind
from silkline.politeness import simhash, traps
from silkline.resolve import settings_from
from tests.documents import blocks, run, snippet, text_of
from tests.site import Site

DOCUMENT = "docs/discovery.md"
SHOP: dict[str, Any] = {
    "/": '<a href="/products/1">1</a><a href="/cart">c</a><a href="/product/7">7</a><a href="/a.jpg">a</a>',
    "/products/1": '<a href="/products/1?sort=price">s</a>',
    "/product/7": "",
    "/cart": "",
    "/a.jpg": "",
}
SPIDER = """
from silkline import Crawler

crawler = Crawler("shop")


@crawler.handler
def page(page):
    yield page.follow("a")
"""


def silkline(line: str, shop: Site, cwd: Path) -> subprocess.CompletedProcess[str]:
    words = [word.replace("https://shop.example", shop.url) for word in shlex.split(line)[1:]]
    command = [sys.executable, "-m", "silkline", *words]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=60)


@pytest.mark.parametrize(
    ("number", "visited"),
    [
        (0, {"/", "/products/1", "/product/7"}),
        (1, {"/", "/products/1", "/products/1?sort=price"}),
        (2, {"/", "/product/7"}),
    ],
)
def test_the_scope_commands_run_as_written(tmp_path: Path, number: int, visited: set[str]) -> None:
    (tmp_path / "shop.py").write_text(SPIDER)
    with Site(dict(SHOP)) as shop:
        done = silkline(snippet(DOCUMENT, "scope").splitlines()[number], shop, tmp_path)
        assert done.returncode == 0, done.stderr
        assert set(shop.hits) == visited


def test_the_toml_can_be_read_and_every_setting_exists(tmp_path: Path) -> None:
    for block in blocks(DOCUMENT):
        if block.language == "toml":
            settings_from(tomllib.loads(block.code), DOCUMENT)


@pytest.mark.parametrize("number", [0, 1])
def test_the_order_commands_run_as_written(tmp_path: Path, number: int) -> None:
    with Site(dict(SHOP)) as shop:
        done = silkline(snippet(DOCUMENT, "order").splitlines()[number], shop, tmp_path)
        assert done.returncode == 0, done.stderr
        assert "/products/1?sort=price" in shop.hits


def test_the_rate_snippet_runs_as_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    pages: dict[str, Any] = {"/": '<title>Chairs</title><a href="/1">1</a>', "/1": "<title>One</title>"}
    with Site(pages) as shop:
        run(DOCUMENT, "rate", {}, replace={"https://shop.example": shop.url})
    assert Path("titles.jsonl").read_text().count("title") == 2


def test_the_figures_and_kinds_are_those_of_the_program() -> None:
    text = " ".join(text_of(DOCUMENT).split())
    for kind in get_args(LinkKind):
        assert f"`{kind}`" in text
    assert (traps.DEEP_PATH, traps.MANY_PARAMETERS, traps.CHAIN, traps.CROWD) == (40, 40, 30, 300)
    assert (traps.SAME_SHARE, traps.SAME_PARAMETER, simhash.SHINGLE) == (0.9, 3, 3)
    for figure in ("more than 40 segments", "more than 40 parameters", "Where 30 of them", "or 300 anywhere"):
        assert figure in text
