"""`silkline dead`: the requests that were given up, and why."""

from __future__ import annotations

import itertools
import time
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer
from typer import Option, echo

from silkline import protocols
from silkline.cli.consent import Yes, agreed
from silkline.cli.options import Config, FrontierUrl, JobName, with_debug
from silkline.cli.store import Store, one_store, with_frontier
from silkline.errors import BadUrlError, ConfigError
from silkline.observe import figures
from silkline.outcome import REFUSALS, DeadLetter
from silkline.url import check

EXAMPLES = """\
[bold]Examples[/bold]

  silkline dead list --job shop --cause http_503
  silkline dead resend --job shop --host shop.example
  silkline dead export --job shop -o dead.jsonl
"""
CHOICE = "Which ones"

Cause = Annotated[
    str | None, Option(metavar="CAUSE", help="Only those with this cause.", rich_help_panel=CHOICE)
]
Host = Annotated[
    str | None,
    Option(
        metavar="HOST", help="Only those of this host, such as https://a.example.", rich_help_panel=CHOICE
    ),
]
AtMost = Option(metavar="N", min=1, help="At most so many.", rich_help_panel=CHOICE)
Limit = Annotated[int, AtMost]
LimitOrAll = Annotated[int | None, AtMost]
AsJson = Annotated[bool, Option("--json", metavar=" ", help="Print JSON, for programs.")]


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
    return app


@with_debug
def list_letters(
    job: JobName = None,
    frontier: FrontierUrl = None,
    cause: Cause = None,
    host: Host = None,
    limit: Limit = 100,
    as_json: AsJson = False,
    config: Config = None,
) -> int:
    """List dead letters, the newest first; those that robots.txt refuses only where --cause names them."""

    async def read(opened: protocols.Frontier) -> tuple[list[DeadLetter], Mapping[str, int]]:
        causes = await opened.dead_causes()
        wanted = [cause] if cause or not REFUSALS & causes.keys() else sorted(causes.keys() - REFUSALS)
        found = [
            await opened.dead_letters(cause=one, host=key, limit=limit)
            for one, key in itertools.product(wanted, await _keys(opened, host))
        ]
        newest = sorted(itertools.chain(*found), key=lambda letter: -letter.at)
        return newest[:limit], causes

    letters, causes = with_frontier(one_store(job, frontier, config), read)
    for letter in letters:
        echo(msgspec.json.encode(letter) if as_json else _line(letter))
    if not as_json and any("\n" in letter.error.strip() for letter in letters):
        echo("with --json the errors have their tracebacks", err=True)
    total = sum(number for name, number in causes.items() if cause or name not in REFUSALS)
    if total > len(letters):
        echo(f"{len(letters)} of {total} dead letters", err=True)
    elif not letters:
        echo("no dead letters", err=True)
    refused = sum(number for name, number in causes.items() if name in REFUSALS)
    if refused and not cause:
        echo(f"{refused} refused by robots.txt are not listed: --cause robots lists them", err=True)
    return 0


@with_debug
def stats(
    job: JobName = None, frontier: FrontierUrl = None, as_json: AsJson = False, config: Config = None
) -> int:
    """Count dead letters by cause."""
    causes = with_frontier(one_store(job, frontier, config), lambda opened: opened.dead_causes())
    ordered = dict(figures.causes(causes))
    if as_json:
        echo(msgspec.json.encode(ordered))
        return 0
    for cause, number in [*ordered.items(), ("all", sum(causes.values()))]:
        echo(f"{number:>9,}  {cause}")
    return 0


@with_debug
def resend(
    job: JobName = None,
    frontier: FrontierUrl = None,
    cause: Cause = None,
    host: Host = None,
    limit: LimitOrAll = None,
    config: Config = None,
) -> int:
    """Put dead letters back to be visited; the next run of the job does it."""
    number = _each_host(
        one_store(job, frontier, config),
        host,
        limit,
        lambda opened, key, left: opened.resend(cause=cause, host=key, limit=left),
    )
    echo(f"{number:,} put back; run the job again to visit them" if number else "no such dead letters")
    return 0


@with_debug
def drop(
    job: JobName = None,
    frontier: FrontierUrl = None,
    cause: Cause = None,
    host: Host = None,
    limit: LimitOrAll = None,
    yes: Yes = False,
    config: Config = None,
) -> int:
    """Forget dead letters for good; their URLs count as done."""
    store = one_store(job, frontier, config)
    if not (yes or agreed(f"Forget these dead letters of {store.job} for good?")):
        return 0
    number = _each_host(
        store, host, limit, lambda opened, key, left: opened.drop(cause=cause, host=key, limit=left)
    )
    echo(f"{number:,} dropped" if number else "no such dead letters")
    return 0


@with_debug
def export(
    job: JobName = None,
    frontier: FrontierUrl = None,
    cause: Cause = None,
    host: Host = None,
    limit: LimitOrAll = None,
    output: Annotated[
        Path | None, Option("--output", "-o", metavar="FILE", help="Write there, not to standard output.")
    ] = None,
    config: Config = None,
) -> int:
    """Write dead letters as JSON tasks, a line each, the newest first: with their cause, error, deliveries,
    worker and time (Unix seconds). They stay where they are."""

    async def read(opened: protocols.Frontier) -> list[DeadLetter]:
        most = sum((await opened.dead_causes()).values()) if limit is None else limit
        keys = await _keys(opened, host)
        found = [await opened.dead_letters(cause=cause, host=key, limit=most) for key in keys]
        return sorted(itertools.chain(*found), key=lambda letter: -letter.at)[:most]

    letters = with_frontier(one_store(job, frontier, config), read)
    lines = b"".join(msgspec.json.encode(_task(letter)) + b"\n" for letter in letters)
    if output is None:
        echo(lines, nl=False)
    else:
        try:
            output.write_bytes(lines)
        except OSError as error:
            raise ConfigError(f"{output}: cannot be written: {error.strerror}") from error
        echo(f"{len(letters):,} written to {output}", err=True)
    return 0


def _task(letter: DeadLetter) -> dict[str, Any]:
    """As `JOB:task:dead` has it on a server: the task, and what became of it."""
    told = {name: getattr(letter, name) for name in ("cause", "error", "deliveries", "worker", "at")}
    return {**msgspec.to_builtins(letter.request), **told}


Verb = Callable[[protocols.Frontier, str | None, int | None], Awaitable[int]]


def _each_host(store: Store, host: str | None, limit: int | None, verb: Verb) -> int:
    """Apply the verb to the host under each of its keys; returns how many letters it was about."""

    async def apply(opened: protocols.Frontier) -> int:
        number = 0
        for key in await _keys(opened, host):
            number += await verb(opened, key, None if limit is None else limit - number)
        return number

    return with_frontier(store, apply)


async def _keys(opened: protocols.Frontier, host: str | None) -> list[str | None]:
    """The frontier's keys for a host: a URL means one origin, a bare name its two usual ones."""
    if host is None:
        return [None]
    urls = [host] if "://" in host else [f"https://{host}", f"http://{host}"]
    try:
        return list(dict.fromkeys(await opened.politeness_keys([check(url) for url in urls])))
    except BadUrlError as error:
        raise ConfigError(
            f"--host: {host!r} is no host; write shop.example or http://shop.example:8080"
        ) from error


def _line(letter: DeadLetter) -> str:
    when = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(letter.at))
    return (
        f"{when}  {letter.cause}  {letter.deliveries}x  {figures.one_line(letter.request.url)}"
        f"  {figures.one_line(figures.headline(letter.error), 200)}"
    )
