"""All commands, put together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import typer

from silkline.cli import (
    config,
    crawl,
    dead,
    demo,
    explain,
    export,
    fetch,
    proxies,
    purge,
    run,
    seed,
    status,
    work,
)
from silkline.version import __version__


def perform(words: Sequence[str]) -> int:
    """Do what the words of a command line say; returns the exit code. Raises whatever goes wrong."""
    try:
        return int(application()(list(words), prog_name="silkline", standalone_mode=False) or 0)
    except typer.Abort:
        raise KeyboardInterrupt from None


def application() -> typer.Typer:
    """All commands."""
    app = typer.Typer(
        help="A web crawler that can be killed at any instant and loses nothing.",
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
        rich_markup_mode="rich",
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(_root)
    app.command(epilog=crawl.EXAMPLES)(crawl.crawl)
    app.command(epilog=run.EXAMPLES)(run.run)
    app.command(epilog=seed.EXAMPLES)(seed.seed)
    app.command(epilog=work.EXAMPLES)(work.work)
    app.command(epilog=fetch.EXAMPLES)(fetch.fetch)
    app.command(epilog=demo.EXAMPLES)(demo.demo)
    app.command(epilog=status.EXAMPLES)(status.status)
    app.command(epilog=export.EXAMPLES)(export.export)
    app.command(epilog=explain.EXAMPLES)(explain.explain)
    app.add_typer(dead.application())
    app.add_typer(proxies.application(), name="proxies")
    app.add_typer(config.application())
    app.command(epilog=purge.EXAMPLES)(purge.purge)
    return app


def _root(
    version: Annotated[
        bool,
        typer.Option("--version", metavar=" ", help="Print the version.", is_eager=True, callback=_version),
    ] = False,
) -> None:
    """What stands before a command."""


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"silkline {__version__}")
        raise typer.Exit
