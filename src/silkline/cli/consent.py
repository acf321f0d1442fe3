"""Asking before something is gone for good."""

from __future__ import annotations

import sys
from typing import Annotated

import typer
from typer import Option

from silkline.errors import ConfigError

Yes = Annotated[bool, Option("--yes", "-y", metavar=" ", help="Do not ask.")]


def agreed(question: str, lost: str = "what is dropped") -> bool:
    """Whether the user agrees. Raises ConfigError where there is nobody to ask, or no answer.

    lost: what would be gone.
    """
    unanswered = ConfigError(f"{lost} is gone for good, and nobody was there to ask: add --yes")
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise unanswered
    try:
        return typer.confirm(question, err=True)
    except typer.Abort as error:
        if isinstance(error.__context__, EOFError):
            raise unanswered from error
        raise
