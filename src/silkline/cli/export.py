"""`silkline export`: the items of a job in one file."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import msgspec
from typer import Option, echo

from silkline.cli.options import Config, FrontierUrl, JobName, with_debug
from silkline.cli.store import one_store
from silkline.errors import ConfigError
from silkline.files import is_address, shown_output

if TYPE_CHECKING:
    from pathlib import Path

    from silkline.cli.store import Store
    from silkline.sinks.committed import Committed
    from silkline.sinks.export import Exported
    from silkline.sinks.source import Source

WHICH = "Which items"
EXAMPLES = """\
[bold]Examples[/bold]

  silkline export --job shop --frontier redis://10.0.0.5/0 -o all.jsonl
  silkline export --job shop --frontier redis://10.0.0.5/0 --parts box2/ -o all.csv
  silkline export --job shop -o shop.jsonl.gz
  silkline export --from 'postgresql://shop@db.example/shop?table=products' -o shop.parquet
"""

Output = Annotated[
    str,
    Option(
        "--output",
        "-o",
        metavar="FILE",
        help="Where the items go: a .jsonl, .jsonl.gz, .jsonl.zst, .csv, .tsv, .parquet or .db file.",
    ),
]
From = Annotated[
    list[str] | None,
    Option(
        "--from",
        metavar="WHERE",
        help="The output to take the items from, if the job has several. A URL needs no job: a table in"
        " PostgreSQL or MySQL, sqlite:///PATH, or an output in a bucket.",
        rich_help_panel=WHICH,
    ),
]
Parts = Annotated[
    list[str] | None,
    Option(
        metavar="DIR",
        help="A folder with copies of other machines' part files. Can be given several times.",
        rich_help_panel=WHICH,
    ),
]
Partial = Annotated[
    bool,
    Option(
        "--partial",
        metavar=" ",
        help="Leave out part files that are not on this machine.",
        rich_help_panel=WHICH,
    ),
]
Replace = Annotated[bool, Option("--replace", metavar=" ", help="Replace the file if it is there already.")]
Excel = Annotated[bool, Option("--excel", metavar=" ", help="Write CSV for spreadsheets.")]
AsJson = Annotated[bool, Option("--json", metavar=" ", help="Print JSON, for programs.")]


@with_debug
def export(
    output: Output,
    job: JobName = None,
    frontier: FrontierUrl = None,
    source: From = None,
    parts: Parts = None,
    partial: Partial = False,
    replace: Replace = False,
    excel: Excel = False,
    as_json: AsJson = False,
    config: Config = None,
) -> int:
    """Write the items of a job to one file: join the part files of its workers,
    or convert its output, also one in a database or a bucket, to another format.

    What counts is what was committed when the command starts; the job may run
    meanwhile. The file is there as a whole or not at all.
    """
    from silkline.sinks.export import Target
    from silkline.sinks.export import export as written

    urls = [one for one in source or () if is_address(one)]
    if urls:
        if len(source or ()) > 1 or parts or partial:
            raise ConfigError("--from with a URL stands alone: without a second one, --parts and --partial")
        target = Target(output, replace=replace, excel=excel)
        found, name = _at(urls[0])
        exported = written(found, target)
        echo(_summary(None, output, exported, found) if as_json else _line(output, exported, found, name))
        return 0
    store, known, reserved = _known(job, frontier, config)
    target = Target(output, replace=replace, excel=excel, reserved=reserved)
    found, missing = _sources(known, source or (), parts or (), partial)
    exported = written(found, target)
    echo(_summary(store.job, output, exported, found, missing) if as_json else _line(output, exported, found))
    return 0


def _at(url: str) -> tuple[Sequence[Committed], str]:
    """What is read at a URL, and how it is called."""
    from silkline.seeds.query import fetch_for
    from silkline.sinks.address import OBJECTS, is_in_bucket
    from silkline.sinks.stored_table import SCHEMES, StoredTable
    from silkline.sinks.whole import whole_table

    scheme = url.partition("://")[0].lower()
    if scheme in SCHEMES:
        table = StoredTable(url, fetch_for(url))
        return [table], table.path
    if is_in_bucket(url):
        from silkline.sinks.bucket_parts import bucket_parts

        return bucket_parts(url), ""
    if scheme == "sqlite":
        path = url.partition("://")[2].removeprefix("/")
        return [whole_table(path)], path
    known = ", ".join(f"{one}://" for one in (*SCHEMES, "sqlite", *sorted(OBJECTS)))
    raise ConfigError(f"--from {shown_output(url)!r}: export does not read {scheme}://; it reads {known}")


def _known(
    job: str | None, frontier: str | None, config: Path | None
) -> tuple[Store, Sequence[Source], Sequence[str]]:
    """The job, its outputs in files, and the files that it needs. Raises ConfigError where it has none."""
    from silkline.frontier.open import facts_in, positions_in, store_file
    from silkline.sinks.source import sources_in

    store = one_store(job, frontier, config)
    positions = positions_in(store.url, store.job)
    known = sources_in(positions)
    own = store_file(store.url)
    elsewhere = ", ".join(filter(None, (facts_in(store.url, store.job).get("databases"), *positions)))
    if not known and elsewhere:
        raise ConfigError(
            f"job {store.job!r} has no items in files; it has: {elsewhere}; a table of PostgreSQL or MySQL, "
            "or a bucket, is read by its URL: --from URL"
        )
    return store, known, [path for path in (*(source.path for source in known), own and str(own)) if path]


def _sources(
    known: Sequence[Source], wanted: Sequence[str], folders: Sequence[str], partial: bool
) -> tuple[Sequence[Committed], Sequence[Source]]:
    """What is read, and what is missing here; with warnings of what is left out."""
    from silkline.cli.show import warn
    from silkline.observe import figures
    from silkline.sinks.source import chosen, left_out, located, whereabouts

    taken = chosen(known, wanted)
    found, missing = located(taken, folders, partial=partial)
    if missing:
        warn([f"{whereabouts(missing)}, and left out"])
    if others := left_out(known, taken):
        names = ", ".join(sorted({one.output for one in others})[:3])
        warn([f"{figures.count(len(others))} more files of workers that wrote other outputs: {names}"])
    return found, missing


def _summary(
    job: str | None,
    output: str,
    exported: Exported,
    found: Sequence[Committed],
    missing: Sequence[Source] = (),
) -> bytes:
    return msgspec.json.encode(
        {
            "job": job,
            "output": output,
            "rows": exported.rows,
            "parts": len(found),
            "bytes": exported.bytes,
            "missing": [one.path for one in missing],
        }
    )


def _line(output: str, exported: Exported, found: Sequence[Committed], name: str = "") -> str:
    """name: of what was read, where that is no files."""
    from silkline.observe import figures

    plural = "" if len(found) == 1 else "s"
    rows, size = figures.count(exported.rows), figures.size(exported.bytes)
    return f"{output}: {rows} rows of {name or f'{len(found)} file{plural}'}, {size}"
