"""From the user's `--frontier` to a frontier."""

from __future__ import annotations

from pathlib import Path

from silkline.config import FrontierOptions
from silkline.errors import ConfigError
from silkline.frontier.liveness import remove_locks
from silkline.frontier.memory import MemoryFrontier
from silkline.frontier.sqlite import SqliteFrontier
from silkline.frontier.sqlite_file import refuse_foreign_file
from silkline.protocols import Frontier

SQLITE = "sqlite:///"


def frontier_from(url: str, options: FrontierOptions) -> Frontier:
    """ "memory:", "sqlite:///relative/path" or "sqlite:////absolute/path"; not opened yet.

    Raises ConfigError for anything else.
    """
    if url == "memory:":
        return MemoryFrontier(options)
    return SqliteFrontier(_path(url), options)


def store_file(url: str) -> Path | None:
    """The file behind the URL, None for memory. Raises ConfigError for a URL that is no frontier."""
    return None if url == "memory:" else _path(url)


def remove_store(url: str) -> None:
    """Forget the job that is kept there: what `--fresh` does. Nothing there is fine.

    Raises JobError for a file that is no frontier, or that a running crawl uses.
    """
    path = store_file(url)
    if path is None:
        return
    if path.exists():
        refuse_foreign_file(path)
    remove_locks(path)
    try:
        # The log first: without its file it means nothing, and a new file must not find it.
        for suffix in ("-wal", "-shm", ""):
            path.with_name(path.name + suffix).unlink(missing_ok=True)
    except OSError as error:
        raise ConfigError(f"cannot remove {path}: {error.strerror}; check its permissions") from error


def _path(url: str) -> Path:
    path = url.removeprefix(SQLITE)
    if path == url or not path or path.endswith("/"):
        raise ConfigError(
            f"{url!r} is no frontier: write memory:, or sqlite:///path/to/file.db "
            "(with four slashes for an absolute path)"
        )
    return Path(path)
