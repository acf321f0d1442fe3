"""Workers of one job with limits of their own: what one that gets nothing says, and when it ends."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from tests import servers
from tests.engine.operator import Crawl, operated
from tests.frontier.conftest import done
from tests.site import Endless, Site

from silkline import Crawler
from silkline.config import FrontierOptions
from silkline.engine import hunger
from silkline.engine.hunger import reason
from silkline.events import Event, Trouble
from silkline.observe.report import next_steps
from silkline.outcome import HostState
from silkline.request import Request

HOST = HostState("http://h:80", waiting=9, leased=8)


@pytest.fixture(params=["sqlite", "valkey"])
def frontier(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return servers.valkey_url() if request.param == "valkey" else f"sqlite:///{tmp_path}/job.db"


@pytest.fixture
def endless() -> Iterator[Endless]:
    with Endless(delay=0.02) as site:
        yield site


def test_what_is_said_names_the_limit_that_keeps_the_worker_hungry() -> None:
    own = FrontierOptions(per_host=2)
    assert reason((HOST,), own) == (
        "nothing to lease: others hold 8 requests of http://h:80, and this worker's per_host is 2; "
        "it gets some once they hold fewer"
    )
    assert reason((HOST,), FrontierOptions(per_host=8)) == "", "full for all alike"
    assert reason((msgspec.structs.replace(HOST, waiting=0),), own) == ""
    paced = msgspec.structs.replace(HOST, pace=(8, 0.0))
    assert reason((paced,), FrontierOptions(per_host=2, ceiling=8)) == ""
    assert "this worker's adaptive_ceiling is 4" in reason((paced,), FrontierOptions(per_host=2, ceiling=4))


async def test_a_worker_that_gets_nothing_as_others_may_have_more_says_so_once_and_goes_on_later(
    frontier: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hunger, "PATIENCE", 0.2)
    told: list[Event] = []

    def lines() -> list[str]:
        return [
            e.message for e in told if isinstance(e, Trouble) and e.message.startswith("nothing to lease")
        ]

    with Site({f"/{n}": "x" for n in range(12)}) as site:
        urls = [f"{site.url}/{n}" for n in range(12)]
        async with operated(frontier, per_host=2, adaptive=False, hooks=[told.append]) as crawl:
            await crawl.frontier.apply(FrontierOptions(per_host=8))
            await crawl.frontier.add([Request(url) for url in urls])
            leases = (await crawl.frontier.lease(8)).leases
            assert len(leases) == 8
            crawl.start(urls)
            await crawl.until(lambda: bool(lines()), "why it gets nothing")
            await asyncio.sleep(1.0)
            assert lines() == [
                f"nothing to lease: others hold 8 requests of {site.url}, and this worker's per_host is 2; "
                "it gets some once they hold fewer"
            ]
            assert site.hits.total() == 0
            await crawl.frontier.commit(done(*leases))
            report = await crawl.report()
        assert (report.pages, site.hits.total(), report.stats.done) == (4, 4, 12)


async def test_a_budget_that_others_have_used_up_ends_a_worker_while_they_go_on(
    frontier: str, endless: Endless
) -> None:
    async with operated(frontier, concurrency=4, per_host=4) as others:
        crawler = Crawler(others.job, frontier=frontier, quiet=True, traps=False, max_pages=40)
        crawler.handler(lambda page: page.follow("a"))
        limited = Crawl(crawler, others.frontier, others.job)
        await others.frontier.add([Request("http://h/held-by-others")])
        (held,) = (await others.frontier.lease(1)).leases
        others.start(endless.seeds)
        limited.start(endless.seeds)
        try:
            report = await limited.report()
        finally:
            await limited.stop()
        assert report.reason == "budget"
        assert report.stats.done >= 40
        assert next_steps(report) == ["run the same command with a higher --max-pages to go on"]
        seen = endless.hits.total()
        await others.until(lambda: endless.hits.total() > seen + 20, "more pages")
        endless.ended = True
        await others.frontier.commit(done(held))
        assert (await others.report()).reason == "finished"
