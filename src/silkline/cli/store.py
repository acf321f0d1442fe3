"""The frontiers of jobs, for the commands that look at one without crawling."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar

import msgspec
from typer import echo

from silkline.config import FrontierOptions, Settings
from silkline.errors import ConfigError, FrontierError, JobError
from silkline.observe import figures
from silkline.protocols import Frontier
from silkline.resolve import DEFAULT, Resolved, redacted, resolve

T = TypeVar("T")

FOLDER = Path(".silkline")
NAMING = "name it with --job NAME, or --frontier URL"


class Store(msgspec.Struct, frozen=True):
    """A job that exists. options: its name, and the limits that its last crawl had: looking changes none."""

    url: str
    options: FrontierOptions

    @property
    def job(self) -> str:
        return self.options.job


def begun(settings: Settings) -> bool:
    """Whether the job has a store; memory never outlives its process."""
    from silkline.frontier import open

    return open.begun(settings.frontier_url, settings.job)


def stores(job: str | None, frontier: str | None, config: Path | None) -> list[Store]:
    """The job that is named, or the one that the named file keeps; where none is named, all that are in the
    working directory. On a server, which keeps many, it is always the one that is named, or the usual one.

    No other setting is looked at. Raises ConfigError where there is no such job, and creates nothing.
    """
    from silkline.frontier.open import on_server

    names = ("job", "frontier")
    resolved = resolve({"job": job, "frontier": frontier}, os.environ, config=config, names=names)
    settings = resolved.settings
    if settings.frontier or resolved.origins["job"] != DEFAULT:
        whichever = settings.frontier and not job and not on_server(settings.frontier)
        return [_store_of(settings, named=None if whichever else settings.job)]
    found = _kept_here()
    if not found:
        raise ConfigError(f"which job? there is none in {FOLDER}/; {NAMING}")
    return found


def one_store(job: str | None, frontier: str | None, config: Path | None) -> Store:
    """The same where there must be one only."""
    found = stores(job, frontier, config)
    if len(found) > 1:
        jobs = figures.listed([store.job for store in found])
        raise ConfigError(f"which job? there are: {jobs}; {NAMING}")
    return found[0]


def store_to_remove(job: str | None, frontier: str | None, config: Path | None) -> Store:
    """The same for a job that need not be readable: a damaged file, or no more than tasks in an inbox."""
    from silkline.frontier.open import on_server

    resolved = resolve(
        {"job": job, "frontier": frontier}, os.environ, config=config, names=("job", "frontier")
    )
    settings = resolved.settings
    named = resolved.origins["job"] != DEFAULT or on_server(settings.frontier)
    if named and begun(settings):
        return Store(settings.frontier_url, FrontierOptions(job=settings.job))
    return one_store(job, frontier, config)


def with_job_of_frontier(resolved: Resolved) -> Resolved:
    """Where a file is named and no job, the job is the one that it keeps, unless it is to start over."""
    from silkline.frontier.open import on_server, options_in

    settings = resolved.settings
    if resolved.origins["job"] != DEFAULT or not settings.frontier or settings.fresh:
        return resolved
    if on_server(settings.frontier):
        return resolved
    kept = options_in(settings.frontier)
    return resolved if kept is None else resolved.having("job", kept.job, "kept in the frontier")


def in_force(resolved: Resolved) -> Resolved:
    """The settings with what the job was begun with and keeps, where they leave that open.

    Raises JobError where they do not, and say something else.
    """
    from silkline.frontier.open import options_in
    from silkline.frontier.rules import other_grouping

    settings, name = resolved.settings, "politeness_by"
    try:
        kept = None if settings.fresh else options_in(settings.frontier_url, settings.job)
    except FrontierError:
        kept = None  # away or damaged: what the crawl itself says of that is clearer
    begun_by = None if kept is None or kept.job != settings.job else kept.politeness_by
    if settings.politeness_by is not None:
        if begun_by not in (None, settings.politeness_by):
            raise JobError(other_grouping(settings.job, str(begun_by), settings.politeness_by))
        return resolved
    if begun_by is None:
        return resolved.having(name, "host", resolved.origins[name])
    return resolved.having(name, begun_by, "kept with the job")


def with_frontier(store: Store, work: Callable[[Frontier], Awaitable[T]]) -> T:
    """Open the job's frontier, do one thing with it, close it."""
    import asyncio

    from silkline.frontier.open import frontier_from

    async def opened() -> T:
        frontier = frontier_from(store.url, store.options)
        await frontier.open()
        try:
            return await work(frontier)
        finally:
            await frontier.close()

    return asyncio.run(opened())


def _store_of(settings: Settings, named: str | None) -> Store:
    """named: the job that it must be; None for whichever it is."""
    from silkline.frontier.open import on_server, options_in

    url = settings.frontier_url
    kept = options_in(url, settings.job)
    if kept is not None:
        return Store(url, kept if named is None else msgspec.structs.replace(kept, job=named))
    which = "no job" if named is None else f"no job {named!r}"
    if url == "memory:":
        raise ConfigError(f"there is {which}: memory: keeps nothing")
    if not on_server(url):
        raise ConfigError(f"there is {which}: {url} {'is empty' if begun(settings) else 'does not exist'}")
    if begun(settings):
        raise ConfigError(
            f"the job {named!r} has only tasks in its inbox: begin it with silkline work or seed"
        )
    raise ConfigError(f"there is {which} at {redacted(url)}; name another with --job")


def _kept_here() -> list[Store]:
    """The jobs in the working directory. What else lies in their folder is passed over: other files, and
    copies, whose name is not their job's."""
    from silkline.frontier.open import options_in

    found = []
    for path in sorted(FOLDER.glob("*.db")):
        url = Settings(job=path.stem).frontier_url
        try:
            kept = options_in(url)
        except JobError:
            continue
        except FrontierError as error:
            echo(f"silkline: warning: {error}", err=True)
            continue
        if kept is not None and kept.job == path.stem:
            found.append(Store(url, kept))
    return found
