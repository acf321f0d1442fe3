"""`silkline seed` with a frontier on a server."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import redis

from silkline.config import FrontierOptions
from silkline.frontier.redis import RedisFrontier
from silkline.frontier.redis_lookup import options_in, remove
from silkline.outcome import Done, Outcome
from tests import servers
from tests.cli.conftest import Call, clean_environment, command
from tests.waiting import until_true

JOB = "seeded"
KEEPS_NOTHING = (
    "silkline: this Redis keeps nothing over a restart, and would lose the job: "
    "set appendonly yes (with appendfsync everysec), or save 60 1000\n"
)

SERVERS = {"valkey": servers.valkey_url, "redis": servers.redis_url, "cluster": servers.cluster_url}


@pytest.fixture(params=["valkey", "redis"])
def url(request: pytest.FixtureRequest) -> Iterator[str]:
    url = SERVERS[request.param]()
    yield url
    remove(url, JOB)


def kept_in(url: str, *, done: bool = False) -> list[str]:
    """The URLs of all requests of the job, as leases give them; which are done then, or wait again."""

    async def leased() -> list[str]:
        frontier = RedisFrontier(url, FrontierOptions(job=JOB, per_host=1_000_000))
        await frontier.open()
        found: list[str] = []
        while leases := (await frontier.lease(2_000)).leases:
            found += [lease.request.url for lease in leases]
            if done:
                await frontier.commit([Outcome(lease, Done()) for lease in leases])
        await frontier.close()
        return found

    return asyncio.run(leased())


def count_in(url: str) -> int:
    """How many requests of the job wait by now."""

    async def counted() -> int:
        frontier = RedisFrontier(url, FrontierOptions(job=JOB))
        await frontier.open()
        stats = await frontier.stats()
        await frontier.close()
        return stats.waiting

    return asyncio.run(counted())


@contextmanager
def seeding(folder: Path, url: str, *words: object) -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen(
        command("seed", *words, "--job", JOB, "--frontier", url),
        cwd=folder,
        env=clean_environment(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            yield process
        finally:
            process.kill()


@pytest.mark.parametrize("url", SERVERS, indirect=True)
def test_a_file_is_added_and_the_same_again_is_not(inside: Call, tmp_path: Path, url: str) -> None:
    lines = [f"http://host-{n % 7}.example/{n}" for n in range(3_000)]
    (tmp_path / "urls.txt").write_text("\n".join([*lines, *lines[:10], "bad"]))
    counts = []
    for _ in range(2):
        ran = inside("seed", "urls.txt", "--job", JOB, "--frontier", url)
        assert ran.returncode == 0, ran.stderr
        counts.append(ran.stdout.splitlines()[0])
    assert counts == [
        f"{JOB}: 3,000 added, 10 duplicate, 1 invalid",
        f"{JOB}: 0 added, 3,010 duplicate, 1 invalid",
    ]
    assert sorted(kept_in(url)) == sorted(lines)


@pytest.mark.parametrize("url", ["valkey"], indirect=True)
def test_killed_in_the_middle_of_a_file_nothing_is_lost_and_nothing_doubled(tmp_path: Path, url: str) -> None:
    lines = [f"http://host-{n % 50}.example/p/{n}" for n in range(12_000)]
    (tmp_path / "urls.txt").write_text("\n".join(lines))
    for least in (1, 3_000):
        with seeding(tmp_path, url, "urls.txt", "--batch", "200") as process:
            until_true(lambda: count_in(url) >= least)  # noqa: B023 - called at once
            process.send_signal(signal.SIGKILL)
            assert process.wait(60) in (-signal.SIGKILL, 0)
    with seeding(tmp_path, url, "urls.txt", "--json") as process:
        out, errors = process.communicate(timeout=100)
    line = json.loads(out)
    assert (process.returncode, errors) == (0, KEEPS_NOTHING)
    assert line["added"] + line["duplicate"] == len(lines)
    assert line["duplicate"] > 0
    assert sorted(kept_in(url)) == sorted(lines)


def test_a_job_keeps_what_it_was_created_with(inside: Call, tmp_path: Path, url: str) -> None:
    (tmp_path / "silkline.toml").write_text("partitions = 3\nper_host = 2\ndelay = 3\n")
    assert inside("seed", "http://a.example/", "--job", JOB, "--frontier", url).returncode == 0
    (tmp_path / "silkline.toml").unlink()
    ran = inside("seed", "http://b.example/", "--job", JOB, "--frontier", url)
    assert (ran.returncode, ran.stderr) == (0, KEEPS_NOTHING)
    kept = options_in(url, JOB)
    assert kept is not None
    assert (kept.partitions, kept.per_host, kept.delay) == (3, 2, 3.0)


def test_a_job_without_dedup_gets_every_request(inside: Call, tmp_path: Path, url: str) -> None:
    (tmp_path / "silkline.toml").write_text('dedup = "none"\n')
    (tmp_path / "urls.txt").write_text("http://a.example/\n" * 5)
    for _ in range(2):
        ran = inside("seed", "urls.txt", "--batch", "1", "--job", JOB, "--frontier", url)
        assert ran.stdout == f"{JOB}: 5 added, 0 duplicate, 0 invalid\n"
        (tmp_path / "silkline.toml").unlink(missing_ok=True)


def test_tasks_in_the_inbox_count_for_the_limit(tmp_path: Path, url: str) -> None:
    with redis.Redis.from_url(url) as client:
        client.rpush(f"{JOB}:task:wait", *(f"http://a.example/{n}" for n in range(20)))
    with seeding(tmp_path, url, "http://b.example/", "--max-waiting", "10") as process:
        assert process.stderr
        assert process.stderr.readline() == KEEPS_NOTHING
        assert process.stderr.readline() == (
            "silkline: 20 requests are queued and --max-waiting is 10: waiting until there are 8\n"
        )
        # Which empties the inbox; the request that waited may be in the queue by now.
        assert {*kept_in(url, done=True)} >= {f"http://a.example/{n}" for n in range(20)}
        out, errors = process.communicate(timeout=60)
    assert (process.returncode, errors) == (0, "")
    assert out == f"{JOB}: 1 added, 0 duplicate, 0 invalid\n"


@pytest.mark.parametrize("url", ["valkey"], indirect=True)
def test_a_server_that_keeps_nothing_is_warned_about_once_however_many_runs_there_are(
    tmp_path: Path, url: str
) -> None:
    with seeding(tmp_path, url, "http://a.example/", "--every", "100ms") as process:
        assert process.stdout
        for _ in range(3):
            assert process.stdout.readline().endswith(" invalid\n")
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=60)
    assert errors == KEEPS_NOTHING


def test_a_server_that_is_away_is_exit_code_3_without_its_password(inside: Call) -> None:
    frontier = f"redis://me:hush@127.0.0.1:{servers.free_port()}/0"
    ran = inside("seed", "http://a.example/", "--job", JOB, "--frontier", frontier)
    assert ran.returncode == 3
    assert len(ran.stderr.splitlines()) == 1
    assert "hush" not in ran.stderr


def test_the_second_signal_does_not_wait_for_a_server_that_does_not_answer(tmp_path: Path) -> None:
    server = servers.RedisServer(servers.valkey().binary).start()
    try:
        with seeding(tmp_path, server.url, "-") as process:
            assert process.stdin
            assert server.process
            process.stdin.write("http://a.example/1\n")
            process.stdin.flush()
            until_true(lambda: count_in(server.url) == 1)
            server.process.send_signal(signal.SIGSTOP)
            process.stdin.write("http://a.example/2\n")
            process.stdin.flush()
            process.send_signal(signal.SIGINT)
            with pytest.raises(subprocess.TimeoutExpired):
                process.wait(2)
            process.send_signal(signal.SIGINT)
            out, errors = process.communicate(timeout=60)
        assert (process.returncode, errors) == (130, KEEPS_NOTHING), errors
        assert out == f"{JOB}: 1 added, 0 duplicate, 0 invalid; interrupted, the same command goes on\n"
    finally:
        assert server.process
        server.process.send_signal(signal.SIGCONT)
        server.remove()


def test_a_server_that_is_full_is_said_and_one_signal_ends_the_wait(tmp_path: Path) -> None:
    server = servers.RedisServer(servers.valkey().binary).start()
    try:
        with server.client() as client, seeding(tmp_path, server.url, "-") as process:
            assert process.stdin
            assert process.stderr
            process.stdin.write("http://a.example/1\n")
            process.stdin.flush()
            until_true(lambda: count_in(server.url) == 1)
            client.config_set("maxmemory", 1)
            process.stdin.write("http://a.example/2\n")
            process.stdin.flush()
            assert process.stderr.readline() == KEEPS_NOTHING
            line = process.stderr.readline()
            assert "is away (" in line
            assert "maxmemory" in line
            process.send_signal(signal.SIGTERM)
            assert process.wait(30) in (3, 130)
    finally:
        server.remove()
