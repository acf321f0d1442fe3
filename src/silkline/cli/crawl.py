"""`silkline crawl`: a crawl described by options alone."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
from typer import Option, echo

from silkline.cli.options import Config, ShowConfig, Urls, urls_file_in, with_debug, with_settings
from silkline.errors import ConfigError
from silkline.resolve import DEFAULT, resolve

if TYPE_CHECKING:
    from silkline.cli.declared import Declaration
    from silkline.seeds import Seed

FROM = "Where to start and what to follow"
ITEMS = "What to take"
EXAMPLES = """\
[bold]Examples[/bold]

  silkline crawl https://shop.example/ --follow a.next -o pages.csv
  silkline crawl https://shop.example/ --item .product --field name=h2
  silkline crawl --urls urls.txt --field title=title -o titles.jsonl
  silkline crawl --sitemap https://shop.example/ --since 2026-01-31
"""

UrlsFile = Annotated[str | None, urls_file_in(FROM)]
SitemapUrls = Annotated[
    list[str] | None,
    Option(
        "--sitemap",
        metavar="URL",
        help="Start at the pages that a sitemap lists; the home page of a site stands for those that its"
        " robots.txt names. Repeatable.",
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
Follow = Annotated[
    list[str] | None,
    Option(
        metavar="CSS", help="Follow the links that match. Can be given several times.", rich_help_panel=FROM
    ),
]
FollowAll = Annotated[
    bool,
    Option(
        "--follow-all", metavar=" ", help="Follow all links to the hosts of the start.", rich_help_panel=FROM
    ),
]
Item = Annotated[
    str | None,
    Option(metavar="CSS", help="One item for each match, not one for each page.", rich_help_panel=ITEMS),
]
Fields = Annotated[
    list[str] | None,
    Option(
        "--field",
        metavar="NAME=CSS",
        help="A field of the item: text of the first match, or CSS::html, CSS::attr(NAME). Repeatable."
        " Without it, an item has url, status and title.",
        rich_help_panel=ITEMS,
    ),
]


@with_debug
@with_settings
def crawl(
    urls: Urls = None,
    urls_file: UrlsFile = None,
    sitemap: SitemapUrls = None,
    since: Since = None,
    follow: Follow = None,
    follow_all: FollowAll = False,
    item: Item = None,
    field: Fields = None,
    config: Config = None,
    show_config: ShowConfig = False,
    *,
    given: dict[str, Any],
) -> int:
    """Crawl pages and take items from them, without writing code.

    The same command run again goes on where it stopped. Without --output
    the items are kept beside the job, and the first ones are shown.
    """
    from silkline.cli.declared import Declaration

    return crawl_declared(
        Declaration(
            urls=tuple(urls or ()),
            urls_file=urls_file,
            sitemaps=tuple(sitemap or ()),
            since=since,
            fields=tuple(field or ()),
            item=item,
            follow=tuple(follow or ()),
            follow_all=follow_all,
        ),
        given,
        config=config,
        show_config=show_config,
    )


def crawl_declared(
    declaration: Declaration,
    given: Mapping[str, Any],
    *,
    config: Path | None = None,
    show_config: bool = False,
    thrown_away: Path | None = None,
) -> int:
    """Run a declared crawl, or show its settings. Returns the exit code.

    thrown_away: the folder of a job that nobody wants to keep.
    """
    from silkline.cli.declared import (
        SCOPE_SETTINGS,
        declared_crawler,
        following_all,
        job_name,
        refuse_unknown_key,
        sitemap_seeds,
    )
    from silkline.cli.preview import with_preview
    from silkline.cli.show import conduct, settings_table, warn
    from silkline.cli.store import FOLDER, in_force

    resolved = resolve(given, os.environ, config=config)
    if declaration.follow_all:
        resolved = following_all(resolved)
    declaration = msgspec.structs.replace(
        declaration,
        outputs=resolved.settings.outputs,
        **{name: getattr(resolved.settings, name) for name in SCOPE_SETTINGS},
    )
    seeds: list[Seed] = [*declaration.urls, *([Path(declaration.urls_file)] if declaration.urls_file else [])]
    seeds += sitemap_seeds(declaration)
    if seeds and resolved.origins["job"] == DEFAULT:
        resolved = resolved.having("job", job_name(declaration), "named after the crawl")
    warn(resolved.warnings)
    with ExitStack() as stack:
        if thrown_away is None and resolved.settings.frontier_url == "memory:":
            thrown_away = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="silkline-")))
        resolved, preview = with_preview(resolved, folder=thrown_away or FOLDER)
        if show_config:
            echo(settings_table(in_force(resolved)))
            return 0
        if not seeds:
            raise ConfigError(
                "nothing to crawl: give a URL, such as https://example.com/, or --urls FILE or --sitemap URL"
            )
        with resolved.naming_origins():
            refuse_unknown_key(declaration, resolved.settings.item_key)
        crawler = declared_crawler(declaration)
        return conduct(crawler, seeds, resolved, preview=preview, kept=thrown_away is None)
