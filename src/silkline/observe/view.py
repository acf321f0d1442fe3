"""What a run shows: progress and report on stderr, metrics on a port. Opened at the first snapshot."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from types import TracebackType
from typing import TYPE_CHECKING

from silkline.config import Settings
from silkline.observe.progress import Progress, StderrConsole
from silkline.observe.report import Report, lines, render
from silkline.observe.snapshot import Snapshot
from silkline.observe.tally import Tally

if TYPE_CHECKING:
    from silkline.observe.metrics import MetricsServer

Watch = Callable[[Snapshot], None]


class View:
    """A context manager around one run; `update` gets the snapshots and `end` the report.

    Nothing is started before the first snapshot: worker processes are forked until then, and a fork
    must not meet a running thread.

    watch: gets the snapshots in place of the progress display and the report.
    """

    def __init__(self, settings: Settings, watch: Watch | None) -> None:
        self._settings = settings
        self._watch = watch
        self._console = StderrConsole()
        self._progress: Progress | None = None
        self._metrics: MetricsServer | None = None
        now = time.time()
        self._latest = Snapshot(job=settings.job, started=now, at=now, tally=Tally())

    def __enter__(self) -> View:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop_progress()
        if self._metrics is not None:
            self._metrics.close()

    def update(self, snapshot: Snapshot) -> None:
        """Raises ConfigError where the metrics port cannot be had."""
        self._latest = snapshot
        settings = self._settings
        if settings.metrics_port is not None and self._metrics is None:
            from silkline.observe.metrics import MetricsServer

            self._metrics = MetricsServer(settings.metrics_host, settings.metrics_port, lambda: self._latest)
            self._metrics.start()
            if settings.metrics_port == 0 and not settings.quiet:
                url = f"http://{settings.metrics_host}:{self._metrics.port}/metrics"
                self._console.print(f"metrics are served at {url}", highlight=False)
        if self._watch is not None:
            self._watch(snapshot)
            return
        if self._progress is None:
            hidden = settings.quiet or settings.debug_http  # both would write over each other
            self._progress = Progress(
                self._console,
                settings.job,
                max_pages=settings.max_pages,
                delay=settings.delay,
                quiet=hidden,
            )
            self._progress.__enter__()
        self._progress.update(snapshot)

    def end(self, report: Report) -> None:
        """Show the report, unless quiet or watched."""
        self._stop_progress()
        if self._watch is not None or self._settings.quiet:
            return
        with suppress(OSError):  # nobody can read it; the report is returned all the same
            if self._console.is_terminal:
                self._console.print(render(report))
            else:
                self._console.print("\n".join(lines(report)), markup=False, highlight=False, soft_wrap=True)

    def _stop_progress(self) -> None:
        if self._progress is not None:
            self._progress.__exit__(None, None, None)
            self._progress = None
