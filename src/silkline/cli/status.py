"""`silkline status`: how far a job is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import msgspec
from typer import Option, echo

from silkline.cli.options import Config, with_debug
from silkline.cli.store import stores, with_frontier
from silkline.outcome import Stats

EXAMPLES = """\
[bold]Examples[/bold]

  silkline status
  silkline status --job shop --json
"""


@with_debug
def status(
    job: Annotated[
        str | None, Option(metavar="NAME", help="The job. Without it, all in the working directory.")
    ] = None,
    frontier: Annotated[
        str | None, Option(metavar="URL", help="Its frontier, if it is not .silkline/JOB.db.")
    ] = None,
    as_json: Annotated[bool, Option("--json", metavar=" ", help="Print JSON, a line for each job.")] = False,
    config: Config = None,
) -> int:
    """Show how many requests of a job are waiting, delayed, leased, done and dead."""
    found = [
        (store.job, with_frontier(store, lambda opened: opened.stats()))
        for store in stores(job, frontier, config)
    ]
    if as_json:
        for name, stats in found:
            echo(msgspec.json.encode({"job": name, **msgspec.structs.asdict(stats)}))
    elif len(found) == 1:
        [(name, stats)] = found
        echo(name)
        for place, number in msgspec.structs.asdict(stats).items():
            echo(f"{number:>11,}  {place}")
    else:
        _list(found)
    return 0


def _list(found: Sequence[tuple[str, Stats]]) -> None:
    width = max(3, *(len(name) for name, _ in found))
    echo(f"{'job':<{width}}" + "".join(f"{place:>12}" for place in Stats.__struct_fields__))
    for name, stats in found:
        echo(f"{name:<{width}}" + "".join(f"{number:>12,}" for number in msgspec.structs.astuple(stats)))
