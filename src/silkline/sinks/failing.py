"""Whose fault it is that a sink fails, and in what words that is said."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from silkline.errors import ConfigError, SilklineError, SinkAwayError, SinkError


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
def blamed(name: str, method: str, kind: type[SilklineError] = SinkError) -> Iterator[None]:
    """What only a sink's own code can explain names the sink, as an error of that kind."""
    try:
        yield
    except SilklineError:
        raise
    except Exception as error:
        detail = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
        line = f"output {name!r} cannot {method}: {' '.join(detail.split())}; --debug shows where"
        raise kind(line) from error


@contextmanager
def opening() -> Iterator[None]:
    """What ends a crawl in between is a fault of the configuration before it has begun."""
    try:
        yield
    except SinkAwayError:
        raise
    except SinkError as error:
        raise ConfigError(str(error)) from error
