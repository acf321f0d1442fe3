"""One process's share of a run: opens the parts, runs the worker, closes the parts."""

from __future__ import annotations

import inspect
import time
from collections.abc import Callable, Collection, Sequence
from contextlib import AsyncExitStack
from typing import TypeGuard, cast

import msgspec

from silkline.config import Settings
from silkline.engine.addresses import addresses_for
from silkline.engine.around import around_of, provider_of
from silkline.engine.blocks import still_blocked
from silkline.engine.crew import Ending, Seat
from silkline.engine.delivery import Delivery
from silkline.engine.discovery import scope_for
from silkline.engine.earlier import earlier_runs, remember_run
from silkline.engine.fetching import fetcher_for
from silkline.engine.interpreter import tuned_interpreter
from silkline.engine.items import ItemMaker
from silkline.engine.keeper import Keeper, keeper_for
from silkline.engine.named import NamedHosts, hosts_of
from silkline.engine.parts import Parts
from silkline.engine.refusals import keep_rules
from silkline.engine.robots import robots_for
from silkline.engine.signals import stop_on_signals
from silkline.engine.steps import Steps
from silkline.engine.unhandled import Unhandled
from silkline.engine.worker import Worker
from silkline.errors import ConfigError
from silkline.events import Event, Seeded, Trouble
from silkline.fetch.cookies.sessions import Sessions
from silkline.fetch.edge import checked_fetch, checked_middleware
from silkline.fetch.middleware import compose
from silkline.fetch.wire.trail import Trail
from silkline.frontier.open import frontier_from, on_server, store_file
from silkline.frontier.sqlite import SqliteFrontier
from silkline.items import ItemKeys, TypeChecks
from silkline.observe.fields import Past, fallen
from silkline.observe.report import ALREADY_FINISHED, FINISHED
from silkline.observe.snapshot import Phase, Snapshot
from silkline.observe.tally import Tally
from silkline.outcome import Stats
from silkline.parse.page import Page
from silkline.politeness.order import Rate
from silkline.politeness.robots import Robots
from silkline.politeness.scope import Scope
from silkline.protocols import Fetcher, Frontier, Hook, KeyedSink, Middleware, Output, PageSink, Warner
from silkline.router import Router
from silkline.seeds import Seeds, SeedSource
from silkline.sinks.address import files_in
from silkline.sinks.choose import called, keyed_sinks_for, sinks_for
from silkline.sinks.format import Format
from silkline.sinks.keyed import OwnSink
from silkline.sinks.part import part_sinks, parts_of
from silkline.sinks.sqlite import SqliteSink


class Plan(msgspec.Struct, frozen=True):
    """What to run; nothing in it is open yet.

    rate: the user's own function for the priority of links. keys: those of items by their class. steps: what
    items go through.
    named, sites: hosts of the URLs that the user gave directly, see `engine/named.py` and the crawl's scope.
    fetcher: the user's own, or None for the one that the settings name. definition: what the crawl is, as
    one line; a resume with another one is worth a warning. past: what earlier runs are known for, where the
    job starts over, see `engine/earlier.py`. owns_process: it may handle SIGINT and SIGTERM and tune the
    interpreter. console: also log to stderr.
    """

    settings: Settings
    router: Router
    seeds: SeedSource
    named: Collection[str] = ()
    sites: Sequence[str] = ()
    fetcher: Fetcher | None = None
    middleware: Sequence[Middleware] = ()
    hooks: Sequence[Hook] = ()
    columns: Sequence[str] | None = None
    extra_sinks: Sequence[Output | KeyedSink] = ()
    definition: str = ""
    past: str = ""
    rate: Rate[Page] | None = None
    keys: ItemKeys = msgspec.field(default_factory=ItemKeys)
    steps: Steps = msgspec.field(default_factory=lambda: Steps(()))
    owns_process: bool = True
    console: bool = False


