"""`python -m benchmarks`: silkline beside other crawlers, alternating, on one machine in one run."""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

import msgspec

from benchmarks import table
from benchmarks.measure import Measurement, measure
from benchmarks.programs import PEER_PROGRAMS, WORK, Program, prepare, silkline
from benchmarks.site import HEAVY_SHARE, MAX_FILES, Missing, served

WORKLOADS = ("list", "site", "heavy")


class Workload(msgspec.Struct, frozen=True):
    """seeds: the URLs that are given. pages: how many a crawl must bring."""

    name: str
    seeds: Sequence[str]
    pages: int

    @classmethod
    def of(cls, name: str, base: str, pages: int) -> Workload:
        """A list may be longer than the site has files; a query then makes more URLs of the same files."""
        files = min(pages, MAX_FILES)
        if name == "site":
            return cls(name, [f"{base}/p/0.html"], files)
        if name == "heavy":
            heavy = max(1, files // HEAVY_SHARE)
            return cls(name, [f"{base}/h/{number}.html" for number in range(heavy)], heavy)
        plain = [f"{base}/p/{number}.html" for number in range(files)]
        more = [f"{base}/p/{number % files}.html?copy={number // files}" for number in range(files, pages)]
        return cls(name, plain + more, pages)


def main(arguments: Sequence[str] | None = None) -> int:
    """Returns the exit code: 0, 1 if a run failed, 2 if something is missing, 130 if interrupted."""
    options = _parser().parse_args(arguments)
    workloads = WORKLOADS if options.workload == "all" else (options.workload,)
    own = [silkline(count, fetcher) for fetcher in options.fetcher for count in options.processes]
    programs = [*own, *(p for p in PEER_PROGRAMS if p.name in options.peers)]
    try:
        prepare(programs)
        with served(options.pages, WORK, options.tls) as (base, scratch):
            results = {}
            for name in workloads:
                workload = Workload.of(name, base, options.pages)
                results[name] = compare(workload, programs, scratch / "crawl", options.runs)
    except Missing as error:
        print(error, file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130
    options.output.parent.mkdir(parents=True, exist_ok=True)
    options.output.write_text(table.markdown(results))
    print(f"\nas Markdown in {options.output}")
    return int(any(table.faults(runs) for runs in results.values()))


def compare(
    workload: Workload, programs: Sequence[Program], scratch: Path, runs: int
) -> dict[Program, list[Measurement]]:
    """Run every program `runs` times, in turns, each in an empty `scratch`, and print the table."""
    results: dict[Program, list[Measurement]] = {program: [] for program in programs}
    for turn in range(runs):
        for program in programs:
            _tell(f"{workload.name}, run {turn + 1} of {runs}: {program.title}")
            shutil.rmtree(scratch, ignore_errors=True)
            scratch.mkdir()
            urls, out = scratch / "urls.txt", scratch / "items.jsonl"
            urls.write_text("".join(f"{url}\n" for url in workload.seeds))
            results[program].append(measure(program.command(workload.name, urls, out), out, workload.pages))
    _tell("")
    print(f"\n{table.text(workload.name, results)}", flush=True)
    return results


def _tell(line: str) -> None:
    """Show on the terminal what is running, and nowhere else."""
    if sys.stderr.isatty():
        width = shutil.get_terminal_size().columns
        print(
            f"\r{line[: width - 1].ljust(width - 1)}", end="" if line else "\r", file=sys.stderr, flush=True
        )


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("python -m benchmarks", description=__doc__)
    parser.add_argument("workload", nargs="?", default="all", choices=[*WORKLOADS, "all"])
    parser.add_argument("--runs", type=_positive, default=3, help="runs of each program (3)")
    parser.add_argument("--pages", type=_positive, default=MAX_FILES, help="pages of one run (10000)")
    parser.add_argument(
        "--peers",
        type=_peers,
        default=[program.name for program in PEER_PROGRAMS],
        help="which others, with commas between them, or none (all)",
    )
    cores = [1, 2] if (os.cpu_count() or 1) > 1 else [1]
    parser.add_argument("--processes", type=_numbers, default=cores, help="silkline's processes (1,2)")
    parser.add_argument(
        "--fetcher", type=_fetchers, default=["http", "curl"], help="silkline's engines (http,curl)"
    )
    parser.add_argument("--tls", action="store_true", help="serve the site over TLS, with HTTP/2")
    parser.add_argument("--output", type=Path, default=WORK / "results.md", help="where the Markdown goes")
    return parser


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no number from 1 on")
    return int(text)


def _numbers(text: str) -> list[int]:
    return [_positive(part) for part in text.split(",")]


def _fetchers(text: str) -> list[str]:
    names = text.split(",")
    for name in names:
        if name not in ("http", "curl"):
            raise argparse.ArgumentTypeError(f"there is no engine {name!r}; choose of http, curl")
    return names


def _peers(text: str) -> list[str]:
    names = [] if text == "none" else text.split(",")
    known = [program.name for program in PEER_PROGRAMS]
    for name in names:
        if name not in known:
            raise argparse.ArgumentTypeError(f"there is no {name!r}; choose of {', '.join(known)}, or none")
    return names


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    sys.exit(main())
