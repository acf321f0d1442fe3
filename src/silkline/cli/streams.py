"""Standard streams that are closed, or cannot be written any more: a crawl does without them."""

from __future__ import annotations

import io
import os
import sys
from typing import Any


def provide() -> None:
    """Have all three standard streams, and two whose failures stop nothing.

    Where the program was started without one, the next file or socket would get its number, and what
    libraries write to the stream would go there.
    """
    for number, name, mode in ((0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w")):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, open(_null_at(number), mode, encoding="utf-8", closefd=False))  # noqa: SIM115
        elif number and stream is getattr(sys, f"__{name}__"):
            setattr(sys, name, _unfailing(stream))


def lost_output() -> OSError | None:
    """Why something that was written to stdout since the last call is lost; None where nothing is."""
    sys.stdout.flush()
    raw = getattr(getattr(sys.stdout, "buffer", None), "raw", None)
    if not isinstance(raw, _Unfailing):
        return None
    failure, raw.failure = raw.failure, None
    return failure


class _Unfailing(io.FileIO):
    """Drops what cannot be written (a full disk, a reader or a terminal that went away) and remembers why."""

    failure: OSError | None = None

    def write(self, data: Any) -> int:
        try:
            written = super().write(data)
        except OSError as error:
            self.failure = error
            written = None
        return memoryview(data).nbytes if written is None else written


def _unfailing(stream: io.TextIOWrapper) -> io.TextIOWrapper:
    stream.flush()
    return io.TextIOWrapper(
        io.BufferedWriter(_Unfailing(stream.fileno(), "w", closefd=False)),
        stream.encoding,
        stream.errors,
        line_buffering=stream.line_buffering,
        write_through=stream.write_through,
    )


def _null_at(number: int) -> int:
    """A descriptor of /dev/null: `number`, unless something else has taken that meanwhile."""
    null = os.open(os.devnull, os.O_RDWR)
    if null == number:
        os.set_inheritable(null, True)
        return null
    try:
        os.fstat(number)
    except OSError:
        os.dup2(null, number)
        os.close(null)
        return number
    return null
