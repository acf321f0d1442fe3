"""Settings: frozen, resolved once, every value with its unit."""

from __future__ import annotations

from typing import Literal

import msgspec

MiB = 1_048_576

LogLevel = Literal["debug", "info", "warning", "error"]


class FrontierOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What every frontier needs to know.

    job: the job's name; a store of another job is refused.
    per_host: requests of one host in flight at most, over all workers.
    delay: seconds between two starts on one host at least, over all workers; 0 for none.
    max_pages: budget of visits that end in done or dead, over all workers and runs; None for none.
    lease_seconds: how long a lease lives without a renewal.
    max_deliveries: leases of one request before it becomes a dead letter with cause "crash".
    window: how many seconds ahead of its time a request may be handed out when its host has a delay.
    """

    job: str = "spider"
    per_host: int = 8
    delay: float = 0.0
    max_pages: int | None = None
    lease_seconds: float = 60.0
    max_deliveries: int = 13
    window: float = 2.0


class Settings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """All settings of a crawl.

    frontier: "sqlite:///path", "memory:", or "" for .silkline/<job>.db in the working directory.
    concurrency: visits at once in one process.
    per_host, delay, max_pages, lease_seconds, max_deliveries: see FrontierOptions; max_deliveries None
        means retries + 10.
    timeout: seconds for one whole fetch, redirects included.
    retries: visits after the first one, for errors that are worth it.
    max_depth: links from a seed; None for no limit.
    max_body: bytes of one decoded body.
    processes: worker processes on this machine.
    fresh: forget the job's earlier state and outputs, and start over.
    strict: dead letters make the exit code 1.
    grace: seconds that running visits get to end after the first SIGINT or SIGTERM.
    outputs: files for the items; the ending names the format (.jsonl, .csv, .db, .sqlite).
    log_file: JSON lines, rotated at 10 MB, 5 kept; None for none.
    metrics_port: where Prometheus metrics are served, on metrics_host; None for none.
    """

    job: str = "spider"
    frontier: str = ""
    concurrency: int = 64
    per_host: int = 8
    delay: float = 0.0
    timeout: float = 30.0
    retries: int = 3
    max_pages: int | None = None
    max_depth: int | None = None
    max_body: int = 32 * MiB
    max_redirects: int = 10
    user_agent: str = ""
    processes: int = 1
    fresh: bool = False
    strict: bool = False
    quiet: bool = False
    grace: float = 10.0
    lease_seconds: float = 60.0
    max_deliveries: int | None = None
    outputs: tuple[str, ...] = ()
    log_level: LogLevel = "info"
    log_file: str | None = None
    metrics_host: str = "127.0.0.1"
    metrics_port: int | None = None

    @property
    def frontier_options(self) -> FrontierOptions:
        return FrontierOptions(
            job=self.job,
            per_host=self.per_host,
            delay=self.delay,
            max_pages=self.max_pages,
            lease_seconds=self.lease_seconds,
            max_deliveries=self.retries + 10 if self.max_deliveries is None else self.max_deliveries,
        )
