"""Pipeline steps: what happens to items between their handler and the outputs."""

from __future__ import annotations

import asyncio
import inspect
import traceback
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import msgspec

from silkline.engine.effects import is_cancelled, is_many
from silkline.errors import ConfigError, Drop, FatalError, Retry
from silkline.items import To
from silkline.parse.page import Page
from silkline.steps import Step


class Dropped(msgspec.Struct, frozen=True):
    """In place of an item that a step has left out on purpose."""

    reason: str


class Failed(msgspec.Struct, frozen=True):
    """In place of an item that a step could not handle: as it was before that step, and why."""

    item: Any
    error: str


class Steps:
    """Applied in their order, each to what the one before it gave back. Raises ConfigError for a step that is
    no function of an item, or of an item and its page."""

    def __init__(self, steps: Sequence[Step]) -> None:
        self._steps = [(step, _name_of(step), _wants_page(step)) for step in steps]

    def __bool__(self) -> bool:
        return bool(self._steps)

    async def through(self, values: Sequence[object], page: Page) -> list[object]:
        """What came of each value: an item, a Dropped or a Failed. Raises Retry, FatalError, and a
        cancellation from outside."""
        return [await self._through(value, page) for value in values]

    async def _through(self, value: object, page: Page) -> object:
        for step, name, wants_page in self._steps:
            item = value.item if type(value) is To else value
            try:
                result = step(item, page) if wants_page else step(item)
                if inspect.isawaitable(result):
                    result = await result
                if is_many(result):
                    raise TypeError(f"a step gives back one item or None, not a {type(result).__name__}")
            except Drop as drop:
                return Dropped(str(drop))
            except (Retry, FatalError, KeyboardInterrupt):
                raise
            except BaseException as error:  # also sys.exit(), and a cancelled task of its own
                if isinstance(error, asyncio.CancelledError) and is_cancelled():
                    raise
                return Failed(value, f"step {name}: {_line(error)}")
            if result is None:
                return Dropped(name)
            value = replace(value, item=result) if type(value) is To and type(result) is not To else result
        return value


def _name_of(step: Any) -> str:
    return str(getattr(step, "__name__", type(step).__name__))


def _wants_page(step: Any) -> bool:
    if not callable(step):
        raise ConfigError(f"a step must be a function of an item, not {step!r:.80}")
    try:
        parameters = inspect.signature(step).parameters.values()
    except (TypeError, ValueError):  # some of those written in C do not tell
        return False
    places = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    needed = [p for p in places if p.default is p.empty]
    many = any(p.kind is p.VAR_POSITIONAL for p in parameters)
    if len(needed) > 2 or (not places and not many):
        raise ConfigError(
            f"the step {_name_of(step)} takes {len(needed)} arguments; write it as a function of an item, or "
            "of an item and its page"
        )
    return len(needed) == 2


def _line(error: BaseException) -> str:
    """The last line of the traceback, and where that was."""
    told = " ".join("".join(traceback.format_exception_only(error)).split())
    frames = traceback.extract_tb(error.__traceback__)
    where = f" ({frames[-1].filename.rpartition('/')[2]}:{frames[-1].lineno})" if frames else ""
    return f"{told[:500]}{where}"
