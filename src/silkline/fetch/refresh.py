"""Refreshes: pages that send their reader on by a header or a <meta>, read as the HTML Standard says."""

from __future__ import annotations

import re

import ada_url
import turbohtml

from silkline.response import Response

MAX_WAIT = 5
"""Seconds. What waits for longer is a page to be read, or one that reloads itself for news."""

_SEARCHED = 65_536
"""Bytes of a page in which a <meta> is looked for."""

_HTML = ("text/html", "application/xhtml+xml")
_has_meta = re.compile(rb"http-equiv[\t\n\f\r ]*=[\t\n\f\r \"']*refresh", re.I).search
_wait = re.compile(r"[\t\n\f\r ]*(?:(\d+)|(?=\.))[\d.]*(?=[;,\t\n\f\r ]|$)").match
_separator = re.compile(r"[\t\n\f\r ]*[;,]?[\t\n\f\r ]*").match
_url_name = re.compile(r"url[\t\n\f\r ]*=[\t\n\f\r ]*", re.I).match


def refresh_of(response: Response) -> str | None:
    """The absolute http(s) URL that a successful page refreshes to within MAX_WAIT seconds, else None.

    The header wins over the page. A <meta> in a <noscript> counts: no script runs here.
    """
    if not 200 <= response.status < 300:
        return None
    header = response.header("refresh")
    if header is not None:
        return _target(response.url, header)
    essence = (response.header("content-type") or _HTML[0]).partition(";")[0].strip().lower()
    if essence not in _HTML or _has_meta(response.body, 0, _SEARCHED) is None:
        return None
    document = turbohtml.parse(response.body[:_SEARCHED], positions=False)
    meta = document.select_one('meta[http-equiv="refresh" i][content]')
    if meta is None:
        return None
    base = document.select_one("base[href]")
    where = response.url if base is None else _joined(response.url, base.attr("href") or "") or response.url
    return _target(where, meta.attr("content") or "")


def parse_refresh(text: str) -> tuple[int, str] | None:
    """Seconds and URL reference of a refresh ("shared declarative refresh steps"); the reference is "" for a
    reload of the page itself. None for what is no refresh."""
    wait = _wait(text)
    if wait is None:
        return None
    separator = _separator(text, wait.end())
    assert separator is not None  # it may be empty
    name = _url_name(text, separator.end())
    reference = text[name.end() if name else separator.end() :]
    if reference[:1] in ("'", '"'):
        reference = reference[1:].partition(reference[0])[0]
    seconds = (wait[1] or "0").lstrip("0")[:9]  # enough to know that it is too long
    return int(seconds or "0"), reference


def _target(base: str, text: str) -> str | None:
    parsed = parse_refresh(text)
    if parsed is None or parsed[0] > MAX_WAIT or not parsed[1]:
        return None
    return _joined(base, parsed[1])


def _joined(base: str, reference: str) -> str | None:
    try:
        url = ada_url.join_url(base, reference)
    except ValueError:
        return None
    return url if url.startswith(("http://", "https://")) else None
