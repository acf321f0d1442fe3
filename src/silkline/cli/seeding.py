"""The runs of `silkline seed`, and what they print."""

from __future__ import annotations

import asyncio
import sys
import time
from typing import Any

import msgspec
from rich.console import Console
from rich.status import Status
from typer import echo

from silkline.config import Settings
from silkline.engine.producer import BATCH, Flow
from silkline.engine.production import produce, refuse_memory, visit_at
from silkline.engine.schedule import Schedule, repeat
from silkline.engine.signals import stop_on_signals
from silkline.engine.sitemaps import Sitemaps
from silkline.errors import ConfigError, SilklineError
from silkline.events import Seeded
from silkline.observe import figures
from silkline.observe.progress import StderrConsole
from silkline.observe.report import refused_seeds
from silkline.resolve import without_passwords
from silkline.seeds import Seed, Seeds
from silkline.seeds.query import Query

INTERRUPTED = 130
NOTHING_YET = Seeded(0, 0, 0)


class Recipe(msgspec.Struct, frozen=True):
    """What every run does anew. query: the database's URL and the SQL."""

    settings: Settings
    seeds: tuple[Seed, ...]
    sitemaps: tuple[str, ...]
    since: str | None
    query: tuple[str, str] | None
    flow: Flow
    revisit: bool

    def source(self) -> Seeds:
        """Raises ConfigError."""
        queries = () if self.query is None else (Query(*self.query, batch=self.flow.batch or BATCH),)
        maps: tuple[Sitemaps, ...] = ()
        if self.sitemaps:
            maps = (Sitemaps(*self.sitemaps, since=self.since, settings=self.settings),)
        return Seeds(*self.seeds, *queries, *maps)


def run(recipe: Recipe, schedule: Schedule | None, *, as_json: bool) -> int:
    """Run once, or by the schedule until a signal. Returns the exit code: 130 where a run was cut short.

    Raises what a single run and the first of several raise, if it is for the user to mend.
    """

    refuse_memory(recipe.settings.frontier_url)
    if schedule is not None:
        recipe.source()  # what is wrong with it is told now, not when the first run is due

    async def until_stopped() -> int:
        stopping = asyncio.Event()
        working = asyncio.current_task()
        assert working is not None

        def stop() -> None:
            # The second signal does not wait for a frontier that does not answer.
            if stopping.is_set():
                working.cancel()
            stopping.set()

        with stop_on_signals(stop, wanted=True):
            runs = _Runs(recipe, stopping, as_json=as_json)
            if schedule is None:
                await runs.once(time.time())
            else:
                await repeat(schedule, runs.once_of_many, stopping, waiting=runs.waiting)
            return INTERRUPTED if runs.cut else 0

    return asyncio.run(until_stopped())


class _Runs:
    """cut: whether a signal came in the middle of a run."""

    def __init__(self, recipe: Recipe, stopping: asyncio.Event, *, as_json: bool) -> None:
        self.cut = False
        self._recipe = recipe
        self._stopping = stopping
        self._as_json = as_json
        self._begun = False
        self._console: Console = StderrConsole()
        self._warned: set[str] = set()
        self._seeded = NOTHING_YET
        self._shown_at = 0.0
        self._status: Status | None = None

    async def once(self, slot: float, *, dated: bool = False) -> None:
        """dated: the line for people begins with the time."""
        recipe = self._recipe
        began, self._seeded = time.monotonic(), NOTHING_YET
        error: SilklineError | None = None
        flow = msgspec.structs.replace(recipe.flow, visit=visit_at(slot)) if recipe.revisit else recipe.flow
        with Status("reading", console=self._console) as status:
            self._status = status if self._console.is_terminal else None
            try:
                await produce(
                    recipe.settings.frontier_url,
                    recipe.settings.frontier_options,
                    recipe.source(),
                    flow,
                    stopping=self._stopping,
                    warn=self._warn,
                    say=self._say,
                    watch=self._watch,
                )
            except SilklineError as raised:
                error = raised
            except asyncio.CancelledError:
                if not self._stopping.is_set():
                    raise
        self.cut = self._stopping.is_set()
        if error is None or self._seeded != NOTHING_YET or self._as_json:
            self._print(time.monotonic() - began, error, dated=dated)
        if error is not None:
            raise error

    async def once_of_many(self, slot: float) -> None:
        first, self._begun = not self._begun, True
        try:
            await self.once(slot, dated=True)
        except ConfigError as error:
            if first:
                raise
            self._failed(error)
        except SilklineError as error:
            self._failed(error)

    def waiting(self, due: float) -> None:
        if not self._begun:
            self._say(f"the first run is at {_clock(due)}")

    def _watch(self, seeded: Seeded) -> None:
        self._seeded = seeded
        now = time.monotonic()
        if self._status is not None and now - self._shown_at > 0.2:
            self._shown_at = now
            self._status.update(_counts(seeded))

    def _warn(self, line: str) -> None:
        """Once, however many runs there are."""
        if line not in self._warned:
            self._warned.add(line)
            self._say(line)

    def _say(self, line: str) -> None:
        echo(f"silkline: {line}", err=True)

    def _failed(self, error: SilklineError) -> None:
        self._say(f"{_clock(time.time())} the run failed and is tried again at its next time: {error}")

    def _print(self, seconds: float, error: SilklineError | None, *, dated: bool) -> None:
        seeded, job = self._seeded, self._recipe.settings.job
        if self._as_json:
            line: dict[str, Any] = {"job": job, **msgspec.structs.asdict(seeded)}
            line |= {"seconds": round(seconds, 3), "interrupted": self.cut, "error": error and str(error)}
            echo(msgspec.json.encode(line))
        else:
            when = f"{_clock(time.time())} " if dated else ""
            cut = "; interrupted, the same command goes on" if self.cut else ""
            echo(f"{when}{job}: {_counts(seeded)}{cut}")
            if seeded.refused.count:
                echo(f"  left out {figures.one_line(without_passwords(refused_seeds(seeded.refused)))}")
            for reason in seeded.reasons:
                echo(f"  {figures.one_line(reason)}")
            if (more := seeded.invalid - len(seeded.reasons)) > 0 and seeded.reasons:
                echo(f"  and {more:,} more")
        sys.stdout.flush()


def _counts(seeded: Seeded) -> str:
    counts = f"{seeded.added:,} added, {seeded.duplicate:,} duplicate, {seeded.invalid:,} invalid"
    return counts + (f", {seeded.refused.count:,} refused" if seeded.refused.count else "")


def _clock(moment: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(moment))
