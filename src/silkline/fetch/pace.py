"""How fast a body comes in."""

from __future__ import annotations

from silkline.errors import FetchTimeout
from silkline.fetch.options import FetchOptions


class Pace:
    """What had come of one body when it was last looked at. Times are those of time.perf_counter.

    since: of the first look.
    """

    __slots__ = ("_quiet_since", "_size", "_window_since", "_window_size", "since")

    def __init__(self, now: float) -> None:
        self._size = self._window_size = 0
        self._quiet_since = self._window_since = self.since = now

    def check(self, size: int, now: float, options: FetchOptions) -> None:
        """`size` bytes are there. Raises FetchTimeout for none in a while, and for too few of them."""
        if size != self._size:
            self._size, self._quiet_since = size, now
        elif now - self._quiet_since > options.read_timeout:
            raise FetchTimeout(f"no data from the server for {options.read_timeout:g} s", "read")
        window = now - self._window_since
        if window >= options.min_speed_window:
            if size - self._window_size < options.min_speed * window:
                raise FetchTimeout(f"less than {options.min_speed:g} bytes/s for {window:.0f} s", "speed")
            self._window_size, self._window_since = size, now