class Session:
    """A running plan in one process."""

    def __init__(self, plan: Plan, seat: Seat) -> None:
        self._plan = plan
        self._seat = seat
        self._tally = Tally()
        self._started = time.time()
        self._last: Snapshot | None = None
        self._worker: Worker | None = None
        self._met_work = False
        """The job was not finished when we came, whoever finished it."""
        self._close_log, log = log_for(plan, seat)
        unhandled = Unhandled(plan.settings.job, plan.settings.frontier, self._tell)
        self._hooks: tuple[Hook, ...] = (self._tally, *log, *plan.hooks, unhandled)

    async def run(self) -> Ending:
        """Raises ConfigError and FatalError; whatever happens, what was opened is closed."""
        settings = self._plan.settings
        async with AsyncExitStack() as opened:
            opened.callback(self._close_log)
            if self._plan.owns_process:
                opened.enter_context(tuned_interpreter())
            resolve = addresses_for(opened)
            frontier = frontier_from(settings.frontier_url, settings.frontier_options, resolve)
            sinks = outputs_of(self._plan, frontier.worker)
            share_file(frontier, sinks)
            for sink in sinks:
                opened.callback(sink.close)  # after the frontier: its thread may still be writing
                if isinstance(sink, Warner):
                    sink.warn_with(lambda line: self._tell(Trouble(line)))
            frontier.listen(lambda: None, lambda line: self._tell(Trouble(line)))  # news: once it works
            await frontier.open()
            opened.push_async_callback(frontier.close)
            if self._plan.fetcher is not None:
                opened.push_async_callback(_close, self._plan.fetcher)
            named = NamedHosts(frontier)
            await named.name([*self._plan.named, *hosts_of(provider_of(settings))])
            sessions = Sessions()
            scope = await scope_for(settings, frontier, self._plan.sites)
            await keep_rules(settings, frontier)
            robots = robots_for(settings, frontier, self._tell, opened)
            archived = any(isinstance(sink, PageSink) for sink in sinks)
            trail = Trail(secrets=settings.wire_secrets) if archived else None
            watchers = [trail.watch] if trail is not None else []
            fetcher = self._plan.fetcher or await fetcher_for(
                settings,
                opened,
                named,
                sessions,
                robots,
                scope,
                watchers,
                lambda line: self._tell(Trouble(line)),
            )
            await self._note_definition(frontier)
            if not self._seat.index and (line := await still_blocked(frontier)):
                self._tell(Trouble(line))
            past = await earlier_runs(frontier, self._plan.past)
            keyed = keyed_outputs_of(self._plan)
            delivery = Delivery(keyed, self._tell)
            opened.push_async_callback(delivery.close)
            await delivery.open()
            keeper = await keeper_for(settings, frontier, sessions)
            around = list(map(checked_middleware, self._plan.middleware))
            around += around_of(settings, sessions, self._tell)
            if trail is not None:
                around.insert(0, trail.around)
            reason = await self._work(frontier, fetcher, around, sinks, keeper, robots, scope, delivery)
            await self._compare(frontier, past)
            dead, dead_items = await frontier.dead_letters.causes(), await frontier.dead_items.causes()
            written = await self._parts(frontier)
            return Ending(reason, self._last, dead, dead_items, written, past=past)

    async def _work(
        self,
        frontier: Frontier,
        fetcher: Fetcher,
        around: Sequence[Middleware],
        sinks: Sequence[Output],
        keeper: Keeper | None,
        robots: Robots | None,
        scope: Scope | None,
        delivery: Delivery,
    ) -> str:
        first = self._seat.index == 0
        parts = Parts(
            frontier=frontier,
            fetch=compose(around, fetcher.fetch if self._plan.fetcher is None else checked_fetch(fetcher)),
            router=self._plan.router,
            sinks=sinks,
            hook=self._tell,
            publish=self._publish,
            fetcher=fetcher,
            tally=self._tally,
            items=self._item_maker(sinks, delivery),
            steps=self._plan.steps,
            seeding_elsewhere=self._seat.seeding if not first else lambda: False,
            keeper=keeper,
            robots=robots,
            scope=scope,
            rate=self._plan.rate,
            delivery=delivery,
        )
        self._worker = Worker(parts, self._plan.settings, self._plan.seeds if first else Seeds())
        with stop_on_signals(self._worker.stop, wanted=self._plan.owns_process):
            reason = await self._worker.run()
        if reason != FINISHED or not first or self._tally.visits or self._tally.seeded.added:
            return reason
        if self._met_work:
            return reason
        stats = await frontier.stats()
        if not stats.done and not stats.dead:
            why = next(iter(self._tally.seeded.reasons), "give a URL, such as https://example.com/")
            raise ConfigError(f"job {self._plan.settings.job!r} has nothing to crawl: {why}")
        return ALREADY_FINISHED

    def _item_maker(self, sinks: Sequence[Output], delivery: Delivery) -> ItemMaker:
        plan = self._plan
        keys = plan.keys.with_dicts(plan.settings.item_key)
        checks = TypeChecks(lambda line: self._tell(Trouble(line)))
        names = called(plan.settings.outputs, plan.extra_sinks)
        return ItemMaker(sinks, delivery.sinks, keys, checks, names, self._tally.fields.add)

    async def _parts(self, frontier: Frontier) -> dict[str, tuple[str, ...]]:
        settings = self._plan.settings
        if not on_server(settings.frontier_url):
            return {}
        positions = await frontier.positions()
        return {output: parts_of(output, positions) for output in files_in(settings.outputs)}

    def _tell(self, event: Event) -> None:
        for hook in self._hooks:
            hook(event)
        if isinstance(event, Seeded) and self._seat.index == 0:
            self._seat.seeded()  # the others read none, and must not say so for the one that does

    def _publish(self, phase: Phase, seeding: bool, in_flight: int, ready: int, stats: Stats | None) -> None:
        settings = self._plan.settings
        self._met_work = self._met_work or (stats is not None and stats.open > 0)
        self._last = Snapshot(
            job=settings.job,
            started=self._started,
            at=time.time(),
            tally=self._tally,
            worker=str(self._seat.index),
            in_flight=in_flight,
            ready=ready,
            stats=stats,
            phase=phase,
            seeding=seeding,
            allowed=self._worker.allowed if self._worker is not None else 0,
            late=self._worker.machine.late if self._worker is not None else 0.0,
            memory=self._worker.machine.load.memory if self._worker is not None else 0,
        )
        try:
            self._seat.publish(self._last)
        except OSError:
            # The parent is gone: wind down, as at its signal.
            if phase in ("crawling", "paused") and self._worker is not None:
                self._worker.stop()

    async def _compare(self, frontier: Frontier, past: Past) -> None:
        """What the items hold with what they held in earlier runs; of several processes only all together
        can tell, see `Crawler.run`."""
        tally = self._tally
        if self._plan.settings.processes == 1:
            for line in fallen(tally.fields, past, tally.pages):
                self._tell(Trouble(line))
        if self._seat.index == 0:
            await remember_run(frontier, past, tally.fields)

    async def _note_definition(self, frontier: Frontier) -> None:
        definition = self._plan.definition
        databases = [sink.name for sink in keyed_outputs_of(self._plan)]
        if databases and not self._seat.index:
            await frontier.remember({"databases": ", ".join(databases)})
        if not definition or self._seat.index:
            return
        known = (await frontier.recall()).get("definition")
        if known is not None and known != definition:
            self._tell(
                Trouble(
                    f"job {self._plan.settings.job!r} was started with other options ({known}); pages that "
                    "are done are not visited again: use --fresh to start over, or another --job"
                )
            )
        await frontier.remember({"definition": definition})


