"""The public keys of a job, as any program with a plain client sees them (DESIGN: the wire contract)."""

from __future__ import annotations

import json
import uuid

import pytest
import redis

from silkline.outcome import Heartbeat, Stats
from tests import servers
from tests.frontier.conftest import dead, done, pages
from tests.frontier.redis_worker import opened


def plain(url: str) -> redis.Redis | redis.RedisCluster:
    if url.startswith("redis+cluster"):
        return redis.RedisCluster.from_url(url.replace("+cluster", ""), decode_responses=True)
    return redis.Redis.from_url(url, decode_responses=True)


both_forms = pytest.mark.parametrize(
    ("server", "form"),
    [(servers.valkey_url, "{}:"), (servers.cluster_url, "{{{}}}:")],
    ids=["one server", "cluster"],
)


@both_forms
async def test_other_programs_read_what_became_of_a_job_and_steer_it(server: object, form: str) -> None:
    url, job = server(), f"job-{uuid.uuid4().hex[:8]}"  # type: ignore[operator]
    prefix = form.format(job)
    with plain(url) as client:
        client.hset(f"{prefix}config", mapping={"delay": "0.5", "paused": "true"})
        async with opened(job, url, keep_done_urls=True) as frontier:
            await frontier.add(pages("a", 3))
            first, second, _ = (await frontier.lease(3)).leases
            await frontier.commit([*done(first), *dead(second)])
            assert await frontier.heartbeat(Heartbeat("box", 7, 0.0)) == {"delay": "0.5", "paused": "true"}
            assert client.smembers(f"{prefix}url:done") == {first.request.url}
            (letter,) = map(json.loads, client.lrange(f"{prefix}task:dead", 0, -1))
            assert {name: letter[name] for name in ("url", "deliveries", "worker")} == {
                "url": second.request.url,
                "deliveries": 1,
                "worker": frontier.worker,
            }
            assert {"cause", "error", "at"} <= letter.keys()
            counters = client.hgetall(f"{prefix}stats")
            assert (counters["done"], counters["dead"]) == ("1", "1")
            beats = {name: json.loads(beat) for name, beat in client.hgetall(f"{prefix}workers").items()}
            assert beats[frontier.worker]["host"] == "box"


@both_forms
async def test_what_other_programs_push_is_work_for_all_partitions(server: object, form: str) -> None:
    url, job = server(), f"job-{uuid.uuid4().hex[:8]}"  # type: ignore[operator]
    tasks = [f"http://h{number}.test/" for number in range(12)]
    with plain(url) as client:
        async with opened(job, url, partitions=3) as frontier:
            client.rpush(f"{form.format(job)}task:wait", *tasks, "{not json", *tasks[:3])
            leases = list((await frontier.lease(20)).leases)
            while more := (await frontier.lease(20)).leases:
                leases += more
            assert sorted(lease.request.url for lease in leases) == sorted(tasks)
            assert await frontier.stats() == Stats(leased=12, dead=1)
            sizes = [await partition.call("stats") for partition in frontier._job.partitions]
            assert sum(size[2] > 0 for size in sizes) > 1, "hosts are spread"


async def test_done_urls_are_kept_as_text_only_where_that_is_asked_for() -> None:
    job = f"job-{uuid.uuid4().hex[:8]}"
    async with opened(job) as frontier:
        await frontier.add(pages("a", 1))
        await frontier.commit(done(*(await frontier.lease(1)).leases))
        assert not servers.valkey().client().exists(f"{job}:url:done")
