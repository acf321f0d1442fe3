"""When an answer means "you are blocked", or that a proxy failed, and not "here is the page"."""

from __future__ import annotations

from collections.abc import Iterable

from silkline.response import Response

BAN_STATUSES = (403, 429)

GATEWAY_STATUSES = frozenset({502, 503, 504})
"""What a proxy says when it cannot get the page, and a site, too (RFC 9110, section 15.6)."""

MARKERS = (
    "_cf_chl_opt",
    "cf-error-details",
    "captcha-delivery.com",
    "px-captcha",
    "_Incapsula_Resource",
    "Incapsula incident ID",
    "Pardon Our Interruption",
    "distil_r_captcha",
    "unusual traffic from your computer network",
    "To discuss automated access to Amazon data",
    "Please verify you are a human",
    "verify that you are not a robot",
)
"""What stands in the pages that Cloudflare, DataDome, PerimeterX, Imperva and large sites show instead of the
page. Words that a page with a form of its own may have, such as "recaptcha", are not among them."""

MAX_MARKED = 32_768
"""Bytes; the pages that block are small, and a large one is not searched."""


class Bans:
    """What counts as a ban. statuses: HTTP statuses. markers: texts in a body that is small."""

    def __init__(self, statuses: Iterable[int] = BAN_STATUSES, markers: Iterable[str] = MARKERS) -> None:
        self._statuses = frozenset(statuses)
        self._markers = tuple(marker.encode() for marker in markers if marker)

    def reason(self, response: Response) -> str | None:
        """Why the answer is a ban, fit for a message; None if it is none."""
        if response.status in self._statuses:
            return f"status {response.status}"
        if response.header("cf-mitigated") is not None:
            return "a challenge page"
        body = response.body
        if len(body) <= MAX_MARKED:
            for marker in self._markers:
                if marker in body:
                    return f"a page with {marker.decode()!r}"
        return None


def may_be_the_proxys(response: Response) -> bool:
    """Whether what came through an HTTP proxy may be its own answer: in a tunnel it is the site's."""
    return response.status in GATEWAY_STATUSES and response.url.startswith("http:")
