"""News of other workers: what wakes an idle one, and how often it may be woken."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from typing import Any

from redis import exceptions

from silkline.frontier.redis_link import RedisLink
from silkline.frontier.rules import SECOND_HELPING

FIRST_WAIT = 0.05
LONGEST_WAIT = 1.0
"""Seconds between two questions of a worker that keeps getting nothing; doubled each time."""

FINISHED = b"finished"


class News:
    """Listens on the job's channel while others publish there (see `tell` in `lua/common.lua`).

    A hundred idle workers that all ask at each bit of news would cost the server more than the work. So
    one that got nothing is woken later and later, up to a second, until it gets something.

    tell: called when it is worth asking again.
    """

    def __init__(self, link: RedisLink, channel: str) -> None:
        self.channel = channel
        self.tell: Callable[[], None] = lambda: None
        self._link = link
        self._task: asyncio.Task[None] | None = None
        self._pubsub: Any = None
        self._misses = 0
        self._not_before = 0.0
        self._timer: asyncio.TimerHandle | None = None
        self._rings_at = 0.0

    def start(self) -> None:
        self._task = asyncio.create_task(self._listen(), name="redis-news")

    async def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        task, self._task = self._task, None
        while task is not None and not task.done():
            # More than once: a client that is just connecting may take a cancellation for a timeout.
            task.cancel()
            await asyncio.wait([task], timeout=0.2)

    def fed(self, *, enough: bool) -> None:
        """A question brought something. Whoever got less than it wanted is woken by its own commits, too."""
        self._misses = 0
        self._not_before = 0.0 if enough else asyncio.get_running_loop().time() + SECOND_HELPING

    def hungry(self, wake_in: float) -> float:
        """A question brought nothing. Returns the seconds until the next one, `wake_in` at least."""
        wait: float = min(LONGEST_WAIT, FIRST_WAIT * 2.0**self._misses) * random.uniform(0.9, 1.1)
        self._misses = min(self._misses + 1, 10)
        self._not_before = asyncio.get_running_loop().time() + wait
        return max(wait, wake_in)

    async def _listen(self) -> None:
        while True:
            try:
                await self._hear()
            except exceptions.NoPermissionError:
                self._link.say(
                    f"this user of Redis may not listen on the channel {self.channel}: idle workers notice "
                    f"new work late (ACL SETUSER ... &{self.channel})"
                )
                return
            except (exceptions.RedisError, exceptions.RedisClusterException, OSError):
                # Nothing is lost: until it is back, an idle worker asks by the clock.
                await asyncio.sleep(random.uniform(0.5, 1.5))

    async def _hear(self) -> None:
        pubsub = self._link.client.pubsub(ignore_subscribe_messages=True)
        try:
            await pubsub.subscribe(self.channel)
            self._heard(b"subscribed")  # what was said before has passed us by
            while True:
                message = await pubsub.get_message(timeout=5.0)
                if message is not None:
                    self._heard(message["data"])
        finally:
            await pubsub.aclose()

    def _heard(self, news: bytes) -> None:
        loop = asyncio.get_running_loop()
        if news == FINISHED or loop.time() >= self._not_before:
            self.tell()
        elif self._rings_at <= loop.time():
            # Kept here: not every loop's handle can tell when it rings.
            self._rings_at = self._not_before
            self._timer = loop.call_at(self._rings_at, self.tell)
