"""How a run ended: what `crawler.run()` returns, and how it is shown."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import islice

import msgspec
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from silkline.events import Seeded
from silkline.files import shown_output, split_ending
from silkline.observe import figures
from silkline.observe.fields import NO_PAST, Field, Past, fields_of
from silkline.observe.snapshot import Snapshot
from silkline.observe.tally import FULL_HOST
from silkline.outcome import REFUSALS, Refused, Stats
from silkline.resolve import redacted, without_passwords

FINISHED = "finished"
INTERRUPTED = "interrupted"
BUDGET = "budget"
ALREADY_FINISHED = "already finished"

RULES_SHOWN = 3
RULE_LENGTH = 160
PROXIES_SHOWN = 5
CAUSES_SHOWN = 16
REASONS_SHOWN = 12
FIELDS_SHOWN = 24

_HEADINGS = {
    FINISHED: ("finished", "green"),
    INTERRUPTED: ("interrupted, everything is kept", "yellow"),
    BUDGET: ("stopped, the page budget is spent", "yellow"),
    ALREADY_FINISHED: ("was already finished, nothing was fetched", "green"),
}


class Latency(msgspec.Struct, frozen=True):
    """Seconds per fetch that 50, 95 and 99 % of the fetches did not exceed."""

    p50: float
    p95: float
    p99: float


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """What a run did. Counts are of this run, except `dead`, `dead_items` and `stats`, which are of the whole
    job.

    reason: "finished", "interrupted", "budget", "already finished", or the line of the error that ended it.
    pages: pages done. items: items delivered. bytes: of decoded bodies, of saved files as transferred.
    seconds: how long it ran. pages_per_second: over that time.
    requests: visits that asked for their page. retried: visits whose page is to be tried again.
    unmodified: responses whose body the server did not send again; cached: those it was not asked for.
    success_rate: share (0..1) of the requests that did not fail; None if there were none.
    latency: None if there were no requests.
    failed: failed visits by cause, those that were retried included.
    proxies_failed: how often each proxy failed, the most first; `failed` has no page that another one got.
    dead: dead letters that the job has now, by cause, but for those that were refused.
    private: failed visits of this run to an address that only `allow_private` lets a crawl connect to.
    refused: pages of the job that its own rules (robots.txt) keep it from, by cause: dead letters, too, but
        no failures.
    refused_by: how many of them each rule has refused in this run, the most first; a few only.
    refused_more: pages of this run that other rules have refused.
    dead_items: items that could not be delivered, by cause, that the job has now.
    items_dropped: items that pipeline steps have dropped, by the reason, the most first.
    duplicates: of the pages, those that another request has, too; their items are dropped.
    links_refused: links that the rules of the crawl refuse, by the reason; a link counts once for each page.
    fields: what the items hold, field by field; counted when a page is visited.
    stats: sizes of the frontier at the end.
    outputs: where the items went, without passwords. parts: by output, the files that all workers of the job
        have written for it so far, each its own; empty where the outputs are written themselves.
    seeded: what the seeds brought.
    troubles: what the operator should know, one line each.
    frontier: URL of the frontier, without password, if it is not the usual one of the job, else "".
    """

    job: str
    reason: str
    pages: int = 0
    items: int = 0
    bytes: int = 0
    seconds: float = 0.0
    pages_per_second: float = 0.0
    requests: int = 0
    retried: int = 0
    unmodified: int = 0
    cached: int = 0
    success_rate: float | None = None
    latency: Latency | None = None
    failed: dict[str, int] = {}
    proxies_failed: dict[str, int] = {}
    dead: dict[str, int] = {}
    private: int = 0
    refused: dict[str, int] = {}
    refused_by: dict[str, int] = {}
    refused_more: int = 0
    dead_items: dict[str, int] = {}
    items_dropped: dict[str, int] = {}
    duplicates: int = 0
    links_refused: dict[str, Refused] = {}
    fields: tuple[Field, ...] = ()
    stats: Stats = Stats()
    outputs: tuple[str, ...] = ()
    parts: dict[str, tuple[str, ...]] = {}
    seeded: Seeded = Seeded(0, 0, 0)
    troubles: tuple[str, ...] = ()
    frontier: str = ""


def report_of(
    snapshot: Snapshot,
    *,
    reason: str,
    dead: Mapping[str, int],
    dead_items: Mapping[str, int] | None = None,
    outputs: Sequence[str] = (),
    parts: Mapping[str, tuple[str, ...]] | None = None,
    frontier: str = "",
    past: Past = NO_PAST,
) -> Report:
    """The report of a run that ended with `snapshot`; `dead` and `dead_items` are what the frontier's
    `dead_causes` and `dead_item_causes` say then.

    past: what the items of earlier runs held.
    """
    tally = snapshot.tally
    failed = tally.failed
    quantiles = [tally.latency.quantile(q) for q in (0.5, 0.95, 0.99)]
    measured = [q for q in quantiles if q is not None]
    refused_by = dict(Counter(tally.refused_by).most_common(RULES_SHOWN))
    return Report(
        job=snapshot.job,
        reason=reason,
        pages=tally.pages,
        items=tally.items,
        bytes=tally.bytes,
        seconds=snapshot.seconds,
        pages_per_second=tally.pages / snapshot.seconds if snapshot.seconds else 0.0,
        requests=tally.requests,
        retried=sum(tally.retried.values()),
        unmodified=tally.unmodified,
        cached=tally.cached,
        success_rate=1 - (sum(failed.values()) - tally.unfetched) / tally.requests
        if tally.requests
        else None,
        latency=Latency(*measured) if measured else None,
        failed=failed,
        proxies_failed=dict(Counter(tally.proxies_failed).most_common()),
        dead={cause: number for cause, number in dead.items() if cause not in REFUSALS},
        private=tally.private,
        refused={cause: number for cause, number in dead.items() if cause in REFUSALS},
        refused_by=refused_by,
        refused_more=sum(tally.refused.values()) - sum(refused_by.values()),
        dead_items=dict(dead_items or {}),
        items_dropped=dict(Counter(tally.items_dropped).most_common()),
        duplicates=tally.duplicates,
        links_refused=dict(sorted(tally.links_refused.items(), key=lambda pair: -pair[1].count)),
        fields=fields_of(tally.fields, past),
        stats=snapshot.stats or Stats(),
        outputs=tuple(map(shown_output, outputs)),
        parts=dict(parts or {}),
        seeded=tally.seeded,
        troubles=tuple(
            message if times == 1 else f"{message} ({figures.count(times)} times)"
            for message, times in tally.troubles.items()
        ),
        frontier=redacted(frontier),
    )


def lines(report: Report) -> list[str]:
    """As plain text."""
    text = [f"{figures.one_line(report.job)}: {_heading(report)[0]}"]
    text += [f"  {label:<9} {value}" for label, value in _rows(report)]
    text += [f"  ! {warning}" for warning in _warnings(report)]
    return [*text, *(f"  > {step}" for step in next_steps(report))]


def render(report: Report) -> RenderableType:
    """For a rich console."""
    heading, style = _heading(report)
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(style="dim", no_wrap=True)
    table.add_column(overflow="fold")
    for label, value in _rows(report):
        table.add_row(f"  {label}", Text(value, style="red" if label == "dead" else ""))
    for warning in _warnings(report):
        table.add_row(Text("  warning", style="yellow"), Text(warning, style="yellow"))
    for step in next_steps(report):
        table.add_row(Text("  next", style="cyan"), Text(step, style="cyan"))
    return Group(Text.assemble((figures.one_line(report.job), "bold"), " ", (heading, style)), table)


def next_steps(report: Report) -> list[str]:
    """What the user may want to do now, one line each."""
    steps = []
    if report.reason == ALREADY_FINISHED:
        steps.append("--fresh starts over")
    elif report.reason == BUDGET and report.stats.open:
        steps.append("run the same command with a higher --max-pages to go on")
    elif report.reason not in (BUDGET, FINISHED) and not report.frontier.startswith("memory:"):
        steps.append("run the same command again to go on")
    if report.dead and not report.frontier.startswith("memory:"):
        steps.append(f"silkline dead list {_job(report)}")
    if 2 * report.private > sum(report.dead.values()):
        steps.append("if you meant your own network: the same command with --allow-private")
        if not report.frontier.startswith("memory:"):
            steps[-1] += f", after silkline dead resend {_job(report)} --cause blocked"
    if report.dead_items and not report.frontier.startswith("memory:"):
        steps.append(f"silkline dead items list {_job(report)}")
    joined = [output for output in report.outputs if report.parts.get(output)]
    for output in joined:
        name = shlex.quote(output)
        which = f" --from {name}" if len(joined) > 1 else ""
        steps.append(f"join the parts with: silkline export {_job(report)}{which} -o {name}")
    return steps


def words_for(job: str, frontier: str) -> str:
    """The options that name the job on a command line. frontier: "" for its usual one."""
    where = f" --frontier {shlex.quote(redacted(frontier))}" if frontier else ""
    return f"--job {shlex.quote(job)}{where}"


def _job(report: Report) -> str:
    return words_for(report.job, report.frontier)


def _heading(report: Report) -> tuple[str, str]:
    heading, style = _HEADINGS.get(report.reason, (f"stopped: {figures.one_line(report.reason)}", "bold red"))
    return (
        f"{heading} in {figures.elapsed(report.seconds)}" if report.reason == FINISHED else heading
    ), style


def _rows(report: Report) -> list[tuple[str, str]]:
    count = figures.count
    rows = []
    if report.requests:
        rows = [
            ("pages", f"{count(report.pages)} in {_speed(report)}"),
            ("items", count(report.items)),
            ("received", figures.size(report.bytes)),
            ("requests", _requests(report)),
        ]
    if report.items_dropped:
        total = count(sum(report.items_dropped.values()))
        rows.append(("dropped", f"{total} items: {_by_cause(report.items_dropped)}"))
    rows += _filled(report.fields)
    if report.unmodified or report.cached:
        text = f"{count(report.unmodified)} pages came unmodified, {count(report.cached)} without asking"
        rows.append(("cache", text))
    if report.latency:
        named = zip(("p50", "p95", "p99"), msgspec.structs.astuple(report.latency), strict=True)
        rows.append(("latency", ", ".join(f"{name} {figures.latency(seconds)}" for name, seconds in named)))
    if report.failed:
        rows.append(("failures", _by_cause(report.failed)))
    rows += _proxies(report.proxies_failed)
    if report.dead:
        total = count(sum(report.dead.values()))
        rows.append(("dead", f"{total}: {_by_cause(report.dead)}"))
    if report.dead_items:
        lost = sum(report.dead_items.values())
        what = f"{count(lost)} item{'' if lost == 1 else 's'}"
        rows.append(("" if report.dead else "dead", f"{what}: {_by_cause(report.dead_items)}"))
    if report.refused:
        rows.append(("refused", f"{count(sum(report.refused.values()))}: {_by_cause(report.refused)}"))
        rows += [
            ("", f"{count(number)} {figures.one_line(rule, RULE_LENGTH)}")
            for rule, number in report.refused_by.items()
        ]
        if report.refused_more:
            rows.append(("", f"and {count(report.refused_more)} more, by other rules"))
    if report.duplicates:
        text = f"{count(report.duplicates)} pages are others' by redirect or rel=canonical, and without items"
        rows.append(("duplicate", text))
    rows += _left_out(report)
    if report.stats.open or report.stats.done > report.pages:
        rows.append(("job", f"{count(report.stats.done)} done, {count(report.stats.open)} to go"))
    return rows + [
        ("output" if n == 0 else "", _written(path, report)) for n, path in enumerate(report.outputs)
    ]


def _written(output: str, report: Report) -> str:
    parts = report.parts.get(output)
    if parts is None:
        return shown_output(output)
    stem, ending = split_ending(output)
    return f"{figures.count(len(parts))} part file{'' if len(parts) == 1 else 's'} {stem}.*{ending}"


def _filled(fields: Sequence[Field]) -> list[tuple[str, str]]:
    """A line for each field."""
    rows: list[tuple[str, str]] = []
    for field in fields[:FIELDS_SHOWN]:
        text = f"{figures.one_line(field.full_name, RULE_LENGTH)}: {figures.share(field.rate)}"
        if field.types:
            text += f" {', '.join(field.types)}"
        rows.append(("" if rows else "filled", text))
    if len(fields) > FIELDS_SHOWN:
        rows.append(("", f"and {figures.count(len(fields) - FIELDS_SHOWN)} fields more"))
    return rows


def _proxies(failed: Mapping[str, int]) -> list[tuple[str, str]]:
    """A line for each of those that failed most."""
    texts = [
        f"{figures.one_line(proxy, RULE_LENGTH)} failed {_times(times)}"
        for proxy, times in islice(failed.items(), PROXIES_SHOWN)
    ]
    if len(failed) > PROXIES_SHOWN:
        texts.append(f"and {figures.count(len(failed) - PROXIES_SHOWN)} more have failed")
    return [("" if n else "proxies", text) for n, text in enumerate(texts)]


def _times(number: int) -> str:
    return "once" if number == 1 else f"{figures.count(number)} times"


def _left_out(report: Report) -> list[tuple[str, str]]:
    """A line for each reason for which links and seeds are refused."""
    reasons = list(islice(report.links_refused.items(), REASONS_SHOWN))
    texts = [f"{figures.count(left.count)} links, {reason}: {left.example}" for reason, left in reasons]
    if report.seeded.refused.count:
        texts.append(refused_seeds(report.seeded.refused))
    return [
        ("" if n else "refused", figures.one_line(without_passwords(text), RULE_LENGTH))
        for n, text in enumerate(texts)
    ]


def refused_seeds(refused: Refused) -> str:
    """In words."""
    plural = "seed" if refused.count == 1 else "seeds"
    return f"{figures.count(refused.count)} {plural}, {FULL_HOST}: {refused.example}"


def _speed(report: Report) -> str:
    return f"{figures.elapsed(report.seconds)}, {figures.rate(report.pages_per_second)}"


def _requests(report: Report) -> str:
    text = figures.count(report.requests)
    if report.success_rate is not None:
        text += f", {figures.share(report.success_rate)} succeeded"
    return text + (f", {figures.count(report.retried)} retried" if report.retried else "")


def _by_cause(numbers: Mapping[str, int]) -> str:
    return ", ".join(
        f"{cause} {figures.count(number)}" for cause, number in figures.causes(numbers, CAUSES_SHOWN)
    )


def _warnings(report: Report) -> list[str]:
    warnings = []
    if report.seeded.invalid:
        plural = "seed is" if report.seeded.invalid == 1 else "seeds are"
        warnings.append(f"{figures.count(report.seeded.invalid)} {plural} invalid")
        warnings += [figures.one_line(reason) for reason in report.seeded.reasons]
    return warnings + [figures.one_line(trouble) for trouble in report.troubles]
