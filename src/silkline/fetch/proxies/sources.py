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


class Source(Protocol):
    @property
    def period(self) -> float | None:
        """Seconds between two loads; None where the first one is for good."""

    @property
    def what(self) -> str:
        """A name for messages."""

    async def load(self, fetch: CallNext) -> tuple[Sequence[Proxy], Sequence[str]] | None:
        """The proxies, and a line for each entry that is none; None if nothing changed.

        fetch: gets a URL without a proxy. Raises ProxyError where they cannot be had.
        """


class FixedProxies:
    """A list. Raises ConfigError for an entry that is no proxy, and for an empty one."""

    period = None
    what = "the list of proxies"

    def __init__(self, proxies: Listed) -> None:
        self._proxies = _checked(proxies)

    async def load(self, fetch: CallNext) -> tuple[Sequence[Proxy], Sequence[str]] | None:
        return self._proxies, ()


class ProxyFile:
    """A file with a proxy a line; it is read again when it changed. While it is gone the last list stays."""

    period: float | None = FILE_PERIOD

    def __init__(self, path: Path | str) -> None:
        self._path = Path(path)
        self.what = str(path)
        self._version: tuple[int, ...] = ()

    async def load(self, fetch: CallNext) -> tuple[Sequence[Proxy], Sequence[str]] | None:
        return self.read()

    def read(self) -> tuple[Sequence[Proxy], Sequence[str]] | None:
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

    async def load(self, fetch: CallNext) -> tuple[Sequence[Proxy], Sequence[str]] | None:
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

    async def load(self, fetch: CallNext) -> tuple[Sequence[Proxy], Sequence[str]] | None:
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


def is_provider(text: str) -> bool:
    return text.startswith(("http://", "https://"))


def source_of(text: str, period: float) -> Source:
    """A provider for an http(s) URL, else a file. Raises ConfigError for one that cannot be read."""
    if is_provider(text):
        return ProxyProvider(text, period)
    file = ProxyFile(text)
    try:
        loaded = ProxyFile(text).read()
    except ProxyError as error:
        raise ConfigError(str(error)) from error
    if loaded is not None and not loaded[0]:
        raise ConfigError(loaded[1][0] if loaded[1] else f"{text}: there is no proxy in it")
    return file


def _checked(listed: Listed) -> list[Proxy]:
    proxies, wrong = proxies_of(listed, "proxies")
    if wrong:
        raise ConfigError(wrong[0])
    return proxies
