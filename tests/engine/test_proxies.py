"""Whole crawls through proxies of which some fail."""

from __future__ import annotations

from typing import Any

import pytest
from tests.proxies import TestProxy
from tests.site import Site

from silkline import Crawler, Page
from silkline.observe.report import lines

BAD_GATEWAY = b"HTTP/1.1 502 Bad\r\nContent-Length: 3\r\n\r\nbad"


@pytest.mark.parametrize("sessions", [1, 12])
@pytest.mark.parametrize("fetcher", ["http", "curl"])
async def test_a_proxy_that_says_502_loses_no_page_and_slows_no_host(fetcher: str, sessions: int) -> None:
    good, bad = await TestProxy().start(), await TestProxy().start()
    bad.answer = lambda request: BAD_GATEWAY
    urls = [f"/{number}" for number in range(40)]
    links = "".join(f"<a href={url}>x</a>" for url in urls)
    settings: dict[str, Any] = {"fetcher": fetcher, "sessions": sessions, "retries": 0, "quiet": True}
    try:
        with Site({"/": links, **dict.fromkeys(urls, "page")}) as site:
            crawler = Crawler(
                "job", frontier="memory:", proxy=[bad.url(), good.url()], allow_private=True, **settings
            )

            @crawler.handler
            def page(page: Page) -> Any:
                yield page.follow("a")

            report = await crawler.run_async(f"{site.url}/")
    finally:
        await good.stop()
        await bad.stop()
    assert bad.asked
    assert (report.pages, report.dead, report.retried) == (41, {}, 0)
    ((label, times),) = report.proxies_failed.items()
    assert label == f"http://127.0.0.1:{bad.port} (proxy, entry 1)"
    assert 1 <= times <= len(bad.asked)
    assert f"proxies   {label} failed " in "\n".join(lines(report))
