"""`silkline demo`: the bundled shop, alone or crawled."""

from __future__ import annotations

import multiprocessing
import os
import signal
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Annotated, Any

from typer import Option, echo

from silkline.cli.interrupt import let_signals_in, signals_held
from silkline.cli.options import Config, ShowConfig, with_debug, with_settings
from silkline.errors import ConfigError

DEMO = "The demo shop"
ON_PURPOSE = (
    "demo: some pages of this shop fail, stall or limit the rate on purpose: such lines below belong to it"
)
EXAMPLES = """\
[bold]Examples[/bold]

  silkline demo --crawl
  silkline demo --crawl --processes 2 -o products.csv
  silkline demo --port 8000
"""


@with_debug
@with_settings
def demo(
    crawl: Annotated[
        bool,
        Option("--crawl", metavar=" ", help="Crawl it, too, and show what was found.", rich_help_panel=DEMO),
    ] = False,
    port: Annotated[
        int, Option(metavar="PORT", help="Where to serve it; 0 for any free port.", rich_help_panel=DEMO)
    ] = 0,
    config: Config = None,
    show_config: ShowConfig = False,
    *,
    given: dict[str, Any],
) -> int:
    """Serve a small made-up shop on this machine, to practise on.

    It has products, pagination, and pages that are slow, fail, redirect or limit
    the rate. With --crawl it is crawled, too; what that keeps is thrown away at
    the end, so that every time is the first.
    """
    if not crawl and not show_config:
        return _serve_alone(port)

    from silkline.cli.crawl import crawl_declared
    from silkline.cli.declared import Declaration
    from silkline.resolve import resolve

    with ExitStack() as stack:
        declaration = Declaration(
            urls=(f"{stack.enter_context(serving(port))}/",),
            follow_all=True,
            item="article.detail",
            fields=("name=h1", "price=.price", "stock=.availability", "article=.sku span"),
        )
        folder = None
        given = {**given, "job": given["job"] or "demo"}
        if given["frontier"] is None:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="silkline-demo-")))
            given["frontier"] = f"sqlite:///{folder}/demo.db"
        if not show_config and not resolve(given, os.environ, config=config).settings.quiet:
            echo(ON_PURPOSE, err=True)
        return crawl_declared(declaration, given, config=config, show_config=show_config, thrown_away=folder)


def _serve_alone(port: int) -> int:
    import asyncio

    from silkline.demo import DemoServer

    async def serve() -> None:
        stopped = asyncio.Event()
        for number in (signal.SIGINT, signal.SIGTERM):
            asyncio.get_running_loop().add_signal_handler(number, stopped.set)
        async with DemoServer(port=port) as server:
            echo(f"the demo shop is open at {server.url}/ (Ctrl-C closes it)")
            await stopped.wait()

    asyncio.run(serve())
    return 0


@contextmanager
def serving(port: int = 0) -> Iterator[str]:
    """The shop in a process of its own, for as long as the block and this process last.

    A process, because a crawl with several processes forks, and must not do so beside a running thread.
    Raises ConfigError where the port cannot be had.
    """
    context = multiprocessing.get_context("fork")
    ours, theirs = context.Pipe()
    process = context.Process(target=_serve_beside, args=(port, theirs, ours), name="silkline-demo")
    try:
        with signals_held():
            process.start()
        theirs.close()
        url, error = ours.recv()
        if error:
            raise ConfigError(error)
        yield url
    finally:
        ours.close()
        theirs.close()
        if process.pid is not None:
            process.join()


def _serve_beside(port: int, connection: Connection, other_end: Connection) -> None:
    # The crawl winds down at Ctrl-C, and needs the shop for that; a closed pipe says when it is done.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    let_signals_in()
    other_end.close()

    from silkline.demo import serve_in_thread

    try:
        with suppress(BrokenPipeError), serve_in_thread(port=port) as url:  # interrupted before it was open
            connection.send((url, ""))
            connection.poll(None)
    except ConfigError as error:
        connection.send(("", str(error)))
