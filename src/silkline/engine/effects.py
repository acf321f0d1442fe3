"""What a handler yields, gathered until the visit ends; nothing leaves before the commit."""

from __future__ import annotations

import asyncio
import inspect
import traceback
from collections.abc import Container, Iterable, Iterator, Sequence, ValuesView
from types import GeneratorType
from typing import TypeGuard

import msgspec

from silkline.engine.known import KnownUrls
from silkline.errors import BadUrlError, HandlerError, SilklineError
from silkline.fetch.identity.referer import Referer
from silkline.fetch.target import credentials_apart
from silkline.outcome import NONE_REFUSED, Refused
from silkline.parse.page import MAX_LINKS, Page
from silkline.politeness.order import LinkOrder
from silkline.politeness.scope import Scope
from silkline.politeness.traps import Traps
from silkline.request import Follow, Request, storable
from silkline.router import Handler, Router
from silkline.url import check, resolve, without_credentials


class LinkRules:
    """Which yielded requests become links of the commit.

    router: checks labels. known: URLs that the frontier has already. max_depth: None for no limit.
    referer: what a link's Referer header says of its page; None for no such header.
    robot: the name by which pages may ask us not to follow their links; None where we do not listen.
    scope: where links may lead; None for anywhere. max_links: of one page that are looked at.
    traps, order: None where nobody looks for traps, and where links have the priorities that they are given.
    """

    def __init__(
        self,
        router: Router,
        known: KnownUrls,
        max_depth: int | None = None,
        referer: Referer | None = None,
        robot: str | None = None,
        scope: Scope | None = None,
        max_links: int = MAX_LINKS,
        traps: Traps | None = None,
        order: LinkOrder[Page] | None = None,
    ) -> None:
        self.robot = robot
        self.scope = scope
        self.max_links = max_links
        self.traps = traps
        self.order = order
        self._router = router
        self._known = known
        self._max_depth = max_depth
        self._referer = referer

    @property
    def with_referer(self) -> bool:
        return self._referer is not None

    def too_deep(self, depth: int) -> bool:
        return self._max_depth is not None and depth > self._max_depth

    def fresh(self, follow: Follow) -> list[str]:
        """The URLs of `follow` that are not known to be in the frontier.

        Raises UnknownLabelError, and TaskError where they would make no requests.
        """
        self._router.handler(follow.label)
        urls = self._known.missing(follow.urls)
        if urls:
            storable(follow.request(urls[0]))  # one speaks for all: they differ in the URL alone
        return urls

    def inherited(self, request: Request, page: Page) -> Request:
        """The link with what it has from its page: the session, and the Referer header."""
        session = page.request.session if request.session is None else request.session
        headers = request.headers
        if self._referer is not None and not any(name.lower() == "referer" for name in headers):
            value = self._referer(page.url, request.url)
            headers = headers if value is None else {**headers, "Referer": value}
        if session is request.session and headers is request.headers:
            return request
        return msgspec.structs.replace(request, session=session, headers=headers)

    def admit(self, request: Request, page: Page, depth: int) -> Request | None:
        """The request as it will be enqueued, its URL made absolute; None if that is no http(s) URL.

        Raises UnknownLabelError, and TaskError for one that cannot be kept.
        """
        request = storable(request)
        self._router.handler(request.label)
        absolute = request.url.startswith(("http://", "https://"))
        headers = request.headers
        try:
            url = request.url if absolute else resolve(page.url, request.url)
            if url is not None and "@" in url:
                url, headers = credentials_apart(url, headers)
            url = check(url) if url is not None and absolute else url
        except BadUrlError:
            url = None
        if url is None:
            return None
        return self.inherited(
            msgspec.structs.replace(
                request, url=url, headers=headers, depth=depth, retry_count=0, spared=0, redo=()
            ),
            page,
        )


