"""A job's frontier, for the commands that look at it without crawling."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar

from silkline.config import Settings
from silkline.errors import ConfigError
from silkline.protocols import Frontier
from silkline.resolve import DEFAULT, resolve

T = TypeVar("T")


def begun(settings: Settings) -> bool:
    """Whether the job has a store; memory never outlives its process."""
    path = _path_of(settings.frontier_url)
    return path is not None and path.exists()


def job_settings(job: str | None, frontier: str | None, config: Path | None) -> Settings:
    """The settings of a job that exists; if none is named, of the only one in the working directory.

    Raises ConfigError where there is no such job, and creates nothing.
    """
    resolved = resolve({"job": job, "frontier": frontier}, os.environ, config=config)
    settings = resolved.settings
    if resolved.origins["job"] == DEFAULT and not begun(settings) and not settings.frontier:
        known = sorted(path.stem for path in Path(".silkline").glob("*.db"))
        if len(known) != 1:
            listed = f"there are: {', '.join(known)}" if known else "there is none in .silkline/"
            raise ConfigError(f"which job? {listed}; name it with --job NAME, or --frontier URL")
        settings = resolved.having("job", known[0], "the only one").settings
    if not begun(settings):
        raise ConfigError(f"there is no job {settings.job!r}: {settings.frontier_url} does not exist")
    return settings


def with_frontier(settings: Settings, work: Callable[[Frontier], Awaitable[T]]) -> T:
    """Open the job's frontier, do one thing with it, close it."""
    import asyncio

    from silkline.frontier.open import frontier_from

    async def opened() -> T:
        frontier = frontier_from(settings.frontier_url, settings.frontier_options)
        await frontier.open()
        try:
            return await work(frontier)
        finally:
            await frontier.close()

    return asyncio.run(opened())


def _path_of(url: str) -> Path | None:
    scheme, _, path = url.partition(":///")
    return Path(path) if scheme == "sqlite" and path else None
