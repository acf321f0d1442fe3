"""docs/python.md: every block runs, and nothing that a spider can use is missing from it."""

from __future__ import annotations

import asyncio
import dataclasses
import datetime
import decimal
import enum
import inspect
import json
import re
import sqlite3
import subprocess
import sys
import uuid
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec
import pytest
from aiohttp import web

import silkline
from silkline import Crawler, Page, Report, Request, events
from silkline.config import Settings
from silkline.engine.retry import MAX_RETRY_AFTER
from silkline.errors import ConnectError, ItemError
from silkline.observe.fields import Field
from silkline.parse.node import Node
from silkline.parse.page import MAX_LINKS
from silkline.request import PRIORITY_LIMIT
from silkline.sinks.record import record_of
from silkline.testing import MockFetcher, page_from
from tests.documents import blocks, check_session, run, section, snippet, text_of
from tests.site import Site

PYTHON = "docs/python.md"
SHOP = "https://shop.example"
SESSIONS = [block.name for block in blocks(PYTHON) if block.language == "pycon" and block.name]


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def started(site: Site) -> dict[str, Any]:
    """The names that the first snippet gives to the others, where the shop is `site`."""
    names: dict[str, Any] = {}
    run(PYTHON, "start", names)
    names["crawler"].configure(msgspec.structs.replace(names["crawler"].settings, quiet=True))
    return names


def items(path: str = "shop.jsonl") -> list[dict[str, Any]]:
    return [json.loads(line) for line in Path(path).read_text().splitlines()]


# What the blocks do.


def test_every_block_is_run_by_a_test() -> None:
    names = [block.name for block in blocks(PYTHON)]
    assert None not in names
    assert len(set(names)) == len(names) > 15
    text = Path(__file__).read_text()
    for name in set(names) - set(SESSIONS):
        assert f'(PYTHON, "{name}"' in text, f"no test runs {name}"


@pytest.mark.parametrize("name", SESSIONS)
def test_sessions_give_the_answers_that_are_shown(name: str) -> None:
    check_session(PYTHON, name)


def test_every_kind_of_seed_is_crawled(capsys: pytest.CaptureFixture[str]) -> None:
    pages: dict[str, Any] = dict.fromkeys(("/", "/new", "/p/1", "/p/2", "/p/3", "/listed"), "x")
    with Site(pages) as site:
        Path("urls.txt").write_text(f"# more\n{site.url}/listed\nno url\n")
        names = started(site)
        run(PYTHON, "run", names, {SHOP: site.url})
    assert len(items()) == 6
    assert names["report"].seeded.invalid == 1
    assert capsys.readouterr().out == "6 6 {}\n"


def test_the_producer_takes_every_kind_of_seed(capsys: pytest.CaptureFixture[str]) -> None:
    Path("urls.txt").write_text("https://shop.example/listed\nno url\n")
    with closing(sqlite3.connect("products.db")) as connection, connection:
        connection.execute("CREATE TABLE products (id, url)")
        connection.execute("INSERT INTO products VALUES (1, 'https://shop.example/p/1')")
    run(PYTHON, "seed", {})
    assert capsys.readouterr().out.startswith('6 1 1 ("urls.txt:2: ')


async def test_a_program_with_a_loop_awaits_the_producer() -> None:
    names: dict[str, Any] = {"silkline": silkline}
    await run(PYTHON, "seed-async", names)
    assert names["seeded"].added == 1


async def test_a_notebook_awaits_the_report() -> None:
    with Site({"/": "x"}) as site:
        names = started(site)
        names["crawler"].handler(lambda page: {"url": page.url})
        await run(PYTHON, "async", names, {SHOP: site.url})
    assert (names["report"].pages, names["report"].items) == (1, 1)


async def test_a_cancelled_run_keeps_what_was_committed() -> None:
    with Site({f"/{n}": "x" for n in range(20)}) as site:
        crawler = Crawler("shop", concurrency=1, outputs=["shop.jsonl"])
        stuck = asyncio.Event()

        @crawler.handler
        async def every(page: Page) -> dict[str, str]:
            if page.url.endswith("/19") and not stuck.is_set():
                stuck.set()
                await asyncio.sleep(60)
            return {"url": page.url}

        task = asyncio.create_task(crawler.run_async(*(f"{site.url}/{n}" for n in range(20))))
        await stuck.wait()
        await asyncio.sleep(0.3)  # until the others are committed
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        before = len(items())
        report = await crawler.run_async()
        assert (before + report.items, len(items())) == (20, 20)
        assert before > 0


