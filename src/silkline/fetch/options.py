"""How an engine fetches: limits and identity, the same for every engine."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from silkline.fetch.decode import ACCEPT_ENCODING
from silkline.values import MiB
from silkline.version import __version__

USER_AGENT = f"silkline/{__version__} (web crawler)"
ACCEPT = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"


class FetchOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Options of an engine.

    timeout: seconds for one whole fetch, with the redirects that are followed at once; where one waits for
        its turn at another host, there is as much again for what follows.
    connect_timeout: seconds for one connection: resolving the name, TCP and TLS together.
    read_timeout: seconds until all headers are there, and again for each further piece of the body.
    max_body: bytes of one decoded body.
    max_save: bytes of one file (see Request.save_to), which has no other limit; None for no limit.
    save_timeout: seconds for the whole fetch of a file, in place of `timeout`.
    files_dir: the folder of the files; "" for the working directory, and absolute paths anywhere.
    max_headers: bytes of one response's headers.
    max_redirects: redirects followed in one fetch, with those that have led to where it begins.
    follow_refresh: whether pages that refresh to another URL at once are left for it.
    limit: connections in use at once; as many again may be idle.
    connections: the number that `limit` has whatever becomes of the concurrency; None for none.
    user_agent: the User-Agent header; "" for one that names silkline.
    verify: whether TLS certificates are checked.
    ca_file: PEM file of the certificates that are trusted; "" for those of the system.
    http_version: "auto" (HTTP/2 over TLS where engine and server have it), "1.1", "2" or "3".
    watched: somebody looks at each exchange, so that what costs a little more to find out is told, too.
    min_speed: bytes per second of a body that are too few when they stay so for min_speed_window seconds.
    """

    timeout: float = 60.0
    connect_timeout: float = 10.0
    read_timeout: float = 30.0
    max_body: int = 32 * MiB
    max_save: int | None = None
    save_timeout: float = 3_600.0
    files_dir: str = ""
    max_headers: int = 65_536
    max_redirects: int = 10
    follow_refresh: bool = False
    limit: int = 300
    connections: int | None = None
    user_agent: str = ""
    verify: bool = True
    ca_file: str = ""
    http_version: str = "auto"
    min_speed: float = 100.0
    min_speed_window: float = 30.0
    watched: bool = False

    @property
    def headers(self) -> dict[str, str]:
        """What every request has, where it says nothing else."""
        return {
            "User-Agent": self.user_agent or USER_AGENT,
            "Accept": ACCEPT,
            "Accept-Encoding": ACCEPT_ENCODING,
        }


def with_defaults(headers: Mapping[str, str], defaults: Mapping[str, str]) -> dict[str, str]:
    """The headers of a request, in their order; before them the defaults that it does not have."""
    given = {name.lower() for name in headers}
    missing = {name: value for name, value in defaults.items() if name.lower() not in given}
    return {**missing, **headers}


def limit_for(visits: int, connections: int | None = None) -> int:
    """Connections for so many visits at once, unless their number is fixed.

    Visits that hang have stand-ins, see engine/visitors.py.
    """
    return connections or max(300, 2 * visits)
