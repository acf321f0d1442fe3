"""Points at which a test can have the process killed; only tests set the variables.

SILKLINE_TEST_KILL_AT names the point and SILKLINE_TEST_KILL_NTH (default 1) which passage of it is the
last thing this process does. The points:

    mid-write       half of a write is in the output, the other half is not
    after-write     the items are durable in the output, their pages are not committed
    before-finish   the last page is committed, the output's last touches are not begun
    after-replace   a rewritten output has taken the old one's place, which is not committed
"""

from __future__ import annotations

import itertools
import os
import signal
from collections.abc import Callable
from typing import Protocol


class Reach(Protocol):
    def __call__(self, point: str, last_act: Callable[[], object] | None = None) -> None:
        """Pass `point`; if the process is to die here, do `last_act` and die."""


def _pass(point: str, last_act: Callable[[], object] | None = None) -> None:
    return None


def _armed() -> Reach:
    wanted = os.environ.get("SILKLINE_TEST_KILL_AT")
    if not wanted:
        return _pass
    passages = itertools.count(1)
    nth = int(os.environ.get("SILKLINE_TEST_KILL_NTH", "1"))

    def reach(point: str, last_act: Callable[[], object] | None = None) -> None:
        if point == wanted and next(passages) == nth:
            if last_act is not None:
                last_act()
            os.kill(os.getpid(), signal.SIGKILL)

    return reach


reach = _armed()
