"""`silkline purge`: forget a job."""

from __future__ import annotations

from typer import echo

from silkline.cli.consent import Yes, agreed
from silkline.cli.options import Config, FrontierUrl, JobName, with_debug
from silkline.cli.store import store_to_remove
from silkline.observe import figures
from silkline.resolve import redacted

EXAMPLES = """\
[bold]Examples[/bold]

  silkline purge --job shop
  silkline purge --job shop --frontier redis://10.0.0.5:6379/0 --yes
"""


@with_debug
def purge(job: JobName = None, frontier: FrontierUrl = None, yes: Yes = False, config: Config = None) -> int:
    """Remove all that is kept of a job: its requests, what it has seen, its dead letters and settings.

    Its outputs stay. What else is in the same server stays, too. A job that
    workers are at is left alone: end them first.
    """
    from silkline.frontier.open import remove_store

    store = store_to_remove(job, frontier, config)
    place = figures.one_line(redacted(store.url))
    if not (yes or agreed(f"Remove the job {store.job} at {place} for good?", "a job that is removed")):
        return 0
    remove_store(store.url, store.job, progress=lambda keys: echo(f"{keys:,} keys removed", err=True))
    echo(f"{store.job} is removed")
    return 0
