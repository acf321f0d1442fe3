"""What everything that gives seeds has in common."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import Protocol, runtime_checkable

from silkline.request import Request

KEPT_REASONS = 5
"""Of the entries that were refused, so many are told with where and why; the rest is counted."""


@runtime_checkable
class SeedSource(Protocol):
    """Iterate to get batches of requests; reading may block, for as long as where they come from does.

    invalid: how many entries were no valid request so far.
    reasons: where and why, in one line each, for the first few of them.

    Both are right once the source is read to its end. Iterating raises ConfigError where the user has to
    mend something, and SourceError where it may work the next time.
    """

    @property
    def invalid(self) -> int: ...

    @property
    def reasons(self) -> tuple[str, ...]: ...

    def __iter__(self) -> Iterator[list[Request]]: ...


class Refusals:
    """Counts the entries of a source that were refused, and keeps the first reasons."""

    def __init__(self) -> None:
        self.invalid = 0
        self.reasons: tuple[str, ...] = ()

    def add(self, where: str, error: object) -> None:
        self.invalid += 1
        if len(self.reasons) < KEPT_REASONS:
            self.reasons += (f"{where}: {error}",)

    def first_since(self, known: int) -> str:
        """A reason of the entries after the first `known` ones."""
        return self.reasons[min(known, KEPT_REASONS - 1)]


def first_reasons(*reasons: tuple[str, ...]) -> tuple[str, ...]:
    """Those that are kept of several sources' reasons."""
    return tuple(chain.from_iterable(reasons))[:KEPT_REASONS]
