"""The rules that set a host's pace, side by side on model servers in simulated time.

    .venv/bin/python -m benchmarks.limiter                            # the table of docs/politeness.md
    .venv/bin/python -m benchmarks.limiter --plot docs/limiter.svg    # its plot, too

Nothing is fetched, and it is the same on every machine. Scrapy's and Crawlee's rules are re-implemented from
their documentation; see `controllers.py`. Eight requests at once is the default of silkline and of Scrapy.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable
from pathlib import Path

from benchmarks.controllers import AutoscaledPool, AutoThrottle, Fixed, Silkline
from benchmarks.models import Banning, Bucket, Controller, Flaky, Server, Trace, Workers, crawl
from benchmarks.plot import Line, Panel, figure
from silkline.politeness.pace import LimiterRules

SECONDS = 600


def a_third(now: float) -> float:
    """From 200 s to 400 s."""
    return 1 / 3 if 200 <= now < 400 else 1.0


def warming_up(now: float) -> float:
    return min(1.0, 0.2 + 0.8 * now / 30)


SERVERS: dict[str, Callable[[], Server]] = {
    "constant": lambda: Workers(20, 0.1, queue=40),
    "dropping to a third": lambda: Workers(6, 0.1, queue=12, speed=a_third),
    "slow start": lambda: Workers(4, 0.1, queue=12, speed=warming_up),
    "429 above 10/s": lambda: Bucket(10, 10),
    "latency": lambda: Workers(5, 0.1),
    "failing by chance": lambda: Flaky(Workers(20, 0.1, queue=40), lambda now: 0.03),
    "banning above 10/s": lambda: Banning(10.0),
}
RULES: dict[str, Callable[[], Controller]] = {
    "silkline": lambda: Silkline(LimiterRules(start=8, ceiling=64)),
    "AutoThrottle": AutoThrottle,
    "AutoscaledPool": AutoscaledPool,
    "8 at once": lambda: Fixed(8),
}


def run(rules: Iterable[str] = tuple(RULES)) -> dict[str, dict[str, tuple[Server, Trace]]]:
    found: dict[str, dict[str, tuple[Server, Trace]]] = {}
    for name, make in SERVERS.items():
        found[name] = {}
        for rule in rules:
            server = make()
            found[name][rule] = (server, crawl(server, [RULES[rule]()], SECONDS))
    return found


def cell(server: Server, trace: Trace) -> str:
    """Share of the capacity that was used, and share of failures, both over the whole time."""
    could = sum(server.capacity(float(second)) for second in range(SECONDS))
    return f"{sum(trace.good) / could:.0%} / {trace.errors(0, SECONDS):.1%}"


def table(found: dict[str, dict[str, tuple[Server, Trace]]]) -> str:
    lines = [f"| server | {' | '.join(RULES)} |", "|---" * (len(RULES) + 1) + "|"]
    for name, traces in found.items():
        cells = " | ".join(cell(server, trace) for server, trace in traces.values())
        lines.append(f"| {name} | {cells} |")
    return "\n".join(lines)


def drawn(found: dict[str, dict[str, tuple[Server, Trace]]]) -> str:
    """Good answers a second, over 10 s each, as SVG."""
    panels = []
    for name, traces in found.items():
        server = next(iter(traces.values()))[0]
        capacity = [server.capacity(float(second)) for second in range(5, SECONDS, 10)]
        lines = [Line("capacity", capacity)]
        lines += [Line(rule, trace.smooth(10)) for rule, (_, trace) in traces.items()]
        panels.append(Panel(name, lines))
    return figure(panels, seconds=SECONDS)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--plot", metavar="FILE")
    arguments = parser.parse_args()
    found = run()
    print(table(found))
    if arguments.plot:
        Path(arguments.plot).write_text(drawn(found), "utf-8")


if __name__ == "__main__":
    main()
