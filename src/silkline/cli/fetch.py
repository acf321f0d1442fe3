"""`silkline fetch`: one page, and everything that happened on the way, for the moment of "why?"."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Any

from typer import Argument, Option, echo

from silkline.cli.options import Config, with_debug, with_some_settings

EXAMPLES = """\
[bold]Examples[/bold]

  silkline fetch https://shop.example/
  silkline fetch https://shop.example/big.zip -o big.zip
  silkline fetch https://shop.example/ --json | jq .timings
"""
WHAT = "What to send, and where the body goes"

OPTIONS = (
    *("fetcher", "http_version", "headers", "user_agent", "contact", "identity", "auth", "cookies"),
    *("robots", "timeout", "max_body", "insecure", "ca_file", "allow_private"),
    *("proxy", "proxies", "proxy_region"),
    *("debug_http", "har", "wire_secrets"),
)
OF_A_JOB = frozenset({"job", "frontier", "outputs", "fresh", "strict", "files_dir", "cache", "cache_size"})
"""Settings that mean nothing to a single page, whatever the environment and silkline.toml say."""

FORM = "application/x-www-form-urlencoded"
"""What --data is, unless --header says something else."""


@with_debug
@with_some_settings(*OPTIONS)
def fetch(
    url: Annotated[str, Argument(metavar="URL", help="What to fetch.")],
    output: Annotated[
        str | None,
        Option("--output", "-o", metavar="FILE", help="Put the body there.", rich_help_panel=WHAT),
    ] = None,
    method: Annotated[
        str | None,
        Option(metavar="METHOD", help="\\[default: GET, or POST with --data]", rich_help_panel=WHAT),
    ] = None,
    data: Annotated[
        str | None,
        Option(
            metavar="TEXT",
            help="The request's body, a form unless --header says else; @FILE for a file's.",
            rich_help_panel=WHAT,
        ),
    ] = None,
    as_json: Annotated[bool, Option("--json", metavar=" ", help="Print one JSON object.")] = False,
    config: Config = None,
    *,
    given: dict[str, Any],
) -> int:
    """Fetch one page as a crawl would, and show what happened.

    Each exchange with its headers, the timings of each phase, redirects, what
    decided the charset, what robots.txt says, and how the body begins. Nothing
    is tried again, and robots.txt does not keep the page back. Credentials are
    hidden unless --wire-secrets is given. The exit code is 1 without an answer.
    """
    import asyncio

    from silkline.cli.fetched import as_json_object, as_text
    from silkline.cli.show import warn
    from silkline.engine.fetching import check_settings
    from silkline.engine.once import fetch_once
    from silkline.resolve import FIELDS, resolve

    resolved = resolve(given, os.environ, config=config, names=FIELDS.keys() - OF_A_JOB)
    warn(resolved.warnings)
    settings = resolved.settings
    check_settings(settings)
    has_type = any(line.lower().startswith("content-type:") for line in settings.headers)
    request = _request(url, output, method, data, has_type=has_type)
    fetched = asyncio.run(fetch_once(request, settings))
    if as_json:
        echo(as_json_object(fetched, secrets=settings.wire_secrets))
    else:
        echo(as_text(fetched, secrets=settings.wire_secrets))
    return 0 if fetched.response is not None else 1


def _request(url: str, output: str | None, method: str | None, data: str | None, *, has_type: bool) -> Any:
    """has_type: the settings name a Content-Type. Raises ConfigError for what cannot be sent."""
    from silkline.errors import BadUrlError, ConfigError, TaskError
    from silkline.fetch.target import credentials_apart
    from silkline.request import Request, request_from_task
    from silkline.url import check

    try:
        body = _body(data)
        verb = (method or ("GET" if body is None else "POST")).upper()
        request_from_task(f'{{"url": "http://x/", "method": "{verb}"}}')
        save_to = None if output is None else str(Path(output).absolute())
        headers = {} if body is None or has_type else {"Content-Type": FORM}
        if "@" in url:
            url, headers = credentials_apart(url, headers)
        return Request(check(url), method=verb, headers=headers, body=body, save_to=save_to)
    except (BadUrlError, TaskError) as error:
        raise ConfigError(str(error)) from error


def _body(data: str | None) -> bytes | None:
    from silkline.errors import ConfigError

    if data is None or not data.startswith("@"):
        return None if data is None else data.encode()
    try:
        return Path(data[1:]).read_bytes()
    except OSError as error:
        raise ConfigError(f"--data {data}: cannot be read: {error.strerror}") from error
