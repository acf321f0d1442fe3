from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator

import pytest

from silkline.frontier.store_thread import StoreThread


@pytest.fixture
async def thread() -> AsyncIterator[StoreThread]:
    thread = StoreThread("test")
    yield thread
    thread.stop()


async def test_calls_run_in_order_in_one_other_thread(thread: StoreThread) -> None:
    order: list[int] = []

    def call(n: int) -> int:
        order.append(n)
        return threading.get_ident()

    idents = await asyncio.gather(*(thread.run(lambda n=n: call(n)) for n in range(20)))
    assert order == list(range(20))
    assert len(set(idents)) == 1
    assert idents[0] != threading.get_ident()


async def test_an_error_is_the_callers_and_the_thread_goes_on(thread: StoreThread) -> None:
    broken = KeyboardInterrupt("whatever it is")

    def fail() -> None:
        raise broken

    with pytest.raises(KeyboardInterrupt) as caught:
        await thread.run(fail)
    assert caught.value is broken
    assert await thread.run(lambda: 1) == 1


async def test_a_call_that_is_cancelled_before_its_turn_never_runs(thread: StoreThread) -> None:
    gate, ran = threading.Event(), []
    first = asyncio.ensure_future(thread.run(gate.wait))
    second = asyncio.ensure_future(thread.run(lambda: ran.append(2), ran.append))
    await asyncio.sleep(0)
    second.cancel()
    await asyncio.sleep(0)
    gate.set()
    await first
    await thread.run(lambda: None)
    assert ran == []


async def test_a_result_that_comes_after_the_cancellation_is_undone(thread: StoreThread) -> None:
    running, gate, undone = threading.Event(), threading.Event(), threading.Event()

    def call() -> None:
        running.set()
        gate.wait()

    task = asyncio.ensure_future(thread.run(call, lambda _: undone.set()))
    assert await asyncio.to_thread(running.wait, 10)
    task.cancel()
    gate.set()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await asyncio.to_thread(undone.wait, 10)


async def test_a_result_that_was_there_but_not_yet_fetched_is_undone(thread: StoreThread) -> None:
    gate, both_ran, undone = threading.Event(), threading.Event(), threading.Event()
    task = asyncio.ensure_future(thread.run(gate.wait, lambda _: undone.set()))

    def cancel_behind_the_result() -> None:
        task.get_loop().call_soon_threadsafe(task.cancel)
        both_ran.set()

    last = asyncio.ensure_future(thread.run(cancel_behind_the_result))
    await asyncio.sleep(0)
    gate.set()
    both_ran.wait()  # blocks the loop, which then meets result and cancellation in one turn
    with pytest.raises(asyncio.CancelledError):
        await task
    await last
    assert await asyncio.to_thread(undone.wait, 10)


async def test_the_thread_outlives_a_loop_that_is_gone(thread: StoreThread) -> None:
    gate, ended = threading.Event(), threading.Event()

    def leave_a_loop() -> None:
        loop = asyncio.new_event_loop()
        task = loop.create_task(thread.run(lambda: (gate.wait(), ended.set())))
        loop.call_later(0.01, loop.stop)
        loop.run_forever()
        task.cancel()
        task._log_destroy_pending = False  # type: ignore[attr-defined]
        loop.close()

    await asyncio.to_thread(leave_a_loop)
    gate.set()
    assert await asyncio.to_thread(ended.wait, 10)
    assert await thread.run(lambda: 1) == 1