def test_handlers_are_written_in_every_way() -> None:
    product = '<div class="product"><h2>Chair</h2><p class="price">9.50</p><a href="/chair">more</a></div>'
    pages: dict[str, Any] = {
        "/": product + '<a class="next" href="/2">next</a>',
        "/2": "the end",
        "/chair": '<p class="description">Blue</p><img src="chair.png">',
        "/chair.png": "png",
    }
    with Site(pages) as site:
        names = started(site)
        run(PYTHON, "handlers", names)
        report = names["crawler"].run(f"{site.url}/")
    assert (report.pages, report.dead) == (4, {})
    assert items() == [{"name": "Chair", "price": "9.50"}, {"text": "Blue"}]
    assert Path("chair.png").read_text() == "png"


def test_a_handler_asks_for_another_visit() -> None:
    visits = 0

    async def price(request: web.Request) -> web.Response:
        nonlocal visits
        visits += 1
        ready = '<b class="price">10</b><b class="currency">EUR</b>'
        return web.Response(text=ready if visits > 1 else '<p class="loading">', content_type="text/html")

    with Site({"/": price}) as site:
        names = started(site) | {"rate_of": {"EUR": 2.5}.__getitem__}
        run(PYTHON, "retry", names, {"after=60": "after=0.01"})
        report = names["crawler"].run(f"{site.url}/")
    assert (report.retried, items()) == (1, [{"price": 25.0}])


def test_a_request_may_have_a_body() -> None:
    async def search(request: web.Request) -> web.Response:
        assert request.method == "POST"
        return web.json_response([{"name": (await request.json())["q"].upper()}])

    with Site({"/": "x", "/api/search": search}) as site:
        names = started(site)
        run(PYTHON, "post", names)
        report = names["crawler"].run(f"{site.url}/")
    assert report.dead == {}
    assert sorted(items(), key=str) == [
        {"word": "chair", "name": "CHAIR"},
        {"word": "table", "name": "TABLE"},
    ]


def test_a_url_is_visited_again_under_another_key() -> None:
    states = iter(["new", "paid", "done"])

    async def order(request: web.Request) -> web.Response:
        return web.Response(text=f'<p class="state">{next(states)}</p>', content_type="text/html")

    with Site({"/": order}) as site:
        names = started(site)
        run(PYTHON, "again", names)
        names["crawler"].run(f"{site.url}/")
    assert [(item["turn"], item["state"]) for item in items()] == [(1, "new"), (2, "paid"), (3, "done")]


def test_items_of_every_kind_are_kept() -> None:
    with Site({"/": "<h1>Lamp</h1>"}) as site:
        names = started(site)
        run(PYTHON, "items", names)
        names["crawler"].run(f"{site.url}/")
    assert items() == [
        {"name": "Lamp", "tags": ["new"]},
        {"name": "Chair", "price": "9.50"},
        {"product": {"name": "Table", "price": None}, "until": "2030-01-31"},
        {"city": "Ulm"},
        {"stars": 5},
    ]


def test_middleware_changes_requests_and_refuses_answers() -> None:
    tokens: list[str | None] = []

    async def page(request: web.Request) -> web.Response:
        tokens.append(request.headers.get("Authorization"))
        return web.Response(text="You are too fast" if len(tokens) == 1 else "x", content_type="text/html")

    with Site({"/": page}) as site:
        names = started(site)
        run(PYTHON, "middleware", names, {"retry_after=60": "retry_after=0.01"})
        names["crawler"].handler(lambda page: None)
        report = names["crawler"].run(f"{site.url}/", frontier="memory:", quiet=True)
    assert tokens == ["Bearer secret"] * 2
    assert (report.pages, report.failed) == (1, {"http_429": 1})


def test_a_fetcher_reads_from_a_folder() -> None:
    Path("pages").mkdir()
    Path("pages/index.html").write_text("<h1>Home</h1>")
    Path("pages/folder").mkdir()
    names: dict[str, Any] = {}
    run(PYTHON, "fetcher", names)
    names["crawler"].handler(lambda page: {"h1": page.text("h1")})
    urls = (f"{SHOP}/", f"{SHOP}/missing", f"{SHOP}/folder")
    report = names["crawler"].run(*urls, quiet=True, retries=0)
    assert items("saved.jsonl") == [{"h1": "Home"}]
    assert report.dead == {"http_404": 1, "connect": 1}


def test_a_hook_counts() -> None:
    with Site({"/": "x"}, delay=0.02) as site:
        names = started(site)
        run(PYTHON, "hooks", names, {"seconds > 5": "seconds > 0.01"})
        names["crawler"].handler(lambda page: None)
        names["crawler"].run(f"{site.url}/", quiet=True)
        assert names["slow"] == {site.url: 1}


