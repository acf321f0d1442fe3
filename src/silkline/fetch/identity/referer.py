"""The Referer header by a policy of W3C Referrer Policy: what the next page may know of the one before."""

from __future__ import annotations

from collections.abc import Callable
from typing import get_args

from silkline.fetch.target import origin, split_credentials
from silkline.values import RefererRule

POLICIES: tuple[str, ...] = get_args(RefererRule)

MAX_LENGTH = 4_096
"""Of a page a URL longer than that tells only its origin, as in browsers."""

Referer = Callable[[str, str], str | None]
"""URL of a page, URL of a link on it -> value of the header, None for no header."""


def referer_by(policy: str) -> Referer | None:
    """The rule of a policy; None for "off"."""
    return None if policy == "off" else lambda page, target: referer_of(policy, page, target)


def referer_of(policy: str, page: str, target: str) -> str | None:
    """The Referer of a request for `target` that was found on `page`; None for none at all.

    Neither fragment nor user name and password ever go along. Of a value that a policy has cut before (for a
    redirect's earlier hop) it makes what is left of it.
    """
    home = origin(page)
    same = home == origin(target)
    strict = policy in ("strict-origin", "strict-origin-when-cross-origin", "no-referrer-when-downgrade")
    if strict and page.startswith("https:") and not target.startswith("https:"):
        return None
    if policy == "same-origin" and not same:
        return None
    whole = policy in ("unsafe-url", "no-referrer-when-downgrade", "same-origin") or (
        same and policy in ("origin-when-cross-origin", "strict-origin-when-cross-origin")
    )
    if whole:
        url = split_credentials(page.partition("#")[0])[0]
        if len(url) <= MAX_LENGTH:
            return url
    return f"{home}/"
