"""One worker: its named side tasks, how they start, and how they stop."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress

from silkline.config import Settings
from silkline.engine.commit import Committer
from silkline.engine.hunger import Hunger
from silkline.engine.known import KnownUrls
from silkline.engine.leases import Held, Leaser, renew
from silkline.engine.machine import Gauge, Machine
from silkline.engine.monitor import Monitor
from silkline.engine.pacing import Pacing
from silkline.engine.parts import Parts, tools_of
from silkline.engine.refusals import FoundTraps
from silkline.engine.retry import RetryPolicy
from silkline.engine.seeder import Seeder
from silkline.engine.steering import Levers, Pulse, Steering
from silkline.engine.turns import outside_visits
from silkline.engine.visitors import Visitors
from silkline.errors import ConfigError, SilklineError, SinkAwayError
from silkline.events import Stopping, Trouble
from silkline.fetch.leaving import leaving
from silkline.observe.snapshot import Phase
from silkline.outcome import Outcome
from silkline.politeness.traps import NearDuplicates
from silkline.protocols import Deliver, Output, Positions
from silkline.seeds import SeedSource
from silkline.sinks.choose import deliver_to, finish_all
from silkline.sinks.failing import blamed

PARTING = 5.0
"""Seconds beyond the grace period in which a worker that stops still waits for a store that is away."""

ENDINGS: dict[str, Phase] = {"budget": "spent", "interrupted": "interrupted"}

SEEDS_PERIOD = 0.1
"""Seconds between two looks at a flag in memory."""


class Worker:
    """Runs one job until it is finished, out of budget, or told to stop.

    The side tasks are watched: the death of any one stops the worker loudly.
    """

    def __init__(self, parts: Parts, settings: Settings, seeds: SeedSource) -> None:
        self._parts = parts
        self._settings = settings
        batch = parts.delivery.batch if parts.delivery else None
        self._held = Held(settings.concurrency, settings.delay, 0 if batch is None else batch.count)
        self._known = KnownUrls()
        self._seeder = Seeder(seeds, parts.frontier, parts.router)
        self._committer = Committer(
            parts.frontier,
            self._held,
            self._known,
            deliver_to(parts.sinks),
            parts.hook,
            self._wake_leaser,
            parts.delivery,
        )
        self._leaser = Leaser(
            parts.frontier,
            self._held,
            self._seeding,
            self._committer.give_back,
            self._committer.hurry,
            self._known.clear,
            self._committer.owes,
            keep_alive=settings.keep_alive,
        )
        if parts.keeper is not None:
            self._committer.share, self._leaser.look = parts.keeper.share, parts.keeper.look
        share = None if settings.max_memory is None else settings.max_memory // settings.processes
        self.machine = Machine(self._held, Gauge(share), parts.hook, self._wake_leaser)
        self._pacing = None
        if settings.adaptive and settings.cache != "offline":
            self._pacing = Pacing(
                parts.frontier, settings, self._held, self._committer.give_back, lambda: self.machine.late
            )
            self._committer.note = self._pacing.note
        parts.frontier.listen(self._wake_leaser, lambda line: parts.hook(Trouble(line)))
        self._monitor = Monitor(parts.frontier, self._held, self._seeding, parts.publish)
        self._stop_asked = asyncio.Event()
        self._stop_now = asyncio.Event()
        retry = RetryPolicy(settings.retries)
        self._steering = Steering(
            parts.frontier,
            settings,
            Levers(self._held, retry, parts.fetcher, self._wake_leaser, self._pacing),
            Pulse(parts.tally, self._held),
            parts.hook,
        )
        self._hunger = Hunger(parts.frontier, self._leaser.unfed, self._steering.options, parts.hook)
        self._found_traps = FoundTraps(parts.frontier)
        self._twins = NearDuplicates() if settings.near_duplicates else None
        self._tools = tools_of(
            parts, settings, self._held, retry, self._known, self._found_traps, self._twins
        )
        if parts.robots is not None:
            parts.robots.use(outside_visits(parts.fetch), self._space_out)

    @property
    def allowed(self) -> int:
        """Visits that may run at once."""
        return self._held.concurrency

    def stop(self) -> None:
        """First call: stop leasing and let running visits end within the grace period. Second: stop now."""
        grace, parting = (0.0, 0.0) if self._stop_asked.is_set() else (self._settings.grace, PARTING)
        self._parts.frontier.leave(grace + parting)
        if self._parts.delivery:
            self._parts.delivery.leave(grace)  # what is not delivered is only visited again
        (self._stop_now if self._stop_asked.is_set() else self._stop_asked).set()

    async def run(self) -> str:
        """Returns why it ended: "finished", "budget" or "interrupted". Raises ConfigError or FatalError."""
        try:
            await self._parts.frontier.commit([], opening(self._parts.sinks))
            await self._steering.begin()
            return await self._run_tasks()
        except BaseExceptionGroup as group:
            error = first_of(group)
            if not (isinstance(error, SinkAwayError) and self._stop_asked.is_set()):
                raise error from group
        return await self._leave_undelivered(error)

    async def _run_tasks(self) -> str:
        parts, settings = self._parts, self._settings
        leaving.set(self._stop_asked)
        async with asyncio.TaskGroup() as tasks:
            leaser = tasks.create_task(self._leaser.run(), name="leaser")
            visitors = Visitors(
                self._tools,
                self._held,
                self._committer,
                self._wake_leaser,
                tasks,
                settings.visit_timeout,
                settings.save_timeout,
            )
            seeder = tasks.create_task(self._seeder.run(parts.hook, self._wake_leaser), name="seeder")
            renewer = renew(
                parts.frontier, self._held, settings.lease_seconds / 3, parts.hook, self._wake_leaser
            )
            side = [
                tasks.create_task(self._committer.run(), name="committer"),
                tasks.create_task(renewer, name="renewer"),
                tasks.create_task(visitors.relieve(), name="reliever"),
                tasks.create_task(self._monitor.run(), name="monitor"),
                tasks.create_task(self._steering.run(), name="steering"),
                tasks.create_task(self._hear_of_seeds(), name="seeds-elsewhere"),
                tasks.create_task(self._found_traps.run(), name="traps"),
                tasks.create_task(self._hunger.run(), name="hunger"),
            ]
            side.append(tasks.create_task(self.machine.run(), name="machine"))
            if self._pacing is not None:
                side.append(tasks.create_task(self._pacing.run(), name="pacing"))
            if parts.keeper is not None:
                side.append(tasks.create_task(parts.keeper.run(), name="keeper"))
            reason = await self._reason_to_stop(leaser)
            parts.hook(Stopping(reason))
            self._monitor.phase = "stopping"
            seeder.cancel()
            await self._wind_down(visitors)
            for task in side:
                task.cancel()
        return await self._end(reason)

    async def _leave_undelivered(self, error: SinkAwayError) -> str:
        """The end of a crawl that was told to stop, and has an output that is away."""
        undelivered = self._committer.undelivered
        # These stay leased, as after a kill: released, they would count as never visited, and the rows that
        # the output may have of them would not be looked after.
        await self._parts.frontier.release([t for t in self._held.tokens if t not in undelivered])
        self._parts.hook(
            Trouble(
                f"{error}; told to stop, the crawl waits no longer: visited pages it could not deliver "
                f"({len(undelivered)}) are not done; the same command visits them again, nothing is lost"
            )
        )
        return await self._end("interrupted")

    async def _end(self, reason: str) -> str:
        parts = self._parts
        if parts.keeper is not None:
            await parts.keeper.flush()
        if parts.delivery:
            parts.delivery.refused.told()
        for line in self._twins.lines() if self._twins is not None else ():
            parts.hook(Trouble(line))
        await parts.frontier.commit([], finish_all(parts.sinks))
        self._monitor.phase = ENDINGS.get(reason, "finished")
        await self._monitor.publish_now()
        return reason

    async def _reason_to_stop(self, leaser: asyncio.Task[str]) -> str:
        asked = asyncio.create_task(self._stop_asked.wait())
        try:
            await asyncio.wait((leaser, asked), return_when=asyncio.FIRST_COMPLETED)
        finally:
            asked.cancel()
        if leaser.done():
            return leaser.result()
        leaser.cancel()
        with suppress(asyncio.CancelledError):
            await leaser
        return "interrupted"

    async def _wind_down(self, visitors: Visitors) -> None:
        """Nothing new starts; what runs may end within the grace period; what is done gets committed."""
        await self._parts.frontier.release(self._held.withdraw())
        if self._held.in_flight:
            landed = [asyncio.create_task(e.wait()) for e in (self._held.idle, self._stop_now)]
            await asyncio.wait(landed, timeout=self._settings.grace, return_when=asyncio.FIRST_COMPLETED)
            for task in landed:
                task.cancel()
        await visitors.end()
        await self._committer.flush()
        await self._parts.frontier.release(self._held.tokens)

    async def _hear_of_seeds(self) -> None:
        """While another process reads the seeds: it says when it is through by a flag, which wakes nobody."""
        looks = 0
        while self._parts.seeding_elsewhere():
            await asyncio.sleep(SEEDS_PERIOD)
            looks += 1
            if looks % 10 == 0:
                self._wake_leaser()  # that process may only now have opened the frontier
        self._wake_leaser()

    def _space_out(self, host: str, delay: float) -> None:
        self._committer.give_back(self._held.space(host, delay))

    def _wake_leaser(self) -> None:
        self._monitor.changed()
        self._leaser.wake()

    def _seeding(self) -> bool:
        return self._seeder.active or self._parts.seeding_elsewhere()


def opening(sinks: Sequence[Output]) -> Deliver:
    """Open the outputs under the store's lock, and store a position even where nothing is written yet:
    from then on a tail found in the file is known to be this job's own and may be cut."""

    def open_all(outcomes: Sequence[Outcome], positions: Positions) -> Positions:
        opened = dict(positions)
        for sink in sinks:
            with blamed(sink.name, "open", ConfigError):
                sink.open(positions.get(sink.name))
                position = sink.write((), positions.get(sink.name))
            if position is not None:
                opened[sink.name] = position
        return opened

    return open_all


def first_of(group: BaseExceptionGroup[BaseException]) -> BaseException:
    """The error that stopped the tasks: the first SilklineError of a group, however deep, else the first."""
    found, _ = group.split(SilklineError)
    error: BaseException = found or group
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error
