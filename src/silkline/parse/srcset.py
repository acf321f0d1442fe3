"""The pictures that a srcset names (HTML Standard, 4.8.4.3.10, "parse a srcset attribute")."""

from __future__ import annotations

import re
from collections.abc import Sequence

_SPACE = r"\t\n\f\r "
_url = re.compile(rf"[{_SPACE},]*([^{_SPACE}]+)").match
_descriptor = re.compile(rf"[{_SPACE}]*((?:[^{_SPACE},(]|\([^)]*\)?)+)").match
_size = re.compile(r"0*[1-9]\d*([wh])|-?(?:\d+|\d*\.\d+)(?:[eE][+-]?\d+)?(x)", re.ASCII).fullmatch
_SIZES = ("", "w", "x", "hw")


def candidates(srcset: str) -> list[str]:
    """The URL of each, as it is written; those with sizes that are none are left out, as browsers do."""
    urls: list[str] = []
    at = 0
    while found := _url(srcset, at):
        url, at = found[1], found.end()
        descriptors: list[str] = []
        if not url.endswith(","):
            while token := _descriptor(srcset, at):
                descriptors.append(token[1])
                at = token.end()
        url = url.rstrip(",")
        if url and _are_sizes(descriptors):
            urls.append(url)
    return urls


def _are_sizes(descriptors: Sequence[str]) -> bool:
    kinds = []
    for descriptor in descriptors:
        size = _size(descriptor)
        if size is None or (size[2] and float(descriptor[:-1]) < 0):
            return False
        kinds.append(size[1] or size[2])
    return "".join(sorted(kinds)) in _SIZES
