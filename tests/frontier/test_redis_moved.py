"""Redirects that lead to a host of another partition: the request arrives there once, whatever dies."""

from __future__ import annotations

import uuid

import pytest

from silkline.config import FrontierOptions
from silkline.errors import FrontierError
from silkline.frontier.redis import RedisFrontier
from silkline.frontier.redis_lookup import exists, remove
from silkline.outcome import Lease, Moved, Outcome, Stats
from silkline.request import Onward, Request
from tests import servers
from tests.frontier.conftest import done


async def of_three_partitions(job: str) -> RedisFrontier:
    frontier = RedisFrontier(servers.valkey_url(), FrontierOptions(job=job, partitions=3))
    frontier.listen(lambda: None, lambda line: None)
    await frontier.open()
    return frontier


def one_of_each(frontier: RedisFrontier) -> list[str]:
    """A host of each partition."""
    found: dict[object, str] = {}
    for n in range(50):
        found.setdefault(frontier._job.of(f"http://h{n}:80"), f"h{n}")
    return list(found.values())


def moved(lease: Lease, host: str) -> list[Outcome]:
    before = () if lease.request.onward is None else lease.request.onward.via
    onward = Onward(f"http://{host}/x", (*before, lease.request.target))
    return [Outcome(lease, Moved(f"http://{host}:80", onward))]


async def test_a_request_goes_from_partition_to_partition_and_is_always_in_one_place() -> None:
    job = f"job-{uuid.uuid4().hex[:8]}"
    frontier = await of_three_partitions(job)
    first, second, third = one_of_each(frontier)
    await frontier.add([Request(f"http://{first}/")])
    for host in (second, third, first, second):
        (lease,) = (await frontier.lease(5)).leases
        await frontier.commit(moved(lease, host))
        assert await frontier.stats() == Stats(waiting=1)
        found = await frontier.explain(f"http://{first}/")
        assert (found.place, found.host) == ("waiting", f"http://{host}:80")
    (lease,) = (await frontier.lease(5)).leases
    assert (lease.deliveries, lease.request.url) == (1, f"http://{first}/")
    await frontier.commit(done(lease))
    assert await frontier.stats() == Stats(done=1)
    assert (await frontier.explain(f"http://{first}/")).place == "done"
    assert (await frontier.lease(5)).finished
    kept = [await partition.command("HLEN", "away") for partition in frontier._job.partitions]
    assert kept == [0, 0, 0]
    await frontier.close()
    assert remove(servers.valkey_url(), job)
    assert not exists(servers.valkey_url(), job)


@pytest.mark.parametrize("verb", ["arrive", "left"])
async def test_a_request_whose_worker_dies_on_the_way_arrives_once(
    verb: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between the commit and its arrival, or between that and the word that it has left."""
    job = f"job-{uuid.uuid4().hex[:8]}"
    frontier, other = await of_three_partitions(job), await of_three_partitions(job)
    first, second, _ = one_of_each(frontier)
    await frontier.add([Request(f"http://{first}/")])
    (lease,) = (await frontier.lease(5)).leases
    run = frontier._link.run

    async def killed(wanted: str, *rest: object) -> object:
        if wanted == verb:
            raise FrontierError("killed")
        return await run(wanted, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(frontier._link, "run", killed)
    with pytest.raises(FrontierError, match="killed"):
        await frontier.commit(moved(lease, second))
    found = await other.explain(f"http://{first}/")
    assert found.place == "waiting"
    assert f"redirected to http://{second}/x" in found.detail
    given = [*(await other.lease(5)).leases, *(await other.lease(5)).leases]
    assert [one.request.target for one in given] == [f"http://{second}/x"]
    await other.commit(done(*given))
    assert await other.stats() == Stats(done=1)
    assert (await other.lease(5)).finished
    await frontier.close()
    await other.close()
