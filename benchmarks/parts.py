"""`python -m benchmarks.parts list|site`: what part of silkline the CPU of a page goes to.

One worker process on a job in Valkey (AOF, everysec), looked at 250 times a second by py-spy from outside;
what does not crawl (imports, seeding, the export) is left out. The shares are those of the samples, and the
microseconds the same shares of the CPU that such a crawl takes when nobody looks.
"""

from __future__ import annotations

import argparse
import json
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from benchmarks import table
from benchmarks.__main__ import Workload
from benchmarks.distributed import server
from benchmarks.programs import HERE, WORK
from benchmarks.site import MAX_FILES, Missing, served

PARTS = ("fetch", "parse", "links", "frontier", "sink", "engine")
PLACES = (
    # What is found first from the innermost call outwards says whose time it is.
    *(("silkline/fetch/", "fetch"), ("aiohttp/", "fetch"), ("yarl/", "fetch"), ("multidict/", "fetch")),
    *(("silkline/frontier/", "frontier"), ("redis/", "frontier"), ("hiredis", "frontier")),
    *(("silkline/sinks/", "sink"), ("silkline/items/", "sink"), ("engine/items.py", "sink")),
    *(("silkline/url.py", "links"), ("silkline/keys.py", "links"), ("politeness/scope.py", "links")),
    *(("politeness/traps.py", "links"), ("politeness/order.py", "links"), ("engine/effects.py", "links")),
    *(("engine/discovery.py", "links"), ("parse/links.py", "links"), ("silkline/site.py", "links")),
    *(("silkline/parse/", "parse"), ("silkline_workers.py", "parse")),
    ("silkline/", "engine"),
)
CRAWLS = "run (silkline/crawler.py"


def part_of(frames: Sequence[str]) -> str:
    """Of the frames of one sample, the outermost first."""
    for frame in reversed(frames):
        for place, part in PLACES:
            if place in frame:
                return part
    return "engine"


def shares(folded: Iterable[str]) -> Mapping[str, float]:
    """Of lines such as `frame;frame;frame 12`, as flame graphs are made of: only those of the crawl."""
    counted: Counter[str] = Counter()
    for line in folded:
        stack, _, count = line.rpartition(" ")
        frames = stack.split(";")
        outside = [number for number, frame in enumerate(frames) if CRAWLS in frame]
        if outside:
            counted[part_of(frames[outside[-1] + 1 :])] += int(count)
    return {part: counted[part] / max(1, counted.total()) for part in PARTS}


def measured(workload: Workload, fetcher: str, port: int, scratch: Path) -> tuple[float, Mapping[str, float]]:
    """(CPU µs a page, shares). Raises Missing where py-spy is not installed, or the crawl fails."""
    spy = Path(sys.executable).with_name("py-spy")
    if not spy.exists():
        raise Missing("py-spy is not installed; get it with `pip install py-spy`")
    shutil.rmtree(scratch, ignore_errors=True)
    scratch.mkdir()
    urls, stacks = scratch / "urls.txt", scratch / "stacks"
    urls.write_text("".join(f"{url}\n" for url in workload.seeds))
    script = [str(HERE / "silkline_workers.py"), workload.name, str(urls), str(scratch / "items.jsonl")]
    crawl = [sys.executable, *script, "1", str(port), fetcher]
    record = [
        str(spy),
        "record",
        "--rate",
        "250",
        "--nonblocking",
        "--format",
        "raw",
        "--output",
        str(stacks),
    ]
    # Once by itself, for being looked at costs, too.
    cpu = _crawled(crawl)
    for old in scratch.glob("items*"):
        old.unlink()
    _crawled([*record, "--", *crawl])
    return cpu / workload.pages * 1e6, shares(stacks.read_text().splitlines())


def _crawled(command: Sequence[str]) -> float:
    """Seconds of CPU."""
    done = subprocess.run(command, capture_output=True, text=True)
    printed = [line for line in done.stdout.splitlines() if line.startswith("{")]
    if not printed:
        raise Missing(f"the crawl failed: {done.stderr.strip()[-500:]}")
    return float(json.loads(printed[-1])["cpu"])


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser("python -m benchmarks.parts", description=__doc__)
    parser.add_argument("workload", choices=["list", "site"])
    parser.add_argument("--pages", type=int, default=MAX_FILES)
    parser.add_argument("--fetchers", type=lambda text: text.split(","), default=["http", "curl"])
    options = parser.parse_args(arguments)
    try:
        with server("valkey") as store, served(options.pages, WORK) as (base, scratch):
            workload = Workload.of(options.workload, base, options.pages)
            crawl = scratch / "crawl"
            rows = [(name, *measured(workload, name, store.port, crawl)) for name in options.fetchers]
    except Missing as error:
        print(error, file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130
    told = f"{options.workload}, {options.pages:,} pages, one process, Valkey"
    print(f"{told}, {time.strftime('%Y-%m-%d')}, {table.machine()}\n")
    print(f"| CPU µs a page | {' | '.join(PARTS)} | all |\n|---|{'---:|' * (len(PARTS) + 1)}")
    for fetcher, cpu, found in rows:
        cells = [f"{cpu * found[part]:.0f} ({found[part]:.0%})" for part in PARTS]
        print(f"| {fetcher} | {' | '.join(cells)} | {cpu:.0f} |")
    return 0


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    sys.exit(main())