def log_for(plan: Plan, seat: Seat) -> tuple[Callable[[], None], Sequence[Hook]]:
    """What closes the log, and the hook that writes it; none where nobody is to read it."""
    settings = plan.settings
    if settings.log_file is None and not plan.console:
        return (lambda: None), ()
    from silkline.observe import logs  # here: a crawl without a log starts without what these are made with

    worker = str(seat.index) if settings.processes > 1 else ""
    logger = logs.configure(
        settings.log_level, settings.log_file, settings.job, console=plan.console, worker=worker
    )
    return (lambda: logs.close(logger)), (logs.LogHook(logger),)


def outputs_of(plan: Plan, worker: str | None = None) -> list[Output]:
    """The sinks of a plan, not opened. Raises ConfigError for an output that cannot be one.

    worker: who is to write. With a frontier on a server it writes part files of its own.
    """
    settings = plan.settings
    reserved = [path for path in (settings.log_file,) if path is not None]
    format = Format(plan.columns, settings.excel)
    own = store_file(settings.frontier_url)
    files = sinks_for(settings.outputs, format, reserved=reserved, frontier=own)
    if worker is not None and on_server(settings.frontier_url):
        files = part_sinks(settings.outputs, worker, format)
    return [*files, *(cast(Output, sink) for sink in plan.extra_sinks if not is_keyed(sink))]


def share_file(frontier: Frontier, sinks: Sequence[Output]) -> None:
    """A table in the frontier's own file is written in the frontier's transactions."""
    if isinstance(frontier, SqliteFrontier):
        for sink in sinks:
            if isinstance(sink, SqliteSink) and sink.is_in(frontier.path):
                sink.share(frontier.lent)


def keyed_outputs_of(plan: Plan) -> list[KeyedSink]:
    """The keyed sinks of a plan, not opened. Raises ConfigError for an output that cannot be one."""
    settings = plan.settings
    given = [sink for sink in plan.extra_sinks if is_keyed(sink)]
    keyed = [*keyed_sinks_for(settings.outputs, create=not settings.no_create), *given]
    names = [sink.name for sink in keyed]
    for name in names:
        if names.count(name) > 1:
            raise ConfigError(f"two outputs have the name {name!r}: give one another name")
    return keyed


def is_keyed(sink: Output | KeyedSink) -> TypeGuard[KeyedSink]:
    """Raises ConfigError for what is no sink."""
    kind, name = type(sink).__name__, getattr(sink, "name", None)
    if not isinstance(name, str) or not name:
        raise ConfigError(f"the sink {kind} has no name: call super().__init__(name) in its __init__")
    write = getattr(sink, "write", None)
    keyed = inspect.iscoroutinefunction(write)
    if write is None or (isinstance(sink, OwnSink) and (not keyed or type(sink).write is OwnSink.write)):
        raise ConfigError(f"the sink {name!r}: {kind} has no method `async def write(self, items)`")
    return keyed


async def _close(fetcher: Fetcher) -> None:
    close = getattr(fetcher, "close", None)
    if close is not None:
        await close()
