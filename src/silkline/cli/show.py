"""What commands print: settings and where they come from, progress, items, the report."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Any

import msgspec
from rich.cells import cell_len
from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text
from typer import echo

from silkline.cli.streams import lost_output
from silkline.config import Settings
from silkline.crawler import Crawler
from silkline.errors import about_setting
from silkline.observe import figures
from silkline.observe.progress import Progress, StderrConsole
from silkline.observe.report import INTERRUPTED, Report, lines, render
from silkline.resolve import FIELDS, Resolved, redacted, shown
from silkline.seeds import Seed
from silkline.sinks.choose import keyed_sinks_for, sinks_for

PREVIEW_ROWS = 20
PREVIEW_COLUMNS = 8
CELL = 200


def settings_table(resolved: Resolved) -> str:
    """One line a setting: name, value, origin; passwords are not shown."""
    settings = resolved.settings
    values = {name: shown(name, settings) for name in FIELDS} | {"frontier": redacted(settings.frontier_url)}
    name_width, value_width = max(map(len, values)), max(map(len, values.values()))
    return "\n".join(
        f"{name:<{name_width}}  {value:<{value_width}}  {resolved.origins[name]}"
        for name, value in values.items()
    )


def conduct(
    crawler: Crawler,
    seeds: Sequence[Seed],
    resolved: Resolved,
    *,
    preview: Path | None = None,
    kept: bool = True,
) -> int:
    """Run the crawl with progress; then print the first items to stdout and the report to stderr.

    preview: a JSON lines file that the crawl writes its items to, where the user named no output.
    kept: the job and that file are still there after the command.

    Returns the exit code.
    """
    settings = resolved.settings
    # A wrong name is refused before there is a store or anything is removed.
    with resolved.naming_origins(), about_setting("outputs"):
        sinks_for(settings.outputs)
        keyed_sinks_for(settings.outputs)
    crawler.configure(settings)
    console = StderrConsole()
    budget, quiet = settings.max_pages, settings.quiet
    progress = Progress(console, settings.job, max_pages=budget, delay=settings.delay, quiet=quiet)
    with progress, resolved.naming_origins():
        report = crawler.run(*seeds, watch=progress.update)
    if not settings.quiet:
        if preview is not None:
            print_items(report.parts.get(str(preview), (str(preview),)))
        if not kept:
            outputs = () if preview is not None else report.outputs
            report = msgspec.structs.replace(report, outputs=outputs, frontier="memory:")
        print_report(console, report)
        if preview is not None and report.items:
            mark = "  next      " if console.is_terminal else "  > "
            console.print(mark + "add -o items.csv to have the items in a file of your own", style="cyan")
    failure = lost_output()
    if failure is not None and not isinstance(failure, BrokenPipeError):
        warn([f"what was shown on standard output is lost: {failure.strerror}"])
    return exit_code(report, settings)


def exit_code(report: Report, settings: Settings) -> int:
    """0 finished or out of budget, 1 with dead letters or dead items under `strict`, 130 interrupted."""
    if report.reason == INTERRUPTED:
        return 130
    return 1 if settings.strict and (report.dead or report.dead_items) else 0


def warn(warnings: Iterable[str]) -> None:
    for warning in warnings:
        echo(f"silkline: warning: {warning}", err=True)


def print_report(console: Console, report: Report) -> None:
    if console.is_terminal:
        console.print(render(report))
    else:
        console.print("\n".join(lines(report)), markup=False, highlight=False, soft_wrap=True)


def print_items(paths: Iterable[str]) -> None:
    """A table of the first items of JSON lines files; those that are elsewhere are passed over."""
    lines = list(islice(_lines(paths), PREVIEW_ROWS + 1))
    items = [msgspec.json.decode(line) for line in lines[:PREVIEW_ROWS]]
    if items:
        console = Console()
        title = "the first items" if len(lines) > PREVIEW_ROWS else "the items"
        console.print(items_table(items, console.width, title))


def _lines(paths: Iterable[str]) -> Iterator[bytes]:
    for path in paths:
        with suppress(FileNotFoundError), open(path, "rb") as file:
            yield from file


def items_table(items: Sequence[dict[str, Any]], width: int, title: str) -> RenderableType:
    """A column for each of the first fields that the items have, cut to fit into `width`."""
    names = list(dict.fromkeys(name for item in items for name in item))
    columns = {name: [_cell(item.get(name)) for item in items] for name in names[:PREVIEW_COLUMNS]}
    if origin := _common_origin(columns.get("url", [])):
        columns["url"] = [url.removeprefix(origin) for url in columns["url"]]
        title += f" of {origin}"
    table = Table(header_style="dim")
    natural = [max(cell_len(name), *map(cell_len, cells)) for name, cells in columns.items()]
    for name, room in zip(columns, _shares(natural, width - 3 * len(columns) - 1), strict=True):
        table.add_column(Text(figures.one_line(name)), no_wrap=True, overflow="ellipsis", width=room)
    for row in zip(*columns.values(), strict=True):
        table.add_row(*map(Text, row))
    if len(names) > PREVIEW_COLUMNS:
        more = ", ".join(map(figures.one_line, names[PREVIEW_COLUMNS:]))
        return Group(Text(title, style="bold"), table, Text(f"not shown: {more}", style="dim"))
    return Group(Text(title, style="bold"), table)


def _shares(natural: Sequence[int], room: int) -> list[int]:
    """Split `room` among columns: none gets more than it needs, the wide ones share what is left."""
    shares = [0] * len(natural)
    narrow_first = sorted(range(len(natural)), key=lambda column: natural[column])
    for done, column in enumerate(narrow_first):
        shares[column] = max(1, min(natural[column], room // (len(natural) - done)))
        room -= shares[column]
    return shares


def _common_origin(urls: Sequence[str]) -> str:
    """Scheme and host of the URLs where all have the same; "" otherwise."""
    origins = {"/".join(url.split("/", 3)[:3]) for url in urls}
    return origins.pop() if len(urls) > 1 and len(origins) == 1 else ""


def _cell(value: object) -> str:
    if value is None:
        return ""
    text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
    return figures.one_line(text, CELL)
