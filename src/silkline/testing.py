"""Test a spider offline: one page through its handler, or a whole crawl without a network.

from silkline.testing import MockFetcher, page_from, visit

async def test_a_listing_yields_its_quotes():
    result = await visit(crawler, page_from("listing.html", url="https://quotes.example/"))
    assert result.items[0] == {"text": "…", "author": "…"}
    assert [request.url for request in result.requests] == ["https://quotes.example/page/2"]
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from silkline.crawler import Crawler
from silkline.engine.discovery import scope_rules
from silkline.engine.effects import LinkRules, handle
from silkline.engine.items import ItemMaker
from silkline.engine.known import KnownUrls
from silkline.engine.robots import robot_listening
from silkline.engine.steps import Dropped
from silkline.errors import ConfigError
from silkline.fetch.mock import MockFetcher
from silkline.outcome import DeadItem, Lease
from silkline.parse.page import Page
from silkline.politeness.scope import Scope, sites_of
from silkline.request import DEFAULT_LABEL, Request
from silkline.response import Response
from silkline.sinks.choose import called
from silkline.url import host_of

__all__ = ["MockFetcher", "VisitResult", "page_from", "visit"]


class VisitResult(msgspec.Struct, frozen=True):
    """What a handler yielded for one page: the items as the steps leave them, the requests as they would be
    enqueued, the items that are dead, and how many the steps have dropped, by the reason."""

    items: tuple[Any, ...]
    requests: tuple[Request, ...]
    dead_items: tuple[DeadItem, ...] = ()
    dropped: dict[str, int] = {}


def page_from(
    source: str | bytes | Path,
    *,
    url: str = "https://example.com/",
    status: int = 200,
    content_type: str = "text/html; charset=utf-8",
    label: str = DEFAULT_LABEL,
    **request: Any,
) -> Page:
    """A page as if it had been fetched.

    source: a path to a file (a Path, or a str without "<" that names one), or the HTML itself.
    request: more fields of its `Request`, such as extra={...} or depth=2.

    Raises ConfigError where the file cannot be read.
    """
    body = source if isinstance(source, bytes) else _body_of(source)
    headers = ((b"Content-Type", content_type.encode()),)
    return Page(Response(url, status, headers, body, Request(url, label=label, **request)))


async def visit(crawler: Crawler, page: Page) -> VisitResult:
    """Run the page's handler. What the handler raises comes out as HandlerError; UnknownLabelError too."""
    settings = crawler.settings
    wanted = scope_rules(settings, sites_of([page.request.url]) if page.request.depth == 0 else ())
    rules = LinkRules(
        crawler.router,
        KnownUrls(),
        settings.max_depth,
        robot=robot_listening(settings),
        scope=Scope(wanted) if wanted.any else None,
        max_links=settings.max_links,
    )
    effects = await handle(crawler.router.handler(page.request.label), page, rules)
    fingerprint = page.request.fingerprint
    lease = Lease(page.request, 1, fingerprint, host_of(page.request.url))
    keys = crawler.item_keys.with_dicts(settings.item_key)
    maker = ItemMaker((), keys=keys, called=called(settings.outputs, crawler.sinks))
    given = await crawler.steps.through(effects.items, page)
    made = maker.made(given, lease)
    dead = {item.index for item in made.dead}
    items = [item for n, item in enumerate(given) if n not in dead and not isinstance(item, Dropped)]
    return VisitResult(tuple(items), tuple(effects.links), made.dead, dict(made.dropped))


def _body_of(source: str | Path) -> bytes:
    if isinstance(source, str) and "<" in source:
        return source.encode()
    try:
        return Path(source).read_bytes()
    except OSError as error:
        raise ConfigError(f"{source}: cannot be read as a page: {error.strerror}") from error
