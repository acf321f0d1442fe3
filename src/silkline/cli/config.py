"""`silkline config`: live settings, which running workers follow."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import msgspec
import typer
from typer import Argument, Option, echo

from silkline.cli.options import Config, FrontierUrl, JobName, with_debug
from silkline.cli.store import one_store, with_frontier
from silkline.errors import ConfigError
from silkline.live import LIVE, MAX_TEXT, assigned
from silkline.observe import figures
from silkline.resolve import doubtful_delay, seconds_in

EXAMPLES = """\
[bold]Examples[/bold]

  silkline config set --job shop concurrency=100 delay=500ms
  silkline config set --job shop paused=true
  silkline config get --job shop
  silkline config unset --job shop paused delay
"""

AsJson = Annotated[bool, Option("--json", metavar=" ", help="Print JSON, for programs.")]
_NAMES = ", ".join(LIVE)


def application() -> typer.Typer:
    """The commands of `silkline config`."""
    app = typer.Typer(
        name="config",
        help=f"Change settings of a running job: {_NAMES}. All its workers follow within 2 s, wherever they"
        " are; what is set stays with the job and wins over what a worker was started with.",
        epilog=EXAMPLES,
        no_args_is_help=True,
    )
    app.command("get")(get)
    app.command("set")(set_)
    app.command("unset")(unset)
    return app


@with_debug
def get(
    names: Annotated[list[str] | None, Argument(metavar="NAME", help="Only these.")] = None,
    job: JobName = None,
    frontier: FrontierUrl = None,
    as_json: AsJson = False,
    config: Config = None,
) -> int:
    """Print the live settings that are set."""
    live = _change(job, frontier, config, {})
    wanted = [_name(name) for name in names or ()]
    if unknown := [name for name in wanted if name not in LIVE and name not in live]:
        raise ConfigError(f"there is no live setting {unknown[0]!r}; there are {_NAMES}")
    _print({name: text for name, text in live.items() if not wanted or name in wanted}, as_json=as_json)
    return 0


@with_debug
def set_(
    assignments: Annotated[list[str], Argument(metavar="NAME=VALUE", help=f"Of {_NAMES}.")],
    job: JobName = None,
    frontier: FrontierUrl = None,
    as_json: AsJson = False,
    config: Config = None,
) -> int:
    """Set live settings, and print all that are set then."""
    from silkline.cli.show import warn

    changes = assigned(assignments)
    _print(_change(job, frontier, config, changes), as_json=as_json)
    warn(doubtful_delay(seconds_in(changes.get("delay", "")) or 0.0, "delay"))
    return 0


@with_debug
def unset(
    names: Annotated[list[str], Argument(metavar="NAME", help=f"Of {_NAMES}; or all.")],
    job: JobName = None,
    frontier: FrontierUrl = None,
    as_json: AsJson = False,
    config: Config = None,
) -> int:
    """Let each worker's own settings hold again; print the live ones that are left."""
    live = _change(job, frontier, config, {})
    wanted = list(live) if names == ["all"] else [_name(name) for name in names]
    # What another program has written under a wrong name must be removable, too.
    if unknown := [name for name in wanted if name not in LIVE and name not in live]:
        raise ConfigError(f"there is no live setting {unknown[0]!r}; there are {_NAMES}")
    _print(_change(job, frontier, config, dict.fromkeys(wanted)), as_json=as_json)
    return 0


def _name(word: str) -> str:
    return word.strip().replace("-", "_")


def _change(
    job: str | None, frontier: str | None, config: Path | None, changes: Mapping[str, str | None]
) -> Mapping[str, str]:
    return with_frontier(one_store(job, frontier, config), lambda opened: opened.configure(changes))


def _print(live: Mapping[str, str], *, as_json: bool) -> None:
    ordered = {name: live[name] for name in (*LIVE, *sorted(set(live) - set(LIVE))) if name in live}
    if as_json:
        echo(msgspec.json.encode(ordered))
        return
    for name, text in ordered.items():
        echo(f"{figures.one_line(name, MAX_TEXT)}={figures.one_line(text, MAX_TEXT)}")
    if not ordered:
        echo("no live settings", err=True)
