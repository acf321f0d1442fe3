"""The benchmark runs from one end to the other, and counts no run that is not complete."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from benchmarks.__main__ import main
from benchmarks.measure import Measurement, fault_of, measure
from benchmarks.parts import shares
from benchmarks.programs import PEER_PROGRAMS, silkline
from benchmarks.table import rows

from benchmarks import databases as measured
from tests.seeds import databases

ROOT = Path(__file__).parents[2]


def test_silkline_crawls_the_list_and_every_page_counts(tmp_path: Path) -> None:
    table = tmp_path / "table.md"
    options = ["list", "--pages", "50", "--runs", "1", "--peers", "limit", "--processes", "1"]
    command = [sys.executable, "-m", "benchmarks", *options, "--output", str(table)]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=100)
    if "nginx is not installed" in run.stderr and os.environ.get("CI") != "true":
        pytest.skip(run.stderr.strip())
    assert run.returncode == 0, run.stdout + run.stderr
    cells = {
        line.split("|")[1].strip(): line.split("|")[2:-1]
        for line in table.read_text().splitlines()
        if "|" in line
    }
    assert float(cells["silkline"][0].replace(",", "")) > 0
    assert cells["limit of one aiohttp client"][-1].strip().endswith("x as fast")


def test_the_clients_alone_get_pages_over_tls() -> None:
    command = [sys.executable, "-m", "benchmarks.clients", "--runs", "1", "--requests", "50"]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=100)
    if "nginx is not installed" in run.stderr and os.environ.get("CI") != "true":
        pytest.skip(run.stderr.strip())
    assert run.returncode == 0, run.stdout + run.stderr
    costs = [float(line.split("|")[2].split()[0]) for line in run.stdout.splitlines()[2:]]
    assert len(costs) == 4
    assert all(costs)


def test_without_nginx_it_says_how_to_get_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("benchmarks.site.shutil.which", lambda name, path: None)
    assert main(["list", "--pages", "5", "--peers", "none"]) == 2
    assert capsys.readouterr().err.startswith("nginx is not installed; get it with `apt install nginx`")


def item(number: int, **other: object) -> dict[str, object]:
    return {"url": f"http://site/{number}", "title": "Product", "price": "$1.99", **other}


@pytest.mark.parametrize(
    ("items", "fault"),
    [
        ([item(1), item(2)], ""),
        ([item(1)], "1 items of 1 pages instead of 2"),
        ([item(1), item(1), item(2)], "3 items of 2 pages instead of 2"),
        ([item(1), item(1)], "2 items of 1 pages instead of 2"),
        ([item(1), item(2, title=None)], "1 items without title or price"),
        ([item(1), item(2, price="")], "1 items without title or price"),
    ],
)
def test_an_incomplete_output_is_a_fault(items: list[dict[str, object]], fault: str, tmp_path: Path) -> None:
    out = tmp_path / "items.jsonl"
    out.write_text("".join(json.dumps(each) + "\n" for each in items))
    found = fault_of(out, 2)
    assert found.startswith(fault)
    assert bool(found) == bool(fault)


def test_a_half_line_is_a_fault(tmp_path: Path) -> None:
    out = tmp_path / "items.jsonl"
    out.write_text(json.dumps(item(1))[:-5])
    assert fault_of(out, 1).startswith("unreadable output")


def test_the_time_of_a_sample_is_that_of_its_innermost_part() -> None:
    run = "main (silkline_workers.py:44);run (silkline/crawler.py:190);main (silkline/engine/worker.py:9)"
    folded = [
        f"{run};fetch (silkline/fetch/client.py:9);request (aiohttp/client.py:9) 5",
        f"{run};visit (silkline/engine/visit.py:9);text (silkline/parse/node.py:9) 3",
        f"{run};visit (silkline/engine/visit.py:9) 2",
        "main (silkline_workers.py:40);add (silkline/frontier/redis.py:9) 90",
    ]
    found = {part: share for part, share in shares(folded).items() if share}
    assert found == {"fetch": 0.5, "parse": 0.3, "engine": 0.2}


def program(code: str) -> list[str]:
    return [sys.executable, "-c", code]


def test_a_measurement_is_of_the_program_and_its_children_alone(tmp_path: Path) -> None:
    """The memory of the process that measures must not count."""
    out = tmp_path / "items.jsonl"
    out.write_text(json.dumps(item(1)) + "\n")
    ballast = b"x" * 150_000_000
    busy = "import time; end = time.process_time() + 0.2\nwhile time.process_time() < end: pass\n"
    child = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {busy!r}])\n"
    run = measure(program(child + busy + "print('{\"seconds\": 2.0}')"), out, 1)
    assert run.fault == ""
    assert run.rate == 0.5
    assert 0.4 <= run.cpu < 2
    assert run.rss < len(ballast) / 2


def test_a_program_that_fails_is_a_fault_with_its_last_line(tmp_path: Path) -> None:
    run = measure(program("raise SystemExit('no such thing')"), tmp_path / "items.jsonl", 1)
    assert run.fault == "exit code 1: no such thing"


def test_the_table_gives_medians_and_what_silkline_is_to_the_others() -> None:
    ours, peer = silkline(1), PEER_PROGRAMS[0]
    runs = {
        ours: [Measurement(100, seconds=s, cpu=0.01, rss=50_000_000) for s in (1.0, 0.1, 0.5)],
        peer: [
            Measurement(100, seconds=1.0, cpu=0.02, rss=60_000_000),
            Measurement(100, fault="exit code 1"),
        ],
    }
    assert rows(runs) == [
        ("silkline", "200", "(100-1,000)", "100", "50", ""),
        (peer.title, "100", "(100-100)", "200", "60", "2.00x as fast"),
    ]


@pytest.mark.parametrize("name", ["postgresql", "mongodb", "clickhouse"])
def test_sinks_are_measured_beside_their_drivers(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    if name == "postgresql":
        databases.postgresql()
    asyncio.run(measured.compare(name, measured.CONTESTANTS[name], rounds=2, count=20))
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[:2] for line in lines] == [[name, what] for what in ("new", "again", "CPU", "held")]
