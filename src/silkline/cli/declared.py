"""The spider that options describe: what to follow, and what to take of each page."""

from __future__ import annotations

import hashlib
import re
import shlex
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import msgspec

from silkline.crawler import Crawler
from silkline.engine.sitemaps import Sitemaps
from silkline.errors import BadUrlError, ConfigError, SelectorError, SettingError
from silkline.files import is_folder, shown_output
from silkline.parse.fields import Field, extract, parse_fields
from silkline.parse.page import Page
from silkline.parse.selector import compile_css, compile_selector
from silkline.politeness.scope import MEDIA, site_of
from silkline.request import Follow
from silkline.resolve import DEFAULT, Resolved
from silkline.url import check

DEFINITION_LIMIT = 300
SCOPE_SETTINGS = ("allow_hosts", "scope", "allow", "deny", "paths")
USUAL_SCOPES = ("auto", "host")


class Declaration(msgspec.Struct, frozen=True, kw_only=True):
    """What the command line says about a crawl, as it is written there.

    urls: seeds. urls_file: a file of more, "-" for standard input. sitemaps: URLs of lists of
        more, from which `since` leaves out what is older.
    fields: NAME=CSS. item: the CSS of one item. follow: CSS of links. SCOPE_SETTINGS: how far they may lead.
    outputs: belong to the definition, so that another output is another job.
    """

    urls: tuple[str, ...] = ()
    urls_file: str | None = None
    sitemaps: tuple[str, ...] = ()
    since: str | None = None
    fields: tuple[str, ...] = ()
    item: str | None = None
    follow: tuple[str, ...] = ()
    follow_all: bool = False
    allow_hosts: tuple[str, ...] = ()
    scope: str = "auto"
    allow: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()


def declared_crawler(declaration: Declaration, *, defines_job: bool = True) -> Crawler:
    """The crawler with the one handler that was described. Raises ConfigError for what cannot work.

    defines_job: what is described is what the job is; not so for one of many workers.
    """
    crawler = Crawler(definition=definition_of(declaration) if defines_job else "")
    crawler.handler(_handler(declaration))
    return crawler


def refuse_unknown_key(declaration: Declaration, key: Sequence[str]) -> None:
    """Raise SettingError for a key of items that none of them has: every one would be dead."""
    fields = [field.name for field in parse_fields(declaration.fields)] or ["status", "title"]
    for name in key:
        if name not in ("url", *fields):
            raise SettingError(
                "item_key", f"{name!r} is a field of no item; there are url, {', '.join(fields)}"
            )


def following_all(resolved: Resolved) -> Resolved:
    """Who follows all links means those to pages of the same hosts, unless something else is said, such as a
    folder for what is no page."""
    if resolved.settings.scope == "auto":
        resolved = resolved.having("scope", "host", "with --follow-all")
    folders = any(map(is_folder, resolved.settings.outputs))
    if resolved.origins["skip_extensions"] == DEFAULT and not folders:
        resolved = resolved.having("skip_extensions", (MEDIA,), "with --follow-all")
    return resolved


def definition_of(declaration: Declaration) -> str:
    """What makes it this crawl and no other, as the options that would give it; cut where it gets long."""
    words = list(declaration.urls)
    options = [
        ("--urls", [declaration.urls_file] if declaration.urls_file else []),
        ("--sitemap", declaration.sitemaps),
        ("--since", [declaration.since] if declaration.since else []),
        ("--item", [declaration.item] if declaration.item else []),
        ("--field", declaration.fields),
        ("--follow", declaration.follow),
        ("--allow-host", declaration.allow_hosts),
        ("--scope", [declaration.scope] if declaration.scope not in USUAL_SCOPES else []),
        ("--allow", declaration.allow),
        ("--deny", declaration.deny),
        ("--path", declaration.paths),
        ("--output", map(shown_output, declaration.outputs)),
    ]
    words += [word for option, values in options for value in values for word in (option, value)]
    text = shlex.join([*words, *["--follow-all"] * declaration.follow_all])
    return text if len(text) <= DEFINITION_LIMIT else f"{text[: DEFINITION_LIMIT - 10]}… {_short_hash(text)}"


def sitemap_seeds(declaration: Declaration) -> list[Sitemaps]:
    """Raises ConfigError for a URL or a date that is none."""
    if not declaration.sitemaps:
        if declaration.since is not None:
            raise ConfigError("--since goes with --sitemap URL")
        return []
    return [Sitemaps(*declaration.sitemaps, since=declaration.since)]


def job_name(declaration: Declaration) -> str:
    """The job's name where none is given: the same crawl has the same one, another crawl another.

    Raises ConfigError for a first URL that is none.
    """
    if declaration.urls or declaration.sitemaps:
        start = _site((*declaration.urls, *declaration.sitemaps)[0])
    else:
        start = "stdin" if declaration.urls_file == "-" else (declaration.urls_file or "").rpartition("/")[2]
    slug = re.sub(r"[^\w.-]+", "-", start).strip("-._")[:60] or "crawl"
    everything = msgspec.structs.asdict(declaration)
    # Other crawls keep the names that they had before there were these.
    for later in ("sitemaps", "since", "scope", "allow", "deny", "paths"):
        if not everything[later] or (later == "scope" and declaration.scope in USUAL_SCOPES):
            del everything[later]
    return f"{slug}-{_short_hash(msgspec.json.encode(everything).decode())}"


def _site(url: str) -> str:
    try:
        return site_of(check(url))
    except BadUrlError as error:
        raise ConfigError(str(error)) from error


def _short_hash(text: str) -> str:
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=4).hexdigest()


def _handler(declaration: Declaration) -> Callable[[Page], Iterator[Any]]:
    items = _items(declaration)
    links = _links(declaration)

    def handle(page: Page) -> Iterator[Any]:
        yield from items(page)
        yield from links(page)

    return handle


def _items(declaration: Declaration) -> Callable[[Page], Iterator[dict[str, Any]]]:
    fields, item = parse_fields(declaration.fields), declaration.item
    if item is not None:
        _checked("--item", item, compile_css)
        if not fields:
            raise ConfigError("--item needs fields; add for example --field name=h2")

    def of_page(page: Page) -> Iterator[dict[str, Any]]:
        document = page.kind != "other"
        if not fields:
            yield {"url": page.url, "status": page.status, "title": page.title if document else None}
        elif item is None:
            yield {"url": page.url, **(extract(page, fields) if document else _empty(fields))}
        elif document:
            for element in page.css(item):
                yield {"url": page.url, **extract(element, fields)}

    return of_page


def _empty(fields: Sequence[Field]) -> dict[str, None]:
    return {field.name: None for field in fields}


def _links(declaration: Declaration) -> Callable[[Page], Iterator[Follow]]:
    selectors = [_checked("--follow", css, compile_selector) for css in declaration.follow]
    # "#next" alone would be a link to a fragment for `Page.follow`.
    selectors = [f"*{css}" if css.startswith("#") else css for css in selectors]

    def of_page(page: Page) -> Iterator[Follow]:
        if page.kind == "other":
            return
        for css in selectors:
            yield page.follow(css)
        if declaration.follow_all:
            yield Follow(page.links())

    return of_page


def _checked(option: str, css: str, compile: Callable[[str], object]) -> str:
    try:
        compile(css)
    except SelectorError as error:
        raise ConfigError(f"{option}: {error}") from error
    return css.strip()
