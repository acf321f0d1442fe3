"""The way to Redis. What it makes of servers that go away is in test_redis_away.py."""

from __future__ import annotations

import asyncio

import pytest
from redis import exceptions

from silkline.errors import ConfigError, JobError
from silkline.frontier import redis_link
from silkline.frontier.redis_link import RedisLink, address_of, client_of, passing
from silkline.frontier.redis_lookup import exists
from tests import servers


@pytest.mark.parametrize("loops", [1, 3])
async def test_a_cancellation_is_heeded_whatever_the_client_is_doing(loops: int) -> None:
    link = RedisLink(servers.valkey_url())
    await link.open()
    over = False

    async def ask_for_ever() -> None:
        while not over:
            await link.command("PING")

    for number in range(200):
        asking = [asyncio.create_task(ask_for_ever()) for _ in range(loops)]
        for _ in range(number % 10):
            await asyncio.sleep(0)
        for task in asking:
            task.cancel()
        await asyncio.wait(asking, timeout=1)
        heeded = all(task.cancelled() for task in asking)
        over = not heeded  # or the test would not end
        assert heeded
    await link.close()


async def test_a_server_may_be_away_for_as_long_as_it_likes(monkeypatch: pytest.MonkeyPatch) -> None:
    """The pause is doubled from try to try, more than a thousand times in an hour."""
    monkeypatch.setattr(redis_link, "MAX_PAUSE", 0.0)
    link = RedisLink(f"redis://127.0.0.1:{servers.free_port()}")
    link.say = lambda line: None
    tries = iter(range(1_200))

    async def send() -> str:
        if next(tries, None) is not None:
            raise ConnectionRefusedError
        return "PONG"

    assert await link._patiently(send) == "PONG"
    assert link.resent == 1_200


@pytest.mark.parametrize(
    "refusal", ["OOM command not allowed", "READONLY You can't write", "MISCONF Redis is"]
)
def test_what_redis_6_says_of_a_script_that_may_not_write_is_waited_for(refusal: str) -> None:
    told = f"Error running script (call to f_7b5b): @user_script:112: @user_script: 112: -{refusal}"
    assert passing(exceptions.ResponseError(told), "redis://h") == refusal
    with pytest.raises(JobError):
        passing(
            exceptions.ResponseError(
                "Error running script (call to f_7b5b): @user_script:170: WRONGTYPE Operation against a key"
            ),
            "redis://h",
        )


@pytest.mark.parametrize("asynchronous", [True, False])
@pytest.mark.parametrize("url", ["redis://h/0?job=x", "rediss://h/0?ssl_ca=x", "unix:///tmp/s?job=x"])
def test_an_option_that_the_client_does_not_know_is_refused(url: str, asynchronous: bool) -> None:
    with pytest.raises(ConfigError, match=r"no such option behind the '\?'"):
        client_of(url, asynchronous=asynchronous)


def test_an_option_that_the_client_of_a_cluster_does_not_know_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"no such option behind the '\?'"):
        client_of("redis+cluster://h:6379?job=x")


@pytest.mark.parametrize("url", ["redis://h:6379/shop", "rediss://h/-1", "redis+cluster://h:6379/3"])
def test_a_database_that_is_no_number_is_refused_not_taken_for_the_first(url: str) -> None:
    with pytest.raises(ConfigError, match="database"):
        client_of(url)


async def test_a_database_that_the_server_does_not_have_is_for_the_user_to_mend() -> None:
    url = f"{servers.valkey_url().rpartition('/')[0]}/9999"
    link = RedisLink(url)
    with pytest.raises(ConfigError, match="no database of that number"):
        await link.open()
    await link.close()
    with pytest.raises(ConfigError, match="no database of that number"):
        exists(url, "job")


@pytest.mark.parametrize(
    "url",
    [
        "redis://:pa/ss@h:6379/0",
        "redis://u:pa?ss@h:6379/0",
        "redis+cluster://u:pa#ss@h:6379",
        "redis+sentinel://u:pa/ss@h/mymaster",
    ],
)
def test_no_part_of_a_password_is_told_where_an_address_is_none(url: str) -> None:
    with pytest.raises(ConfigError, match="is no address of a Redis") as caught:
        client_of(url)
    assert "'pa" not in str(caught.value)
    assert "ss@" not in str(caught.value)


def test_an_address_is_shown_without_a_password_that_should_have_been_escaped() -> None:
    assert address_of("redis://u:12/3@h:6379/0?protocol=3") == "redis://h:6379/0"
    assert address_of("redis://u:secret@h:6379/0") == "redis://h:6379/0"
