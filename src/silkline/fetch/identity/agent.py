"""Who the crawler says it is: a name, a version, and where its operator can be reached."""

from __future__ import annotations

from collections.abc import Iterable

from silkline.errors import ConfigError
from silkline.fetch.options import USER_AGENT
from silkline.header import FRAMING
from silkline.version import __version__


def user_agent_of(user_agent: str, contact: str) -> str:
    """The User-Agent header (RFC 9110, section 10.1.5).

    user_agent: the user's own words, "" for silkline's name and version.
    contact: a URL or mail address that is added in the way crawlers do, "" for none.
    """
    if not contact:
        return user_agent or USER_AGENT
    name = user_agent or f"silkline/{__version__}"
    return name if contact in name else f"{name} (+{contact})"


FOR_ONE_SITE = {
    "authorization": "use auth, which sends it to one origin alone",
    "proxy-authorization": "put user and password into the proxy's URL",
    "cookie": "set it in Request(headers=...) of the site that it is for",
    "host": "it comes from the URL",
    **FRAMING,
}
"""Headers that cannot be the same for all requests, and what to do instead."""


def headers_for_all(lines: Iterable[str]) -> dict[str, str]:
    """Headers from `Name: value` lines. Raises ConfigError for one that must not go to every site, or is
    there twice."""
    headers: dict[str, str] = {}
    for line in lines:
        name, _, value = line.partition(":")
        if (instead := FOR_ONE_SITE.get(name.lower())) is not None:
            raise ConfigError(f"headers: {name} cannot be sent with every request; {instead}")
        if any(name.lower() == known.lower() for known in headers):
            raise ConfigError(f"headers: {name} is there twice; write its values into one line, with commas")
        headers[name] = value.strip(" \t")
    return headers
