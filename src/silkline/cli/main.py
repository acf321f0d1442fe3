"""The command line: the one place where errors become a line and an exit code.

0 finished; 1 finished, but with dead letters under --strict; 2 usage or configuration; 3 fatal;
130 interrupted, everything is kept.
"""

from __future__ import annotations

import sys
import traceback
from collections.abc import Sequence

from silkline.cli import streams
from silkline.cli.interrupt import sigterm_like_sigint
from silkline.errors import ConfigError, SilklineError
from silkline.observe.figures import printable

USAGE = 2
FATAL = 3
INTERRUPTED = 130
BROKEN_PIPE = 141
"""As the shell reports a program that SIGPIPE ended: the reader of our output went away."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code."""
    streams.provide()
    words = list(sys.argv[1:] if arguments is None else arguments)
    with sigterm_like_sigint():
        try:
            from silkline.cli.app import perform  # takes a while: a signal must find its handler by then

            code = perform(words)
        except KeyboardInterrupt:
            return _say("interrupted", INTERRUPTED)
        except ConfigError as error:
            return _say(str(error), USAGE)
        except SilklineError as error:
            return _say(str(error), FATAL)
        except Exception as error:
            return _unexpected(error, debug="--debug" in words)
    failure = streams.lost_output()
    if failure is None:
        return code
    if isinstance(failure, BrokenPipeError):
        return BROKEN_PIPE
    return _say(f"cannot write to standard output: {failure.strerror}", FATAL)


def _unexpected(error: Exception, *, debug: bool) -> int:
    # typer's own errors have no public base class that all its releases share.
    if callable(message := getattr(error, "format_message", None)):
        context = getattr(error, "ctx", None)
        command = context.command_path if context else "silkline"
        line = message()
        # No command at all: its help was printed instead, and nothing more is to be said.
        return _say(f"{line} (see {command} --help)", USAGE) if line else USAGE
    if debug:
        traceback.print_exception(error)
    return _say(f"unexpected {type(error).__name__}: {error}; --debug shows where", FATAL)


def _say(line: str, code: int) -> int:
    print(f"silkline: {printable(' '.join(line.split()))}", file=sys.stderr)
    return code


if __name__ == "__main__":
    sys.exit(main())