def test_the_pytest_example_passes_with_these_settings_and_no_others() -> None:
    Path("pyproject.toml").write_text(snippet(PYTHON, "pytest-settings"))
    Path("test_shop.py").write_text(snippet(PYTHON, "pytest"))
    command = [sys.executable, "-m", "pytest", "-q", "test_shop.py"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "1 passed" in done.stdout


async def test_the_mock_answers_as_it_says() -> None:
    names: dict[str, Any] = {}
    run(PYTHON, "answers", names)
    fetcher = MockFetcher(names["pages"])

    async def answer(path: str, **fields: Any) -> tuple[int, str | None]:
        response = await fetcher.fetch(Request(f"{SHOP}/{path}", **fields))
        page = Page(response)
        return response.status, page.text("h1") if page.kind == "html" else page.source

    assert await answer("") == (200, "HTML, in UTF-8")
    assert await answer("bytes") == (200, "é")
    assert (await answer("status"))[0] == 500
    assert await answer("body") == (404, "Not here")
    assert await answer("headers") == (200, "<a/>")
    assert await answer("redirect") == (200, "HTML, in UTF-8")
    with pytest.raises(ConnectError):
        await answer("down")
    assert (await answer("turns"))[0] == 503
    with pytest.raises(ConnectError):
        await answer("turns")
    assert [(await answer("turns"))[0] for _ in range(2)] == [200, 200]
    assert await answer("api", method="POST", body=b"[1]") == (201, "[1]")
    assert (await fetcher.fetch(Request(f"{SHOP}/saved"))).header("etag") == "7"
    assert (await answer("nowhere"))[0] == 404


# What the tables name.


def named(heading: str) -> set[str]:
    """Every word in code type in a section's tables."""
    rows = [line for line in section(PYTHON, heading).splitlines() if line.startswith("|")]
    return set(re.findall(r"\w+", " ".join(re.findall(r"`([^`]+)`", " ".join(rows)))))


def public(kind: type) -> set[str]:
    return {name for name in dir(kind) if not name.startswith("_")}


def test_all_that_pages_and_nodes_offer_is_named() -> None:
    assert public(Page) | public(Node) <= named("Page and Node")


def test_every_field_of_requests_and_reports_is_named() -> None:
    assert public(Request) <= named("Request")
    assert public(Report) <= named("Report")
    assert public(Field) <= named("Report")
    for field in msgspec.structs.fields(Report):
        if isinstance(field.default, msgspec.Struct):
            assert public(type(field.default)) <= named("Report"), field.name


def test_every_argument_of_a_crawler_is_named() -> None:
    arguments = set(inspect.signature(Crawler).parameters) - {"settings"}
    assert arguments <= named("Crawler")
    for call in (Crawler.run, Crawler.run_async):
        assert set(inspect.signature(call).parameters) - {"self", "overrides"} <= named("Crawler")
    methods = {"run", "run_async", "handler", "step", "item", "configure", "settings"}
    assert methods <= named("Crawler")


def test_every_event_is_named_with_its_fields() -> None:
    for kind in events.Event.__args__:
        row = re.search(rf"^\| `{kind.__name__}` \|.*$", section(PYTHON, "Hooks"), re.M)
        assert row, kind
        for field in kind.__struct_fields__:
            assert f"`{field}`" in row[0], f"{kind.__name__}.{field}"


class Size(enum.Enum):
    LARGE = "L"


@dataclasses.dataclass
class Part:
    name: str


@pytest.mark.parametrize(
    ("row", "value", "plain"),
    [
        ("text, numbers, `True`, `None`, lists, dicts", ["a", 1, 1.5, True, None, {"b": 2}], ...),
        ("dates and times", datetime.date(2030, 1, 31), "2030-01-31"),
        ("paths, `Decimal`, `UUID`", Path("a/b.pdf"), "a/b.pdf"),
        ("paths, `Decimal`, `UUID`", decimal.Decimal("9.50"), "9.50"),
        ("paths, `Decimal`, `UUID`", uuid.UUID(int=1), str(uuid.UUID(int=1))),
        ("`bytes`", b"\x00\xff", "AP8="),
        ("enum members", Size.LARGE, "L"),
        ("sets, tuples, other sequences", ({1}, range(2)), [[1], [0, 1]]),
        ("dataclasses and the other kinds of items, nested", [Part("leg")], [{"name": "leg"}]),
        ("NaN and the infinities", [float("nan"), float("inf")], [None, None]),
    ],
)
def test_values_become_what_the_table_says(row: str, value: Any, plain: Any) -> None:
    assert f"\n| {row} |" in section(PYTHON, "Items")
    assert record_of({"value": value}) == {"value": value if plain is ... else plain}


@pytest.mark.parametrize("value", [(n for n in "ab"), page_from("<p>").one("p")])
def test_what_no_output_can_hold_names_its_field(value: Any) -> None:
    with pytest.raises(ItemError, match="'value'"):
        record_of({"value": value})


def test_numbers_in_the_text_are_the_programs() -> None:
    assert f"{MAX_LINKS:,} links" in text_of(PYTHON)
    assert MAX_RETRY_AFTER == 3_600
    assert "an hour at most" in section(PYTHON, "Handlers")
    assert f"after {Settings().visit_timeout:g} seconds" in section(PYTHON, "Handlers")
    assert f"| -{PRIORITY_LIMIT} to {PRIORITY_LIMIT}," in section(PYTHON, "Request")
