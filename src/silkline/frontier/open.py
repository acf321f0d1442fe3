"""From the user's `--frontier` to a frontier, and to what can be asked of one without joining its job.

A file keeps one job and knows its name. A server keeps many: there the job is the one that is named.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from silkline.config import FrontierOptions
from silkline.errors import ConfigError, JobError
from silkline.frontier import sqlite_lookup
from silkline.frontier.memory import MemoryFrontier
from silkline.frontier.sqlite import SqliteFrontier
from silkline.protocols import Frontier, Positions, Resolve
from silkline.resolve import redacted

if TYPE_CHECKING:
    from types import ModuleType

MEMORY = "memory:"
SQLITE = "sqlite:///"
SERVER_SCHEMES = frozenset(
    {"redis", "rediss", "unix", "redis+cluster", "rediss+cluster", "redis+sentinel", "rediss+sentinel"}
)
ONLY_ON_A_SERVER = ("partitions", "dedup", "keep_done_urls")
USUAL_JOB = FrontierOptions().job


def frontier_from(url: str, options: FrontierOptions, resolve: Resolve | None = None) -> Frontier:
    """The frontier behind a URL, not opened yet: "memory:"; "sqlite:///relative/path" or
    "sqlite:////absolute/path"; "redis://host:port/db" and the other schemes of SERVER_SCHEMES.

    resolve: finds out addresses, for whoever adds requests to a job that is polite by "ip".

    Raises ConfigError for anything else, for options that this frontier does not know, and where its extra
    is not installed.
    """
    check_options(url, options)
    if url == MEMORY:
        return MemoryFrontier(options, resolve=resolve)
    if on_server(url):
        _redis_lookup()
        from silkline.frontier.redis import RedisFrontier

        return RedisFrontier(url, options, resolve=resolve)
    return SqliteFrontier(_path(url), options, resolve=resolve)


def on_server(url: str) -> bool:
    """Whether the URL names a server, which keeps many jobs and may be shared by many machines."""
    return url.partition("://")[0].lower() in SERVER_SCHEMES and "://" in url


def check_options(url: str, options: FrontierOptions) -> None:
    """Raise ConfigError for a URL that is no frontier, and for options that only a server's knows."""
    if on_server(url):
        return
    store_file(url)
    plain = FrontierOptions()
    for name in ONLY_ON_A_SERVER:
        if getattr(options, name) != getattr(plain, name):
            raise ConfigError(
                f"{name} = {getattr(options, name)} needs a frontier on a server (redis://...), "
                f"not {url}: leave {name} out, or name one with --frontier"
            )


def store_file(url: str) -> Path | None:
    """The file behind the URL; None for memory and servers. Raises ConfigError for what is no frontier."""
    return None if url == MEMORY or on_server(url) else _path(url)


def begun(url: str, job: str = USUAL_JOB) -> bool:
    """Whether there is anything of the job; memory never outlives its process."""
    if on_server(url):
        return bool(_redis_lookup().exists(url, job))
    path = store_file(url)
    return path is not None and path.exists()


def outputs_in(url: str, job: str = USUAL_JOB) -> frozenset[str]:
    """The names of the sinks that have a committed position in the store: what the job may call its own.

    Empty for memory, for a job that was never begun, and for a file too damaged to tell. Changes nothing.

    Raises JobError for a file that is no frontier, FrontierError for a server that is away.
    """
    if on_server(url):
        return frozenset(_redis_lookup().outputs_in(url, job))
    path = store_file(url)
    return frozenset() if path is None else sqlite_lookup.outputs_in(path)


def positions_in(url: str, job: str = USUAL_JOB) -> Positions:
    """The committed position of each sink, by its name. Empty for memory and where no job was begun.

    Raises JobError for a file that is no frontier, FrontierError for a damaged one and a server that is away.
    """
    if on_server(url):
        found: Positions = _redis_lookup().positions_in(url, job)
        return found
    path = store_file(url)
    return {} if path is None else sqlite_lookup.positions_in(path)


def facts_in(url: str, job: str = USUAL_JOB) -> Mapping[str, str]:
    """What `Frontier.remember` keeps about the job. Empty for memory, where no job was begun, and for a file
    too damaged to tell.

    Raises JobError for a file that is no frontier, FrontierError for a server that is away.
    """
    if on_server(url):
        found: Mapping[str, str] = _redis_lookup().facts_in(url, job)
        return found
    path = store_file(url)
    return {} if path is None else sqlite_lookup.facts_in(path)


def options_in(url: str, job: str = USUAL_JOB) -> FrontierOptions | None:
    """The job that is kept there, with the limits that were applied last; what is not kept is at its default.

    job: on a server, the one that is meant; in a file there is one only, whatever its name.

    None for memory and where no job was begun. Changes nothing.

    Raises JobError for a file that is no frontier, FrontierError for a damaged one and a server that is away.
    """
    if on_server(url):
        found: FrontierOptions | None = _redis_lookup().options_in(url, job)
        return found
    path = store_file(url)
    return None if path is None else sqlite_lookup.options_in(path)


def remove_store(
    url: str,
    job: str | None = None,
    *,
    keep_cache: bool = False,
    progress: Callable[[int], None] = lambda keys: None,
) -> None:
    """Forget the job that is kept there. Nothing there is fine.

    job: the name it must have; None for any in a file, and for the usual one on a server.
    keep_cache: not the HTTP cache that lies beside it on a server: what `--fresh` does.
    progress: told now and then how many keys of a server are gone.

    Raises JobError for a file that is no frontier, for another job's, and for a job that workers are at.
    """
    if on_server(url):
        job = job or USUAL_JOB
        if living := _redis_lookup().living_in(url, job):
            raise JobError(
                f"the job {job!r} is in use by {', '.join(sorted(living))}: end these workers first"
            )
        _redis_lookup().remove(url, job, progress, keep_cache=keep_cache)
    elif (path := store_file(url)) is not None:
        sqlite_lookup.remove(path, job)


def _redis_lookup() -> ModuleType:
    """Imported late: most crawls need none of it. Raises ConfigError where the client is not installed."""
    try:
        import redis  # noqa: F401
    except ModuleNotFoundError as error:
        raise ConfigError(
            "a frontier on Redis or Valkey needs a client: pip install 'silkline[redis]'"
        ) from error
    from silkline.frontier import redis_lookup

    return redis_lookup


def _path(url: str) -> Path:
    path = url.removeprefix(SQLITE)
    if path == url or not path or path.endswith("/"):
        raise ConfigError(
            f"{redacted(url)!r} is no frontier: write memory:, or sqlite:///path/to/file.db "
            "(with four slashes for an absolute path), or redis://host:6379/0"
        )
    return Path(path)
