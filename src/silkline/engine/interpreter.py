"""Two knobs of the Python interpreter, turned while a crawl has the process to itself."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager

SWITCH_INTERVAL = 0.0005
"""Seconds, in place of Python's 5 ms. The frontier's thread needs the interpreter lock for a moment between
two long stretches without it; a busy event loop that lets go of the lock often, but never for 5 ms
asked in one piece, has been seen to keep it waiting for seconds."""

THRESHOLDS = (50_000, 20, 50)
"""In place of 700, 10, 10. A visit leaves no reference cycles of ours behind, so that looking for them after
every 700 objects only costs: 15 % of a crawl's CPU. A handler's own cycles are found a little later."""


@contextmanager
def tuned_interpreter() -> Iterator[None]:
    """Set both, and leave what the imports made out of the search for cycles; all is put back at the end."""
    interval, thresholds = sys.getswitchinterval(), gc.get_threshold()
    gc.freeze()
    gc.set_threshold(*THRESHOLDS)
    sys.setswitchinterval(min(SWITCH_INTERVAL, interval))
    try:
        yield
    finally:
        sys.setswitchinterval(interval)
        gc.set_threshold(*thresholds)
        gc.unfreeze()
