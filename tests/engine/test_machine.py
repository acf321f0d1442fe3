"""What is short on the machine holds back the visits: by hand, and in crawls."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import pytest
from tests.site import Site

from silkline import Crawler
from silkline.engine.leases import Held
from silkline.engine.machine import Container, Gauge, Load, Machine, memory_of_process, open_files
from silkline.events import Event, Trouble
from silkline.values import MEMORY_OF_ONE

FULL = Load(memory=95, limit=100)


def machine_for(held: Held, loads: list[Load]) -> tuple[Machine, list[str]]:
    said: list[str] = []

    def hook(event: Event) -> None:
        assert isinstance(event, Trouble)
        said.append(event.message)

    return Machine(held, lambda late: loads.pop(0), hook, lambda: None), said


def looked(loads: list[Load], asked: int = 20) -> tuple[list[int], list[str]]:
    held = Held(asked)
    machine, said = machine_for(held, loads)
    allowed = []
    while loads:
        machine.look(0.0)
        allowed.append(held.concurrency)
    return allowed, said


def test_short_memory_lowers_the_visits_smoothly_and_is_said_once() -> None:
    allowed, said = looked([FULL] * 10 + [Load()] * 12)
    assert allowed[:10] == [14, 9, 6, 4, 2, 1, 1, 1, 1, 1]
    assert allowed[10:] == [3, 5, 7, 9, 11, 13, 15, 17, 19, 20, 20, 20]
    assert len(said) == 1
    assert "14 of 20" in said[0]
    assert "memory" in said[0]


def test_a_loop_that_is_late_once_may_be_a_handler_and_counts_when_it_lasts() -> None:
    late = Load(late=0.4)
    assert looked([late, Load(), late, Load()])[0] == [20] * 4
    allowed, said = looked([late, late, late, Load(throttled=0.5), Load(files=90, most_files=100)])
    assert allowed == [20, 14, 9, 6, 4]
    assert [line.split(": ", 1)[1].split()[0] for line in said] == ["the", "90"]


def test_a_new_concurrency_counts_while_held_back() -> None:
    held = Held(20)
    held.hold_back(5)
    held.ask(4)
    assert (held.asked, held.concurrency) == (4, 4)


@pytest.mark.parametrize("own_is_root", [False, True])
def test_the_limits_of_a_container_of_version_2(tmp_path: Path, own_is_root: bool) -> None:
    group = tmp_path / "root" if own_is_root else tmp_path / "root/user.slice/box"
    group.mkdir(parents=True)
    (tmp_path / "own").write_text("0::/user.slice/box\n")
    (group / "memory.max").write_text("1000\n")
    (group / "memory.current").write_text("700\n")
    (group / "memory.stat").write_text("anon 300\ninactive_file 250\n")
    (group / "cpu.stat").write_text("usage_usec 5\nthrottled_usec 1500000\n")
    container = Container(tmp_path / "root", tmp_path / "own")
    assert (container.memory_limit(), container.memory_used(), container.throttled()) == (1000, 450, 1.5)
    load = Gauge(container=container)(0.0)
    assert (load.limit, load.memory, load.shortage()) == (800, 450, "")
    (group / "memory.max").write_text("max\n")
    assert container.memory_limit() is None


def test_the_limits_of_a_container_of_version_1(tmp_path: Path) -> None:
    memory, cpu = tmp_path / "root/memory/box", tmp_path / "root/cpu"
    memory.mkdir(parents=True)
    cpu.mkdir(parents=True)
    (tmp_path / "own").write_text("4:memory:/box\n2:cpu,cpuacct:/box\n0::/\n")
    (memory / "memory.limit_in_bytes").write_text("1000\n")
    (memory / "memory.usage_in_bytes").write_text("900\n")
    (memory / "memory.stat").write_text("total_inactive_file 100\n")
    (cpu / "cpu.stat").write_text("nr_throttled 2\nthrottled_time 2500000000\n")
    container = Container(tmp_path / "root", tmp_path / "own")
    assert (container.memory_limit(), container.memory_used(), container.throttled()) == (1000, 800, 2.5)
    (memory / "memory.limit_in_bytes").write_text("9223372036854771712\n")
    assert container.memory_limit() is None


def test_no_container_and_broken_files_are_no_limit(tmp_path: Path) -> None:
    (tmp_path / "memory.max").write_text("plenty\n")
    container = Container(tmp_path, tmp_path / "nowhere")
    assert (container.memory_limit(), container.memory_used(), container.throttled()) == (None, 0, 0.0)


def test_this_process_is_measured() -> None:
    before = memory_of_process()
    ballast = bytearray(os.urandom(1)) * (64 << 20)
    assert memory_of_process() - before > 32 << 20
    del ballast
    files = open_files()
    with open(__file__):
        assert open_files() == files + 1


def crawl(site: Site, count: int, handler: Any, **settings: Any) -> list[str]:
    crawler = Crawler("job", frontier="memory:", quiet=True, robots=False, **settings)
    crawler.handler(handler)
    report = crawler.run([f"{site.url}/{n}" for n in range(count)])
    assert report.pages == count
    return list(report.troubles)


def test_a_crawl_with_too_little_memory_goes_on_with_fewer_pages_at_once() -> None:
    with Site({f"/{n}": "x" for n in range(40)}, delay=0.2) as site:
        troubles = crawl(site, 40, lambda page: None, max_memory=MEMORY_OF_ONE, per_host=4)
    assert [line for line in troubles if "memory is short" in line] == troubles
    assert len(troubles) == 1


def test_handlers_that_keep_the_event_loop_lower_the_visits() -> None:
    with Site({f"/{n}": "x" for n in range(10)}) as site:
        troubles = crawl(site, 10, lambda page: time.sleep(1.0))
    assert any("event loop is" in line for line in troubles)
