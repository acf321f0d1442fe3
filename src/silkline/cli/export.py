"""`silkline export`: the items of a job in one file."""

from __future__ import annotations

from typing import Annotated

import msgspec
from typer import Option, echo

from silkline.cli.options import Config, with_debug
from silkline.cli.store import one_store

WHICH = "Which items"
EXAMPLES = """\
[bold]Examples[/bold]

  silkline export --job shop --frontier redis://10.0.0.5/0 -o all.jsonl
  silkline export --job shop --frontier redis://10.0.0.5/0 --parts box2/ -o all.csv
  silkline export --job shop -o shop.jsonl.gz
"""


@with_debug
def export(
    output: Annotated[
        str,
        Option(
            "--output",
            "-o",
            metavar="FILE",
            help="Where the items go: a .jsonl, .jsonl.gz, .jsonl.zst, .csv, .tsv, .db or .sqlite file.",
        ),
    ],
    job: Annotated[
        str | None, Option(metavar="NAME", help="The job. Not needed where there is only one.")
    ] = None,
    frontier: Annotated[
        str | None, Option(metavar="URL", help="Its frontier, if it is not .silkline/JOB.db.")
    ] = None,
    source: Annotated[
        list[str] | None,
        Option(
            "--from",
            metavar="FILE",
            help="The output to take the items from, if the job has several.",
            rich_help_panel=WHICH,
        ),
    ] = None,
    parts: Annotated[
        list[str] | None,
        Option(
            metavar="DIR",
            help="A folder with copies of other machines' part files. Can be given several times.",
            rich_help_panel=WHICH,
        ),
    ] = None,
    partial: Annotated[
        bool,
        Option(
            "--partial",
            metavar=" ",
            help="Leave out part files that are not on this machine.",
            rich_help_panel=WHICH,
        ),
    ] = False,
    replace: Annotated[
        bool, Option("--replace", metavar=" ", help="Replace the file if it is there already.")
    ] = False,
    as_json: Annotated[bool, Option("--json", metavar=" ", help="Print JSON, for programs.")] = False,
    config: Config = None,
) -> int:
    """Write the items of a job to one file: join the part files of its workers,
    or convert its output to another format.

    What counts is what was committed when the command starts; the job may run
    meanwhile. The file is there as a whole or not at all.
    """
    from silkline.cli.show import warn
    from silkline.frontier.open import positions_in, store_file
    from silkline.observe import figures
    from silkline.sinks.export import Target, export
    from silkline.sinks.source import chosen, left_out, located, sources_in, whereabouts

    store = one_store(job, frontier, config)
    known = sources_in(positions_in(store.url, store.job))
    own = store_file(store.url)
    reserved = [path for path in (*(source.path for source in known), own and str(own)) if path]
    target = Target(output, replace=replace, reserved=reserved)
    taken = chosen(known, source or ())
    found, missing = located(taken, parts or (), partial=partial)
    if missing:
        warn([f"{whereabouts(missing)}, and left out"])
    if others := left_out(known, taken):
        names = ", ".join(sorted({one.output for one in others})[:3])
        warn([f"{figures.count(len(others))} more files of workers that wrote other outputs: {names}"])
    exported = export(found, target)
    if as_json:
        summary = {
            "job": store.job,
            "output": output,
            "rows": exported.rows,
            "parts": len(found),
            "bytes": exported.bytes,
            "missing": [one.path for one in missing],
        }
        echo(msgspec.json.encode(summary))
    else:
        plural = "" if len(found) == 1 else "s"
        rows, size = figures.count(exported.rows), figures.size(exported.bytes)
        echo(f"{output}: {rows} rows of {len(found)} file{plural}, {size}")
    return 0
