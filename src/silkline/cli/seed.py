"""`silkline seed`: a producer of requests for a job that others crawl."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Argument, Option

from silkline.cli.options import Config, with_debug
from silkline.errors import ConfigError
from silkline.resolve import resolve

if TYPE_CHECKING:
    from silkline.seeds import Seed

FROM = "Where the requests come from"
FLOW = "How they are added"
AGAIN = "Again and again"
EXAMPLES = """\
[bold]Examples[/bold]

  silkline seed urls.txt --job shop
  zcat urls.gz | silkline seed - --job shop
  silkline seed --sitemap https://shop.example/sitemap.xml --job shop
  silkline seed --sql postgresql://me@db/shop --query 'select url, id from products' --every 30m
"""

Words = Annotated[
    list[str] | None,
    Argument(metavar="FILE|URL|-", help="Files with a URL or JSON task a line, URLs, - for standard input."),
]
Job = Annotated[str | None, Option(metavar="NAME", help="The job that gets them. \\[default: spider]")]
Frontier = Annotated[
    str | None,
    Option(
        metavar="URL",
        help="Where its requests live: sqlite:///PATH, redis://HOST:PORT/DB. \\[default: .silkline/JOB.db]",
    ),
]
Sql = Annotated[
    str | None,
    Option(
        metavar="URL",
        help="A database: postgresql://, mysql:// (also MariaDB) or sqlite:///PATH.",
        rich_help_panel=FROM,
    ),
]
QueryText = Annotated[
    str | None,
    Option(
        "--query",
        metavar="SQL",
        help="What to read from it: a column url; label, priority, method, headers, body and key where there"
        " are such; the other columns become the request's extra data.",
        rich_help_panel=FROM,
    ),
]
SitemapUrls = Annotated[
    list[str] | None,
    Option(
        "--sitemap",
        metavar="URL",
        help="The pages that a sitemap lists; the home page of a site stands for those that its robots.txt"
        " names. Repeatable.",
        rich_help_panel=FROM,
    ),
]
Since = Annotated[
    str | None,
    Option(
        metavar="DATE",
        help="With --sitemap: only pages that have changed since then, such as 2026-01-31.",
        rich_help_panel=FROM,
    ),
]
Batch = Annotated[
    int | None,
    Option(
        metavar="N",
        min=1,
        help="Add at most so many at once. \\[default: 5000 on SQLite, 1000 on a server]",
        rich_help_panel=FLOW,
    ),
]
MaxWaiting = Annotated[
    int | None,
    Option(
        metavar="N",
        min=1,
        help="Wait while so many requests are queued; go on at four fifths of that.",
        rich_help_panel=FLOW,
    ),
]
Every = Annotated[
    str | None,
    Option(
        metavar="TIME|CRON",
        help="Repeat until a signal: 30m, 2h, 1d; or a cron expression such as '0 */2 * * *', in local time.",
        rich_help_panel=AGAIN,
    ),
]
Revisit = Annotated[
    bool,
    Option(
        "--revisit",
        metavar=" ",
        help="Visit again what the job knows from earlier runs, instead of leaving it out.",
        rich_help_panel=AGAIN,
    ),
]
AsJson = Annotated[bool, Option("--json", metavar=" ", help="Print JSON, a line for each run.")]


@with_debug
def seed(
    words: Words = None,
    job: Job = None,
    frontier: Frontier = None,
    sql: Sql = None,
    query: QueryText = None,
    sitemap: SitemapUrls = None,
    since: Since = None,
    batch: Batch = None,
    max_waiting: MaxWaiting = None,
    every: Every = None,
    revisit: Revisit = False,
    as_json: AsJson = False,
    config: Config = None,
) -> int:
    """Add requests to a job, for its workers to visit.

    What the job has seen before is left out. Run again after whatever
    happened, it goes on: nothing is lost, and nothing is added twice.
    """
    from silkline.cli.seeding import Recipe, run
    from silkline.cli.show import warn
    from silkline.cli.store import with_job_of_frontier
    from silkline.engine.producer import Flow
    from silkline.engine.schedule import schedule_from

    seeds: list[Seed] = [_seed(word) for word in words or ()]
    if (sql is None) != (query is None):
        raise ConfigError("--sql URL says which database, --query SQL what to read: give both")
    if since is not None and not sitemap:
        raise ConfigError("--since goes with --sitemap URL")
    if not seeds and sql is None and not sitemap:
        raise ConfigError(
            "nothing to add: give a file, a URL, - for standard input, --sitemap, or --sql and --query"
        )
    schedule = None if every is None else schedule_from(every)
    if schedule is not None and Path("-") in seeds:
        raise ConfigError("standard input can be read once only: --every needs a file, a URL or --sql")
    resolved = with_job_of_frontier(resolve({"job": job, "frontier": frontier}, os.environ, config=config))
    warn(resolved.warnings)
    recipe = Recipe(
        settings=resolved.settings,
        seeds=tuple(seeds),
        sitemaps=tuple(sitemap or ()),
        since=since,
        query=None if sql is None or query is None else (sql, query),
        flow=Flow(batch=batch, max_waiting=max_waiting),
        revisit=revisit,
    )
    return run(recipe, schedule, as_json=as_json)


def _seed(word: str) -> Seed:
    if "://" in word:
        return word
    path = Path(word)
    if word != "-" and not path.exists():
        raise ConfigError(f"{word}: no such file; a URL begins with https:// or http://")
    return path
