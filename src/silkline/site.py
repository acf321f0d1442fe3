"""Which hosts are one site: the registrable domain, by the Public Suffix List."""

from __future__ import annotations

import re
from functools import cache, lru_cache

from publicsuffixlist import PublicSuffixList

_is_address = re.compile(r"[\d.]+|.*:.*").fullmatch


@lru_cache(maxsize=8_192)
def registrable_domain(host: str) -> str:
    """What somebody has registered: example.co.uk of www.example.co.uk; the host itself where it is an
    address or a public suffix. The list is the one that is installed: nothing is fetched."""
    if _is_address(host):
        return host
    return suffixes().privatesuffix(host.removesuffix(".")) or host


@cache
def suffixes() -> PublicSuffixList:
    """Loaded when first asked for: it takes 50 ms and some MB."""
    return PublicSuffixList()
