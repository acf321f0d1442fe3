"""What a crawl may discover, as its settings say: the scope, kept with the job, of links and redirects."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextvars import ContextVar

import msgspec

from silkline.config import Settings
from silkline.errors import OutOfScope, UnwantedContent
from silkline.events import Trouble
from silkline.parse.page import Page
from silkline.politeness.order import LinkOrder, Rate
from silkline.politeness.scope import Scope, ScopeRules, check_rules
from silkline.politeness.traps import Found, Traps
from silkline.protocols import CallNext, Frontier, Hook
from silkline.request import Request
from silkline.response import Response

FACT = "scope"
"""The name by which the rules are kept with the job, for later runs and for `silkline explain`."""

SITES_KEPT = 1_000

Policy = Callable[[Request, str], Awaitable[None]]

_visiting: ContextVar[Request | None] = ContextVar("_visiting", default=None)


def scope_rules(settings: Settings, sites: Sequence[str] = ()) -> ScopeRules:
    """sites: of the URLs where the crawl starts."""
    return ScopeRules(
        kind=settings.scope,
        sites=tuple(sites),
        allow_hosts=settings.allow_hosts,
        allow=settings.allow,
        deny=settings.deny,
        paths=settings.paths,
        schemes=settings.schemes,
        skip_extensions=settings.skip_extensions,
        max_depth=settings.max_depth,
        max_pages_per_host=settings.max_pages_per_host,
    )


def check_scope(settings: Settings) -> None:
    """Raises ConfigError for rules that cannot be."""
    order_for(settings)
    check_rules(scope_rules(settings))


async def scope_for(settings: Settings, frontier: Frontier, sites: Sequence[str]) -> Scope | None:
    """The scope of the job, which knows all its starts; None where there is nothing to refuse.

    Raises ConfigError and FrontierError.
    """
    before = (await frontier.recall()).get(FACT)
    kept = () if before is None else rules_from(before).sites
    rules = scope_rules(settings, tuple(dict.fromkeys((*kept, *sites)))[:SITES_KEPT])
    scope = Scope(rules) if rules.any else None
    text = msgspec.json.encode(rules).decode()
    if text != before:
        await frontier.remember({FACT: text})
    return scope


def rules_in(facts: Mapping[str, str]) -> ScopeRules:
    """Those that are kept with the job whose facts these are."""
    return rules_from(facts.get(FACT, "{}"))


def rules_from(text: str) -> ScopeRules:
    """What is kept with a job; no rules where it cannot be read, as a later version may write it."""
    try:
        return msgspec.json.decode(text, type=ScopeRules)
    except msgspec.MsgspecError:
        return ScopeRules()


def traps_for(settings: Settings, tell: Hook, found: Found) -> Traps | None:
    """None where nobody is to look for any."""
    if not settings.traps and settings.max_pages_per_pattern is None:
        return None
    return Traps(
        lambda line: tell(Trouble(line)),
        settings.max_pages_per_pattern,
        looks_for_traps=settings.traps,
        found=found,
    )


def order_for(settings: Settings, rate: Rate[Page] | None = None) -> LinkOrder[Page] | None:
    """None where links keep the priorities they are given. Raises ConfigError for a rule that is none."""
    if settings.order == "breadth" and not settings.priority and rate is None:
        return None
    return LinkOrder(settings.order, settings.priority, rate)


class RedirectGuard:
    """Keeps redirects inside the scope."""

    def __init__(self, scope: Scope) -> None:
        self._scope = scope

    def after(self, policy: Policy | None) -> Policy:
        """A policy that notes, once the other one lets the page be fetched, which page it is."""

        async def admit(request: Request, host: str) -> None:
            if policy is not None:
                await policy(request, host)
            _visiting.set(request)

        return admit

    async def hop(self, request: Request, call_next: CallNext) -> Response:
        """Middleware around each hop of a fetch. Raises OutOfScope."""
        self.check(request)
        return await call_next(request)

    def check(self, request: Request) -> None:
        """Raises OutOfScope where the visited page must not redirect to there."""
        first = _visiting.get()
        # A robots.txt is read within some page's visit, but is no part of it.
        if first is not None and request.url != first.url and not request.url.endswith("/robots.txt"):
            reason = self._scope.redirect(request.url, first.url, first.depth)
            if reason:
                raise OutOfScope(f"redirected to {request.url[:500]}, which is {reason}")


def expect_content(page: Page, wanted: Sequence[str]) -> None:
    """Raises UnwantedContent where the page is of none of these types; one that has no type is."""
    essence = page.media_type.essence
    for one in wanted:
        if essence == one.lower() or (one.endswith("/*") and essence.startswith(one[:-1].lower())):
            return
    raise UnwantedContent(f"{essence or 'no content type'}, not {' or '.join(wanted)} (content_types)")
