"""Progress of a running crawl for the person who watches: a live display, or plain lines."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from functools import partial
from types import TracebackType

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from silkline.observe import figures
from silkline.observe.snapshot import ENDED, Phase, Snapshot
from silkline.observe.trend import Ahead, Trend

FIRST_LINE = 2.0
"""Seconds until the first plain line."""
LINE_EVERY = 5.0
"""Seconds between plain lines."""
LABEL_WIDTH = 12
SPARKS = "▁▂▃▄▅▆▇█"
_PHASES: dict[Phase, tuple[str, str]] = {
    "starting": ("starting", "cyan"),
    "crawling": ("crawling", "green"),
    "paused": ("paused", "yellow"),
    "stopping": ("stopping, running visits end first", "yellow"),
    "finished": ("finished", "green"),
    "spent": ("the page budget is spent", "yellow"),
    "interrupted": ("interrupted", "yellow"),
}


class StderrConsole(Console):
    """Writes to stderr; once nobody reads that, falls silent, where a plain one would end the program."""

    def __init__(self) -> None:
        super().__init__(stderr=True, emoji=False)

    def on_broken_pipe(self) -> None:
        self.quiet = True


class Progress:
    """Shows snapshots on `console`: a StderrConsole, so that stdout stays the user's.

    On a terminal it is a live display that goes away at the end; elsewhere a line after 2 s, then every
    5 s and at each change of phase; with `quiet` nothing. Once the console cannot be written to any more
    it falls silent: the crawl goes on.

    max_pages: the page budget, and delay: seconds between two pages of a host, for the time left.
    """

    def __init__(
        self,
        console: Console,
        job: str,
        *,
        max_pages: int | None = None,
        delay: float = 0.0,
        quiet: bool = False,
    ) -> None:
        self._console = console
        self._job = job
        self._trend = Trend(max_pages, delay)
        self._silent = quiet
        self._live: Live | None = None
        self._phase: Phase | None = None
        self._next_line = FIRST_LINE

    def __enter__(self) -> Progress:
        if not self._silent and self._console.is_terminal and not self._console.is_dumb_terminal:
            self._live = Live(
                console=self._console,
                auto_refresh=False,
                transient=True,
                # What handlers print to the same terminal appears above the display.
                redirect_stdout=sys.stdout is not None and sys.stdout.isatty(),
                redirect_stderr=sys.stderr is not None and sys.stderr.isatty(),
            )
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._live:
            self._write(self._live.stop)

    def update(self, snapshot: Snapshot) -> None:
        """Show this one; call it about twice a second."""
        if self._silent:
            return
        self._trend.add(snapshot)
        if self._live:
            options = self._console.options
            display = render(snapshot, self._trend, options.max_width, ascii_only=options.ascii_only)
            self._write(partial(self._live.update, display, refresh=True))
        elif self._line_is_due(snapshot):
            text = Text(line(snapshot, self._trend))
            self._write(partial(self._console.print, text, soft_wrap=True))

    def _line_is_due(self, snapshot: Snapshot) -> bool:
        changed = self._phase not in (None, snapshot.phase)
        self._phase = snapshot.phase
        if not changed and snapshot.seconds < self._next_line:
            return False
        self._next_line = snapshot.seconds + LINE_EVERY
        return True

    def _write(self, write: Callable[[], object]) -> None:
        try:
            write()
        except OSError:
            self._silent = True


def line(snapshot: Snapshot, trend: Trend) -> str:
    """One plain line: where the crawl stands."""
    tally, stats, count = snapshot.tally, snapshot.stats, figures.count
    parts = [f"{count(tally.pages)} pages ({figures.rate(trend.rate)})", f"{count(tally.items)} items"]
    parts += [f"{number} {state}" for number, state in _queue(snapshot)]
    if alone := _left_alone(snapshot):
        parts.append(alone)
    if failures := sum(tally.failed.values()):
        parts.append(f"{count(failures)} failures")
    parts.append(figures.size(tally.bytes))
    ahead = trend.ahead(snapshot)
    if stats is not None and snapshot.phase == "crawling":
        parts.append(f"ETA {_eta(ahead)}")
    job = figures.one_line(snapshot.job)
    return f"{job} {figures.elapsed(snapshot.seconds)} {_state(snapshot)}: {', '.join(parts)}"


def render(snapshot: Snapshot, trend: Trend, width: int, *, ascii_only: bool = False) -> RenderableType:
    """The live display, `width` columns wide."""
    tally = snapshot.tally
    table = Table.grid(padding=0)
    table.add_column(width=LABEL_WIDTH, style="dim", no_wrap=True)
    table.add_column(overflow="ellipsis", no_wrap=True)
    table.add_row("  pages", _pages(snapshot, trend, width - LABEL_WIDTH, ascii_only))
    if (ahead := trend.ahead(snapshot)) is not None:
        table.add_row("  progress", _bar(ahead, width - LABEL_WIDTH))
    table.add_row("  queue", "   ".join(f"{number} {state}" for number, state in _queue(snapshot)))
    table.add_row("  waits for", _left_alone(snapshot) or "-")
    table.add_row("  items", figures.count(tally.items))
    table.add_row("  received", figures.size(tally.bytes))
    quantiles = [
        (name, tally.latency.quantile(q)) for name, q in (("p50", 0.5), ("p95", 0.95), ("p99", 0.99))
    ]
    latency = "   ".join(f"{name} {figures.latency(q)}" for name, q in quantiles if q is not None)
    table.add_row("  latency", latency or "-")
    table.add_row("  failures", _failures(snapshot, width - LABEL_WIDTH))
    return Group(_heading(snapshot, width), table)


def _heading(snapshot: Snapshot, width: int) -> Text:
    clock = figures.elapsed(snapshot.seconds)
    text = Text.assemble(
        (figures.one_line(snapshot.job), "bold"), " ", (_state(snapshot), _PHASES[snapshot.phase][1])
    )
    text.truncate(max(0, width - len(clock) - 1), overflow="ellipsis", pad=True)
    return text.append(f" {clock}", style="dim")


def _state(snapshot: Snapshot) -> str:
    state = _PHASES[snapshot.phase][0]
    if snapshot.seeding and snapshot.phase not in ENDED:
        state += ", reading seeds"
    return f"{state}, {snapshot.processes} processes" if snapshot.processes > 1 else state


def _pages(snapshot: Snapshot, trend: Trend, width: int, ascii_only: bool) -> Text:
    text = Text.assemble((figures.count(snapshot.tally.pages), "bold"), f"   {figures.rate(trend.rate)}")
    room = min(width - text.cell_len - 3, len(trend.history))
    if room >= 5 and not ascii_only:
        text.append(f"   {sparkline(list(trend.history)[-room:])}", style="cyan")
    return text


def sparkline(values: Sequence[float]) -> str:
    """One character per value, as high as its share of the highest."""
    highest = max(values, default=0.0) or 1.0
    return "".join(SPARKS[min(len(SPARKS) - 1, int(value / highest * len(SPARKS)))] for value in values)


def _bar(ahead: Ahead, width: int) -> RenderableType:
    if not ahead.certain:
        return Text(f"{figures.count(ahead.settled)} of {figures.count(ahead.known)} known so far   ETA -")
    part = ahead.settled / ahead.known if ahead.known else 1.0
    text = f"   {int(part * 100):>3} %   ETA {_eta(ahead)}"
    bar = ProgressBar(
        total=max(1, ahead.known),
        completed=ahead.settled,
        width=max(10, min(40, width - len(text) - 2)),
        complete_style="green",
        finished_style="green",
    )
    row = Table.grid()
    row.add_column(no_wrap=True)
    row.add_column(no_wrap=True, overflow="ellipsis")
    row.add_row(bar, text)
    return row


def _eta(ahead: Ahead | None) -> str:
    return "-" if ahead is None or ahead.seconds is None else figures.elapsed(ahead.seconds)


def _queue(snapshot: Snapshot) -> list[tuple[str, str]]:
    entries = [(figures.count(snapshot.in_flight), "in flight")]
    if (stats := snapshot.stats) is None:
        return entries
    waiting = [(figures.count(stats.waiting + snapshot.ready), "waiting")]
    return waiting + [(figures.count(stats.delayed), "delayed")] * (stats.delayed > 0) + entries


def _left_alone(snapshot: Snapshot) -> str:
    """The hosts that want to be left alone for a while: one, and how many more."""
    asked = {host: until for host, until in snapshot.tally.left_alone.copy().items() if until > snapshot.at}
    if not asked:
        return ""
    host = min(asked, key=lambda name: asked[name])
    more = f" and {len(asked) - 1} more" if len(asked) > 1 else ""
    return f"{figures.one_line(host)} left alone for {figures.elapsed(asked[host] - snapshot.at)}{more}"


def _failures(snapshot: Snapshot, width: int) -> Text:
    failed = snapshot.tally.failed
    if not failed:
        return Text("none")
    style = "red" if snapshot.tally.dead else "yellow"
    for limit in range(len(failed), 0, -1):
        shown = "   ".join(f"{cause} {figures.count(n)}" for cause, n in figures.causes(failed, limit))
        if len(shown) <= width:
            break
    return Text(shown, style=style)
