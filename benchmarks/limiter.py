"""The rules that set a host's pace, side by side on model servers in simulated time.

    .venv/bin/python -m benchmarks.limiter                    # the table of docs/politeness.md
    .venv/bin/python -m benchmarks.limiter --plot FILE.svg    # its plot; needs matplotlib

Nothing is fetched, and it is the same on every machine. Scrapy's and Crawlee's rules are re-implemented from
their documentation; see `controllers.py`. Eight requests at once is the default of silkline and of Scrapy.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable

from benchmarks.controllers import AutoscaledPool, AutoThrottle, Fixed, Silkline
from benchmarks.models import Banning, Bucket, Controller, Server, Trace, Workers, crawl
from silkline.politeness.limiter import LimiterRules

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
    "banning above 10/s": lambda: Banning(10.0),
}
RULES: dict[str, Callable[[], Controller]] = {
    "silkline": lambda: Silkline(LimiterRules(start=8, ceiling=64)),
    "AutoThrottle": AutoThrottle,
    "AutoscaledPool": AutoscaledPool,
    "8 at once": lambda: Fixed(8),
}


def run() -> dict[str, dict[str, tuple[Server, Trace]]]:
    found: dict[str, dict[str, tuple[Server, Trace]]] = {}
    for name, make in SERVERS.items():
        found[name] = {}
        for rule, controller in RULES.items():
            server = make()
            found[name][rule] = (server, crawl(server, [controller()], SECONDS))
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


def plot(found: dict[str, dict[str, tuple[Server, Trace]]], file: str) -> None:
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = "silkline"
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(3, 2, figsize=(10, 9), layout="constrained")
    for (name, traces), axis in zip(found.items(), axes.flat, strict=True):
        server = next(iter(traces.values()))[0]
        axis.plot([server.capacity(float(s)) for s in range(SECONDS)], color="0.6", lw=4, label="capacity")
        for rule, (_, trace) in traces.items():
            axis.plot(range(5, SECONDS, 10), trace.smooth(10), lw=1.2, label=rule)
        axis.set_title(name)
        axis.set_ylim(bottom=0)
    axes[2][0].set_xlabel("seconds")
    axes[0][0].set_ylabel("good answers a second")
    axes[0][1].legend(fontsize=8)
    figure.savefig(file, metadata={"Date": None})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--plot", metavar="FILE")
    arguments = parser.parse_args()
    found = run()
    print(table(found))
    if arguments.plot:
        plot(found, arguments.plot)


if __name__ == "__main__":
    main()
