"""`silkline status`: how far a job is, and who is at it."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import nullcontext
from typing import Annotated

import msgspec
from typer import Option, echo

from silkline.cli.options import Config, FrontierUrl, with_debug
from silkline.cli.store import Store, one_store, stores, with_frontier
from silkline.observe import standing as shown
from silkline.observe.standing import Pace, Standing
from silkline.outcome import Stats
from silkline.protocols import Frontier

EXAMPLES = """\
[bold]Examples[/bold]

  silkline status
  silkline status --job shop --frontier redis://10.0.0.5:6379/0 --watch
  silkline status --job shop --json
"""

PERIOD = 2.0
"""Seconds between two looks of `--watch`."""


@with_debug
def status(
    job: Annotated[
        str | None,
        Option(
            metavar="NAME",
            help="The job. Without it, all in the working directory; on a server, the job spider.",
        ),
    ] = None,
    frontier: FrontierUrl = None,
    hosts: Annotated[int, Option(metavar="N", min=0, help="Show so many hosts at most.")] = 10,
    watch: Annotated[
        bool,
        Option(
            "--watch", metavar=" ", help="Look again every 2 s, until the job is complete and left alone."
        ),
    ] = False,
    as_json: Annotated[bool, Option("--json", metavar=" ", help="Print JSON, a line for each look.")] = False,
    config: Config = None,
) -> int:
    """Show how far a job is, how fast it goes, and its workers and hosts."""
    if watch:
        _watch(one_store(job, frontier, config), hosts, as_json=as_json)
        return 0
    found = [_look(store, hosts) for store in stores(job, frontier, config)]
    if as_json:
        for standing in found:
            echo(shown.as_json(standing))
    elif len(found) == 1:
        echo("\n".join(shown.lines(found[0])))
    else:
        _list([(standing.job, standing.overview.stats) for standing in found])
    return 0


def _look(store: Store, hosts: int) -> Standing:
    return with_frontier(store, lambda opened: _look_at(opened, _pace(store), hosts, 0.0))


def _pace(store: Store) -> Pace:
    return Pace(store.job, store.options.delay)


async def _look_at(opened: Frontier, pace: Pace, hosts: int, at: float) -> Standing:
    from silkline.cli.paces import reasons
    from silkline.engine.refusals import refused_seeds

    standing = pace.standing(await opened.overview(hosts), at)
    return msgspec.structs.replace(
        standing,
        reasons=reasons(standing.overview.hosts),
        refused=refused_seeds(await opened.recall()),
    )


def _watch(store: Store, hosts: int, *, as_json: bool) -> None:
    import asyncio
    import time

    from rich.console import Console
    from rich.live import Live
    from rich.text import Text

    pace = _pace(store)
    console = Console()
    live = None if as_json or not console.is_terminal else Live(console=console, auto_refresh=False)

    def show(standing: Standing) -> None:
        if live is not None:
            live.update(Text("\n".join(shown.lines(standing))), refresh=True)
        else:
            echo(shown.as_json(standing) if as_json else shown.line(standing))
            sys.stdout.flush()

    async def look_on(opened: Frontier) -> None:
        while True:
            standing = await _look_at(opened, pace, hosts, time.monotonic())
            show(standing)
            if standing.complete:
                return
            await asyncio.sleep(PERIOD)

    with live or nullcontext():
        with_frontier(store, look_on)


def _list(found: Sequence[tuple[str, Stats]]) -> None:
    width = max(3, *(len(name) for name, _ in found))
    echo(f"{'job':<{width}}" + "".join(f"{place:>12}" for place in Stats.__struct_fields__))
    for name, stats in found:
        echo(f"{name:<{width}}" + "".join(f"{number:>12,}" for number in msgspec.structs.astuple(stats)))
