"""The results, for the terminal and for the README."""

from __future__ import annotations

import os
import platform
import subprocess
from collections.abc import Mapping, Sequence
from datetime import date
from pathlib import Path
from statistics import median

from benchmarks.measure import Measurement
from benchmarks.programs import Program, versions

HEADINGS = ("", "pages/s", "(min-max)", "CPU µs/page", "peak RSS MB", "silkline is")

Results = Mapping[str, Mapping[Program, Sequence[Measurement]]]
"""Workload -> program -> its runs."""


def rows(runs: Mapping[Program, Sequence[Measurement]]) -> list[tuple[str, ...]]:
    """One row per program: medians, and how many times faster its silkline (one process) is."""
    good = {program: [run for run in each if not run.fault] for program, each in runs.items()}
    rates = {program.name: median(run.rate for run in each) for program, each in good.items() if each}
    table: list[tuple[str, ...]] = []
    for program, each in good.items():
        if not each:
            table.append((program.title, "failed", "", "", "", ""))
            continue
        ratio = ""
        rival = program.rival if program.rival in rates else "silkline"
        if rival in rates and program.name != rival:
            ratio = f"{rates[rival] / rates[program.name]:.2f}x as fast"
        table.append(
            (
                program.title,
                f"{rates[program.name]:,.0f}",
                f"({min(run.rate for run in each):,.0f}-{max(run.rate for run in each):,.0f})",
                f"{median(run.cost for run in each):,.0f}",
                f"{median(run.rss for run in each) / 1e6:,.0f}",
                ratio,
            )
        )
    return table


def faults(runs: Mapping[Program, Sequence[Measurement]]) -> list[str]:
    """A line for each run that does not count."""
    return [f"{program.title}: {run.fault}" for program, each in runs.items() for run in each if run.fault]


def text(workload: str, runs: Mapping[Program, Sequence[Measurement]]) -> str:
    """One workload, for the terminal."""
    table = [(_title(workload, runs), *HEADINGS[1:]), *rows(runs)]
    widths = [max(len(row[column]) for row in table) for column in range(len(HEADINGS))]
    lines = []
    for row in table:
        cells = [
            row[0].ljust(widths[0]),
            *(cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True)),
        ]
        lines.append("  ".join(cells).rstrip())
    return "\n".join([*lines, *(f"! {fault}" for fault in faults(runs))])


def markdown(results: Results) -> str:
    """All workloads, with date, machine and versions."""
    programs = dict.fromkeys(program for runs in results.values() for program in runs)
    told = dict.fromkeys(version for program in programs for version in versions(program).split(", "))
    lines = [f"Measured on {date.today().isoformat()} on {machine()}; {', '.join(told)}.", ""]
    for workload, runs in results.items():
        count = max(len(each) for each in runs.values())
        lines += [
            f"**{_title(workload, runs)}**, median of {count} alternating {'run' if count == 1 else 'runs'}",
            "",
            "| | pages/s | min-max | CPU µs/page | peak RSS MB | silkline is |",
            "|---|---:|---:|---:|---:|---:|",
            *(f"| {' | '.join(row)} |".replace("  ", " ") for row in rows(runs)),
            "",
        ]
        lines += [f"* {fault}" for fault in faults(runs)]
    return "\n".join(lines).rstrip() + "\n"


def _title(workload: str, runs: Mapping[Program, Sequence[Measurement]]) -> str:
    pages = next(run.pages for each in runs.values() for run in each)
    return f"{workload}, {pages:,} pages"


def machine() -> str:
    """CPU, cores, system and Python, in one line."""
    return (
        f"{_cpu()}, {os.cpu_count()} cores, {_system()}, "
        f"{platform.python_implementation()} {platform.python_version()}"
    )


def _cpu() -> str:
    info = Path("/proc/cpuinfo")
    if info.exists():
        for line in info.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    elif platform.system() == "Darwin":
        command = ["sysctl", "-n", "machdep.cpu.brand_string"]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    return platform.machine()


def _system() -> str:
    if platform.system() == "Linux":
        return f"{platform.freedesktop_os_release()['PRETTY_NAME']}, Linux {platform.release()}"
    return f"{platform.system()} {platform.release()}"
