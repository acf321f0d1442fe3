"""`silkline work`: a worker of a job that others seed."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, echo

from silkline.cli.crawl import Fields, Follow, FollowAll, Item
from silkline.cli.options import Config, ShowConfig, with_debug, with_settings
from silkline.config import Settings
from silkline.errors import ConfigError
from silkline.resolve import Resolved, redacted, resolve

if TYPE_CHECKING:
    from silkline.cli.declared import Declaration
    from silkline.crawler import Crawler

EXAMPLES = """\
[bold]Examples[/bold]

  silkline work spider.py --job shop --frontier redis://10.0.0.5:6379/0 --processes 2
  silkline work --job shop --field title=title -o out.jsonl
  silkline work spider.py --job shop --keep-alive
"""


@with_debug
@with_settings
def work(
    spider: Annotated[
        str | None,
        Argument(
            metavar="FILE[:NAME]",
            help="A Python file with a Crawler; NAME of the variable, if there are several. Without it, the"
            " options below say what to take and to follow.",
        ),
    ] = None,
    follow: Follow = None,
    follow_all: FollowAll = False,
    item: Item = None,
    field: Fields = None,
    config: Config = None,
    show_config: ShowConfig = False,
    *,
    given: dict[str, Any],
) -> int:
    """Visit what is waiting in a job, beside any number of other workers on any machines.

    It adds no URLs of its own to begin with: silkline seed does, or any program. It
    ends when the job is complete; with --keep-alive it waits for more.
    """
    from silkline.cli.declared import Declaration, following_all
    from silkline.cli.preview import with_preview
    from silkline.cli.show import conduct, settings_table, warn
    from silkline.cli.store import in_force, with_job_of_frontier

    declaration = Declaration(
        fields=tuple(field or ()),
        item=item,
        follow=tuple(follow or ()),
        follow_all=follow_all,
    )
    if spider is None:
        crawler, resolved = _declared(declaration), resolve(given, os.environ, config=config)
    elif declaration != Declaration():
        raise ConfigError(f"{spider} says what to take and to follow: leave out --field, --item and --follow")
    else:
        crawler, resolved = _of_file(spider, given, config)
    if follow_all:
        resolved = following_all(resolved)
    resolved = with_job_of_frontier(resolved)
    warn(resolved.warnings)
    resolved, preview = with_preview(resolved, elsewhere=bool(crawler.sinks))
    if show_config:
        echo(settings_table(in_force(resolved)))
        return 0
    _refuse_without_work(resolved.settings)
    return conduct(crawler, (), resolved, preview=preview)


def _declared(declaration: Declaration) -> Crawler:
    from silkline.cli.declared import declared_crawler

    return declared_crawler(declaration, defines_job=False)


def _of_file(spider: str, given: dict[str, Any], config: Path | None) -> tuple[Crawler, Resolved]:
    from silkline.cli.load import crawler_named
    from silkline.cli.run import changed

    path, crawler = crawler_named(spider, command="work")
    resolved = resolve(given, os.environ, config=config, spider=changed(crawler.settings), spider_name=path)
    return crawler, resolved


def _refuse_without_work(settings: Settings) -> None:
    """Raises ConfigError where nobody has begun the job, unless the worker is to wait for that."""
    from silkline.cli.store import begun

    url, job = settings.frontier_url, settings.job
    if url == "memory:":
        raise ConfigError("memory: is seen by nobody else: a worker needs sqlite:///PATH or redis://HOST")
    if settings.fresh:
        raise ConfigError("a worker shares its job with others: silkline purge starts over")
    if not settings.keep_alive and not begun(settings):
        raise ConfigError(
            f"there is no job {job!r} at {redacted(url)} yet: add to it with silkline seed --job {job}, "
            "or wait for it with --keep-alive"
        )
