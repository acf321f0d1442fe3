"""`silkline dead items`: the items that could not be delivered, and why."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import Any

import msgspec
import typer
from typer import echo

from silkline import protocols
from silkline.cli.choice import AsJson, Chosen, Output, host_keys, moment, print_causes, with_choice, written
from silkline.cli.consent import Yes, agreed
from silkline.cli.options import Config, FrontierUrl, JobName, with_debug
from silkline.cli.store import one_store, with_frontier
from silkline.observe import figures
from silkline.outcome import DeadItem
from silkline.resolve import without_password, without_passwords, without_passwords_in_json

EXAMPLES = """\
[bold]Examples[/bold]

  silkline dead items list --job shop --cause item
  silkline dead items resend --job shop
  silkline dead items export --job shop -o bad.jsonl
"""


def application() -> typer.Typer:
    """The commands of `silkline dead items`."""
    app = typer.Typer(
        name="items",
        help="Look at the items that could not be delivered; visit their pages again or forget them.",
        epilog=EXAMPLES,
        no_args_is_help=True,
    )
    app.command("list")(list_items)
    app.command()(stats)
    app.command()(resend)
    app.command()(drop)
    app.command()(export)
    return app


@with_choice(limit=100)
def list_items(chosen: Chosen, as_json: AsJson = False) -> int:
    """List dead items, the newest first."""

    async def read(opened: protocols.Frontier) -> tuple[list[DeadItem], Mapping[str, int]]:
        causes = await opened.dead_items.causes()
        return await _found(opened, chosen, chosen.limit or 0), causes

    items, causes = with_frontier(chosen.store, read)
    total = causes.get(chosen.cause, 0) if chosen.cause else sum(causes.values())
    for item in items:
        echo(msgspec.json.encode(_told(_shown(item))) if as_json else _line(_shown(item)))
    if not items:
        echo(chosen.none("dead items", causes), err=True)
    elif total > len(items) and not as_json:
        echo(f"{len(items)} of {total} dead items", err=True)
    return 0


@with_debug
def stats(
    job: JobName = None, frontier: FrontierUrl = None, as_json: AsJson = False, config: Config = None
) -> int:
    """Count dead items by cause: item (no output can hold it, or a field is of the wrong type), step (a
    pipeline step raised), refused (a database would not take it)."""
    causes = with_frontier(one_store(job, frontier, config), lambda opened: opened.dead_items.causes())
    print_causes(causes, as_json=as_json)
    return 0


@with_choice()
def resend(chosen: Chosen) -> int:
    """Put the pages of dead items back to be visited; the next run of the job does it, with the code as it is
    then. Files get those items alone, databases replace what they have of the page. --limit counts pages."""
    number = chosen.apply(
        lambda opened, key, left: opened.dead_items.resend(cause=chosen.cause, host=key, limit=left),
    )
    pages = "page" if number == 1 else "pages"
    echo(f"{number:,} {pages} put back; run the job again to visit them" if number else _none(chosen))
    return 0


@with_choice()
def drop(chosen: Chosen, yes: Yes = False) -> int:
    """Forget dead items for good."""
    if not (yes or agreed(f"Forget these dead items of {chosen.store.job} for good?")):
        return 0
    number = chosen.apply(
        lambda opened, key, left: opened.dead_items.drop(cause=chosen.cause, host=key, limit=left),
    )
    echo(f"{number:,} dropped" if number else _none(chosen))
    return 0


@with_choice()
def export(chosen: Chosen, output: Output = None) -> int:
    """Write dead items as JSON, a line each, the newest first: the item, its page, its index there, cause,
    error, output and time (Unix seconds). They stay where they are."""

    async def read(opened: protocols.Frontier) -> list[DeadItem]:
        most = sum((await opened.dead_items.causes()).values()) if chosen.limit is None else chosen.limit
        return await _found(opened, chosen, most)

    items = with_frontier(chosen.store, read)
    if not items:
        echo(_none(chosen), err=True)
    written(b"".join(msgspec.json.encode(_told(item)) + b"\n" for item in items), len(items), output)
    return 0


def _none(chosen: Chosen) -> str:
    return chosen.none("dead items", with_frontier(chosen.store, lambda opened: opened.dead_items.causes()))


async def _found(opened: protocols.Frontier, chosen: Chosen, limit: int) -> list[DeadItem]:
    keys = await host_keys(opened, chosen.host)
    found = [await opened.dead_items.newest(cause=chosen.cause, host=key, limit=limit) for key in keys]
    return sorted(itertools.chain(*found), key=lambda item: -item.at)[:limit]


def _told(item: DeadItem) -> dict[str, Any]:
    """With the item itself, not its text."""
    told: dict[str, Any] = {name: getattr(item, name) for name in ("url", "index", "cause", "error", "at")}
    try:
        record = msgspec.json.decode(item.record)
    except msgspec.DecodeError:
        record = item.record
    return {**told, "output": item.sink, "item": record}


def _shown(item: DeadItem) -> DeadItem:
    """Without the passwords in URLs: that of its page may be a field of it, too."""
    return msgspec.structs.replace(
        item,
        url=without_password(item.url),
        error=without_passwords(item.error),
        record=without_passwords_in_json(item.record),
    )


def _line(item: DeadItem) -> str:
    where = f" -> {item.sink}" if item.sink else ""
    text = f"{item.cause}  {item.url} [{item.index}]{where}  {item.error}  {item.record}"
    return f"{moment(item.at)}  {figures.one_line(text, 500)}"
