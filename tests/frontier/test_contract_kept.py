"""What every frontier promises, whatever its store: small values that are kept for a while."""

from __future__ import annotations

from pathlib import Path

import pytest

from silkline.config import FrontierOptions
from silkline.errors import FrontierError
from silkline.outcome import KeptValue
from tests.frontier.conftest import BACKENDS, ManualClock, Opened


async def test_a_value_is_kept_for_its_time_and_no_longer(opened: Opened, clock: ManualClock) -> None:
    async with opened() as frontier:
        assert await frontier.kept("robots") is None
        await frontier.keep("robots", b"\x00\xff any bytes", 10.0)
        assert await frontier.kept("robots") == KeptValue(b"\x00\xff any bytes", 10.0)
        clock.now += 4.0
        assert await frontier.kept("robots") == KeptValue(b"\x00\xff any bytes", 6.0)
        clock.now += 6.0
        assert await frontier.kept("robots") is None


async def test_a_later_value_takes_the_place_and_the_time_of_an_earlier_one(
    opened: Opened, clock: ManualClock
) -> None:
    async with opened() as frontier:
        await frontier.keep("a", b"1", 100.0)
        await frontier.keep("b", b"other", 100.0)
        await frontier.keep("a", b"2", 5.0)
        assert await frontier.kept("a") == KeptValue(b"2", 5.0)
        clock.now += 5.0
        await frontier.keep("c", b"", 100.0)
        assert await frontier.kept("a") is None
        assert await frontier.kept("b") == KeptValue(b"other", 95.0)
        assert await frontier.kept("c") == KeptValue(b"", 100.0)
        await frontier.keep("a", b"3", 100.0)
        assert await frontier.kept("a") == KeptValue(b"3", 100.0)


async def test_a_frontier_that_is_not_open_keeps_nothing(opened: Opened) -> None:
    async with opened() as frontier:
        pass
    with pytest.raises(FrontierError, match="not open"):
        await frontier.keep("a", b"", 1.0)
    with pytest.raises(FrontierError, match="not open"):
        await frontier.kept("a")


@pytest.mark.parametrize("backend", sorted(BACKENDS.keys() - {"memory"}))
async def test_all_workers_of_a_job_and_its_next_run_share_what_is_kept(
    backend: str, tmp_path: Path, clock: ManualClock
) -> None:
    first, second, later = (BACKENDS[backend](tmp_path, FrontierOptions(), clock) for _ in range(3))
    await first.open()
    await second.open()
    await first.keep("a", b"1", 50.0)
    assert await second.kept("a") == KeptValue(b"1", 50.0)
    await first.close()
    await second.close()
    clock.now += 10.0
    await later.open()
    assert await later.kept("a") == KeptValue(b"1", 40.0)
    await later.close()
