"""What the sinks of SQL servers share in reaching them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from silkline.errors import ConfigError, SinkAwayError, SinkError

CONNECT_SECONDS = 10.0
STATEMENT_SECONDS = 60.0
"""Of a whole batch; `?timeout=` says otherwise."""


@contextmanager
def opening() -> Iterator[None]:
    """What ends a crawl in between is a fault of the configuration before it has begun."""
    try:
        yield
    except SinkAwayError:
        raise
    except SinkError as error:
        raise ConfigError(str(error)) from error
