"""What seen URLs cost in Redis, and what the ways to know them promise."""

from __future__ import annotations

import random
import time

import msgspec
import pytest
import redis

from silkline.errors import JobError
from silkline.outcome import Done, Outcome
from silkline.request import Request
from tests import servers
from tests.frontier.conftest import pages
from tests.frontier.redis_worker import opened
from tests.servers import RedisServer


class TestMemory:
    @pytest.mark.parametrize("count", [200_000])
    async def test_a_seen_url_costs_at_most_twelve_bytes_and_a_waiting_one_forty_beside_its_json(
        self, count: int
    ) -> None:
        await _measure(count)

    @pytest.mark.soak
    @pytest.mark.timeout(7200)
    @pytest.mark.parametrize("count", [1_000_000, 10_000_000, 50_000_000])
    async def test_that_holds_for_millions(self, count: int) -> None:
        await _measure(count)


async def _measure(count: int) -> None:
    """Seen URLs without their requests are measured by adding them in a script of the store's own."""
    server = RedisServer(servers.valkey().binary).start()
    try:
        async with opened("m", server.url) as frontier:
            client = redis.Redis(port=server.port, socket_timeout=None)
            sample = 100_000
            before = client.info("memory")["used_memory"]
            size = 0
            for start in range(0, sample, 1_000):
                batch = [
                    Request(f"http://shop.example/products/{n}.html") for n in range(start, start + 1_000)
                ]
                size += sum(len(msgspec.json.encode(request)) for request in batch)
                await frontier.add(batch)
            both = client.info("memory")["used_memory"] - before
            while leases := (await frontier.lease(1_000)).leases:
                await frontier.commit([Outcome(lease, Done()) for lease in leases])
            seen = client.info("memory")["used_memory"] - before
            assert (both - seen - size) / sample <= 40
            # The rest only as fingerprints: their requests came and went.
            chance = random.Random(1)
            mark = servers.seen_script()
            began = time.monotonic()
            for _ in range(0, count - sample, 10_000):
                numbers = [str(chance.getrandbits(64) - 2**63) for _ in range(10_000)]
                client.eval(mark, 1, "m:meta", frontier._job.home._header({}), *numbers)
            per_url = (client.info("memory")["used_memory"] - before) / count
            print(f"{count:,} URLs: {per_url:.2f} bytes each, after {time.monotonic() - began:,.0f} s")
            assert per_url <= (12 if count >= 1_000_000 else 14)
    finally:
        server.remove()


class TestDedup:
    async def test_bloom_forgets_nothing_and_errs_as_rarely_as_promised(self, job: str) -> None:
        async with opened(job, dedup="bloom", bloom_capacity=2_000, bloom_error=0.01) as frontier:
            first = [Request(f"http://a/{n}") for n in range(8_000)]
            added = 0
            for start in range(0, 8_000, 1_000):
                added += (await frontier.add(first[start : start + 1_000])).added
            assert 8_000 * 0.99 <= added <= 8_000
            for start in range(0, 8_000, 1_000):
                assert (await frontier.add(first[start : start + 1_000])).added == 0
            (note, *_) = (await frontier.overview()).notes
            assert "3 layer(s)" in note or "4 layer(s)" in note
            assert "0.00" in note

    async def test_none_lets_everything_in_again(self, job: str) -> None:
        async with opened(job, dedup="none") as frontier:
            assert [(await frontier.add(pages("a", 2))).added for _ in range(2)] == [2, 2]

    async def test_what_a_job_was_created_with_stays(self, job: str) -> None:
        async with opened(job, dedup="none", partitions=2):
            """Created."""
        async with opened(job) as frontier:
            assert (await frontier.add(pages("a", 2) + pages("a", 2))).added in (2, 4)
            assert frontier._job.options.partitions == 2
        with pytest.raises(JobError, match="was created with partitions=2, not 3"):
            async with opened(job, partitions=3):
                """Not reached."""

    async def test_generations_of_seen_sets_open_as_it_grows(self, job: str, client: redis.Redis) -> None:
        async with opened(job) as frontier:
            await frontier.add(pages("a", 10))
            client.hset(f"{job}:meta", "newest_count", 256 * 4096 - 5)
            await frontier.add(pages("b", 10))
            assert client.hget(f"{job}:meta", "generations") == "2"
            assert (await frontier.add(pages("a", 11) + pages("b", 11))).added == 2
            assert client.keys(f"{job}:seen:2:*")
