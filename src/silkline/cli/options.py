"""The options that every command with a crawl has: one for each setting, and where settings come from."""

from __future__ import annotations

import functools
import inspect
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

from typer import Abort, Argument, Option

from silkline.errors import SilklineError

JOB = "Job and outputs"
SPEED = "Speed and politeness"
LIMITS = "Limits"
REACH = "How far it goes"
WHO = "Identity and proxies"
SHOWN = "What is shown"
SETUP = "Configuration"


def _text(panel: str, metavar: str, help: str, default: str = "") -> Any:
    # The default stands in the help only: a value here would hide what the environment and the file say.
    note = f"{help} \\[default: {default}]" if default else help
    return Annotated[str | None, Option(metavar=metavar, help=note, rich_help_panel=panel)]


def _flag(panel: str, name: str, help: str) -> Any:
    return Annotated[bool | None, Option(f"--{name}", metavar=" ", help=help, rich_help_panel=panel)]


def _several(panel: str, name: str, metavar: str, help: str) -> Any:
    note = f"{help} Can be given several times."
    return Annotated[list[str] | None, Option(f"--{name}", metavar=metavar, help=note, rich_help_panel=panel)]


_OUTPUT_HELP = (
    "A .jsonl, .csv, .tsv, .parquet or .db file (.jsonl also with .gz or .zst); the URL of a database or,"
    " with such an ending, of a bucket; a .warc.gz file or a folder/ for the pages. Options stand behind a"
    " question mark: folder/?thumbnails=64x64. Can be given several times."
)

