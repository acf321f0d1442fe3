"""The Python producer: one call, with and without an event loop."""

from __future__ import annotations

import asyncio
import inspect
from itertools import count
from pathlib import Path

import pytest

import silkline
from silkline import Request
from silkline.errors import ConfigError, SourceError
from silkline.seeds.query import Query
from tests.stored import count_in, waiting_in
from tests.waiting import until


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_all_kinds_of_seeds_are_added_with_one_call(tmp_path: Path) -> None:
    (tmp_path / "urls.txt").write_text("http://a.example/3\nbad\n")
    seeded = silkline.seed(
        "",
        "http://a.example/1",
        Request("http://a.example/2", label="product"),
        Path("urls.txt"),
        (f"http://a.example/{n}" for n in range(3, 6)),
        job="shop",
    )
    assert (seeded.added, seeded.duplicate, seeded.invalid) == (5, 1, 1)
    assert seeded.reasons == ("urls.txt:2: 'bad' has no scheme; write https://bad",)
    assert len(waiting_in(tmp_path, "shop")) == 5


async def test_the_same_on_a_running_loop(tmp_path: Path) -> None:
    frontier = f"sqlite:///{tmp_path}/.silkline/shop.db"
    for added in (1, 0):
        assert (await silkline.seed_async(frontier, "http://a.example/", job="shop")).added == added
    assert (await silkline.seed_async(frontier, "http://a.example/", job="shop", revisit=True)).added == 1


def test_both_take_the_same_arguments() -> None:
    assert inspect.signature(silkline.seed) == inspect.signature(silkline.seed_async)
    assert (silkline.seed.__name__, silkline.seed.__doc__) == ("seed", silkline.seed_async.__doc__)


async def test_inside_a_loop_the_blocking_call_says_what_to_write() -> None:
    with pytest.raises(ConfigError, match=r"await silkline\.seed_async"):
        silkline.seed("", "http://a.example/")


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        ({"batch": 0}, "batch and max_waiting"),
        ({"max_waiting": 0}, "batch and max_waiting"),
        ({"colour": 1}, "there is no setting 'colour'"),
        ({"per_host": 0}, "per_host must be"),
        ({"job": "a b"}, "job must be"),
        ({"frontier": "memory:"}, "memory: keeps nothing"),
        ({"frontier": "shop.db"}, "frontier must be"),
    ],
)
def test_a_bad_argument_is_one_line(arguments: dict[str, object], line: str, tmp_path: Path) -> None:
    frontier = arguments.pop("frontier", "")
    with pytest.raises(ConfigError, match=line) as caught:
        silkline.seed(frontier, "http://a.example/", **arguments)  # type: ignore[arg-type]
    assert "\n" not in str(caught.value)
    assert not list(tmp_path.iterdir())


def test_a_source_that_fails_is_the_callers_to_handle(tmp_path: Path) -> None:
    query = Query("postgresql://me@127.0.0.1:1/shop", "SELECT 1 AS url")
    with pytest.raises(SourceError):
        silkline.seed("", "http://a.example/", query, job="shop")
    assert count_in(tmp_path, "shop") == 1


async def test_a_cancelled_call_keeps_what_it_added_and_nothing_half(tmp_path: Path) -> None:
    endless = (f"http://a.example/{n}" for n in count())
    task = asyncio.create_task(silkline.seed_async("", endless, job="shop", batch=100))
    await until(lambda: count_in(tmp_path, "shop") >= 300)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert count_in(tmp_path, "shop") % 100 == 0


async def test_the_producer_waits_for_a_full_frontier(tmp_path: Path) -> None:
    urls = (f"http://a.example/{n}" for n in range(1_000))
    task = asyncio.create_task(silkline.seed_async("", urls, job="shop", max_waiting=300))
    await until(lambda: count_in(tmp_path, "shop") == 300)
    await asyncio.sleep(0.3)
    assert not task.done()
    assert count_in(tmp_path, "shop") == 300
    task.cancel()
    await asyncio.wait((task,))
