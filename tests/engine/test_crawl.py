"""Whole crawls: handlers, labels, retries, budgets, resume. Against a real server, or MockFetcher where
no byte on the wire matters; on the memory and the SQLite frontier."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import pydantic
import pytest
from tests.site import Site, linked_site

from silkline import Crawler, Page, Request, Retry
from silkline.errors import ConfigError, UnknownLabelError
from silkline.events import Event, Visited
from silkline.outcome import Dead
from silkline.testing import MockFetcher

HOME = "https://shop.example/"
LISTING = (
    '<div class="p"><h2>One</h2></div><div class="p"><h2>Two</h2></div><a class="next" href="/2">next</a>'
)


@pytest.fixture(params=["memory:", "sqlite"])
def frontier(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return request.param if request.param == "memory:" else f"sqlite:///{tmp_path}/job.db"


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "out.jsonl"


def rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def crawler_for(pages: dict[str, Any], frontier: str, out: Path | None = None, **settings: Any) -> Crawler:
    return Crawler(
        "job",
        fetcher=MockFetcher(pages),
        frontier=frontier,
        outputs=[str(out)] if out else [],
        quiet=True,
        **settings,
    )


@dataclass
class Name:
    name: str | None


def as_generator(page: Page) -> Iterator[Any]:
    for node in page.css(".p"):
        yield Name(node.text("h2"))
    yield page.follow("a.next")


async def as_async_generator(page: Page) -> Any:
    for node in page.css(".p"):
        await asyncio.sleep(0)
        yield {"name": node.text("h2")}
    yield page.follow("a.next")


def as_list(page: Page) -> list[Any]:
    return [{"name": node.text("h2")} for node in page.css(".p")] + [page.follow("a.next")]


async def as_coroutine(page: Page) -> list[Any]:
    await asyncio.sleep(0)
    return [[{"name": node.text("h2")} for node in page.css(".p")], None, list(page.follow("a.next"))]


@pytest.mark.parametrize("handler", [as_generator, as_async_generator, as_list, as_coroutine])
def test_handlers_may_be_written_in_every_way(handler: Any, frontier: str, out: Path) -> None:
    crawler = crawler_for({HOME: LISTING, f"{HOME}2": '<div class="p"><h2>Three</h2></div>'}, frontier, out)
    crawler.handler(handler)
    report = crawler.run(HOME)
    assert (report.reason, report.pages, report.items) == ("finished", 2, 3)
    assert rows(out) == [{"name": "One"}, {"name": "Two"}, {"name": "Three"}]


def test_a_handler_may_return_nothing_or_one_item(frontier: str, out: Path) -> None:
    crawler = crawler_for({HOME: "x", f"{HOME}one": "x"}, frontier, out)

    @crawler.handler
    def silent(page: Page) -> None:
        return None

    @crawler.handler("one")
    def one(page: Page) -> dict[str, Any]:
        return {"url": page.url}

    report = crawler.run(HOME, Request(f"{HOME}one", label="one"))
    assert (report.pages, report.items) == (2, 1)
    assert rows(out) == [{"url": f"{HOME}one"}]


def test_labels_priority_and_extra_travel_with_the_request(frontier: str) -> None:
    seen: list[tuple[str, str, Any]] = []
    crawler = crawler_for(
        {HOME: '<a class=b href="/b">b</a><a class=a href="/a">a</a>', f"{HOME}a": "", f"{HOME}b": ""},
        frontier,
        concurrency=1,
    )

    @crawler.handler
    def start(page: Page) -> Any:
        yield page.follow("a.b", label="leaf", priority=1)
        yield page.follow("a.a", label="leaf", priority=5, extra={"from": page.url})

    @crawler.handler("leaf")
    def leaf(page: Page) -> None:
        seen.append((page.url, page.request.label, page.request.extra))
        assert page.request.depth == 1

    crawler.run(HOME)
    assert seen == [(f"{HOME}a", "leaf", {"from": HOME}), (f"{HOME}b", "leaf", {})]


def test_a_handler_that_raises_loses_its_own_page_only(frontier: str, out: Path) -> None:
    crawler = crawler_for({f"{HOME}{n}": "x" for n in range(5)}, frontier, out)

    @crawler.handler
    def picky(page: Page) -> Any:
        yield {"url": page.url}
        if page.url.endswith("3"):
            raise ValueError("no price on this page")

    report = crawler.run(*(f"{HOME}{n}" for n in range(5)))
    assert (report.pages, report.dead) == (4, {"handler": 1})
    assert sorted(row["url"][-1] for row in rows(out)) == ["0", "1", "2", "4"]


def test_a_dead_letter_keeps_the_handlers_traceback(frontier: str) -> None:
    events: list[Event] = []
    crawler = Crawler(
        "job", fetcher=MockFetcher({HOME: "x"}), frontier=frontier, quiet=True, hooks=[events.append]
    )

    @crawler.handler
    def broken(page: Page) -> None:
        raise ValueError("no price on this page")

    crawler.run(HOME)
    verdict = next(event.outcome.verdict for event in events if isinstance(event, Visited))
    assert isinstance(verdict, Dead)
    assert verdict.error.startswith("ValueError: no price on this page\nTraceback")
    assert 'raise ValueError("no price on this page")' in verdict.error
    assert "effects.py" not in verdict.error


def test_retry_visits_again_until_the_retries_are_used_up(frontier: str) -> None:
    visits = 0
    crawler = crawler_for({HOME: "x"}, frontier, retries=2)

    @crawler.handler
    def stubborn(page: Page) -> None:
        nonlocal visits
        visits += 1
        assert page.request.retry_count == visits - 1
        raise Retry("not ready", after=0.01)

    report = crawler.run(HOME)
    assert visits == 3
    assert (report.dead, report.retried) == ({"retry_asked": 1}, 2)


def test_an_unknown_label_is_refused_before_a_seed_is_added(frontier: str) -> None:
    crawler = crawler_for({HOME: "x"}, frontier)
    crawler.handler(as_list)
    with pytest.raises(UnknownLabelError, match="'detial'"):
        crawler.run(Request(HOME, label="detial"))


def test_an_unknown_label_in_a_handler_is_that_pages_fault(frontier: str) -> None:
    crawler = crawler_for({HOME: LISTING, f"{HOME}other": "x"}, frontier)

    @crawler.handler
    def typo(page: Page) -> Any:
        yield page.follow("a.next", label="detial")

    report = crawler.run(HOME, f"{HOME}other")
    assert report.dead == {"label": 1} if report.pages else report.dead == {"label": 2}


def test_an_item_that_is_no_row_is_dead_and_its_page_is_done(frontier: str, out: Path) -> None:
    crawler = crawler_for({HOME: "x", f"{HOME}2": "x"}, frontier, out)

    @crawler.handler
    def mixed(page: Page) -> Any:
        yield object()
        yield {"ok": 1}

    report = crawler.run(HOME, f"{HOME}2")
    assert (report.pages, report.items, report.dead, report.dead_items) == (2, 2, {}, {"item": 2})
    assert out.read_text() == '{"ok":1}\n' * 2


def test_a_fetcher_that_breaks_its_promise_does_not_stop_the_crawl(frontier: str) -> None:
    class Odd:
        async def fetch(self, request: Request) -> Any:
            raise KeyError("surprise")

    crawler = Crawler("job", fetcher=Odd(), frontier=frontier, quiet=True)
    crawler.handler(as_list)
    assert crawler.run(HOME, f"{HOME}2").dead == {"internal": 2}


def test_middleware_wraps_every_fetch_first_one_outermost(frontier: str) -> None:
    order: list[str] = []

    def named(name: str) -> Any:
        async def middleware(request: Request, call_next: Any) -> Any:
            order.append(f"{name} in")
            response = await call_next(
                msgspec.structs.replace(request, headers={**request.headers, name: "1"})
            )
            order.append(f"{name} out")
            return response

        return middleware

    fetcher = MockFetcher({HOME: "x"})
    crawler = Crawler(
        "job",
        fetcher=fetcher,
        middleware=[named("a"), named("b")],
        frontier=frontier,
        robots=False,
        quiet=True,
    )
    crawler.handler(lambda page: None)
    crawler.run(HOME)
    assert order == ["a in", "b in", "b out", "a out"]
    assert fetcher.requests[0].headers == {"a": "1", "b": "1"}


def test_relative_requests_are_resolved_and_other_schemes_dropped(frontier: str) -> None:
    crawler = crawler_for({f"{HOME}dir/page": "x", f"{HOME}dir/two": "x"}, frontier)

    @crawler.handler
    def follow(page: Page) -> Any:
        yield Request("two")
        yield Request("mailto:someone@shop.example")
        yield Request("javascript://x/%0aalert(1)")

    report = crawler.run(f"{HOME}dir/page")
    assert (report.pages, report.stats.done, report.dead) == (2, 2, {})


def test_a_password_in_a_link_gets_into_no_url(tmp_path: Path, out: Path) -> None:
    links = '<a href="//me:TOPSECRET@shop.example/follow">x</a>'
    pages = {HOME: links, f"{HOME}follow": "x", f"{HOME}absolute": "x", f"{HOME}relative": "x"}
    seen: dict[str, str | None] = {}

    async def watch(request: Request, call_next: Any) -> Any:
        seen[request.url] = request.headers.get("Authorization")
        return await call_next(request)

    crawler = crawler_for(pages, f"sqlite:///{tmp_path}/job.db", out, middleware=[watch], robots=False)

    @crawler.handler
    def page(page: Page) -> Any:
        yield {"url": page.url}
        yield page.follow("a")
        yield Request("https://me:TOPSECRET@shop.example/absolute")
        yield Request("//me:TOPSECRET@shop.example/relative")

    assert crawler.run(HOME).pages == 4
    basic = "Basic bWU6VE9QU0VDUkVU"
    assert seen == {
        HOME: None,
        f"{HOME}follow": None,
        f"{HOME}absolute": basic,
        f"{HOME}relative": basic,
    }
    for file in (out, *tmp_path.glob("job.db*")):
        assert b"TOPSECRET" not in file.read_bytes()
    with pytest.raises(ConfigError, match=r"--auth 'https://shop\.example basic USER:PASSWORD'"):
        crawler.run("https://me:TOPSECRET@shop.example/")


def test_depth_is_limited(frontier: str) -> None:
    with Site(linked_site(40)) as site:
        crawler = Crawler("job", frontier=frontier, max_depth=2, quiet=True)
        crawler.handler(lambda page: [page.follow("a")])
        assert crawler.run(site.url + "/").pages == 1 + 3 + 9


def test_every_page_of_a_site_is_visited_once(frontier: str, out: Path) -> None:
    with Site(linked_site(150)) as site:
        crawler = Crawler("job", frontier=frontier, outputs=[str(out)], quiet=True)

        @crawler.handler
        def every(page: Page) -> Any:
            yield {"n": page.text("h1")}
            yield page.follow("a")

        report = crawler.run(site.url + "/")
        assert report.pages == report.items == report.stats.done == 150
        assert sorted(int(row["n"]) for row in rows(out)) == list(range(150))
        assert max(site.hits.values()) == 1


def test_a_budget_stops_exactly_and_the_next_run_goes_on(tmp_path: Path, out: Path) -> None:
    with Site(linked_site(60)) as site:

        def run(budget: int | None) -> Any:
            crawler = Crawler(
                "job", frontier=f"sqlite:///{tmp_path}/j.db", outputs=[str(out)], quiet=True, max_pages=budget
            )

            @crawler.handler
            def every(page: Page) -> Any:
                yield {"n": page.text("h1")}
                yield page.follow("a")

            return crawler.run(site.url + "/")

        report = run(25)
        assert (report.reason, report.pages, sum(site.hits.values())) == ("budget", 25, 25)
        report = run(None)
        assert (report.reason, report.pages) == ("finished", 35)
        assert sorted(int(row["n"]) for row in rows(out)) == list(range(60))
        report = run(None)
        assert (report.reason, report.pages, sum(site.hits.values())) == ("already finished", 0, 60)


def test_fresh_starts_over(tmp_path: Path, out: Path) -> None:
    with Site(linked_site(5)) as site:
        for fresh in (False, True):
            crawler = Crawler(
                "job", frontier=f"sqlite:///{tmp_path}/j.db", outputs=[str(out)], quiet=True, fresh=fresh
            )

            @crawler.handler
            def every(page: Page) -> Any:
                yield {"n": page.text("h1")}
                yield page.follow("a")

            assert crawler.run(site.url + "/").pages == 5
            assert len(rows(out)) == 5
        assert site.hits["/"] == 2


async def test_run_async_works_on_a_running_loop(frontier: str) -> None:
    crawler = crawler_for({HOME: "<h1>x</h1>"}, frontier)
    crawler.handler(lambda page: [{"h1": page.text("h1")}])
    report = await crawler.run_async(HOME)
    assert (report.reason, report.pages, report.items) == ("finished", 1, 1)


async def test_two_crawlers_run_side_by_side(tmp_path: Path) -> None:
    crawlers = [crawler_for({HOME: "x"}, f"sqlite:///{tmp_path}/{n}.db") for n in range(2)]
    for crawler in crawlers:
        crawler.handler(lambda page: None)
    reports = await asyncio.gather(*(crawler.run_async(HOME) for crawler in crawlers))
    assert [report.pages for report in reports] == [1, 1]


def test_a_crawler_without_a_handler_says_so() -> None:
    with pytest.raises(ConfigError, match="no handler"):
        Crawler("job").run(HOME)


def test_a_setting_that_does_not_exist_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"concurency.*did you mean 'concurrency'"):
        Crawler("job", concurency=3)


BAD_REQUESTS: dict[str, Any] = {
    "priority of a half": lambda page: [Request(f"{HOME}x", priority=2.5)],  # type: ignore[arg-type]
    "header that is a number": lambda page: [Request(f"{HOME}x", headers={"X": 5})],  # type: ignore[dict-item]
    "extra that is no JSON": lambda page: [Request(f"{HOME}x", extra={"o": object()})],
    "extra with half a character": lambda page: [Request(f"{HOME}x", extra={"s": "\ud800"})],
    "extra in a follow": lambda page: [page.follow("https://shop.example/x", extra={"o": object()})],
    "priority in a follow": lambda page: [page.follow("https://shop.example/x", priority=2.5)],
}


@pytest.mark.parametrize("name", BAD_REQUESTS)
def test_a_request_that_cannot_be_kept_is_its_pages_fault_alone(frontier: str, name: str) -> None:
    crawler = crawler_for({HOME: "x", f"{HOME}good": "x", f"{HOME}x": "x"}, frontier)
    crawler.router.add("good", lambda page: None)
    crawler.handler(BAD_REQUESTS[name])
    report = crawler.run(HOME, Request(f"{HOME}good", label="good"))
    assert (report.pages, report.dead) == (1, {"bad_task": 1})
    # And what is in the store can be read again.
    assert crawler.run(HOME).reason in ("already finished", "finished")


def leave(page: Page) -> None:
    sys.exit(5)


async def wait_for_a_cancelled_task(page: Page) -> None:
    task = asyncio.create_task(asyncio.sleep(10))
    task.cancel()
    await task


def raise_base(page: Page) -> None:
    raise BaseException("x")


@pytest.mark.parametrize("handler", [leave, wait_for_a_cancelled_task, raise_base])
def test_no_exception_of_a_handler_ends_the_crawl(frontier: str, handler: Any) -> None:
    crawler = crawler_for({HOME: "x", f"{HOME}good": "x"}, frontier)
    crawler.router.add("good", lambda page: None)
    crawler.handler(handler)
    report = crawler.run(HOME, Request(f"{HOME}good", label="good"))
    assert (report.reason, report.pages, report.dead) == ("finished", 1, {"handler": 1})


def test_a_fetcher_that_cancels_itself_loses_its_own_page_only(frontier: str) -> None:
    class Odd:
        async def fetch(self, request: Request) -> Any:
            raise asyncio.CancelledError

    crawler = Crawler("job", fetcher=Odd(), frontier=frontier, quiet=True)
    crawler.handler(as_list)
    assert crawler.run(HOME, f"{HOME}2").dead == {"internal": 2}


def test_a_handler_that_waits_for_ever_is_given_up(frontier: str) -> None:
    crawler = crawler_for({f"{HOME}{n}": "x" for n in range(6)}, frontier, visit_timeout=0.3, concurrency=2)

    @crawler.handler
    async def sometimes(page: Page) -> Any:
        if page.url[-1] in "123":
            await asyncio.Event().wait()
        return [{"url": page.url}]

    report = crawler.run(*(f"{HOME}{n}" for n in range(6)))
    assert (report.pages, report.dead) == (3, {"visit_timeout": 3})


def test_models_that_one_could_iterate_over_are_one_item(frontier: str, out: Path) -> None:
    class Model(pydantic.BaseModel):
        name: str

    crawler = crawler_for({HOME: "x"}, frontier, out)
    crawler.handler(lambda page: Model(name="one"))
    assert crawler.run(HOME).items == 1
    assert rows(out) == [{"name": "one"}]


def test_sets_and_views_are_several_items(frontier: str) -> None:
    crawler = crawler_for({HOME: "x", f"{HOME}2": "x"}, frontier)
    crawler.handler(lambda page: {"a": {"n": 1}, "b": {"n": 2}}.values())
    assert crawler.run(HOME).items == 2


async def test_run_inside_a_running_loop_says_what_to_write(frontier: str) -> None:
    crawler = crawler_for({HOME: "x"}, frontier)
    crawler.handler(as_list)
    with pytest.raises(ConfigError, match=r"await crawler\.run_async"):
        crawler.run(HOME)


def test_a_job_without_a_url_says_so(frontier: str) -> None:
    crawler = crawler_for({HOME: "x"}, frontier)
    crawler.handler(as_list)
    with pytest.raises(ConfigError, match="nothing to crawl"):
        crawler.run()


def test_leases_that_are_committed_while_renewed_are_no_trouble(tmp_path: Path) -> None:
    with Site(linked_site(400), delay=0.01) as site:
        crawler = Crawler(
            "job", frontier=f"sqlite:///{tmp_path}/j.db", quiet=True, lease_seconds=0.15, per_host=32
        )
        crawler.handler(lambda page: [page.follow("a")])
        report = crawler.run(site.url + "/")
    assert (report.pages, report.troubles) == (400, ())
