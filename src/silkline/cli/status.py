"""`silkline status`: how far a job is."""

from __future__ import annotations

from typing import Annotated

import msgspec
from typer import Option, echo

from silkline.cli.options import Config, with_debug
from silkline.cli.store import job_settings, with_frontier

EXAMPLES = """\
[bold]Examples[/bold]

  silkline status
  silkline status --job shop --json
"""


@with_debug
def status(
    job: Annotated[
        str | None, Option(metavar="NAME", help="The job. Not needed where there is only one.")
    ] = None,
    frontier: Annotated[
        str | None, Option(metavar="URL", help="Its frontier, if it is not .silkline/JOB.db.")
    ] = None,
    as_json: Annotated[bool, Option("--json", metavar=" ", help="Print JSON, for programs.")] = False,
    config: Config = None,
) -> int:
    """Show how many requests of a job are waiting, delayed, leased, done and dead."""
    settings = job_settings(job, frontier, config)
    sizes = msgspec.structs.asdict(with_frontier(settings, lambda opened: opened.stats()))
    if as_json:
        echo(msgspec.json.encode({"job": settings.job, **sizes}))
        return 0
    echo(settings.job)
    for place, number in sizes.items():
        echo(f"{number:>11,}  {place}")
    return 0
