"""Where the proxies come from: a list, a file that is watched, or a provider that is asked now and then."""

from __future__ import annotations

import inspect
import os
from collections.abc import Awaitable, Callable, Iterable, Sequence
from pathlib import Path
from typing import Protocol

from silkline.errors import ConfigError, ProxyError, SilklineError
from silkline.fetch.proxies.proxy import Proxy, proxies_from, proxies_of
from silkline.protocols import CallNext
from silkline.request import Request

FILE_PERIOD = 2.0
"""Seconds between two looks at a file."""

Listed = Iterable[str | Proxy]
Provide = Callable[[], Listed | Awaitable[Listed]]
Loaded = tuple[Sequence[Proxy], Sequence[str]]
"""The proxies, and a line for each entry that is none."""

Unusable = Callable[[Proxy], str]
"""Why a proxy cannot be used here; "" where it can."""


class Source(Protocol):
    @property
    def period(self) -> float | None:
        """Seconds between two loads; None where the first one is for good."""

    @property
    def what(self) -> str:
        """A name for messages."""

    async def load(self, fetch: CallNext) -> Loaded | None:
        """None if nothing changed.

        fetch: gets a URL without a proxy. Raises ProxyError where they cannot be had.
        """


class FixedProxies:
    """A list. Raises ConfigError for an entry that is no proxy, and for an empty one."""

    period = None
    what = "the list of proxies"

    def __init__(self, proxies: Listed, name: str = "proxies") -> None:
        """name: of the list, in messages."""
        self._proxies = _checked(proxies, name)

    async def load(self, fetch: CallNext) -> Loaded | None:
        return self._proxies, ()


class ProxyFile:
    """A file with a proxy a line; it is read again when it changed. While it is gone the last list stays."""

    period: float | None = FILE_PERIOD

    def __init__(self, path: Path | str) -> None:
        self._path = Path(path)
        self.what = str(path)
        self._version: tuple[int, ...] = ()

    async def load(self, fetch: CallNext) -> Loaded | None:
        return self.read()

    def read(self) -> Loaded | None:
        """Raises ProxyError where the file cannot be read."""
        try:
            stat = os.stat(self._path)
            version = (stat.st_mtime_ns, stat.st_size, stat.st_ino)
            if version == self._version:
                return None
            text = self._path.read_text("utf-8-sig")
        except (OSError, UnicodeDecodeError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            raise ProxyError(f"{self._path}: the proxies cannot be read: {reason}") from error
        self._version = version
        return proxies_from(text, str(self._path))


class ProxyProvider:
    """A URL that answers with a list of proxies, or a function that returns one, plain or async.

    period: seconds between two loads.
    """

    def __init__(self, provider: str | Provide, period: float = 600.0) -> None:
        self._provider = provider
        self.period: float | None = period
        self.what = "the proxy provider"

    async def load(self, fetch: CallNext) -> Loaded | None:
        if isinstance(self._provider, str):
            text = await self._fetched(self._provider, fetch)
            return proxies_from(text, self.what)
        try:
            answer = self._provider()
            listed = await answer if inspect.isawaitable(answer) else answer
            return _checked(listed), ()
        except ConfigError as error:
            raise ProxyError(f"{self.what}: {error}") from error
        except Exception as error:
            raise ProxyError(f"{self.what} failed: {type(error).__name__}: {error}") from error

    async def _fetched(self, url: str, fetch: CallNext) -> str:
        try:
            response = await fetch(Request(url, proxy=""))
        except SilklineError as error:
            raise ProxyError(f"{self.what} cannot be asked: {error}") from error
        if response.status != 200:
            raise ProxyError(f"{self.what} answers with status {response.status}")
        return response.body.decode("utf-8", "replace")


class JoinedSources:
    """Several sources as one. Where one cannot be had its last list stays."""

    def __init__(self, sources: Sequence[Source]) -> None:
        self._lists: list[Sequence[Proxy]] = [()] * len(sources)
        self._sources = sources
        self.what = " and ".join(source.what for source in sources)

    @property
    def period(self) -> float | None:
        return min((s.period for s in self._sources if s.period is not None), default=None)

    async def load(self, fetch: CallNext) -> Loaded | None:
        wrong: list[str] = []
        changed = False
        for number, source in enumerate(self._sources):
            try:
                loaded = await source.load(fetch)
            except ProxyError as error:
                wrong.append(str(error))
                changed = True
                continue
            if loaded is not None:
                changed = True
                self._lists[number] = loaded[0]
                wrong += loaded[1]
        return ([proxy for listed in self._lists for proxy in listed], wrong) if changed else None


class UsableProxies:
    """What a source has, without what cannot be used here: that counts as an entry that is none."""

    def __init__(self, source: Source, unusable: Unusable) -> None:
        self._source = source
        self._unusable = unusable
        self.what = source.what

    @property
    def period(self) -> float | None:
        return self._source.period

    async def load(self, fetch: CallNext) -> Loaded | None:
        loaded = await self._source.load(fetch)
        return None if loaded is None else _usable(loaded, self._unusable)


def is_provider(text: str) -> bool:
    return text.startswith(("http://", "https://"))


def source_of(text: str, period: float, unusable: Unusable | None = None) -> Source:
    """A provider for an http(s) URL, else a file. Raises ConfigError for one that cannot be read, and for one
    without a proxy that can be used."""
    if is_provider(text):
        source: Source = ProxyProvider(text, period)
    else:
        source = ProxyFile(text)
        try:
            loaded = ProxyFile(text).read() or ((), ())
        except ProxyError as error:
            raise ConfigError(str(error)) from error
        proxies, wrong = loaded if unusable is None else _usable(loaded, unusable)
        if not proxies:
            raise ConfigError(wrong[0] if wrong else f"{text}: there is no proxy in it")
    return source if unusable is None else UsableProxies(source, unusable)


def _usable(loaded: Loaded, unusable: Unusable) -> Loaded:
    proxies, wrong = loaded
    left_out = [f"{proxy.where}: left out: {why}" for proxy in proxies if (why := unusable(proxy))]
    return [proxy for proxy in proxies if not unusable(proxy)], [*left_out, *wrong]


def _checked(listed: Listed, name: str = "proxies") -> list[Proxy]:
    proxies, wrong = proxies_of(listed, name, "entry")
    if wrong:
        raise ConfigError(wrong[0])
    return proxies
