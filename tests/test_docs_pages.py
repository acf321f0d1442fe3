"""docs/pages.md: its sessions give the answers that are shown, and its numbers are the program's."""

from __future__ import annotations

import doctest
import re
from pathlib import Path
from typing import Any

import msgspec
import pytest

from silkline import Crawler, Page
from silkline.parse import grid, jsonld, microdata, opengraph, tables
from silkline.parse.article import Article
from silkline.parse.structured import StructuredData
from silkline.testing import page_from, visit
from tests.documents import blocks, run, section, snippet, text_of

DOCUMENT = "docs/pages.md"
SESSIONS = ("structured", "tables", "markdown")
ARTICLES = Path(__file__).parent / "data" / "articles"


def test_every_block_is_run_by_a_test() -> None:
    assert [block.name for block in blocks(DOCUMENT)] == [*SESSIONS, "article"]


@pytest.mark.parametrize("name", SESSIONS)
def test_sessions_give_the_answers_that_are_shown(name: str) -> None:
    names: dict[str, Any] = {"page_from": page_from}
    session = doctest.DocTestParser().get_doctest(snippet(DOCUMENT, name), names, name, DOCUMENT, 0)
    said: list[str] = []
    failed, tried = doctest.DocTestRunner(verbose=False).run(session, out=said.append)
    assert tried
    assert not failed, "".join(said)


async def test_the_handler_yields_the_article() -> None:
    crawler = Crawler("shop")
    run(DOCUMENT, "article", {"crawler": crawler, "Page": Page})
    page = page_from(ARTICLES / "news.html", label="story")
    (item,) = (await visit(crawler, page)).items
    assert (item["title"], item["by"]) == ("Harbour freezes over", "Ada Brook")
    assert item["text"].startswith("![Ice](https://example.com/ice.jpg)")


@pytest.mark.parametrize(
    ("kind", "heading"),
    [
        (StructuredData, "Structured data"),
        (opengraph.OpenGraph, "Structured data"),
        (opengraph.Media, "Structured data"),
        (tables.Table, "Tables"),
        (Article, "Articles"),
    ],
)
def test_all_that_the_answers_offer_is_named(kind: type, heading: str) -> None:
    prose = re.sub(r"```.*?```", "", section(DOCUMENT, heading), flags=re.S)
    named = set(re.findall(r"\w+", " ".join(re.findall(r"`([^`]+)`", prose))))
    assert {name for name in dir(kind) if not name.startswith("_")} <= named


def test_the_limits_are_the_programs() -> None:
    limits = section(DOCUMENT, "Limits")
    for line in (
        f"| JSON-LD | {jsonld.MAX_TEXT:,} characters |",
        f"| microdata | {microdata.MAX_VALUES:,} items and values, {microdata.MAX_TEXT:,} characters, "
        f"{microdata.MAX_REFERENCES} references, {microdata.MAX_NESTING} items in items |",
        f"| OpenGraph | {opengraph.MAX_PROPERTIES:,} values |",
        f"| tables | {tables.MAX_TABLES:,} tables, {tables.MAX_PLACES:,} places (rows times columns), "
        f"{grid.MAX_COLUMNS:,} columns, {tables.MAX_TEXT:,} characters |",
    ):
        assert line in limits
    assert f"On the {len(list(ARTICLES.glob('*.html')))} layouts" in text_of(DOCUMENT)


def test_an_answer_can_be_an_item() -> None:
    page = page_from(ARTICLES / "recipe.html")
    for answer in (page.structured(), page.article(), *page.tables()):
        msgspec.json.encode(answer)
