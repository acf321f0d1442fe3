"""The proxies that there are at the moment, kept up to date from their source."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from time import monotonic

from silkline.errors import ProxyError
from silkline.fetch.proxies.proxy import Proxy
from silkline.fetch.proxies.sources import Source
from silkline.protocols import CallNext, Clock

AGAIN = 5.0
"""Seconds between two loads while there is no proxy at all."""

Tell = Callable[[str], None]


class Roster:
    """source: where the list comes from. tell: gets a line when something is wrong with it, once."""

    def __init__(self, source: Source, tell: Tell, clock: Clock = monotonic) -> None:
        self.trouble = ""
        """What is wrong with the source at the moment; "" for nothing."""
        self._source = source
        self._tell = tell
        self._clock = clock
        self._proxies: Sequence[Proxy] = ()
        self._by_tag: dict[str, Sequence[Proxy]] = {}
        self._labels: dict[str, str] = {}
        self._loaded_at: float | None = None
        self._loading: asyncio.Task[None] | None = None

    def __len__(self) -> int:
        return len(self._proxies)

    def label(self, url: str) -> str:
        """Of a proxy, also of one that is in the list no more."""
        return self._labels.get(url) or Proxy(url).label

    def tagged(self, tag: str) -> Sequence[Proxy]:
        """Those with that tag; all for ""."""
        if not tag:
            return self._proxies
        found = self._by_tag.get(tag)
        if found is None:
            found = self._by_tag[tag] = tuple(proxy for proxy in self._proxies if tag in proxy.tags)
        return found

    async def refresh(self, fetch: CallNext) -> None:
        """Load the list where it is time to. The first one is waited for, later ones come beside the work."""
        if self._loaded_at is not None:
            period = self._source.period
            if period is None or self._clock() - self._loaded_at < (period if self._proxies else AGAIN):
                return
        if self._loading is None or self._loading.done():
            self._loading = asyncio.create_task(self._load(fetch))
        if not self._proxies:
            await asyncio.shield(self._loading)

    async def _load(self, fetch: CallNext) -> None:
        try:
            loaded = await self._source.load(fetch)
        except ProxyError as error:
            self._note(f"{error}; {'the last list stays' if self._proxies else 'there is no proxy yet'}")
            loaded = None
        self._loaded_at = self._clock()
        if loaded is None:
            return
        proxies, wrong = loaded
        if not proxies and self._proxies:
            self._note(f"{self._source.what}: there is no proxy in it any more; the last list stays")
            return
        self._proxies, self._by_tag = tuple(proxies), {}
        self._labels = {proxy.url: proxy.label for proxy in proxies}
        more = f" (and {len(wrong) - 1} more)" if len(wrong) > 1 else ""
        self._note(f"{wrong[0]}{more}" if wrong else "")

    def _note(self, trouble: str) -> None:
        if trouble and trouble != self.trouble:
            self._tell(trouble)
        self.trouble = trouble
