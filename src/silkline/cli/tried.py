"""The proxies of `silkline proxies test`, tried, and the table of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec
from typer import echo

from silkline.config import Settings
from silkline.engine.fetching import check_settings, engine_of, options_of
from silkline.errors import ConfigError, ProxyError
from silkline.fetch.proxies.check import Checked, check
from silkline.fetch.proxies.proxy import Proxy, proxies_of
from silkline.fetch.proxies.sources import Source, source_of
from silkline.observe import figures
from silkline.protocols import CallNext


async def tried(source: str | None, more: Sequence[str], url: str, settings: Settings) -> Sequence[Checked]:
    """settings: of the engine; their timeout is that of one proxy. Raises ConfigError."""
    check_settings(settings)
    timeout = settings.timeout
    options = msgspec.structs.replace(options_of(settings), connect_timeout=timeout, read_timeout=timeout)
    fetcher = engine_of(settings)(options)
    try:
        proxies, wrong = proxies_of(more, "--proxy", "entry")
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


def table_of(results: Sequence[Checked]) -> Iterator[str]:
    """Lines: two for each proxy, so that they fit a narrow terminal."""
    working = sum(result.works for result in results)
    width = max(12, *(len(result.exit) for result in results))
    yield f"{working} of {len(results)} proxies work"
    yield f"works  seconds  {'exit address':{width}}  proxy and tags"
    for result in results:
        tags = f"  {' '.join(result.tags)}" if result.tags else ""
        works = "yes" if result.works else "no"
        yield f"{works:5}  {result.seconds:7.2f}  {result.exit or '-':{width}}  {result.proxy}{tags}"
        error = f": {figures.one_line(result.error, 200)}" if result.error else ""
        yield f"       {result.entry}{error}"
