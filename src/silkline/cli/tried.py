"""The proxies of `silkline proxies test`, tried, and the table of them."""

from __future__ import annotations

from collections.abc import Sequence

from rich.table import Table
from rich.text import Text
from typer import echo

from silkline.errors import ConfigError, ProxyError
from silkline.fetch.http import HttpFetcher
from silkline.fetch.options import FetchOptions
from silkline.fetch.proxies.check import Checked, check
from silkline.fetch.proxies.proxy import Proxy, proxies_from
from silkline.fetch.proxies.sources import Source, source_of
from silkline.observe import figures
from silkline.protocols import CallNext


async def tried(source: str | None, more: Sequence[str], url: str, timeout: float) -> Sequence[Checked]:
    fetcher = HttpFetcher(FetchOptions(timeout=timeout, connect_timeout=timeout, read_timeout=timeout))
    try:
        proxies, wrong = proxies_from("\n".join(more), "--proxy")
        if wrong:
            raise ConfigError(wrong[0])
        if source is not None:
            proxies += await _listed(source_of(source, timeout), fetcher.fetch)
        return await check(proxies, fetcher.fetch, url)
    finally:
        await fetcher.close()


async def _listed(source: Source, fetch: CallNext) -> Sequence[Proxy]:
    try:
        loaded = await source.load(fetch)
    except ProxyError as error:
        raise ConfigError(str(error)) from error
    proxies, wrong = loaded or ((), ())
    for line in wrong:
        echo(f"silkline: warning: {line}", err=True)
    return proxies


def table_of(results: Sequence[Checked]) -> Table:
    working = sum(result.works for result in results)
    table = Table(header_style="dim", title=f"{working} of {len(results)} proxies work", title_justify="left")
    for name in ("proxy", "entry", "tags", "works", "seconds", "exit address"):
        table.add_column(name, overflow="fold", justify="right" if name == "seconds" else "left")
    for result in results:
        last = result.exit or "-" if result.works else figures.one_line(result.error, 200)
        table.add_row(
            *map(Text, (result.proxy, result.entry, " ".join(result.tags), "yes" if result.works else "no")),
            f"{result.seconds:.2f}",
            Text(last),
        )
    return table
