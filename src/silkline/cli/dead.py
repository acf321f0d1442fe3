"""`silkline dead`: the requests that were given up, and why."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import typer
from typer import echo

from silkline import protocols
from silkline.cli import dead_items
from silkline.cli.choice import AsJson, Chosen, Output, host_keys, moment, print_causes, with_choice, written
from silkline.cli.consent import Yes, agreed
from silkline.cli.options import Config, FrontierUrl, JobName, with_debug
from silkline.cli.store import one_store, with_frontier
from silkline.observe import figures
from silkline.outcome import REFUSALS, DeadLetter
from silkline.resolve import without_password, without_passwords

EXAMPLES = """\
[bold]Examples[/bold]

  silkline dead list --job shop --cause http_503
  silkline dead resend --job shop --host shop.example
  silkline dead export --job shop -o dead.jsonl
"""


def application() -> typer.Typer:
    """The commands of `silkline dead`."""
    app = typer.Typer(
        name="dead",
        help="Look at the requests that were given up; send them again or forget them.",
        epilog=EXAMPLES,
        no_args_is_help=True,
    )
    app.command("list")(list_letters)
    app.command()(stats)
    app.command()(resend)
    app.command()(drop)
    app.command()(export)
    app.add_typer(dead_items.application())
    return app


@with_choice(limit=100)
def list_letters(chosen: Chosen, as_json: AsJson = False) -> int:
    """List dead letters, the newest first; those that robots.txt refuses only where --cause names them."""

    async def read(opened: protocols.Frontier) -> tuple[list[DeadLetter], Mapping[str, int]]:
        causes = await opened.dead_letters.causes()
        wanted: Sequence[str | None] = [chosen.cause]
        if not chosen.cause and REFUSALS & causes.keys():
            wanted = sorted(causes.keys() - REFUSALS)
        return await _found(opened, chosen, wanted, chosen.limit or 0), causes

    letters, causes = with_frontier(chosen.store, read)
    for letter in letters:
        echo(msgspec.json.encode(_shown(letter)) if as_json else _line(_shown(letter)))
    if not as_json and any("\n" in letter.error.strip() for letter in letters):
        echo("with --json the errors have their tracebacks", err=True)
    listed = {chosen.cause} if chosen.cause else causes.keys() - REFUSALS
    total = sum(causes.get(cause, 0) for cause in listed)
    if not letters:
        echo(chosen.none("dead letters", causes), err=True)
    elif total > len(letters):
        echo(f"{len(letters)} of {total} dead letters", err=True)
    refused = sum(number for name, number in causes.items() if name in REFUSALS)
    if refused and not chosen.cause:
        echo(f"{refused} refused by robots.txt are not listed: --cause robots lists them", err=True)
    return 0


@with_debug
def stats(
    job: JobName = None, frontier: FrontierUrl = None, as_json: AsJson = False, config: Config = None
) -> int:
    """Count dead letters by cause."""
    causes = with_frontier(one_store(job, frontier, config), lambda opened: opened.dead_letters.causes())
    print_causes(causes, as_json=as_json)
    return 0


@with_choice()
def resend(chosen: Chosen) -> int:
    """Put dead letters back to be visited; the next run of the job does it."""
    number = chosen.apply(
        lambda opened, key, left: opened.dead_letters.resend(cause=chosen.cause, host=key, limit=left),
    )
    echo(f"{number:,} put back; run the job again to visit them" if number else _none(chosen))
    return 0


@with_choice()
def drop(chosen: Chosen, yes: Yes = False) -> int:
    """Forget dead letters for good; their URLs count as done."""
    if not (yes or agreed(f"Forget these dead letters of {chosen.store.job} for good?")):
        return 0
    number = chosen.apply(
        lambda opened, key, left: opened.dead_letters.drop(cause=chosen.cause, host=key, limit=left)
    )
    echo(f"{number:,} dropped" if number else _none(chosen))
    return 0


@with_choice()
def export(chosen: Chosen, output: Output = None) -> int:
    """Write dead letters as JSON tasks, a line each, the newest first: with their cause, error, deliveries,
    worker and time (Unix seconds). They stay where they are. Passwords in URLs are written, too, as a task
    needs them to be visited again."""

    async def read(opened: protocols.Frontier) -> list[DeadLetter]:
        most = sum((await opened.dead_letters.causes()).values()) if chosen.limit is None else chosen.limit
        return await _found(opened, chosen, [chosen.cause], most)

    letters = with_frontier(chosen.store, read)
    lines = b"".join(msgspec.json.encode(_task(letter)) + b"\n" for letter in letters)
    if not letters:
        echo(_none(chosen), err=True)
    written(lines, len(letters), output)
    return 0


def _none(chosen: Chosen) -> str:
    return chosen.none(
        "dead letters", with_frontier(chosen.store, lambda opened: opened.dead_letters.causes())
    )


async def _found(
    opened: protocols.Frontier, chosen: Chosen, causes: Sequence[str | None], limit: int
) -> list[DeadLetter]:
    found = [
        await opened.dead_letters.newest(cause=cause, host=key, limit=limit)
        for cause, key in itertools.product(causes, await host_keys(opened, chosen.host))
    ]
    return sorted(itertools.chain(*found), key=lambda letter: -letter.at)[:limit]


def _task(letter: DeadLetter) -> dict[str, Any]:
    """As `JOB:task:dead` has it on a server: the task, and what became of it."""
    told = {name: getattr(letter, name) for name in ("cause", "error", "deliveries", "worker", "at")}
    return {**msgspec.to_builtins(letter.request), **told}


def _shown(letter: DeadLetter) -> DeadLetter:
    """Without the passwords in its URLs."""
    request = msgspec.structs.replace(letter.request, url=without_password(letter.request.url))
    return msgspec.structs.replace(letter, request=request, error=without_passwords(letter.error))


def _line(letter: DeadLetter) -> str:
    return (
        f"{moment(letter.at)}  {letter.cause}  {letter.deliveries}x  {figures.one_line(letter.request.url)}"
        f"  {figures.one_line(figures.headline(letter.error), 200)}"
    )
