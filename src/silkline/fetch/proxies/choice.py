"""Which proxy a request goes through: one that may be used for its host, a better one more often."""

from __future__ import annotations

import random
from collections import OrderedDict
from collections.abc import Collection, Sequence
from time import monotonic

from silkline.fetch.cookies.sessions import Sessions
from silkline.fetch.proxies.health import Health
from silkline.fetch.proxies.proxy import Proxy
from silkline.protocols import Clock

MAX_STICKY = 20_000
"""Pairs of session and host whose proxy is remembered."""

_DRAWS = 8


class Choice:
    """health: of the proxies. sessions: the job's, whose new generations get another proxy; None for none."""

    def __init__(self, health: Health, sessions: Sessions | None = None, clock: Clock = monotonic) -> None:
        self._health = health
        self._sessions = sessions
        self._clock = clock
        self._sticky: OrderedDict[tuple[str, int, str], str] = OrderedDict()

    def of(
        self, among: Sequence[Proxy], host: str, session: str | None, tried: Collection[str]
    ) -> Proxy | None:
        """One that is free, the session's own one first; None if there is none.

        session: a named one, which keeps its proxy for the host. tried: URLs to leave out.
        """
        if session is None:
            return self._best(among, host, tried)
        generation = self._sessions.get(session).generation if self._sessions is not None else 0
        key = (session, generation, host)
        own = self._sticky.get(key)
        if own is not None and own not in tried and self._health.is_free(own, host):
            for proxy in among:
                if proxy.url == own:
                    return proxy
        chosen = self._best(among, host, tried)
        if chosen is not None:
            self._sticky[key] = chosen.url
            self._sticky.move_to_end(key)
            if len(self._sticky) > MAX_STICKY:
                self._sticky.popitem(last=False)
        return chosen

    def seconds_until(self, among: Sequence[Proxy], host: str) -> float | None:
        """Until the first of them may be used; None if there is none."""
        soonest = min((self._health.usable_at(proxy.url, host) for proxy in among), default=None)
        return None if soonest is None else max(0.0, soonest - self._clock())

    def is_one_on_trial(self, among: Sequence[Proxy], host: str, tried: Collection[str]) -> bool:
        """Whether one of them may be used as soon as it has answered what it was asked."""
        now = self._clock()
        return any(p.url not in tried and self._health.usable_at(p.url, host) <= now for p in among)

    def _best(self, among: Sequence[Proxy], host: str, tried: Collection[str]) -> Proxy | None:
        """One of two that are drawn, so that the cost does not grow with the list."""
        if not among:
            return None
        drawn: list[Proxy] = []
        for proxy in random.choices(among, k=_DRAWS):
            if proxy.url not in tried and proxy not in drawn and self._health.is_free(proxy.url, host):
                drawn.append(proxy)
                if len(drawn) == 2:
                    break
        if not drawn:
            drawn = [p for p in among if p.url not in tried and self._health.is_free(p.url, host)]
        if len(drawn) < 2:
            return drawn[0] if drawn else None
        # By chance, the better one more often: what was slow or failed may be well again.
        weights = [self._health.score(proxy.url, host) ** 2 for proxy in drawn]
        return random.choices(drawn, weights)[0]
