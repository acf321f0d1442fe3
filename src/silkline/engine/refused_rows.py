"""Rows that databases refuse: a warning for each reason when it first comes, and a count of it at the end."""

from __future__ import annotations

import re

from silkline.events import Trouble
from silkline.protocols import Hook
from silkline.resolve import without_password

REASONS = 10
"""Of one output that are told apart."""
OTHERS = "other reasons"
ADVICE = "silkline dead items list --cause refused"
VALUE = re.compile(
    r"""
    .*(?=\ does\ not\ fit\ the\ column)
    | (?<!column\ )(?<!constraint\ )(?<!relation\ )(?<!key\ ) (?: "[^"]*" | '[^']*' )
    | \(.*\) | \{.*\} | \d+
    """,
    re.VERBOSE,
)
"""What differs from row to row in the words of a database: values, but not the names of columns."""


class RefusedRows:
    """Counts them by output and reason. hook: gets the warnings."""

    def __init__(self, hook: Hook) -> None:
        self._hook = hook
        self._counts: dict[str, dict[str, int]] = {}
        self._words: dict[tuple[str, str], str] = {}

    def add(self, output: str, why: str, url: str) -> None:
        """url: of the row's page."""
        counts = self._counts.setdefault(output, {})
        reason = VALUE.sub("…", why)
        if reason not in counts and len(counts) >= REASONS:
            reason, why = OTHERS, OTHERS
        counts[reason] = counts.get(reason, 0) + 1
        if counts[reason] == 1:
            self._words[output, reason] = why
            page = without_password(url)
            self._hook(
                Trouble(f"{output} refuses a row of {page}, which is a dead item now ({ADVICE}): {why}")
            )

    def told(self) -> None:
        """Say how many there were in all, of what came more than once."""
        for output, counts in self._counts.items():
            for reason, number in counts.items():
                if number > 1:
                    self._hook(
                        Trouble(f"{output} has refused {number:,} rows: {self._words[output, reason]}")
                    )
        self._counts.clear()
