"""Tells of queued requests that the spider has no handler for: a whole queue of them would die unseen."""

from __future__ import annotations

from silkline.events import Event, Trouble, Visited
from silkline.observe import figures
from silkline.observe.report import words_for
from silkline.outcome import Dead
from silkline.protocols import Hook

LABELS_TOLD = 5
LENGTH = 300


class Unhandled:
    """A `Hook`: the first request of a label that dies of having no handler gives a line, for a few labels.

    A label that a handler of this spider has yielded is a fault of that page, which was fetched.
    """

    def __init__(self, job: str, frontier: str, tell: Hook) -> None:
        self._words = words_for(job, frontier)
        self._tell = tell
        self._told: set[str] = set()

    def __call__(self, event: Event) -> None:
        if not isinstance(event, Visited) or event.fetched:
            return
        verdict, label = event.outcome.verdict, event.outcome.lease.request.label
        if not isinstance(verdict, Dead) or verdict.cause != "label":
            return
        if label in self._told or len(self._told) >= LABELS_TOLD:
            return
        self._told.add(label)
        error = figures.one_line(figures.headline(verdict.error), LENGTH)
        remedy = f"once there is one, silkline dead resend {self._words} --cause label"
        self._tell(Trouble(f"{error}; what waits for it becomes dead letters, unfetched: {remedy}"))
