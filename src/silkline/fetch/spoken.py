"""Whether hosts speak the version of HTTP that is asked for: libcurl takes another one where they do not."""

from __future__ import annotations

from collections.abc import Callable

from silkline.protocols import CallNext
from silkline.request import Request
from silkline.response import Response
from silkline.url import host_of

_WHY = {
    "2": "the host does not speak it, or a proxy does not",
    "3": "the host does not speak it, or UDP does not get there, as behind a proxy",
}


class SpokenVersion:
    """A middleware that tells of the first host that answers in another version, in one line. Without TLS
    there is only HTTP/1.1, so that nothing else is expected of it.

    wanted: "2" or "3". tell: gets the line.
    """

    def __init__(self, wanted: str, tell: Callable[[str], None]) -> None:
        self._wanted = wanted
        self._tell = tell
        self._told = False

    async def __call__(self, request: Request, call_next: CallNext) -> Response:
        """Raises what the fetch raises."""
        response = await call_next(request)
        if not self._told and self._is_another(response):
            self._told = True
            self._tell(
                f"HTTP/{self._wanted} was asked for, and {host_of(response.url)} answered in "
                f"HTTP/{response.http_version}: {_WHY[self._wanted]}; further hosts are not named"
            )
        return response

    def _is_another(self, response: Response) -> bool:
        tls = response.url.startswith("https:")
        return tls and not response.from_cache and response.http_version != self._wanted
