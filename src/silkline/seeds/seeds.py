"""All that a crawl starts from, one after the other."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import Any

from silkline.errors import BadUrlError, ConfigError, TaskError
from silkline.request import Request
from silkline.seeds.entries import IterableSource, checked, unknown_label
from silkline.seeds.source import Refusals, SeedSource, first_reasons
from silkline.seeds.textfile import FileSource
from silkline.url import check

Seed = str | Request | os.PathLike[str] | SeedSource | Iterable[str | Request]
"""A URL, a Request, a file's path (Path("-") for standard input), an iterable of URLs and Requests, or a
SeedSource, such as a database query."""


class Seeds:
    """Iterate to get batches of requests: first the URLs and Requests given, then the sources in their order.

    Invalid lines of a file, like the invalid entries of an iterable, are counted and the rest goes on.

    labels: what an entry of a source may have as its label, None for any. A direct seed with another one is
        left to whoever looks for its handler.
    """

    def __init__(self, *seeds: Seed, labels: Collection[str] | None = None) -> None:
        """Raises ConfigError for a URL that is not valid, a Request that cannot be sent, and a file that is
        missing, unreadable, binary or without anything in it but blank lines and comments."""
        self._direct: list[Request] = []
        self._sources: list[SeedSource] = []
        self._collections: list[Collection[Any]] = []
        for seed in seeds:
            if isinstance(seed, (str, Request)):
                self._direct.append(_direct(seed))
            elif isinstance(seed, os.PathLike):
                self._sources.append(FileSource(Path(seed), labels))
            elif isinstance(seed, SeedSource):
                self._sources.append(seed if labels is None else _Labelled(seed, labels))
                self._collections.append(getattr(seed, "given", ()))
            elif isinstance(seed, Iterable) and not isinstance(seed, (bytes, dict)):
                self._sources.append(IterableSource(seed, labels))
                if isinstance(seed, Collection):
                    self._collections.append(seed)
            else:
                raise ConfigError(f"a seed is a URL, a Request, a Path or an iterable of these, not {seed!r}")

    @property
    def given(self) -> Iterator[str]:
        """The URLs that are written down where the crawl is started, in lists too, as they stand there: the
        user's own word. The URL of a sitemap is, too. What a file, a sitemap or an iterator brings is data,
        and not among them."""
        for seed in chain(self._direct, *self._collections):
            if isinstance(seed, (str, Request)):
                yield seed if isinstance(seed, str) else seed.url

    @property
    def invalid(self) -> int:
        """How many entries were no valid request so far."""
        return sum(source.invalid for source in self._sources)

    @property
    def reasons(self) -> tuple[str, ...]:
        """Where and why, for the first few of them."""
        return first_reasons(*(source.reasons for source in self._sources))

    def __iter__(self) -> Iterator[list[Request]]:
        """Raises what the sources raise: ConfigError for a file that turns out to be unreadable, binary or
        without a valid URL."""
        if self._direct:
            yield self._direct
        for source in self._sources:
            yield from source


class _Labelled:
    """A source without its requests that have an unknown label."""

    def __init__(self, source: SeedSource, labels: Collection[str]) -> None:
        self._source = source
        self._labels = labels
        self._refusals = Refusals()

    @property
    def invalid(self) -> int:
        return self._source.invalid + self._refusals.invalid

    @property
    def reasons(self) -> tuple[str, ...]:
        return first_reasons(self._source.reasons, self._refusals.reasons)

    def __iter__(self) -> Iterator[list[Request]]:
        for batch in self._source:
            known = []
            for request in batch:
                if request.label in self._labels:
                    known.append(request)
                else:
                    self._refusals.add(request.url, unknown_label(request.label, self._labels))
            if known:
                yield known


def _direct(seed: str | Request) -> Request:
    try:
        return Request(check(seed)) if isinstance(seed, str) else checked(seed)
    except (BadUrlError, TaskError) as error:
        raise ConfigError(str(error)) from error
