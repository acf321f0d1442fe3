"""Which of a job's dead letters or dead items a command is about."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Annotated

from typer import Option, echo

from silkline import protocols
from silkline.cli.store import Store, with_frontier
from silkline.errors import BadUrlError, ConfigError
from silkline.url import check

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
Output = Annotated[
    Path | None, Option("--output", "-o", metavar="FILE", help="Write there, not to standard output.")
]

Verb = Callable[[protocols.Frontier, str | None, int | None], Awaitable[int]]


def each_host(store: Store, host: str | None, limit: int | None, verb: Verb) -> int:
    """Apply the verb to the host under each of its keys; returns the sum of what it returns."""

    async def apply(opened: protocols.Frontier) -> int:
        number = 0
        for key in await host_keys(opened, host):
            number += await verb(opened, key, None if limit is None else limit - number)
        return number

    return with_frontier(store, apply)


async def host_keys(opened: protocols.Frontier, host: str | None) -> list[str | None]:
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


def written(lines: bytes, number: int, output: Path | None) -> None:
    """Write lines to the file, and say how many; None for standard output."""
    if output is None:
        echo(lines, nl=False)
        return
    try:
        output.write_bytes(lines)
    except OSError as error:
        raise ConfigError(f"{output}: cannot be written: {error.strerror}") from error
    echo(f"{number:,} written to {output}", err=True)


def moment(at: float) -> str:
    """Unix seconds in local time."""
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(at))
