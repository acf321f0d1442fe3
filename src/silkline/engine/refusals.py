"""Why a job has never met a URL: what its rules say of it now, and what its workers have found out.

Links that are refused are counted, and not kept one by one; so this is worked out anew, by the rules that are
kept with the job.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

import msgspec

from silkline.config import Settings
from silkline.engine.discovery import FACT, rules_from
from silkline.engine.robots import robot_listening, robots_name
from silkline.outcome import NONE_REFUSED, Refused
from silkline.politeness.robots import recalled
from silkline.politeness.scope import Scope, ScopeRules
from silkline.politeness.traps import Traps, pattern_of
from silkline.protocols import Frontier
from silkline.url import normal
from silkline.values import YEAR

KEPT = "refusals"
"""The name by which these rules are kept with the job."""

SEEDS = "refused seeds"
"""The name by which it is kept how many seeds the last reading left out."""


class RefusalRules(msgspec.Struct, frozen=True, kw_only=True):
    """What refuses links beside the scope, as it is kept with a job.

    robots_agent: the name by which robots.txt is obeyed; None where it is not. nofollow: whether it is.
    max_pages_per_pattern: None for no limit.
    """

    robots_agent: str | None = None
    nofollow: bool = True
    traps: bool = True
    max_links: int | None = None
    max_pages_per_pattern: int | None = None


async def keep_rules(settings: Settings, frontier: Frontier) -> None:
    """For `why_never_seen`. Raises FrontierError."""
    rules = RefusalRules(
        robots_agent=robots_name(settings) if settings.robots else None,
        nofollow=robot_listening(settings) is not None,
        traps=settings.traps,
        max_links=settings.max_links,
        max_pages_per_pattern=settings.max_pages_per_pattern,
    )
    text = msgspec.json.encode(rules).decode()
    if (await frontier.recall()).get(KEPT) != text:
        await frontier.remember({KEPT: text})


async def keep_refused_seeds(frontier: Frontier, refused: Refused) -> None:
    """For `refused_seeds`, when seeds have been read to their end. Raises FrontierError."""
    if refused.count or refused_seeds(await frontier.recall()).count:
        await frontier.remember({SEEDS: msgspec.json.encode(refused).decode()})


def refused_seeds(facts: Mapping[str, str]) -> Refused:
    """Those that the last reading of seeds left out, as their hosts had max_pages_per_host already."""
    try:
        return msgspec.json.decode(facts.get(SEEDS, "{}"), type=Refused)
    except msgspec.MsgspecError:
        return NONE_REFUSED


class FoundTraps:
    """Keeps the traps that a worker has found, for all to know."""

    def __init__(self, frontier: Frontier) -> None:
        self._frontier = frontier
        self._found: asyncio.Queue[tuple[str, str]] = asyncio.Queue()

    def __call__(self, pattern: str, reason: str) -> None:
        self._found.put_nowait((pattern, reason))

    async def run(self) -> None:
        """Keep them, for ever."""
        while True:
            pattern, reason = await self._found.get()
            await self._frontier.keep(_trap_at(pattern), reason.encode(), YEAR)


async def why_never_seen(frontier: Frontier, facts: Mapping[str, str], url: str) -> str:
    """As far as it can be told; "" for a job that has kept no rules. facts: the job's.

    Raises BadUrlError, and ConfigError for rules that this version cannot apply.
    """
    if FACT not in facts:
        return ""
    url, rules = normal(url), _rules_in(facts)
    scope = rules_from(facts[FACT])
    elsewhere = reason = Scope(scope).refusal(url) if scope.any else ""
    if reason and await _has_a_home(frontier, scope, url):
        reason = Scope(scope).refusal_at_home(url)
    if reason:
        return f"links to it are refused: {reason}"
    if rules.traps:
        reason = Traps(lambda line: None).shape(url)
        found = await frontier.kept(_trap_at(pattern_of(url)))
        if reason or found is not None:
            return f"links to it are refused: {reason or ('' if found is None else found.value.decode())}"
    if rules.robots_agent is not None:
        verdict = await recalled(frontier, rules.robots_agent, url)
        if verdict is not None and not verdict.allowed:
            return f"it would be refused by robots.txt: {verdict}"
    others = _unknowable(rules, scope.max_depth)
    if elsewhere:
        home = "site" if scope.kind == "site" else "host"
        return (
            f"no rule refuses it on pages of its own {home}: none of them links to it, or only by links that "
            f"are {others}; on other pages links to it are refused: {elsewhere}"
        )
    return f"no rule refuses it: no page links to it, or only by links that are {others}"


async def _has_a_home(frontier: Frontier, scope: ScopeRules, url: str) -> bool:
    """Whether the job may have pages of the URL's own host, or site, whose links stay at home.

    The rules name the hosts of URLs that were given to a worker; those of seeds and tasks only the frontier
    knows, and it knows no sites.
    """
    if scope.kind == "site" and not scope.sites:
        return True
    (key,) = await frontier.politeness_keys([url])
    return await frontier.host(key) is not None


def _unknowable(rules: RefusalRules, max_depth: int | None) -> str:
    """What depends on the page that a link stands on."""
    others = ["nofollow"] if rules.nofollow else []
    if rules.max_links is not None:
        others.append(f"beyond max_links = {rules.max_links} of their page")
    if max_depth is not None:
        others.append(f"deeper than max_depth = {max_depth}")
    if rules.max_pages_per_pattern is not None:
        others.append(f"more than max_pages_per_pattern = {rules.max_pages_per_pattern}")
    if rules.traps:
        others.append("on pages of a trap")
    return " or ".join(others) if others else "no http(s) URLs"


def _rules_in(facts: Mapping[str, str]) -> RefusalRules:
    """What a later version may have written tells nothing."""
    try:
        return msgspec.json.decode(facts.get(KEPT, "{}"), type=RefusalRules)
    except msgspec.MsgspecError:
        return RefusalRules()


def _trap_at(pattern: str) -> str:
    return f"trap {pattern}"
