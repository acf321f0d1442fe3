"""`silkline explain`: where one URL is, and why."""

from __future__ import annotations

from typing import Annotated

import msgspec
from typer import Argument, Option, echo

from silkline.cli.options import Config, FrontierUrl, JobName, with_debug
from silkline.cli.paces import reasons
from silkline.cli.store import Store, one_store, with_frontier
from silkline.errors import BadUrlError, ConfigError
from silkline.observe import figures
from silkline.observe.standing import host_fields, host_line, is_paused
from silkline.outcome import HostState, Whereabouts
from silkline.protocols import Frontier
from silkline.resolve import without_password, without_passwords
from silkline.url import check

EXAMPLES = """\
[bold]Examples[/bold]

  silkline explain https://shop.example/p/7 --job shop
"""

ON_THE_WAY = ("waiting", "delayed", "leased")
"""Where the pace of its host matters to a URL."""


@with_debug
def explain(
    url: Annotated[str, Argument(metavar="URL", help="Of a request without a key of its own.")],
    job: JobName = None,
    frontier: FrontierUrl = None,
    as_json: Annotated[bool, Option("--json", metavar=" ", help="Print JSON, for programs.")] = False,
    config: Config = None,
) -> int:
    """Tell where a URL is in a job: waiting, delayed, leased, done, dead or never seen, and why."""
    try:
        check(url)
    except BadUrlError as error:
        raise ConfigError(str(error)) from error
    found, host, paused = _found(one_store(job, frontier, config), url)
    found = msgspec.structs.replace(found, detail=without_passwords(found.detail))
    reason = "" if host is None else reasons([host]).get(host.key, "")
    if as_json:
        fields = {
            "url": without_password(url),
            "place": found.place,
            "detail": found.detail,
            "paused": paused,
        }
        echo(msgspec.json.encode(fields | {"host": None if host is None else host_fields(host, reason)}))
        return 0
    line = ": ".join(filter(None, (found.place, figures.one_line(found.detail))))
    echo(f"{line} (the job is paused)" if paused and found.place in ON_THE_WAY else line)
    if host is not None and found.place in ON_THE_WAY:
        echo(host_line(host, reason))
    return 0


def _found(store: Store, url: str) -> tuple[Whereabouts, HostState | None, bool]:
    """The URL with the job's own rules, where they keep it from there; its host; whether all is paused."""
    from silkline.engine.discovery import rules_in
    from silkline.engine.refusals import why_never_seen

    facts = with_frontier(store, lambda opened: opened.recall())
    most = rules_in(facts).max_pages_per_host
    store = Store(store.url, msgspec.structs.replace(store.options, max_pages_per_host=most))

    async def look(opened: Frontier) -> tuple[Whereabouts, HostState | None, bool]:
        found = await opened.explain(url)
        key = found.host or (await opened.politeness_keys([url]))[0]
        if found.place == "never seen" and not found.detail:
            found = Whereabouts(found.place, await why_never_seen(opened, facts, url))
        return found, await opened.host(key), is_paused(await opened.configure({}))

    return with_frontier(store, look)
