"""Dead letters in Redis: a public list, from which anybody may take some, and put some in."""

from __future__ import annotations

import asyncio
import json

import pytest
import redis

from silkline.config import FrontierOptions
from silkline.errors import JobError
from silkline.frontier.redis import RedisFrontier
from silkline.outcome import Lease, Stats
from tests import servers
from tests.frontier.conftest import dead, done, pages, retry
from tests.frontier.redis_worker import Counting, opened


async def leased(frontier: RedisFrontier, count: int) -> list[Lease]:
    leases: list[Lease] = []
    while len(leases) < count:
        leases += (await frontier.lease(count)).leases
    return leases


def letter(number: int, cause: str) -> str:
    task = {"url": f"http://a/{number}", "cause": cause, "error": "HTTP status 404", "deliveries": 1}
    return json.dumps(
        {**task, "worker": "w", "at": 1.8e9 + number, "id": number, "fingerprint": f"{number:016x}"}
    )


async def test_the_oldest_of_many_letters_are_resent_without_holding_up_the_server(
    job: str, client: redis.Redis
) -> None:
    async with opened(job) as frontier:
        many = [letter(number, "old" if number <= 1_500 else "new") for number in range(1, 50_001)]
        for first in range(0, len(many), 5_000):
            client.rpush(f"{job}:task:dead", *many[first : first + 5_000])
        client.hset(f"{job}:meta", mapping={"last_id": 50_000, "buried": 50_000})
        before = client.info("commandstats").get("cmdstat_lrem", {"calls": 0})["calls"]
        assert await frontier.dead_letters.resend(cause="old") == 1_500
        assert client.info("commandstats")["cmdstat_lrem"]["calls"] - before <= 8  # each looks at all of them
        assert await frontier.stats() == Stats(waiting=1_500, dead=48_500)
        assert client.lindex(f"{job}:task:dead", 0) == many[1_500]


@pytest.mark.parametrize("again", [True, False])
async def test_letters_that_move_while_they_are_taken_out_are_found_again(
    job: str, client: redis.Redis, monkeypatch: pytest.MonkeyPatch, again: bool
) -> None:
    async with opened(job) as frontier:
        await frontier.add(pages("a", 6))
        await frontier.commit(dead(*await leased(frontier, 6)))
        home = frontier._job.home
        take_out, interrupted = home.take_out, []

        async def after_another_program(letters, *, again):  # type: ignore[no-untyped-def]
            if not interrupted:
                interrupted.append(client.lpop(f"{job}:task:dead"))
            return await take_out(letters, again=again)

        monkeypatch.setattr(home, "take_out", after_another_program)
        assert await (frontier.dead_letters.resend() if again else frontier.dead_letters.drop()) == 5
        assert await frontier.stats() == (Stats(waiting=5, done=1) if again else Stats(done=6))


async def test_a_job_ends_though_another_program_takes_its_dead_letters(job: str) -> None:
    async with opened(job, partitions=2) as frontier:
        await frontier.add([page for n in range(8) for page in pages(f"host{n}", 1)])
        await frontier.commit(dead(*await leased(frontier, 8)))
        for partition in frontier._job.partitions:
            await partition.command("DEL", "task:dead")
        assert (await frontier.lease(1)).finished
        assert await frontier.stats() == Stats(done=8)


async def test_a_letter_of_another_program_is_a_request_like_others_once_it_is_resent(
    job: str, client: redis.Redis
) -> None:
    async with opened(job) as frontier:
        client.rpush(f"{job}:task:dead", '{"url":"http://a/1","cause":"x"}', '{"url":"http://a/2"}')
        assert await frontier.stats() == Stats(dead=2)
        assert await frontier.dead_letters.resend() == 2
        assert await frontier.stats() == Stats(waiting=2)
        leases = await leased(frontier, 2)
        assert {lease.fingerprint for lease in leases} == {
            frontier.fingerprint("http://a/1"),
            frontier.fingerprint("http://a/2"),
        }
        await frontier.commit(done(*leases))
        assert await frontier.stats() == Stats(done=2)
        assert (await frontier.add(pages("a", 1, first=1))).added == 0


