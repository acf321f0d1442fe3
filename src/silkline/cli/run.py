"""`silkline run`: a Crawler object in a Python file."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Option, echo

from silkline.cli.options import Config, ShowConfig, Urls, urls_file_in, with_debug, with_settings
from silkline.config import Settings
from silkline.errors import ConfigError
from silkline.resolve import FIELDS, Resolved, option_of, resolve

if TYPE_CHECKING:
    from silkline.seeds import Seed

WHAT = "What to run"
EXAMPLES = """\
[bold]Examples[/bold]

  silkline run quotes.py https://quotes.example/ -o quotes.csv
  silkline run spiders.py:shop --urls urls.txt --processes 2
"""


Spider = Annotated[
    str,
    Argument(
        metavar="FILE[:NAME]",
        help="A Python file with a Crawler; NAME of the variable, if there are several.",
    ),
]
UrlsFile = Annotated[str | None, urls_file_in(WHAT)]
Name = Annotated[
    str | None,
    Option(metavar="NAME", help="The variable that holds the Crawler.", rich_help_panel=WHAT),
]
FromWarc = Annotated[
    list[str] | None,
    Option(
        "--from-warc",
        metavar="FILE",
        help="Fetch nothing: answer from WARC files of an earlier crawl. Can be given several times.",
        rich_help_panel=WHAT,
    ),
]


@with_debug
@with_settings
def run(
    spider: Spider,
    urls: Urls = None,
    urls_file: UrlsFile = None,
    name: Name = None,
    from_warc: FromWarc = None,
    config: Config = None,
    show_config: ShowConfig = False,
    *,
    given: dict[str, Any],
) -> int:
    """Run the Crawler of a Python file.

    What the file does under if __name__ == "__main__" is not run. Options, the
    environment and silkline.toml win over what the file sets. Without a URL,
    a job that was begun goes on. Where neither names an output, the items are
    kept beside the job, and the first ones are shown.

    With --from-warc the job is another one, NAME-warc, and without a URL all pages
    of the archives are visited.
    """
    from silkline.cli.load import crawler_named
    from silkline.cli.preview import with_preview
    from silkline.cli.show import conduct, settings_table, warn
    from silkline.cli.store import begun, in_force, with_job_of_frontier

    path, crawler = crawler_named(spider, name)
    resolved = resolve(given, os.environ, config=config, spider=changed(crawler.settings), spider_name=path)
    resolved = with_job_of_frontier(resolved)
    archive = None
    if from_warc:
        from silkline.fetch.warc import WarcFetcher

        resolved = offline(resolved)
        archive = WarcFetcher(*from_warc, max_redirects=resolved.settings.max_redirects)
        crawler.use(archive)
    warn([*resolved.warnings, *(archive.warnings if archive is not None else ())])
    nothing_is_kept = resolved.settings.frontier_url == "memory:"
    resolved, preview = with_preview(resolved, elsewhere=bool(crawler.sinks) or nothing_is_kept)
    if show_config:
        echo(settings_table(in_force(resolved)))
        return 0
    seeds: list[Seed] = [*(urls or ()), *([Path(urls_file)] if urls_file else [])]
    if archive is not None and not seeds:
        seeds = [archive.urls()]
    if not seeds and (resolved.settings.fresh or not begun(resolved.settings)):
        raise ConfigError(
            f"job {resolved.settings.job!r} has nothing to crawl yet: silkline run {spider} https://..."
        )
    return conduct(crawler, seeds, resolved, preview=preview)


def offline(resolved: Resolved) -> Resolved:
    """Nobody is asked, so nobody has to be spared; and a job that is parsed again is another job."""
    why = "with --from-warc"
    for name, value in (("robots", False), ("adaptive", False), ("delay", 0.0), ("cache", "off")):
        resolved = resolved.having(name, value, why)
    if resolved.origins["job"] != option_of("job"):
        resolved = resolved.having("job", f"{resolved.settings.job}-warc", why)
    return resolved


def changed(settings: Settings) -> dict[str, Any]:
    """What the spider's file sets: the rest are the defaults."""
    defaults = Settings()
    return {name: value for name in FIELDS if (value := getattr(settings, name)) != getattr(defaults, name)}
