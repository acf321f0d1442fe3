"""The public face: wiring only."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Callable, Coroutine, Iterable, Sequence
from contextlib import suppress
from typing import Any, Literal, TypeVar, overload

import msgspec
import uvloop

from silkline.config import Settings
from silkline.engine.crew import Crew, Ending, Seat
from silkline.engine.discovery import check_scope
from silkline.engine.earlier import handed_down
from silkline.engine.fetching import check_settings, engine_of
from silkline.engine.limits import check_limits
from silkline.engine.named import hosts_of
from silkline.engine.session import Plan, Session, keyed_outputs_of, outputs_of
from silkline.engine.sitemaps import Sitemaps
from silkline.engine.steps import Steps
from silkline.errors import ConfigError, FatalError
from silkline.files import is_archive
from silkline.frontier.open import (
    check_options,
    facts_in,
    on_server,
    outputs_in,
    positions_in,
    remove_store,
    store_file,
)
from silkline.items import ItemKeys
from silkline.observe.fields import fallen
from silkline.observe.report import Report, report_of
from silkline.observe.snapshot import Snapshot, merge
from silkline.observe.view import View
from silkline.parse.page import Page
from silkline.politeness.order import Rate
from silkline.politeness.scope import sites_of
from silkline.protocols import Fetcher, Hook, KeyedSink, Middleware, Output
from silkline.request import DEFAULT_LABEL
from silkline.resolve import settings_from
from silkline.router import Handler, Router
from silkline.seeds import Seed, Seeds
from silkline.sinks.choose import discard_owned, refuse_foreign
from silkline.sinks.part import discard_parts
from silkline.steps import Step

H = TypeVar("H", bound=Handler)
R = TypeVar("R", bound=Rate[Page])
K = TypeVar("K", bound=type)
S = TypeVar("S", bound=Step)
Watch = Callable[[Snapshot], None]


class Crawler:
    """A crawl: handlers, outputs and settings.

    name: the job's name. outputs: files (.jsonl, .csv, .db, ...) and URLs of databases for the items, one or
    several.
    sinks: outputs of your own. fetcher: the name of an engine, or one of your own. middleware: around every
    fetch, first one outermost. hooks: told of every event. columns: of CSV and Parquet outputs, where they
    should not be those of the first item.
    steps: what items go through in turn, see `silkline.steps`.
    settings: any of `config.Settings`, such as concurrency=200, frontier="memory:", item_key="sku".

    Raises ConfigError for a setting that does not exist or has a bad value.
    """

    def __init__(
        self,
        name: str = "spider",
        *,
        outputs: str | Iterable[str] = (),
        sinks: Sequence[Output | KeyedSink] = (),
        fetcher: Fetcher | Literal["http", "curl"] | None = None,
        middleware: Sequence[Middleware] = (),
        hooks: Sequence[Hook] = (),
        columns: Sequence[str] | None = None,
        steps: Sequence[Step] = (),
        definition: str = "",
        **settings: Any,
    ) -> None:
        if isinstance(fetcher, str):
            settings["fetcher"], fetcher = fetcher, None
        if isinstance(outputs, str):
            outputs = (outputs,)
        given = {"job": name, "outputs": tuple(map(str, outputs)), **settings}
        self.settings = settings_from(given, "Crawler(...)")
        self.router = Router()
        self.sinks = tuple(sinks)
        self._fetcher = fetcher
        self._middleware = tuple(middleware)
        self._hooks = tuple(hooks)
        self._columns = (columns,) if isinstance(columns, str) else columns
        self._definition = definition
        self._rate: Rate[Page] | None = None
        self._steps = list(steps)
        self.item_keys = ItemKeys()
        if fetcher is None:
            with suppress(ConfigError):  # a run will say it
                engine_of(self.settings)  # what it imports is no part of a run

    @overload
    def handler(self, label: H) -> H: ...
    @overload
    def handler(self, label: str = DEFAULT_LABEL) -> Callable[[H], H]: ...
    def handler(self, label: Any = DEFAULT_LABEL) -> Any:
        """Register a handler: `@crawler.handler` for pages without a label, `@crawler.handler("author")`.

        Raises ConfigError where the label is taken.
        """
        if callable(label):
            self.router.add(DEFAULT_LABEL, label)
            return label

        def register(function: H) -> H:
            self.router.add(label, function)
            return function

        return register

    def rate(self, function: R) -> R:
        """Register what gives links their priority: `@crawler.rate` above a function of (request, page) that
        returns a whole number from -1000 to 1000, higher first. It is asked about links that have none."""
        self._rate = function
        return function

    def use(self, fetcher: Fetcher) -> None:
        """Fetch by this one from now on."""
        self._fetcher = fetcher

    def item(self, *, key: str | Sequence[str]) -> Callable[[K], K]:
        """Name the stable key of a class of items: `@crawler.item(key="sku")` above the class, or several
        fields, `key=("shop", "sku")`. Databases replace the row of that key; without one, an item's identity
        is its page and its place there. A class attribute `__item_key__ = "sku"` says the same.

        Raises ConfigError where the class has no such field.
        """

        def register(kind: K) -> K:
            self.item_keys.add(kind, key)
            return kind

        return register

    def step(self, function: S) -> S:
        """Register a step, behind those that there are: `@crawler.step` above a function of an item, or of an
        item and its page, sync or async. It gives back the item or another one, or None to drop it, and may
        raise `Drop("the reason")`; with anything else that it raises the item is dead."""
        self._steps.append(function)
        return function

    @property
    def steps(self) -> Steps:
        """Raises ConfigError for one that is no step."""
        return Steps(self._steps)

    def configure(self, settings: Settings) -> None:
        """Replace all settings."""
        self.settings = settings

    def run(self, *seeds: Seed, watch: Watch | None = None, **overrides: Any) -> Report:
        """Crawl until the job is finished, its page budget is spent, or SIGINT or SIGTERM asks to stop.

        seeds: URLs, Requests, Paths of files with a URL or JSON task a line, iterables of the first two.
        watch: gets a Snapshot about twice a second; None shows progress and the report on stderr,
            unless `quiet` is set.
        overrides: settings for this run only.

        Called again for the same job it resumes. Raises ConfigError and FatalError; what was committed stays.
        """
        if asyncio._get_running_loop() is not None:
            raise ConfigError(
                "run() cannot work inside a running event loop, such as a notebook's: "
                "write `await crawler.run_async(...)` there"
            )
        settings = self._settings(overrides)
        plan = self._plan(settings, seeds, owns_process=True)
        own = [sink.name for sink in self.sinks]
        with View(settings, watch) as view:
            if settings.processes == 1:
                report = _report(settings, own, [_run(Session(plan, _alone(view.update)).run())])
            else:
                crew = Crew(settings.processes, lambda seat: _run(Session(plan, seat).run()), view.update)
                report = _report(settings, own, crew.run(), crew.snapshots, crew.troubles)
            if report.items and all(map(is_archive, settings.outputs)) and not self.sinks:
                lost = "the items went nowhere: name outputs, such as Crawler(..., outputs=['items.jsonl'])"
                report = msgspec.structs.replace(report, troubles=(*report.troubles, lost))
            view.end(report)
        return report

    async def run_async(self, *seeds: Seed, watch: Watch | None = None, **overrides: Any) -> Report:
        """The same on the running event loop, for notebooks and other programs; one process, and signals
        stay with the host program: cancel the task to stop."""
        settings = self._settings(overrides)
        if settings.processes != 1:
            raise ConfigError("run_async works in this process alone; use run() for processes > 1")
        plan = self._plan(settings, seeds, owns_process=False)
        own = [sink.name for sink in self.sinks]
        return _report(settings, own, [await Session(plan, _alone(watch or _ignore)).run()])

    def _settings(self, overrides: dict[str, Any]) -> Settings:
        settings = settings_from(overrides, "run(...)", base=self.settings)
        if settings.processes > 1 and settings.frontier == "memory:":
            raise ConfigError("frontier memory: is for one process; use sqlite:///path with processes > 1")
        return settings

    def _plan(self, settings: Settings, seeds: Sequence[Seed], *, owns_process: bool) -> Plan:
        if not self.router.labels:
            raise ConfigError("this crawler has no handler; write one with @crawler.handler")
        for seed in seeds:
            if isinstance(seed, Sitemaps):
                seed.fetch_as(settings, alone=len(seeds) == 1)
        source = Seeds(*seeds, labels=self.router.labels)
        plan = Plan(
            settings=settings,
            router=self.router,
            seeds=source,
            named=hosts_of(source.given),
            sites=sites_of(source.given),
            fetcher=self._fetcher,
            middleware=self._middleware,
            hooks=self._hooks,
            columns=self._columns,
            extra_sinks=self.sinks,
            definition=self._definition,
            rate=self._rate,
            keys=self.item_keys,
            steps=self.steps,
            owns_process=owns_process,
            console=owns_process
            and not settings.quiet
            and sys.stderr is not None
            and not sys.stderr.isatty(),
        )
        # Refused before --fresh removes anything.
        outputs_of(plan)
        keyed_outputs_of(plan)
        check_limits(settings)
        check_settings(settings)
        check_scope(settings)
        check_options(settings.frontier_url, settings.frontier_options)
        if settings.fresh:
            return msgspec.structs.replace(plan, past=_start_over(settings))
        return plan


def _start_over(settings: Settings) -> str:
    """Forget the job and remove what it has written; nothing of either where an output is not its own.

    Returns what its runs are known for, see `engine/earlier.py`.
    """
    url, job = settings.frontier_url, settings.job
    if on_server(url):
        written, facts = positions_in(url, job), facts_in(url, job)
        remove_store(url, job, keep_cache=True)
        discard_parts(written, settings.outputs)
        return handed_down(facts)
    owned = None if url == "memory:" else outputs_in(url, job)
    file = os.path.realpath(store_file(url) or "")
    outputs = [output for output in settings.outputs if os.path.realpath(output) != file]  # gone with it
    refuse_foreign(outputs, owned)
    facts = facts_in(url, job)
    remove_store(url, job, keep_cache=True)
    discard_owned(outputs, owned)
    return handed_down(facts)


def _report(
    settings: Settings,
    own: Sequence[str],
    endings: Sequence[Ending],
    snapshots: Sequence[Snapshot] = (),
    troubles: Sequence[str] = (),
) -> Report:
    """own: names of the user's own sinks. snapshots: the last ones of all workers, where some died without
    an ending."""
    last = snapshots or [ending.snapshot for ending in endings if ending.snapshot is not None]
    if not last:
        raise FatalError("the crawl ended before it began")
    merged = merge(last)
    report = report_of(
        merged,
        reason=_reason(endings),
        dead=endings[-1].dead,
        dead_items=endings[-1].dead_items,
        outputs=(*settings.outputs, *own),
        parts=endings[-1].parts,
        frontier=settings.frontier,
        past=endings[0].past,
    )
    if settings.processes > 1:
        troubles = (*troubles, *fallen(merged.tally.fields, endings[0].past, merged.tally.pages))
    return msgspec.structs.replace(report, troubles=(*report.troubles, *troubles))


def _reason(endings: Sequence[Ending]) -> str:
    """Of several workers: the one that says most about the job."""
    reasons = {ending.reason for ending in endings}
    for reason in ("interrupted", "budget", "already finished"):
        if reason in reasons:
            return reason
    return "finished"


def _alone(publish: Watch) -> Seat:
    return Seat(index=0, publish=publish, seeding=lambda: False, seeded=lambda: None)


def _ignore(snapshot: Snapshot) -> None:
    """Nobody watches."""


def _run(work: Coroutine[Any, Any, Ending]) -> Ending:
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(work)
