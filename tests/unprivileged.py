"""Checks of permissions, also where the tests run as root, who has them all."""

from __future__ import annotations

import os
import shutil
import tempfile
import traceback
from collections.abc import Callable
from pathlib import Path

NOBODY = 65_534


def as_nobody(check: Callable[[Path], None]) -> None:
    """Call `check` with a new folder that it owns, as an ordinary user: in a child that gives up root."""
    folder = Path(tempfile.mkdtemp(prefix="silkline-nobody-"))
    try:
        if os.geteuid() != 0:
            check(folder)
            return
        os.chown(folder, NOBODY, NOBODY)
        child = os.fork()
        if child == 0:
            _become_nobody_and(lambda: check(folder))
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0, "see the traceback above"
    finally:
        shutil.rmtree(folder)


def _become_nobody_and(check: Callable[[], None]) -> None:
    code = 1
    try:
        os.setgroups([])
        os.setgid(NOBODY)
        os.setuid(NOBODY)
        check()
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(code)
