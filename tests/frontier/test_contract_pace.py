"""What every frontier promises about paces: how fast hosts are asked because of what they answer."""

from __future__ import annotations

import asyncio

from silkline.config import FrontierOptions
from silkline.outcome import HostPace
from silkline.protocols import Decide
from tests.frontier.conftest import ManualClock, Opened, done, pages, urls

A = "http://a:80"


def always(pace: HostPace | None) -> Decide:
    return lambda host, state, now: pace


class TestPace:
    async def test_a_pace_lowers_cap_and_delay_and_blocks(self, opened: Opened, clock: ManualClock) -> None:
        async with opened(per_host=3, ceiling=3) as frontier:
            await frontier.add(pages("a", 9))
            first = await frontier.lease(9)
            assert len(first.leases) == 3
            await frontier.pace([A], always(HostPace(2, 1.0, 5.0, b"x")))
            await frontier.commit(done(*first.leases))
            assert (await frontier.lease(9)).wake_in == 5.0
            clock.now += 5.0
            assert [lease.starts_in for lease in (await frontier.lease(9)).leases] == [0.0, 1.0]
            (host,) = (await frontier.overview()).hosts
            assert (host.pace, host.cap, host.delay) == ((2, 1.0), None, None)
            assert (host.pace_state, await frontier.host(A)) == (b"x", host)
            assert await frontier.host("http://never:80") is None

    async def test_a_pace_may_go_up_to_the_ceiling(self, opened: Opened) -> None:
        async with opened(per_host=2, ceiling=4) as frontier:
            await frontier.add(pages("a", 9))
            await frontier.pace([A], always(HostPace(9, state=b"x")))
            assert len((await frontier.lease(9)).leases) == 4

    async def test_a_cap_and_a_delay_of_the_hosts_own_hold_beside_its_pace(self, opened: Opened) -> None:
        async with opened(per_host=2, ceiling=4) as frontier:
            await frontier.add(pages("a", 9) + pages("b", 9))
            await frontier.limit_host(A, delay=2.0, cap=1)
            await frontier.pace([A, "http://b:80"], always(HostPace(3, 0.5, state=b"x")))
            batch = await frontier.lease(9)
            assert urls(batch) == ["a/0", "b/0", "b/1", "b/2"]
            assert [lease.starts_in for lease in batch.leases] == [0.0, 0.0, 0.5, 1.0]

    async def test_without_a_ceiling_no_pace_counts_but_it_is_kept(
        self, opened: Opened, clock: ManualClock
    ) -> None:
        async with opened(per_host=2, ceiling=None) as frontier:
            await frontier.add(pages("a", 9))
            await frontier.pace([A], always(HostPace(1, 30.0, state=b"x")))
            batch = await frontier.lease(9)
            assert len(batch.leases) == 2
            await frontier.commit(done(*batch.leases))
            await frontier.apply(FrontierOptions(per_host=2, ceiling=2))
            assert (await frontier.lease(9)).wake_in == 30.0
            clock.now += 30.0
            assert len((await frontier.lease(9)).leases) == 1

    async def test_each_decision_sees_the_state_that_the_last_one_left(self, opened: Opened) -> None:
        seen: list[tuple[str, bytes | None]] = []

        def count(host: str, state: bytes | None, now: float) -> HostPace:
            seen.append((host, state))
            return HostPace(1, state=b"%d" % (int(state or 0) + 1))

        async with opened(ceiling=8) as frontier:
            await frontier.pace([A, "http://b:80", A], count)
            await frontier.pace([A], count)
            assert len(seen) == 3, "no host twice in one call"
            assert set(seen) == {(A, None), ("http://b:80", None), (A, b"1")}

    async def test_of_decisions_at_the_same_time_none_is_lost(self, opened: Opened) -> None:
        latest: list[bytes] = []

        def count(host: str, state: bytes | None, now: float) -> HostPace:
            latest.append(b"%d" % (int(state or 0) + 1))
            return HostPace(1, state=latest[-1])

        def read(host: str, state: bytes | None, now: float) -> None:
            assert state == b"10"

        async with opened(ceiling=8) as frontier:
            await asyncio.gather(*(frontier.pace([A], count) for _ in range(10)))
            await frontier.pace([A], read)

    async def test_to_leave_it_as_it_is_changes_nothing(self, opened: Opened) -> None:
        async with opened(ceiling=8) as frontier:
            await frontier.pace([A], always(None))
            await frontier.add(pages("a", 1))
            assert (await frontier.overview()).hosts[0].pace is None

    async def test_since_when_hosts_are_due_survives_a_restart(
        self, opened: Opened, clock: ManualClock
    ) -> None:
        async with opened(ceiling=8) as frontier:
            if type(frontier).__name__ == "MemoryFrontier":
                return  # nothing of it does
            await frontier.add(pages("a", 1) + pages("b", 1))
            await frontier.pace([A, "http://b:80"], always(HostPace(2, state=b"x")))
            await frontier.commit(done(*(await frontier.lease(9)).leases))
            for host in "ba":
                clock.now += 1.0
                await frontier.add(pages(host, 1, 1))
        clock.now += 1.0
        async with opened(ceiling=8) as frontier:
            assert urls(await frontier.lease(1)) == ["b/1"]
