"""Structured logs: JSON lines in a rotating file, readable lines on stderr.

Loggers are built by hand and hang on nothing global, so that the logging of a program that embeds a
crawl is left as it is.
"""

from __future__ import annotations

import logging
import sys
from typing import Any

import structlog
from structlog.stdlib import ProcessorFormatter
from structlog.typing import EventDict, FilteringBoundLogger, Processor

from silkline.errors import ConfigError
from silkline.events import Event, Kept, LeftAlone, ProxyFailed, Seeded, Steered, Trouble, Visited
from silkline.observe import figures
from silkline.observe.logfile import SharedRotatingFileHandler
from silkline.outcome import REFUSALS, Dead, Done, Moved, RetryLater
from silkline.resolve import without_password
from silkline.values import LogLevel

MAX_BYTES = 10_000_000
BACKUPS = 5


def configure(
    level: LogLevel, log_file: str | None, job: str, console: bool, worker: str = ""
) -> FilteringBoundLogger:
    """A logger of its own, whose lines carry `job` (and `worker`, if given) and a UTC ISO 8601 `timestamp`.

    log_file: JSON lines, rotated at 10 MB with 5 older files kept; several processes may share it.
    console: also write to stderr, for people; not together with a live display.
    Raises ConfigError where the file cannot be written.
    """
    output = logging.Logger("silkline")
    if log_file is not None:
        output.addHandler(_file_handler(log_file))
    if console:
        output.addHandler(_console_handler())
    processors: list[Processor] = [
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.format_exc_info,
        ProcessorFormatter.wrap_for_formatter,
    ]
    lazy = structlog.wrap_logger(
        output,
        processors=processors,
        wrapper_class=structlog.make_filtering_bound_logger(level if output.handlers else "critical"),
        context_class=dict,
    )
    logger: FilteringBoundLogger = lazy.bind(job=job, worker=worker) if worker else lazy.bind(job=job)
    return logger


def close(logger: FilteringBoundLogger) -> None:
    """Close the files of a logger that `configure` made, and of all that were bound from it."""
    output: logging.Logger = logger._logger  # type: ignore[attr-defined]
    for handler in list(output.handlers):
        output.removeHandler(handler)
        handler.close()


class LogHook:
    """A `Hook` that writes down what an operator looks for.

    Failed visits: a retry as a warning, a dead letter as an error, with url, cause, error and deliveries,
    and the traceback of a handler. Items that cannot be delivered and troubles as warnings; seeds and the end
    as information; failures of proxies, and pages that are done or refused, only at level debug.
    """

    def __init__(self, logger: FilteringBoundLogger) -> None:
        self._logger = logger
        self._debug = logger.is_enabled_for(logging.DEBUG)

    def __call__(self, event: Event) -> None:
        if isinstance(event, Visited):
            if self._debug or not isinstance(event.outcome.verdict, (Done, Moved)):
                self._visited(event)
            for item in event.outcome.dead_items:
                self._logger.warning(
                    "item is dead", url=item.url, index=item.index, cause=item.cause, error=item.error
                )
        elif isinstance(event, Kept):
            if event.stale:
                self._logger.info("outcomes came too late to count", stale=event.stale)
        elif isinstance(event, Seeded):
            self._seeded(event)
        elif isinstance(event, (Trouble, LeftAlone)):
            self._logger.warning(event.message)
        elif isinstance(event, ProxyFailed):
            self._logger.debug("proxy failed", proxy=event.proxy, error=event.error)
        elif isinstance(event, Steered):
            self._logger.info("live settings", **event.changes)
        else:
            self._logger.info("stopping", reason=event.reason)

    def _visited(self, event: Visited) -> None:
        outcome = event.outcome
        verdict = outcome.verdict
        facts: dict[str, Any] = {
            "url": without_password(outcome.lease.request.url),
            "seconds": round(event.seconds, 4),
        }
        if event.response is not None:
            facts["status"] = event.response.status
        if isinstance(verdict, Done):
            self._logger.debug("page done", items=len(outcome.items), links=len(outcome.links), **facts)
            return
        if isinstance(verdict, Moved):
            self._logger.debug(
                "redirect waits for its host", onward=without_password(verdict.onward.url), **facts
            )
            return
        if isinstance(verdict, Dead) and verdict.cause in REFUSALS:
            self._logger.debug("page refused", cause=verdict.cause, reason=verdict.error, **facts)
            return
        facts |= {"cause": verdict.cause, "deliveries": outcome.lease.deliveries, **_error(verdict.error)}
        if isinstance(verdict, RetryLater):
            self._logger.warning("visit failed, to be retried", after=round(verdict.after, 3), **facts)
        else:
            self._logger.error("visit failed for good", **facts)

    def _seeded(self, event: Seeded) -> None:
        counts = {"added": event.added, "duplicate": event.duplicate, "invalid": event.invalid}
        self._logger.info("seeds read", **counts, refused=event.refused.count)
        for reason in event.reasons:
            self._logger.warning("invalid seed", cause="bad_task", error=reason)


def _error(text: str) -> dict[str, str]:
    """One line as `error`; where a traceback comes with it, all of it as `exception`."""
    line, whole = figures.headline(text), text.strip()
    return {"error": line} if line == whole else {"error": line, "exception": whole}


def _file_handler(path: str) -> logging.Handler:
    try:
        handler = SharedRotatingFileHandler(path, max_bytes=MAX_BYTES, backups=BACKUPS)
    except OSError as error:
        raise ConfigError(
            f"cannot write the log file {path}: {error.strerror}; give --log-file a path that can be written"
        ) from error
    handler.setFormatter(
        ProcessorFormatter(
            processors=[
                ProcessorFormatter.remove_processors_meta,
                _headline_first,
                structlog.processors.JSONRenderer(),
            ]
        )
    )
    return handler


def _console_handler() -> logging.Handler:
    handler = _ConsoleHandler(sys.stderr)
    handler.setFormatter(
        ProcessorFormatter(
            processors=[
                ProcessorFormatter.remove_processors_meta,
                _make_printable,
                structlog.dev.ConsoleRenderer(
                    colors=sys.stderr is not None and sys.stderr.isatty(),
                    sort_keys=False,
                    exception_formatter=structlog.dev.plain_traceback,
                ),
            ]
        )
    )
    return handler


class _ConsoleHandler(logging.StreamHandler[Any]):
    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802
        """A terminal that went away stops nothing."""


def _headline_first(_: Any, __: str, entry: EventDict) -> EventDict:
    head = {key: entry.pop(key) for key in ("timestamp", "level", "event", "job") if key in entry}
    return head | dict(entry)


def _make_printable(_: Any, __: str, entry: EventDict) -> EventDict:
    for key, value in entry.items():
        if isinstance(value, str):
            rows = value.splitlines() if key == "exception" else [value]
            entry[key] = "\n".join(map(figures.printable, rows))
    return entry
