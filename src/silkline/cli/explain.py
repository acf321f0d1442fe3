"""`silkline explain`: where one URL is, and why."""

from __future__ import annotations

from typing import Annotated

import msgspec
from typer import Argument, Option, echo

from silkline.cli.options import Config, FrontierUrl, JobName, with_debug
from silkline.cli.store import Store, one_store, with_frontier
from silkline.errors import BadUrlError, ConfigError
from silkline.observe import figures
from silkline.outcome import Whereabouts
from silkline.url import check

EXAMPLES = """\
[bold]Examples[/bold]

  silkline explain https://shop.example/p/7 --job shop
"""


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
    found = _found(one_store(job, frontier, config), url)
    if as_json:
        echo(msgspec.json.encode({"url": url, "place": found.place, "detail": found.detail}))
    else:
        echo(": ".join(filter(None, (found.place, figures.one_line(found.detail)))))
    return 0


def _found(store: Store, url: str) -> Whereabouts:
    """With the job's own rules, where they keep it from the URL."""
    from silkline.engine.discovery import rules_in, why_never_seen

    facts = with_frontier(store, lambda opened: opened.recall())
    most = rules_in(facts).max_pages_per_host
    store = Store(store.url, msgspec.structs.replace(store.options, max_pages_per_host=most))
    found = with_frontier(store, lambda opened: opened.explain(url))
    if found.place != "never seen" or found.detail:
        return found
    return Whereabouts(found.place, why_never_seen(facts, url))
