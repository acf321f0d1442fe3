"""Points at which a test can have the process killed; only tests set the variables.

SILKLINE_TEST_KILL_AT names the point and SILKLINE_TEST_KILL_NTH (default 1) which passage of it is the
last thing this process does. The points:

    mid-write       half of a write is in the output, the other half is not
    after-write     the items are durable in the output, their pages are not committed
    before-finish   the last page is committed, the output's last touches are not begun
    after-replace   a rewritten output has taken the old one's place, which is not committed
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Mapping


class FaultPoints:
    """Called at every point; the process dies where it was armed for that."""

    def __init__(self, variables: Mapping[str, str]) -> None:
        self.arm(variables)

    def arm(self, variables: Mapping[str, str]) -> None:
        """For the points that these variables name, from now on; a test that forks has them only then."""
        self._wanted = variables.get("SILKLINE_TEST_KILL_AT") or None
        self._left = int(variables.get("SILKLINE_TEST_KILL_NTH", "1"))

    def __call__(self, point: str, last_act: Callable[[], object] | None = None) -> None:
        """Pass `point`; if the process is to die here, do `last_act` and die."""
        if point != self._wanted:
            return
        self._left -= 1
        if self._left == 0:
            if last_act is not None:
                last_act()
            os.kill(os.getpid(), signal.SIGKILL)


reach = FaultPoints(os.environ)
