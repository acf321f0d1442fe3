"""`silkline dead`: the requests that were given up, and why."""

from __future__ import annotations

import itertools
import sys
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Annotated

import msgspec
import typer
from typer import Option, echo

from silkline import protocols
from silkline.cli.options import Config, with_debug
from silkline.cli.store import Store, one_store, with_frontier
from silkline.errors import BadUrlError, ConfigError
from silkline.observe import figures
from silkline.outcome import REFUSALS, DeadLetter
from silkline.url import check, host_of

EXAMPLES = """\
[bold]Examples[/bold]

  silkline dead list --job shop --cause http_503
  silkline dead resend --job shop --host shop.example
"""
CHOICE = "Which ones"

Job = Annotated[str | None, Option(metavar="NAME", help="The job. Not needed where there is only one.")]
Frontier = Annotated[str | None, Option(metavar="URL", help="Its frontier, if it is not .silkline/JOB.db.")]
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
    return app


@with_debug
def list_letters(
    job: Job = None,
    frontier: Frontier = None,
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
            for one, key in itertools.product(wanted, _keys(host))
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
def stats(job: Job = None, frontier: Frontier = None, as_json: AsJson = False, config: Config = None) -> int:
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
    job: Job = None,
    frontier: Frontier = None,
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
    job: Job = None,
    frontier: Frontier = None,
    cause: Cause = None,
    host: Host = None,
    limit: LimitOrAll = None,
    yes: Annotated[bool, Option("--yes", "-y", metavar=" ", help="Do not ask.")] = False,
    config: Config = None,
) -> int:
    """Forget dead letters for good; their URLs count as done."""
    store = one_store(job, frontier, config)
    if not (yes or _agreed(f"Forget these dead letters of {store.job} for good?")):
        return 0
    number = _each_host(
        store, host, limit, lambda opened, key, left: opened.drop(cause=cause, host=key, limit=left)
    )
    echo(f"{number:,} dropped" if number else "no such dead letters")
    return 0


def _agreed(question: str) -> bool:
    """Raises ConfigError where there is nobody to ask, or no answer."""
    unanswered = ConfigError("what is dropped is gone for good, and nobody was there to ask: add --yes")
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise unanswered
    try:
        return typer.confirm(question, err=True)
    except typer.Abort as error:
        if isinstance(error.__context__, EOFError):
            raise unanswered from error
        raise


Verb = Callable[[protocols.Frontier, str | None, int | None], Awaitable[int]]


def _each_host(store: Store, host: str | None, limit: int | None, verb: Verb) -> int:
    """Apply the verb to the host under each of its keys; returns how many letters it was about."""

    async def apply(opened: protocols.Frontier) -> int:
        number = 0
        for key in _keys(host):
            number += await verb(opened, key, None if limit is None else limit - number)
        return number

    return with_frontier(store, apply)


def _keys(host: str | None) -> list[str | None]:
    """The frontier's keys for a host: a URL means one origin, a bare name its two usual ones."""
    if host is None:
        return [None]
    urls = [host] if "://" in host else [f"https://{host}", f"http://{host}"]
    try:
        return [host_of(check(url)) for url in urls]
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
