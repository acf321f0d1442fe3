"""silkline: a distributed, asynchronous web crawler that can be killed at any instant and loses nothing.

from silkline import Crawler, Page

crawler = Crawler("quotes")

@crawler.handler
async def listing(page: Page):
    for quote in page.css("div.quote"):
        yield {"text": quote.text(".text"), "author": quote.text(".author")}
    yield page.follow("li.next a")

if __name__ == "__main__":
    crawler.run("https://quotes.example/")
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from silkline.version import __version__

if TYPE_CHECKING:
    from silkline.crawler import Crawler
    from silkline.engine.sitemaps import Sitemaps
    from silkline.errors import Drop, Retry, SilklineError
    from silkline.items import To
    from silkline.observe.report import Report
    from silkline.parse.page import Page
    from silkline.producer import seed, seed_async
    from silkline.request import Follow, Request
    from silkline.response import Response
    from silkline.sinks.keyed import OwnSink

__all__ = [
    "Crawler",
    "Drop",
    "Follow",
    "OwnSink",
    "Page",
    "Report",
    "Request",
    "Response",
    "Retry",
    "SilklineError",
    "Sitemaps",
    "To",
    "__version__",
    "seed",
    "seed_async",
]

_HOMES = {
    "Crawler": "silkline.crawler",
    "Drop": "silkline.errors",
    "Follow": "silkline.request",
    "OwnSink": "silkline.sinks.keyed",
    "Page": "silkline.parse.page",
    "Report": "silkline.observe.report",
    "Request": "silkline.request",
    "Response": "silkline.response",
    "Retry": "silkline.errors",
    "SilklineError": "silkline.errors",
    "Sitemaps": "silkline.engine.sitemaps",
    "To": "silkline.items",
    "seed": "silkline.producer",
    "seed_async": "silkline.producer",
}


def __getattr__(name: str) -> object:
    """Import a public name at its first use, so that `silkline --help` need not load the whole engine."""
    if name not in _HOMES:
        raise AttributeError(f"module 'silkline' has no attribute {name!r}")
    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value
