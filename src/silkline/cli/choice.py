"""Which of a job's dead letters or dead items a command is about."""

from __future__ import annotations

import inspect
import time
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Annotated, Any

import msgspec
from typer import Option, echo

from silkline import protocols
from silkline.cli.options import Config, FrontierUrl, JobName, parameter, presented, with_debug
from silkline.cli.store import Store, one_store, with_frontier
from silkline.errors import BadUrlError, ConfigError
from silkline.observe import figures
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


class Chosen(msgspec.Struct, frozen=True):
    """What the options say: of which job, and which ones of it. limit: None for all."""

    store: Store
    cause: str | None
    host: str | None
    limit: int | None

    def none(self, what: str, causes: Mapping[str, int]) -> str:
        """What is said where none was found: a cause that none has may be a slip, so those that there are.

        what: dead letters or dead items. causes: of all of them.
        """
        if self.cause is None or self.cause in causes:
            return f"no such {what}" if self.cause or self.host else f"no {what}"
        if not causes:
            return f"no {what}"
        there = figures.listed([cause for cause, _ in figures.causes(causes)])
        return f"no {what} with cause {self.cause!r}; their causes are: {there}"

    def apply(self, verb: Verb) -> int:
        """The verb for the host under each of its keys; returns the sum of what it returns."""

        async def each(opened: protocols.Frontier) -> int:
            number = 0
            for key in await host_keys(opened, self.host):
                number += await verb(opened, key, None if self.limit is None else self.limit - number)
            return number

        return with_frontier(self.store, each)


def with_choice(limit: int | None = None) -> Callable[[Callable[..., int]], Callable[..., int]]:
    """Give a command the options that choose, and --debug; it gets a `Chosen` for them, first.

    limit: what --limit is if nothing is said; None for all.
    """

    def decorate(command: Callable[..., int]) -> Callable[..., int]:
        _, *own = inspect.signature(command, eval_str=True).parameters.values()

        def chosen(
            *,
            job: str | None,
            frontier: str | None,
            cause: str | None,
            host: str | None,
            limit: int | None,
            config: Path | None,
            **values: Any,
        ) -> int:
            return command(Chosen(one_store(job, frontier, config), cause, host, limit), **values)

        options = [
            parameter("job", JobName, None),
            parameter("frontier", FrontierUrl, None),
            parameter("cause", Cause, None),
            parameter("host", Host, None),
            parameter("limit", LimitOrAll if limit is None else Limit, limit),
        ]
        return with_debug(presented(chosen, command, [*options, *own, parameter("config", Config, None)]))

    return decorate


def print_causes(causes: Mapping[str, int], *, as_json: bool) -> None:
    """How many each cause has, and how many there are in all."""
    ordered = dict(figures.causes(causes))
    if as_json:
        echo(msgspec.json.encode(ordered))
        return
    for cause, number in [*ordered.items(), ("all", sum(causes.values()))]:
        echo(f"{number:>9,}  {cause}")


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
