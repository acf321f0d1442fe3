from __future__ import annotations

import random
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from silkline.protocols import Sink
from silkline.sinks import packed
from silkline.sinks.choose import sink_for
from tests.sinks.conftest import Items, unpacked

ENDINGS = [".jsonl.gz", ".jsonl.zst"]
WORDS = [
    "chair",
    "lamp",
    "table",
    "walnut",
    "oak",
    "brass",
    "linen",
    "round",
    "small",
    "tall",
    "dark",
    "pale",
]

Opened = Callable[[Sink, str | None], str]


def record(n: int) -> dict[str, object]:
    chance = random.Random(n)
    text = " ".join(chance.choices(WORDS, k=8))
    return {"url": f"https://shop.example/products/{n}", "name": text, "price": chance.randint(1, 9999) / 100}


def written(sink: Sink, position: str, items_for: Items, numbers: range) -> str:
    """Each in a write of its own."""
    for n in numbers:
        moved = sink.write(items_for(sink, record(n)), position)
        assert moved is not None
        position = moved
    return position


@pytest.mark.parametrize(
    ("ending", "tool"),
    [(".jsonl.gz", ["gzip", "-dc"]), (".jsonl.zst", ["zstd", "-dcq"])],
    ids=["gzip", "zstd"],
)
def test_the_tools_of_the_format_read_it_after_every_write(
    tmp_path: Path, items_for: Items, opened: Opened, ending: str, tool: list[str]
) -> None:
    path = tmp_path / f"items{ending}"
    sink = sink_for(str(path))
    position = opened(sink, None)
    for n in range(3):
        position = written(sink, position, items_for, range(n, n + 1))
        try:
            found = subprocess.run([*tool, str(path)], capture_output=True, check=True)
        except FileNotFoundError:
            pytest.skip(f"there is no {tool[0]} on this machine")
        assert found.stdout.count(b"\n") == n + 1
        assert not found.stderr


@pytest.mark.parametrize("ending", ENDINGS)
def test_items_that_come_one_by_one_are_compressed_nearly_as_well_as_all_at_once(
    tmp_path: Path, items_for: Items, opened: Opened, ending: str
) -> None:
    one, all_at_once = (sink_for(str(tmp_path / f"{name}{ending}")) for name in ("one", "all"))
    written(one, opened(one, None), items_for, range(300))
    all_at_once.write(items_for(all_at_once, *map(record, range(300))), opened(all_at_once, None))
    small, large = (Path(sink.name) for sink in (one, all_at_once))
    assert unpacked(small) == unpacked(large)
    assert small.stat().st_size < 2 * large.stat().st_size
    assert small.stat().st_size < len(unpacked(small)) / 2


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_job_without_items_leaves_a_file_that_readers_take(
    tmp_path: Path, opened: Opened, items_for: Items, ending: str
) -> None:
    path = tmp_path / f"items{ending}"
    sink = sink_for(str(path))
    position = sink.finish(opened(sink, None))
    assert position is not None
    assert path.stat().st_size
    assert unpacked(path) == b""
    assert sink.finish(position) == position
    written(sink, position, items_for, range(1))
    assert unpacked(path).count(b"\n") == 1


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_kill_between_cutting_and_ending_the_file_is_mended_by_the_next_start(
    tmp_path: Path, opened: Opened, items_for: Items, ending: str
) -> None:
    path = tmp_path / f"items{ending}"
    sink = sink_for(str(path))
    position = written(sink, opened(sink, None), items_for, range(2))
    whole = path.read_bytes()
    with path.open("r+b") as file:
        file.truncate(len(whole) - 3)
    sink.close()
    assert opened(sink_for(str(path)), position) == position
    assert path.read_bytes() == whole


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_member_is_ended_when_it_is_large(
    tmp_path: Path, opened: Opened, items_for: Items, ending: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(packed, "MEMBER", 1_000)
    path = tmp_path / f"items{ending}"
    sink = sink_for(str(path))
    written(sink, opened(sink, None), items_for, range(50))
    head = b"\x1f\x8b\x08" if ending == ".jsonl.gz" else b"\x28\xb5\x2f\xfd"
    assert 3 < path.read_bytes().count(head) < 25
    assert unpacked(path).count(b"\n") == 50