@pytest.mark.parametrize(
    "fields",
    [
        {"fingerprint": "aa" * 20},
        {"id": 10**30},
        {"id": -5},
        {"id": 1e300},
        {"at": 1e300},
        {"deliveries": 10**30},
        {"url": ""},
        {"url": "http://a b/"},
        {"url": "http://a b/", "fingerprint": "00" * 8},
        {"url": "ftp://a/"},
        {"save_to": "/etc/passwd"},
        {"extra": 1},
    ],
)
async def test_a_letter_of_another_program_that_is_not_right_harms_nobody(
    job: str, client: redis.Redis, fields: dict[str, object]
) -> None:
    async with opened(job) as frontier:
        await frontier.add(pages("b", 1))
        client.rpush(f"{job}:task:dead", json.dumps({"url": "http://a/1", **fields}))
        assert len(await frontier.dead_letters.newest()) == 1
        resent = await frontier.dead_letters.resend()
        assert await frontier.stats() == Stats(waiting=1 + resent, dead=1 - resent)
        leases = await leased(frontier, 1 + resent)
        assert [lease.request.save_to for lease in leases] == [None] * len(leases)
        await frontier.commit(done(*leases))
        assert await frontier.dead_letters.drop() == 1 - resent
        assert await frontier.stats() == Stats(done=1 + resent)


@pytest.mark.parametrize("key", ["task:dead", "url:done"])
async def test_a_list_that_has_become_something_else_stops_a_commit_before_it_changes_anything(
    job: str, client: redis.Redis, key: str
) -> None:
    async with opened(job, keep_done_urls=True) as frontier:
        await frontier.add(pages("a", 3))
        first, second, third = await leased(frontier, 3)
        client.set(f"{job}:{key}", "mine")
        outcomes = [*done(first), *dead(second), *retry(third)]
        with pytest.raises(JobError, match="is used by another program"):
            await frontier.commit(outcomes, Counting())
        assert client.hlen(f"{job}:positions") == 0
        client.delete(f"{job}:{key}")
        assert await frontier.stats() == Stats(leased=3)
        assert len((await frontier.commit(outcomes, Counting())).accepted) == 3
        assert await frontier.stats() == Stats(delayed=1, done=1, dead=1)


async def test_expired_leases_stay_where_they_are_while_there_is_no_list_for_them(
    job: str, client: redis.Redis
) -> None:
    async with opened(job, lease_seconds=0.05, max_deliveries=1) as frontier:
        await frontier.add(pages("a", 2))
        await leased(frontier, 2)
        client.set(f"{job}:task:dead", "mine")
        await asyncio.sleep(0.06)
        with pytest.raises(JobError, match="is used by another program"):
            await frontier.lease(1)
        client.delete(f"{job}:task:dead")
        assert await frontier.stats() == Stats(leased=2)
        assert (await frontier.lease(1)).finished
        assert await frontier.stats() == Stats(dead=2)


async def test_counters_that_others_have_spoilt_stop_nothing(job: str, client: redis.Redis) -> None:
    async with opened(job) as frontier:
        await frontier.add(pages("a", 2))
        for spoil in (
            lambda: client.hset(f"{job}:stats", "done", "many"),
            lambda: (client.delete(f"{job}:stats"), client.set(f"{job}:stats", "mine")),
        ):
            spoil()
            await frontier.commit(done(*await leased(frontier, 1)), Counting())
        assert await frontier.stats() == Stats(done=2)
        assert await frontier.positions() == {"out": "2"}


@pytest.mark.parametrize("key", ["task:wait", "task:dead", "stats", "config", "workers", "url:done"])
async def test_a_public_key_of_another_type_is_found_at_the_start(
    job: str, client: redis.Redis, key: str
) -> None:
    client.set(f"{job}:{key}", "mine")
    with pytest.raises(JobError, match=f"^the key {job}:{key} is used by another program.*is a string"):
        async with opened(job):
            """Not reached."""


async def test_a_user_that_may_not_publish_adds_all_the_same(job: str, client: redis.Redis) -> None:
    client.execute_command("ACL", "SETUSER", "quiet", "on", ">pw", "~*", "+@all", "resetchannels")
    said: list[str] = []
    frontier = RedisFrontier(f"redis://quiet:pw@127.0.0.1:{servers.valkey().port}", FrontierOptions(job=job))
    heard = asyncio.Event()

    def trouble(line: str) -> None:
        said.append(line)
        if "channel" in line:
            heard.set()

    frontier.listen(lambda: None, trouble)
    await frontier.open()
    try:
        await frontier.lease(1)
        assert (await frontier.add(pages("a", 2))).added == 2
        await asyncio.wait_for(heard.wait(), 20)
    finally:
        await frontier.close()
        client.execute_command("ACL", "DELUSER", "quiet")