SETTINGS: dict[str, Any] = {
    "outputs": Annotated[
        list[str] | None,
        Option("--output", "-o", metavar="WHERE", help=_OUTPUT_HELP, rich_help_panel=JOB),
    ],
    "job": _text(JOB, "NAME", "The job's name. Running the same job again resumes it."),
    "frontier": _text(
        JOB,
        "URL",
        "Where its requests live: sqlite:///PATH, redis://HOST:PORT/DB, or memory: to keep nothing.",
        ".silkline/JOB.db",
    ),
    "no_create": _flag(JOB, "no-create", "Create no tables and columns in databases."),
    "item_key": _text(JOB, "FIELD,…", "The field, or fields, by which a database knows an item again."),
    "excel": _flag(JOB, "excel", "Write CSV for spreadsheets: a byte order mark, and no text that is run."),
    "fresh": _flag(JOB, "fresh", "Forget what the job did and its outputs, and start over."),
    "keep_alive": _flag(JOB, "keep-alive", "Wait for more work when the job is complete."),
    "partitions": _text(JOB, "N", "Parts that the hosts are spread over, for several servers.", "1"),
    "dedup": _text(JOB, "HOW", "How seen URLs are known: exact, bloom or none.", "exact"),
    "strict": _flag(JOB, "strict", "Exit with 1 if there are dead letters or items."),
    "concurrency": _text(SPEED, "N", "Pages at once in a process.", "64"),
    "per_host": _text(SPEED, "N", "Requests to a host at once.", "8"),
    "delay": _text(SPEED, "TIME", "Time between two requests to one host: 2, 500ms, 1m.", "0"),
    "politeness_by": _text(
        SPEED, "WHAT", "What the two count for: host (where nothing is said), domain or ip."
    ),
    "max_memory": _text(
        SPEED, "SIZE", "Fewer pages at once when so much memory is taken; none: by the container.", "none"
    ),
    "processes": _text(SPEED, "N", "Worker processes.", "1"),
    "robots": _text(SPEED, "on|off", "Whether robots.txt is obeyed.", "on"),
    "adaptive": _text(SPEED, "on|off", "Whether hosts are asked more slowly that have trouble.", "on"),
    "adaptive_ceiling": _text(
        SPEED, "N", "Try more than --per-host, up to this many, where a host can bear it.", "none"
    ),
    "robots_meta": _text(
        SPEED, "MODE", "What pages ask of robots: links (obey nofollow), all (noindex, too), off.", "links"
    ),
    "fetcher": _text(SPEED, "ENGINE", "http (aiohttp), or curl: HTTP/2, HTTP/3 and less CPU.", "http"),
    "http_version": _text(SPEED, "VERSION", "auto, 1.1, 2 or 3; 2 and 3 with --fetcher curl.", "auto"),
    "timeout": _text(LIMITS, "TIME", "Time for one whole fetch.", "60s"),
    "insecure": _flag(LIMITS, "insecure", "Accept any TLS certificate."),
    "ca_file": _text(LIMITS, "FILE", "Trust the certificates in this PEM file, not the system's."),
    "retries": _text(LIMITS, "N", "More visits after one that failed in a way that may pass.", "3"),
    "max_pages": _text(LIMITS, "N", "Stop after so many pages, all runs of the job counted.", "none"),
    "max_depth": _text(REACH, "N", "Follow links at most so far from where the crawl starts.", "none"),
    "max_body": _text(LIMITS, "SIZE", "Largest body to take: 500KB, 10MB.", "32MiB"),
    "max_pages_per_host": _text(REACH, "N", "Take at most so many URLs of one host.", "none"),
    "scope": _text(
        REACH, "WHERE", "Follow links to the hosts of the start (host), its domain (site), anywhere.", "auto"
    ),
    "allow_hosts": _several(
        REACH, "allow-host", "HOST", "This host, too. *.example.com stands for its subdomains."
    ),
    "allow": _several(REACH, "allow", "REGEX", "Follow only links whose URL matches one of these."),
    "deny": _several(REACH, "deny", "REGEX", "Do not follow links whose URL matches."),
    "paths": _several(REACH, "path", "PATH", "Follow only links whose path begins so: /products/."),
    "traps": _text(REACH, "on|off", "Leave out links that lead nowhere for ever.", "on"),
    "order": _text(REACH, "HOW", "breadth: what was found first; depth: what is deepest.", "breadth"),
    "priority": _several(REACH, "priority", "'PATTERN=N'", "Priority of links by path: 'product/*=10'."),
    "near_duplicates": _flag(REACH, "near-duplicates", "Report pages that are nearly identical to others."),
    "canonical": _flag(LIMITS, "canonical", "Drop the items of pages whose rel=canonical is a known page."),
    "user_agent": _text(WHO, "TEXT", "What the User-Agent header says.", "silkline's own"),
    "allow_private": _flag(
        LIMITS, "allow-private", "Fetch from private addresses, too, not only of hosts given as URLs here."
    ),
    "contact": _text(WHO, "WHERE", "Your URL or mail address, added to the User-Agent header."),
    "identity": _text(WHO, "WHO", "silkline, or browser for header sets as browsers send them.", "silkline"),
    "headers": _several(WHO, "header", "'NAME: VALUE'", "Send this header with every request."),
    "referer": _text(WHO, "POLICY", "What links tell of their page: strict-origin-when-cross-origin.", "off"),
    "auth": _several(WHO, "auth", "'ORIGIN bearer TOKEN'", "Log in there; or 'ORIGIN basic USER:PASSWORD'."),
    "cookies": _text(WHO, "MODE", "session: keep cookies and send them back; off: ignore them.", "session"),
    "cache": _text(LIMITS, "HOW", "The HTTP cache: off, on, revalidate or offline.", "off"),
    "cache_size": _text(LIMITS, "SIZE", "What the cache may take, compressed.", "1GiB"),
    "sessions": _text(WHO, "N", "Sessions that take turns; one that is blocked begins anew.", "1"),
    "proxy": _several(WHO, "proxy", "URL", "Go through this proxy: http, https, socks5 or socks5h."),
    "proxies": _text(WHO, "FILE|URL", "A list of proxies, one a line; a file is watched, a URL asked again."),
    "proxy_region": _text(WHO, "TAG", "Use only proxies with this tag."),
    "quiet": _flag(SHOWN, "quiet", "No progress, no report; errors only."),
    "log_level": _text(SHOWN, "LEVEL", "debug, info, warning or error.", "info"),
    "log_file": _text(SHOWN, "FILE", "Write JSON log lines there; rotated at 10 MB, five are kept."),
    "debug_http": _flag(SHOWN, "debug-http", "Print each exchange to stderr, without credentials."),
    "har": _text(SHOWN, "FILE", "Record each exchange in a HAR file, without credentials."),
    "wire_secrets": _flag(SHOWN, "wire-secrets", "Let --debug-http and --har show credentials."),
    "metrics_port": _text(SHOWN, "PORT", "Serve Prometheus metrics on this port of 127.0.0.1."),
}
"""By setting. All give text, or None where the option is not used: `resolve` converts and checks."""

