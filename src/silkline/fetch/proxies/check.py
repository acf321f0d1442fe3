"""Try proxies one by one: which work, how fast, and under which address a site sees them."""

from __future__ import annotations

import asyncio
import ipaddress
import re
from collections.abc import Sequence
from time import perf_counter

import msgspec

from silkline.errors import FetchError
from silkline.fetch.proxies.proxy import Proxy
from silkline.protocols import CallNext
from silkline.request import Request

AT_ONCE = 50

_MAYBE_ADDRESS = re.compile(r"[0-9A-Fa-f.:]{2,45}")


class Checked(msgspec.Struct, frozen=True):
    """proxy: without user and password. entry: where it is listed. seconds: of the answer. exit: the address
    that the site saw, "" where its answer has none. error: "" where it works."""

    proxy: str
    entry: str
    tags: tuple[str, ...]
    works: bool
    seconds: float
    exit: str = ""
    error: str = ""


async def check(proxies: Sequence[Proxy], fetch: CallNext, echo: str) -> Sequence[Checked]:
    """Fetch `echo`, a URL that answers with the address of who asks, through each proxy; in their order."""
    slots = asyncio.Semaphore(AT_ONCE)

    async def one(proxy: Proxy) -> Checked:
        async with slots:
            return await _checked(proxy, fetch, echo)

    return await asyncio.gather(*map(one, proxies))


async def _checked(proxy: Proxy, fetch: CallNext, echo: str) -> Checked:
    started = perf_counter()
    try:
        response = await fetch(Request(echo, proxy=proxy.url))
    except FetchError as error:
        failure = f"{error.cause}: {error}"
    else:
        failure = "" if response.status == 200 else f"http_{response.status}"
    seconds = perf_counter() - started
    tags = tuple(sorted(proxy.tags))
    if failure:
        return Checked(proxy.name, proxy.where, tags, False, seconds, error=failure)
    return Checked(proxy.name, proxy.where, tags, True, seconds, address_in(response.body[:4_096]))


def address_in(body: bytes) -> str:
    """The first IP address in a text, or in a JSON or HTML page; "" for none."""
    for word in _MAYBE_ADDRESS.findall(body.decode("latin-1")):
        try:
            return str(ipaddress.ip_address(word.strip(".:") if word.count(":") < 2 else word))
        except ValueError:
            continue
    return ""
