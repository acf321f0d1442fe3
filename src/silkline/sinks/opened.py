"""What sinks share in reaching their servers."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from silkline.errors import ConfigError, SinkAwayError, SinkError

CONNECT_SECONDS = 10.0
STATEMENT_SECONDS = 60.0
"""Of a whole batch; `?timeout=` says otherwise."""


@contextmanager
def answering() -> Iterator[None]:
    """What is away while a crawl starts ends it, with a word of why: a URL that is wrong is away for ever."""
    try:
        yield
    except SinkAwayError as error:
        raise SinkAwayError(
            f"{error}; when a crawl starts it has to answer: run the same command again when it does"
        ) from error


@contextmanager
def opening() -> Iterator[None]:
    """What ends a crawl in between is a fault of the configuration before it has begun."""
    try:
        yield
    except SinkAwayError:
        raise
    except SinkError as error:
        raise ConfigError(str(error)) from error
