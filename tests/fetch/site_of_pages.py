"""The same small site twice: behind a socket, and in a MockFetcher."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from raw_server import RawServer, answer_of

from silkline.fetch.mock import MockFetcher
from silkline.request import Request
from silkline.response import Response

Pages = Mapping[str, tuple[int, Mapping[str, str], bytes]]
"""Request target -> status, headers, body. In header values {host} and {other} stand for the site's hosts."""

Engine = Callable[..., Any]
"""What the fixture `engine` gives: options -> a fetcher."""

OpenSite = Callable[..., Awaitable["Site"]]
"""What the fixture `open_site` gives."""


class Site:
    """`host` is one origin of the site, `other_host` another one with the same pages."""

    fetcher: Any
    host: str
    other_host: str

    def url(self, target: str = "/") -> str:
        return f"http://{self.host}{target}"

    async def fetch(self, target: str = "/", **fields: Any) -> Response:
        response: Response = await self.fetcher.fetch(Request(self.url(target), **fields))
        return response

    def filled(self, headers: Mapping[str, str]) -> dict[str, str]:
        return {
            name: value.replace("{host}", self.host).replace("{other}", self.other_host)
            for name, value in headers.items()
        }

    @property
    def targets(self) -> list[str]:
        """Of the requests that were made, in order."""
        raise NotImplementedError

    def sent(self, name: str, request: int = -1) -> str | None:
        """A header of the nth request."""
        raise NotImplementedError

    def sent_line(self, request: int = -1) -> tuple[str, bytes]:
        """Method and body of the nth request."""
        raise NotImplementedError


class ServedSite(Site):
    def __init__(self, server: RawServer, fetcher: Any, pages: Pages) -> None:
        self.server = server
        self.fetcher = fetcher
        self.host = f"127.0.0.1:{server.port}"
        self.other_host = f"localhost:{server.port}"
        for target, (status, headers, body) in pages.items():
            server.routes[target] = answer_of(status, self.filled(headers), body)

    @property
    def targets(self) -> list[str]:
        return self.server.targets

    def sent(self, name: str, request: int = -1) -> str | None:
        return self.server.header(name, request)

    def sent_line(self, request: int = -1) -> tuple[str, bytes]:
        return self.server.heads[request].split(" ", 1)[0], self.server.bodies[request]


class MockSite(Site):
    host = "site.test"
    other_host = "other.test"

    def __init__(self, pages: Pages, **options: Any) -> None:
        filled = {
            target: (status, self.filled(headers), body) for target, (status, headers, body) in pages.items()
        }
        self.fetcher = MockFetcher(
            {
                f"http://{host}{target}": page
                for host in (self.host, self.other_host)
                for target, page in filled.items()
            },
            **options,
        )

    @property
    def targets(self) -> list[str]:
        return ["/" + request.url.split("/", 3)[3].partition("#")[0] for request in self.fetcher.requests]

    def sent(self, name: str, request: int = -1) -> str | None:
        headers: dict[str, str] = self.fetcher.requests[request].headers
        return next((value for key, value in headers.items() if key.lower() == name.lower()), None)

    def sent_line(self, request: int = -1) -> tuple[str, bytes]:
        asked = self.fetcher.requests[request]
        return asked.method, asked.body or b""
