"""What the items of a job's earlier runs held, kept with the job from one run to the next."""

from __future__ import annotations

from collections.abc import Mapping

from silkline.observe.fields import FieldTally, Past, past_from, text_of, with_run
from silkline.protocols import Frontier

FACT = "fields"
"""The fact of the frontier that keeps it."""


async def earlier_runs(frontier: Frontier, handed_down: str) -> Past:
    """handed_down: by a job that this one starts over; counts where the frontier knows of no run."""
    return past_from((await frontier.recall()).get(FACT) or handed_down)


async def remember_run(frontier: Frontier, past: Past, run: FieldTally) -> None:
    """Add a run to the past. With several processes the first one speaks for all: it has a fair share."""
    if run.kinds:
        await frontier.remember({FACT: text_of(with_run(past, run))})


def handed_down(facts: Mapping[str, str]) -> str:
    """Of a job that is about to be forgotten, what the one that takes its place is to know."""
    return facts.get(FACT, "")
