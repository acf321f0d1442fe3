"""One thread for one store, so that the event loop never waits for the disk."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from dataclasses import dataclass
from queue import SimpleQueue
from typing import Any, TypeVar

T = TypeVar("T")


@dataclass(slots=True, frozen=True)
class _Call:
    run: Callable[[], Any]
    undo: Callable[[Any], None] | None
    future: asyncio.Future[Any]


class StoreThread:
    """Runs calls in the order they came, for callers on any event loop."""

    def __init__(self, name: str) -> None:
        self._calls: SimpleQueue[_Call | None] = SimpleQueue()
        # A daemon: when the event loop died without `stop`, the interpreter must still be able to exit.
        self._thread = threading.Thread(target=self._serve, name=name, daemon=True)
        self._thread.start()

    async def run(self, call: Callable[[], T], undo: Callable[[T], None] | None = None) -> T:
        """Run `call` in the thread; its result or exception is the caller's.

        A caller that is cancelled before its turn leaves nothing behind. If that happens later, the call
        still ends, and `undo` is then run in the thread with a result that nobody got.
        """
        future: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self._calls.put(_Call(call, undo, future))
        try:
            return await future
        except asyncio.CancelledError:
            if future.done() and not future.cancelled() and future.exception() is None:
                self._take_back(undo, future.result())  # the result was there, but not yet fetched
            raise

    def stop(self) -> None:
        """End the thread after the calls that are already in line."""
        self._calls.put(None)
        self._thread.join()

    def _serve(self) -> None:
        while (call := self._calls.get()) is not None:
            if call.future.cancelled():
                continue
            result, error = None, None
            try:
                result = call.run()
            except BaseException as raised:  # the caller's to handle, whatever it is
                error = raised
            try:
                call.future.get_loop().call_soon_threadsafe(self._hand_over, call, result, error)
            except RuntimeError:  # the loop is closed: nobody waits any more
                continue

    def _hand_over(self, call: _Call, result: Any, error: BaseException | None) -> None:
        if not call.future.cancelled():
            if error is None:
                call.future.set_result(result)
            else:
                call.future.set_exception(error)
        elif error is None:
            self._take_back(call.undo, result)

    def _take_back(self, undo: Callable[[Any], None] | None, result: Any) -> None:
        if undo is not None:
            future = asyncio.get_running_loop().create_future()
            # Nobody waits for it. It fails where the store was closed before, which has given back all.
            future.add_done_callback(lambda done: done.cancelled() or done.exception())
            self._calls.put(_Call(lambda: undo(result), None, future))
