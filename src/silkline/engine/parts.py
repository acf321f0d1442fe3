"""What one worker is made of, and the tools that its visits get from it."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

import msgspec

from silkline.config import Settings
from silkline.engine.delivery import Delivery
from silkline.engine.discovery import RedirectGuard, order_for, traps_for
from silkline.engine.effects import LinkRules
from silkline.engine.items import ItemMaker
from silkline.engine.keeper import Keeper
from silkline.engine.known import KnownUrls
from silkline.engine.leases import Held
from silkline.engine.monitor import Publish
from silkline.engine.refusals import FoundTraps
from silkline.engine.retry import RetryPolicy
from silkline.engine.robots import robot_listening
from silkline.engine.steps import Steps
from silkline.engine.turns import Turns
from silkline.engine.visit import Tools
from silkline.fetch.identity.referer import referer_by
from silkline.observe.tally import Tally
from silkline.parse.page import Page
from silkline.politeness.order import Rate
from silkline.politeness.robots import Robots
from silkline.politeness.scope import Scope
from silkline.politeness.traps import NearDuplicates
from silkline.protocols import CallNext, Fetcher, Frontier, Hook, Output
from silkline.router import Router


class Parts(msgspec.Struct, frozen=True):
    """What a worker is made of. `fetch` is the fetcher with the middleware composed in; the frontier is open;
    the tally is told of every event by the hook."""

    frontier: Frontier
    fetch: CallNext
    router: Router
    sinks: Sequence[Output]
    hook: Hook
    publish: Publish
    fetcher: Fetcher
    tally: Tally
    items: ItemMaker
    steps: Steps
    seeding_elsewhere: Callable[[], bool] = lambda: False
    keeper: Keeper | None = None
    robots: Robots | None = None
    scope: Scope | None = None
    rate: Rate[Page] | None = None
    delivery: Delivery | None = None


def tools_of(
    parts: Parts,
    settings: Settings,
    held: Held,
    retry: RetryPolicy,
    known: KnownUrls,
    found: FoundTraps,
    twins: NearDuplicates | None,
) -> Tools:
    robot = robot_listening(settings)
    policy = None if parts.robots is None else parts.robots.admit
    guard = None if parts.scope is None else RedirectGuard(parts.scope)
    rules = LinkRules(
        parts.router,
        known,
        settings.max_depth,
        referer_by(settings.referer),
        robot,
        parts.scope,
        settings.max_links,
        traps_for(settings, parts.hook, found),
        order_for(settings, parts.rate),
    )
    return Tools(
        fetch=parts.fetch,
        router=parts.router,
        rules=rules,
        retry=retry,
        items=parts.items,
        steps=parts.steps,
        clock=time.time,
        fingerprint=parts.frontier.fingerprint,
        canonical=settings.canonical,
        files_dir=settings.files_dir,
        content_types=settings.content_types,
        twins=twins,
        unindexed=robot if settings.robots_meta == "all" else None,
        place=parts.frontier.politeness_keys if parts.frontier.politeness_by == "ip" else None,
        policy=policy if guard is None else guard.after(policy),
        turns=Turns(parts.frontier.politeness_keys, held, None if guard is None else guard.check),
    )
