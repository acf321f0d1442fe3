"""`silkline proxies`: try the proxies of a list."""

from __future__ import annotations

import os
from typing import Annotated, Any

import typer
from typer import Argument, Option, echo

from silkline.cli.options import with_debug, with_some_settings
from silkline.errors import BadUrlError, ConfigError

EXAMPLES = """
[bold]Examples[/bold]

silkline proxies test proxies.txt --echo https://api.ipify.org

silkline proxies test --proxy socks5://me:secret@proxy.example:1080 --echo https://api.ipify.org
"""


def application() -> typer.Typer:
    app = typer.Typer(no_args_is_help=True, help="Try proxies.")
    app.callback()(_group)
    app.command("test", epilog=EXAMPLES)(try_proxies)
    return app


def _group() -> None:
    """Try proxies."""


@with_debug
@with_some_settings("fetcher", "insecure", "ca_file")
def try_proxies(
    source: Annotated[
        str | None, Argument(metavar="[FILE|URL]", help="A list of proxies, one a line; or where to get one.")
    ] = None,
    proxy: Annotated[
        list[str] | None,
        Option("--proxy", metavar="URL", help="Try this proxy, too. Can be given several times."),
    ] = None,
    echo_url: Annotated[
        str | None,
        Option("--echo", metavar="URL", help="What is fetched: a page that names the address of who asks."),
    ] = None,
    timeout: Annotated[str, Option(metavar="TIME", help="Time for one proxy.")] = "15s",
    as_json: Annotated[bool, Option("--json", metavar=" ", help="One JSON object a line.")] = False,
    *,
    given: dict[str, Any],
) -> int:
    """Fetch a page through each proxy and show which work, how fast, and under which address.

    Exits with 1 if none works.
    """
    import asyncio

    import msgspec
    import uvloop

    from silkline.cli.tried import table_of, tried
    from silkline.resolve import convert, resolve
    from silkline.url import check

    if not source and not proxy:
        raise ConfigError("no proxy to try: name a file, such as proxies.txt, or --proxy URL")
    if not echo_url:
        raise ConfigError("what is to be fetched through them? for example --echo https://api.ipify.org")
    try:
        url = check(echo_url)
    except BadUrlError as error:
        raise ConfigError(f"--echo: {error}") from error
    resolved = resolve(given, os.environ, names=given.keys())
    seconds = convert("timeout", timeout, "--timeout")
    settings = msgspec.structs.replace(resolved.settings, timeout=seconds)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        results = runner.run(tried(source, proxy or (), url, settings))
    if as_json:
        for result in results:
            echo(msgspec.json.encode(result))
    else:
        for line in table_of(results):
            echo(line)
    return 0 if any(result.works for result in results) else 1