Urls = Annotated[list[str] | None, Argument(metavar="URL", help="Where to start.")]
_JOB_HELP = (
    "The job. In the working directory not needed where there is only one; on a server it is spider where"
    " nothing is said."
)
JobName = Annotated[str | None, Option(metavar="NAME", help=_JOB_HELP)]
FrontierUrl = Annotated[
    str | None,
    Option(metavar="URL", help="Its frontier, such as redis://HOST:PORT/DB, if it is not .silkline/JOB.db."),
]
Config = Annotated[
    Path | None,
    Option(metavar="FILE", help="Read settings from here. \\[default: silkline.toml]", rich_help_panel=SETUP),
]
ShowConfig = Annotated[
    bool,
    Option(
        "--show-config",
        metavar=" ",
        help="Print each setting and where it comes from, and crawl nothing.",
        rich_help_panel=SETUP,
    ),
]
Debug = Annotated[
    bool,
    Option(
        "--debug",
        metavar=" ",
        help="Show the traceback of an error that ends the command.",
        rich_help_panel=SETUP,
    ),
]


def urls_file_in(panel: str) -> Any:
    """The option for a file of URLs, in that part of the help."""
    return Option(
        "--urls",
        metavar="FILE",
        help="Read URLs or JSON tasks from a file, one a line; - for standard input.",
        rich_help_panel=panel,
    )


def with_settings(command: Callable[..., int]) -> Callable[..., int]:
    """Give a command the options of SETTINGS; it gets them as one mapping, `given`."""
    return with_some_settings(*SETTINGS)(command)


def with_some_settings(*names: str) -> Callable[[Callable[..., int]], Callable[..., int]]:
    """Give a command the options of these settings; it gets them as one mapping, `given`."""

    def decorate(command: Callable[..., int]) -> Callable[..., int]:
        own = [p for p in inspect.signature(command, eval_str=True).parameters.values() if p.name != "given"]
        shared = [parameter(name, SETTINGS[name], None) for name in names]

        def gather(**values: Any) -> int:
            given = {name: values.pop(name) for name in names}
            return command(given=given, **values)

        return presented(gather, command, _ordered(own, shared))

    return decorate


def with_debug(command: Callable[..., int]) -> Callable[..., int]:
    """Give a command --debug: an error that ends it shows its traceback, too."""
    own = list(inspect.signature(command, eval_str=True).parameters.values())

    def guard(*, debug: bool, **values: Any) -> int:
        try:
            return command(**values)
        except SilklineError:
            if debug:
                traceback.print_exc()
            raise
        except KeyboardInterrupt as error:  # typer would end the program without a word
            raise Abort from error

    return presented(guard, command, [*own, parameter("debug", Debug, False)])


def _ordered(own: list[inspect.Parameter], shared: list[inspect.Parameter]) -> list[inspect.Parameter]:
    """The command's own options first, those that are about configuration last."""
    last = [p for p in own if p.name in ("config", "show_config")]
    return [p for p in own if p not in last] + shared + last


def parameter(name: str, annotation: Any, default: object) -> inspect.Parameter:
    """An option, as typer reads it from a signature."""
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


def presented(
    inner: Callable[..., int], command: Callable[..., int], parameters: list[inspect.Parameter]
) -> Callable[..., int]:
    """`inner` with the name and documentation of `command`, and these parameters for typer to read."""
    functools.update_wrapper(inner, command)
    keywords = [p.replace(kind=inspect.Parameter.KEYWORD_ONLY) for p in parameters]
    inner.__signature__ = inspect.Signature(keywords)  # type: ignore[attr-defined]
    inner.__annotations__ = {p.name: p.annotation for p in keywords}
    return inner
