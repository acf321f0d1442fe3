"""Metrics for Prometheus, rendered from the latest snapshot at each scrape.

Names follow the Prometheus conventions: prefix, base units, `_total` for counters. What is usually asked
for and what it is called here:

    requests_total          silkline_requests_total               visits that asked for their page
    requests_failed         silkline_requests_failed_total        {cause}, each failed visit
    queue_size              silkline_queue_size                   {state="waiting"|"delayed"|"leased"}
    retries                 silkline_retries_total                {cause}
    dead letters            silkline_dead_letters_total           {cause}, made in this run
    pages                   silkline_pages_total                  pages done
    items                   silkline_items_total, silkline_dead_items_total
    items left out          silkline_items_dropped_total          {reason}
    failures of proxies     silkline_proxy_failures_total         {proxy}
    fields of items         silkline_items_made_total             {kind}
                            silkline_fields_filled_total          {kind, field}
    links                   silkline_links_added_total, silkline_links_dropped_total
    responses by status     silkline_responses_total              {status}
    bytes                   silkline_received_bytes_total, silkline_wire_bytes_total
    latency                 silkline_request_duration_seconds     histogram
    cache                   silkline_unmodified_total, silkline_cached_total
    late outcomes           silkline_stale_commits_total
    seeds                   silkline_seeds_total                  {result="added"|"duplicate"|"invalid"}
    in flight               silkline_in_flight                    visits running now
    done, dead in the job   silkline_job_requests                 {state="done"|"dead"}, all runs together
    machine                 silkline_concurrency                  visits that it lets run at once
                            silkline_event_loop_lag_seconds, silkline_memory_bytes
    processes               silkline_processes
    start                   silkline_start_time_seconds           Unix time
    version, job            silkline_info                         {version, job_name}

Counters start at zero with each run. No label ever holds a host, a URL or anything else that grows with
the crawl: causes are silkline's own, and statuses that HTTP does not know are put together by their class.
Kinds of items are their classes, for dicts the labels of their pages; FIELDS_SHOWN of their fields are here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from http import HTTPStatus
from threading import Thread
from wsgiref.simple_server import WSGIServer

from prometheus_client import CollectorRegistry, start_http_server
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    InfoMetricFamily,
    Metric,
)
from prometheus_client.registry import Collector

from silkline.errors import ConfigError
from silkline.observe.fields import FieldTally, fields_of
from silkline.observe.histogram import LOWEST, Histogram
from silkline.observe.snapshot import Snapshot
from silkline.observe.tally import Tally
from silkline.version import __version__

BUCKETS = tuple(LOWEST * 2**power for power in (3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15))
"""Seconds; powers of two milliseconds, where the tally's histogram can be cut exactly."""

FIELDS_SHOWN = 200

_KNOWN_STATUSES = frozenset(int(status) for status in HTTPStatus)


