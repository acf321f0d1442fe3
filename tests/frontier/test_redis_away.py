"""Servers that are away, come back with less, refuse, or lose the job."""

from __future__ import annotations

import asyncio

import pytest
import redis

from silkline.config import FrontierOptions
from silkline.errors import ConfigError, FrontierError, JobError
from silkline.frontier import redis_link
from silkline.frontier.redis import RedisFrontier
from silkline.frontier.redis_lookup import remove
from silkline.outcome import Stats
from tests import servers
from tests.frontier.conftest import done, pages
from tests.frontier.redis_worker import Counting, opened
from tests.servers import RedisServer


class TestAway:
    async def test_a_wrong_address_is_said_soon(self, job: str, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(redis_link, "FIRST_PATIENCE", 0.5)
        frontier = RedisFrontier(
            f"redis://u:secret@127.0.0.1:{servers.free_port()}/0", FrontierOptions(job=job)
        )
        with pytest.raises(FrontierError, match="no Redis answers at") as caught:
            await frontier.open()
        assert "secret" not in str(caught.value)

    async def test_a_wrong_password_is_said_at_once(self, job: str) -> None:
        server = RedisServer(servers.valkey().binary, "--requirepass", "right")
        try:
            server.start(wait=False)
            url = f"redis://:wrong@127.0.0.1:{server.port}/0"
            frontier = RedisFrontier(url, FrontierOptions(job=job))
            with pytest.raises(ConfigError, match="refuses the user or the password") as caught:
                await frontier.open()
            assert "wrong" not in str(caught.value)
            async with opened(job, url.replace("wrong", "right")) as frontier:
                assert await frontier.stats() == Stats()
        finally:
            server.remove()

    async def test_a_restart_is_waited_for_and_said_once(self, job: str) -> None:
        # Written before it answers: on a busy disk "everysec" may put off even the write, and a kill lose it.
        options = ("--appendonly", "yes", "--appendfsync", "always")
        server = RedisServer(servers.valkey().binary, *options).start()
        said: list[str] = []
        try:
            async with opened(job, server.url) as frontier:
                frontier.listen(lambda: None, said.append)
                await frontier.add(pages("a", 50))
                leases = (await frontier.lease(5)).leases
                server.stop(kill=True)
                committing = asyncio.create_task(frontier.commit(done(*leases), Counting()))
                await asyncio.sleep(0.5)
                server.start()
                assert len((await committing).accepted) == 5
                assert await frontier.stats() == Stats(waiting=45, done=5)
            assert [line.split(" (")[0].split(" after")[0] for line in said] == [
                f"Redis at redis://127.0.0.1:{server.port}/0 is away",
                f"Redis at redis://127.0.0.1:{server.port}/0 is back",
            ]
        finally:
            server.remove()

    async def test_a_worker_that_leaves_does_not_wait_for_a_server_that_is_away(self, job: str) -> None:
        server = RedisServer(servers.valkey().binary).start()
        frontier = RedisFrontier(server.url, FrontierOptions(job=job))
        await frontier.open()
        server.remove()
        said: list[str] = []
        frontier.listen(lambda: None, said.append)
        await asyncio.wait_for(frontier.close(), 20)
        assert "left without a word" in said[-1]

    @pytest.mark.parametrize("refusal", ["OOM", "READONLY"])
    async def test_a_server_that_takes_no_writes_is_waited_for(self, job: str, refusal: str) -> None:
        server = RedisServer(servers.valkey().binary).start()
        said: list[str] = []
        try:
            async with opened(job, server.url) as frontier:
                await frontier.add(pages("a", 5))
                frontier.listen(lambda: None, said.append)
                with server.client() as client:
                    if refusal == "OOM":
                        client.config_set("maxmemory", 1)
                    else:
                        client.replicaof("127.0.0.1", servers.free_port())
                    adding = asyncio.create_task(frontier.add(pages("b", 2)))
                    await asyncio.sleep(0.3)
                    assert not adding.done()
                    client.config_set("maxmemory", 0) if refusal == "OOM" else client.replicaof("NO", "ONE")
                assert (await adding).added == 2
                assert "is away" in said[0]
        finally:
            server.remove()

    async def test_after_a_wipe_workers_stop_instead_of_finishing(self, job: str) -> None:
        frontier = RedisFrontier(servers.valkey_url(), FrontierOptions(job=job))
        await frontier.open()
        await frontier.add(pages("a", 5))
        assert remove(servers.valkey_url(), job) > 0
        with pytest.raises(FrontierError, match="the job is gone from Redis"):
            await frontier.lease(1)
        said: list[str] = []
        frontier.listen(lambda: None, said.append)
        await frontier.close()
        assert "the job is gone from Redis" in said[0]

    @pytest.mark.parametrize("first_call", ["lease", "commit"])
    async def test_a_server_that_falls_back_is_found_out_before_anything_is_visited_again(
        self, job: str, first_call: str
    ) -> None:
        """Else links of a lost commit would be left out as known when their page is visited again."""
        server = RedisServer(servers.valkey().binary, "--save", "3600 1000000").start()
        said: list[str] = []
        try:
            async with opened(job, server.url, lease_seconds=3) as frontier:
                frontier.listen(lambda: None, said.append)
                await frontier.add(pages("a", 3))
                first, second, third = (await frontier.lease(3)).leases
                await frontier.commit(done(first), Counting())
                with server.client() as client:
                    client.save()
                assert not (await frontier.lease(1)).fell_back
                await frontier.commit(done(second, links=pages("b", 1)), Counting())
                server.stop(kill=True)
                server.start()
                if first_call == "commit":  # takes the place of the one that is lost
                    await frontier.commit(done(third), Counting())
                batch = await frontier.lease(0)
                assert batch.fell_back
                assert not (await frontier.lease(0)).fell_back
                assert [line for line in said if "fell back to an earlier state" in line]
                await asyncio.sleep(3)
                again = {lease.request.url: lease for lease in (await frontier.lease(9)).leases}
                others = [] if first_call == "commit" else [third.request.url]
                assert again.keys() == {second.request.url, *others}
                await frontier.commit(done(again[second.request.url], links=pages("b", 1)), Counting())
                assert await frontier.stats() == Stats(waiting=1, leased=len(others), done=3 - len(others))
                assert not (await frontier.lease(0)).fell_back
        finally:
            server.remove()

    async def test_a_job_that_is_gone_is_not_begun_again_by_its_workers(
        self, job: str, client: redis.Redis
    ) -> None:
        frontier = RedisFrontier(servers.valkey_url(), FrontierOptions(job=job))
        frontier.listen(lambda: None, lambda line: None)
        await frontier.open()
        remove(servers.valkey_url(), job)
        for write in (
            lambda: frontier.apply(FrontierOptions(job=job, per_host=3)),
            lambda: frontier.remember({"a": "b"}),
            lambda: frontier.configure({"delay": "1"}),
        ):
            with pytest.raises(FrontierError, match="the job is gone from Redis"):
                await write()
        await frontier.close()
        assert client.keys(f"{job}:*") == []

    async def test_a_server_that_keeps_nothing_is_warned_about(self, job: str) -> None:
        said: list[str] = []
        frontier = RedisFrontier(servers.valkey_url(), FrontierOptions(job=job))
        frontier.listen(lambda: None, said.append)
        await frontier.open()
        await frontier.close()
        assert len(said) == 1
        assert "appendonly yes" in said[0]
        assert "save 60 1000" in said[0]

    async def test_a_key_of_another_program_is_named_and_left_alone(
        self, job: str, client: redis.Redis
    ) -> None:
        client.set(f"{job}:meta", "mine")
        with pytest.raises(JobError, match="is used by another program"):
            async with opened(job):
                """Not reached."""
        assert client.get(f"{job}:meta") == "mine"