class Effects:
    """The items and links of one visit."""

    __slots__ = (
        *("_bequeaths", "_depth", "_page", "_room", "_rules", "_unwanted"),
        *("dropped", "items", "links", "refused"),
    )

    def __init__(self, page: Page, rules: LinkRules) -> None:
        self.items: list[object] = []
        self.links: list[Request] = []
        self.dropped = 0
        self.refused: dict[str, Refused] = {}
        self._room = rules.max_links
        self._page = page
        self._rules = rules
        self._depth = page.request.depth + 1
        self._unwanted: Container[str] | None = None if rules.robot else ()
        self._bequeaths = page.request.session is not None or rules.with_referer

    def take(self, value: object) -> None:
        """One thing that a handler yielded: None, a Request, a Follow, a list of such things, or an item."""
        if type(value) is dict:
            self.items.append(value)
        elif value is None:
            return
        elif isinstance(value, Follow):
            if self._rules.too_deep(self._depth):
                self._refuse("deeper than max_depth", value.urls)
            else:
                urls = self._wanted(self._rules.fresh(self._fitting(value)))
                bare = [without_credentials(url) if "@" in url else url for url in urls]
                links = [value.request(url, self._depth) for url in bare]
                if self._bequeaths:
                    links = [self._rules.inherited(link, self._page) for link in links]
                self.links += links
        elif isinstance(value, Request):
            self._take_request(value)
        elif is_many(value):
            for one in value:
                self.take(one)
        else:
            self.items.append(value)

    def _take_request(self, request: Request) -> None:
        if self._rules.too_deep(self._depth):
            self._refuse("deeper than max_depth", (request.url,))
            return
        admitted = self._rules.admit(request, self._page, self._depth)
        if admitted is None:
            self.dropped += 1
        elif self._inside([admitted.url]):
            self.links.append(admitted)

    def _fitting(self, follow: Follow) -> Follow:
        """As many of the links as the page may still have."""
        room, self._room = self._room, self._room - len(follow.urls)
        if self._room >= 0:
            return follow
        room = max(0, room)
        self._refuse("beyond max_links of its page", follow.urls[room:])
        return msgspec.structs.replace(follow, urls=follow.urls[:room])

    def _refuse(self, reason: str, urls: Sequence[str]) -> None:
        if urls:
            self.dropped += len(urls)
            self.refused[reason] = self.refused.get(reason, NONE_REFUSED) + Refused(len(urls), urls[0])

    def _inside(self, urls: list[str]) -> list[str]:
        """Those that are in scope."""
        scope, traps = self._rules.scope, self._rules.traps
        if not urls or (scope is None and traps is None):
            return urls
        inside = urls
        if scope is not None:
            request = self._page.request
            inside = scope.admitted(urls, request.url, self._page.url, request.depth, self.refused)
        if traps is not None:
            inside = traps.outside(inside, self.refused)
        self.dropped += len(urls) - len(inside)
        return inside

    def settle(self) -> None:
        """Once the handler is through: what only all the links together tell, and their order."""
        rules, page = self._rules, self._page
        if rules.traps is not None and self.links:
            reason = rules.traps.barred(
                page.response.url,
                self._depth - 1,
                self.links,
                lambda: page_text(page),
                lambda: page_name(page),
            )
            if reason:
                self._refuse(reason, [link.url for link in self.links])
                self.links.clear()
        if rules.order is not None:
            self.links = [rules.order(link, page) for link in self.links]

    def _wanted(self, urls: list[str]) -> list[str]:
        """Those that are in scope and that the page lets robots follow."""
        urls = self._inside(urls)
        if not urls or self._unwanted == ():
            return urls
        if self._unwanted is None:
            assert self._rules.robot is not None
            asked = self._page.robots_meta(self._rules.robot)
            self._unwanted = (self._page.nofollow_links() or ()) if asked.follow else Everything()
        wanted = [url for url in urls if url not in self._unwanted]
        if len(wanted) < len(urls):
            self._refuse("nofollow", [url for url in urls if url in self._unwanted])
        return wanted


class Everything:
    """Has whatever one asks for."""

    def __contains__(self, value: object) -> bool:
        return True


async def handle(handler: Handler, page: Page, rules: LinkRules) -> Effects:
    """Run the handler to its end. Whatever it raises that is no SilklineError becomes a HandlerError."""
    effects = Effects(page, rules)
    try:
        result = handler(page)
        if type(result) is GeneratorType and not result.gi_code.co_flags & inspect.CO_ITERABLE_COROUTINE:
            for value in result:
                effects.take(value)
        elif inspect.isasyncgen(result):
            async for value in result:
                effects.take(value)
        else:
            if inspect.isawaitable(result):
                result = await result
            effects.take(result)
        effects.settle()
    except (SilklineError, KeyboardInterrupt):
        raise
    except BaseException as error:  # sys.exit() or a cancelled task of the handler's own are its fault, too
        if isinstance(error, asyncio.CancelledError) and is_cancelled():
            raise
        raise HandlerError(f"{type(error).__name__}: {error}", _user_traceback(error)) from error
    return effects


def page_name(page: Page) -> str:
    """What it calls itself: its title and its first heading."""
    return f"{page.title or ''} {page.text('h1', default='')}" if page.kind == "html" else ""


def page_text(page: Page) -> str:
    """The text that a reader sees; of what is no HTML, the source."""
    return (page.text("body") or "") if page.kind == "html" else page.source


def is_many(value: object) -> TypeGuard[Iterable[object]]:
    """Whether a yielded value stands for several: a list, a set, an iterator; not a record that one can
    iterate over, such as a mapping, a named tuple or a model."""
    return isinstance(value, list | set | frozenset | Iterator | ValuesView | range) or (
        isinstance(value, tuple) and not hasattr(value, "_fields")
    )


def is_cancelled() -> bool:
    """Whether it is the running task that somebody cancels, and not something it waits for."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


def _user_traceback(error: BaseException) -> str:
    """The traceback from the handler's own frame on: ours above it says nothing to the user."""
    frames = error.__traceback__.tb_next if error.__traceback__ is not None else None
    return "".join(traceback.format_exception(type(error), error, frames)).rstrip()