class MetricsServer:
    """Serves http://host:port/metrics from a thread of its own, between `start` and `close`.

    port: 0 for any free one; `port` says which after `start`.
    read: gives the latest snapshot; called in another thread, at each scrape.
    """

    def __init__(self, host: str, port: int, read: Callable[[], Snapshot]) -> None:
        self.host = host
        self.port = port
        self._registry = CollectorRegistry(auto_describe=False)
        self._registry.register(_SnapshotCollector(read))
        self._running: tuple[WSGIServer, Thread] | None = None

    def start(self) -> None:
        """Raises ConfigError where the address cannot be had."""
        try:
            server, thread = start_http_server(self.port, addr=self.host, registry=self._registry)
        except (OSError, OverflowError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            raise ConfigError(
                f"cannot serve metrics on {self.host}:{self.port}: {reason}; choose another --metrics-port"
            ) from error
        self.port = server.server_port
        self._running = server, thread

    def close(self) -> None:
        """Stop serving and free the port. Idempotent."""
        if self._running is not None:
            server, thread = self._running
            self._running = None
            server.shutdown()
            server.server_close()
            thread.join()


class _SnapshotCollector(Collector):
    def __init__(self, read: Callable[[], Snapshot]) -> None:
        self._read = read

    def collect(self) -> Iterator[Metric]:
        snapshot = self._read()
        yield from _counters(snapshot.tally)
        yield from _fields(snapshot.tally.fields)
        yield _durations(snapshot.tally.latency)
        yield from _gauges(snapshot)
        yield InfoMetricFamily(
            "silkline", "What is running.", value={"version": __version__, "job_name": snapshot.job}
        )


def _counters(tally: Tally) -> Iterator[Metric]:
    # The tally may be counting on in the event loop's thread meanwhile: copy its dictionaries in one step.
    for name, help_text, value in (
        ("requests", "Visits that asked for their page, whatever came of them.", tally.requests),
        ("pages", "Pages done.", tally.pages),
        ("items", "Items delivered.", tally.items),
        ("dead_items", "Items that could not be delivered.", tally.dead_items),
        ("links_added", "Links that were new.", tally.links_added),
        ("links_dropped", "Links that were not followed.", tally.links_dropped),
        ("received_bytes", "Bytes of decoded bodies.", tally.bytes),
        ("wire_bytes", "Bytes of bodies as transferred.", tally.wire_bytes),
        ("unmodified", "Responses whose body the server did not send again.", tally.unmodified),
        ("cached", "Responses that the server was not asked for.", tally.cached),
        ("stale_commits", "Outcomes that came too late to count.", tally.stale),
    ):
        yield CounterMetricFamily(f"silkline_{name}", help_text, value=value)
    retried, dead = tally.retried.copy(), tally.dead.copy()
    failed = {cause: retried.get(cause, 0) + dead.get(cause, 0) for cause in retried | dead}
    yield _by_cause("requests_failed", "Failed visits.", failed)
    yield _by_cause("retries", "Failed visits that were put back for another try.", retried)
    yield _by_cause("dead_letters", "Failed visits that ended in a dead letter.", dead)
    yield _labelled("items_dropped", "Items that steps dropped.", "reason", tally.items_dropped.copy())
    yield _labelled("proxy_failures", "Proxies that failed.", "proxy", tally.proxies_failed.copy())
    responses = {f"http_{status}": number for status, number in tally.statuses.copy().items()}
    yield _labelled("responses", "Responses by HTTP status.", "status", _group(responses, strip="http_"))
    seeded = tally.seeded
    seeds = {"added": seeded.added, "duplicate": seeded.duplicate, "invalid": seeded.invalid}
    seeds["refused"] = seeded.refused.count
    yield _labelled("seeds", "Seeds read.", "result", seeds)


def _fields(fields: FieldTally) -> Iterator[Metric]:
    made = CounterMetricFamily("silkline_items_made", "Items, as pages gave them.", labels=["kind"])
    for kind, of in fields.kinds.copy().items():
        made.add_metric([kind], of.items)
    yield made
    filled = CounterMetricFamily(
        "silkline_fields_filled", "Items in which the field is filled.", labels=["kind", "field"]
    )
    for field in fields_of(fields)[:FIELDS_SHOWN]:
        filled.add_metric([field.kind, field.name], field.filled)
    yield filled


def _durations(latency: Histogram) -> Metric:
    total = len(latency)
    buckets = [(f"{bound:g}", latency.below(bound)) for bound in BUCKETS]
    return HistogramMetricFamily(
        "silkline_request_duration_seconds",
        "Time per fetch, failed ones included.",
        buckets=[*((le, min(number, total)) for le, number in buckets), ("+Inf", total)],
        sum_value=latency.total,
    )


def _gauges(snapshot: Snapshot) -> Iterator[Metric]:
    if (stats := snapshot.stats) is not None:
        queue = GaugeMetricFamily("silkline_queue_size", "Requests to be visited.", labels=["state"])
        queue.add_metric(["waiting"], stats.waiting)
        queue.add_metric(["delayed"], stats.delayed)
        queue.add_metric(["leased"], stats.leased)
        yield queue
        job = GaugeMetricFamily(
            "silkline_job_requests", "Requests that are settled, all runs.", labels=["state"]
        )
        job.add_metric(["done"], stats.done)
        job.add_metric(["dead"], stats.dead)
        yield job
    yield GaugeMetricFamily("silkline_in_flight", "Visits running now.", value=snapshot.in_flight)
    yield GaugeMetricFamily(
        "silkline_concurrency",
        "Visits that the machine lets run at once.",
        value=snapshot.allowed,
    )
    yield GaugeMetricFamily(
        "silkline_event_loop_lag_seconds", "How late the event loop is.", value=snapshot.late
    )
    yield GaugeMetricFamily(
        "silkline_memory_bytes",
        "Of the fullest process, or the container.",
        value=snapshot.memory,
    )
    yield GaugeMetricFamily("silkline_processes", "Worker processes.", value=snapshot.processes)
    yield GaugeMetricFamily("silkline_start_time_seconds", "Start of the run.", value=snapshot.started)


def _by_cause(name: str, help_text: str, numbers: Mapping[str, int]) -> Metric:
    return _labelled(name, help_text, "cause", _group(numbers))


def _labelled(name: str, help_text: str, label: str, numbers: Mapping[str, int]) -> Metric:
    family = CounterMetricFamily(f"silkline_{name}", help_text, labels=[label])
    for value, number in sorted(numbers.items()):
        family.add_metric([value], number)
    return family


def _group(numbers: Mapping[str, int], strip: str = "") -> dict[str, int]:
    """Put statuses together that a server made up: "http_599" counts as "http_5xx"."""
    grouped: dict[str, int] = {}
    for cause, number in numbers.items():
        head, _, status = cause.rpartition("_")
        if head == "http" and status.isdigit() and int(status) not in _KNOWN_STATUSES:
            cause = f"http_{status[0]}xx"
        cause = cause.removeprefix(strip)
        grouped[cause] = grouped.get(cause, 0) + number
    return grouped
