"""The robots.txt of a crawl, as the settings say."""

from __future__ import annotations

import time
from contextlib import AsyncExitStack

from silkline.config import Settings
from silkline.fetch.retry_after import retry_after_seconds
from silkline.politeness.robots import Robots, RobotsOptions, StoredRobots
from silkline.politeness.robots_txt import product_token
from silkline.protocols import Frontier, Hook


def robots_name(settings: Settings) -> str:
    """The product token by which sites know the crawl."""
    return settings.robots_agent or product_token(settings.user_agent)


def robot_listening(settings: Settings) -> str | None:
    """The same, where pages may ask by it not to follow their links; None where nobody listens."""
    return None if settings.robots_meta == "off" else robots_name(settings)


def robots_for(settings: Settings, frontier: Frontier, tell: Hook, opened: AsyncExitStack) -> Robots | None:
    """What keeps robots.txt, closed by `opened`; None where it is not obeyed."""
    if not settings.robots:
        return None
    options = RobotsOptions(
        agent=robots_name(settings),
        delay=settings.delay,
        max_delay=settings.max_delay,
        patience=settings.robots_patience,
    )
    kind = StoredRobots if settings.cache == "offline" else Robots
    robots = kind(
        frontier, options, tell=tell, retry_after=lambda value: retry_after_seconds(value, time.time())
    )
    opened.push_async_callback(robots.close)
    return robots
