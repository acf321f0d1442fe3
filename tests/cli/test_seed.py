"""`silkline seed`: every source, what is printed, and how it ends."""

from __future__ import annotations

import json
import os
import re
import signal
import sqlite3
import subprocess
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from silkline.request import Request
from tests.cli.conftest import Call, Run, clean_environment, command
from tests.site import Site
from tests.stored import count_in, store_of, waiting_in
from tests.waiting import until_true

PAGE = "http://a.example/p/1"


@pytest.fixture
def shop_db(tmp_path: Path) -> str:
    with closing(sqlite3.connect(tmp_path / "products.db")) as connection, connection:
        connection.execute("CREATE TABLE products (id INTEGER, url TEXT, priority INTEGER)")
        rows = [(n, f"http://a.example/p/{n}", n % 3) for n in range(1, 6)]
        connection.executemany("INSERT INTO products VALUES (?, ?, ?)", rows)
    return "sqlite:///products.db"


def urls(folder: Path, job: str = "shop") -> list[str]:
    return sorted(request.url for request in waiting_in(folder, job))


def test_files_and_urls_are_added_and_counted_with_the_reasons(inside: Call, tmp_path: Path) -> None:
    lines = ["# list", "http://a.example/1", "a.example/2", "http://a.example/1#x"]
    (tmp_path / "urls.txt").write_text("\n".join([*lines, *["bad"] * 9]))
    ran = inside("seed", "urls.txt", "http://b.example/", "--job", "shop")
    assert (ran.returncode, ran.stderr) == (0, "")
    first, *reasons, last = ran.stdout.splitlines()
    assert first == "shop: 2 added, 1 duplicate, 10 invalid"
    assert reasons[0] == "  urls.txt:3: 'a.example/2' has no scheme; write https://a.example/2"
    assert len(reasons) == 5
    assert last == "  and 5 more"
    assert urls(tmp_path) == ["http://a.example/1", "http://b.example/"]


def test_the_same_again_adds_nothing(inside: Call, tmp_path: Path) -> None:
    for added, duplicate in ((1, 0), (0, 1)):
        ran = inside("seed", PAGE, "--job", "shop")
        assert ran.stdout == f"shop: {added} added, {duplicate} duplicate, 0 invalid\n"


def test_tasks_on_standard_input_keep_all_that_they_say(silkline: Run, tmp_path: Path) -> None:
    task = {"url": PAGE, "priority": 5, "label": "product", "extra": {"sku": 7}}
    ran = silkline("seed", "-", "--job", "shop", stdin=f"{json.dumps(task)}\nhttp://b.example/\nhttp://\n")
    assert ran.returncode == 0
    assert ran.stdout.splitlines()[0] == "shop: 2 added, 0 duplicate, 1 invalid"
    assert "standard input:3: " in ran.stdout
    first, second = waiting_in(tmp_path, "shop")
    assert first == Request(PAGE, priority=5, label="product", extra={"sku": 7})
    assert second == Request("http://b.example/")


def test_what_comes_through_a_pipe_is_added_while_the_pipe_is_open(tmp_path: Path) -> None:
    with seeding(tmp_path, "-") as process:
        assert process.stdin
        process.stdin.write(f"{PAGE}\n")
        process.stdin.flush()
        wait_for(tmp_path, 1)
        process.stdin.write("http://b.example/\n")
        process.stdin.close()
        assert process.wait(60) == 0
    assert urls(tmp_path) == [PAGE, "http://b.example/"]


def test_rows_of_a_query_are_added_with_their_columns(inside: Call, tmp_path: Path, shop_db: str) -> None:
    query = "SELECT * FROM products WHERE id < 3 ORDER BY id"
    ran = inside("seed", "--sql", shop_db, "--query", query, "--job", "shop")
    assert ran.stdout == "shop: 2 added, 0 duplicate, 0 invalid\n"
    assert waiting_in(tmp_path, "shop") == [
        Request("http://a.example/p/2", priority=2, extra={"id": 2}),
        Request("http://a.example/p/1", priority=1, extra={"id": 1}),
    ]


def test_the_frontier_may_be_named_and_its_job_is_found_there(inside: Call, tmp_path: Path) -> None:
    frontier = f"sqlite:///{tmp_path}/elsewhere.db"
    assert inside("seed", PAGE, "--job", "shop", "--frontier", frontier).stdout.startswith("shop: 1 added")
    assert inside("seed", PAGE, "--frontier", frontier).stdout == "shop: 0 added, 1 duplicate, 0 invalid\n"
    ran = inside("seed", PAGE, "--job", "other", "--frontier", frontier)
    assert ran.returncode == 2
    assert "'shop'" in ran.stderr


def test_a_job_that_exists_keeps_its_limits(inside: Call, tmp_path: Path) -> None:
    (tmp_path / "silkline.toml").write_text("per_host = 2\ndelay = 3\n")
    inside("seed", PAGE, "--job", "shop")
    (tmp_path / "silkline.toml").unlink()
    inside("seed", "http://b.example/", "--job", "shop")
    with closing(sqlite3.connect(store_of(tmp_path, "shop"))) as connection:
        assert connection.execute("SELECT per_host, delay FROM meta").fetchall() == [(2, 3.0)]


def test_json_is_one_line_a_run(inside: Call, tmp_path: Path) -> None:
    (tmp_path / "urls.txt").write_text(f"{PAGE}\nbad\n")
    ran = inside("seed", "urls.txt", "--job", "shop", "--json")
    line = json.loads(ran.stdout)
    assert line.pop("seconds") >= 0
    assert line == {
        "job": "shop",
        "added": 1,
        "duplicate": 0,
        "invalid": 1,
        "reasons": ["urls.txt:2: 'bad' has no scheme; write https://bad"],
        "refused": {"count": 0, "example": ""},
        "interrupted": False,
        "error": None,
    }


@pytest.mark.parametrize(
    ("words", "line"),
    [
        ("", "nothing to add: give a file"),
        ("nowhere.txt", "nowhere.txt: no such file; a URL begins with https://"),
        ("ftp://a.example/", "is not an http or https URL"),
        ("--sitemap http://127.0.0.1:25/s.xml", "cannot be read: 'http://127.0.0.1:25/s.xml' has port 25"),
        ("--sql sqlite:///products.db", "give both"),
        ("--query SELECT", "give both"),
        ("--sql sqlite:///gone.db --query SELECT", "gone.db: no such file"),
        ("--sql oracle://x --query SELECT", "is no database that can be read"),
        (f"{PAGE} --every soon", "--every: 'soon' is neither a length of time"),
        ("- --every 1h", "standard input can be read once only"),
        (f"{PAGE} --frontier memory:", "memory: keeps nothing"),
        ("--sql oracle://x --query SELECT --every 0,0,1,1,*", "is no database that can be read"),
        ("empty.txt --every 0,0,1,1,*", "empty.txt holds no URL"),
        (f"{PAGE} --batch 0", "--batch"),
        (f"{PAGE} --max-waiting 0", "--max-waiting"),
        ("empty.txt", "empty.txt holds no URL"),
        ("bad.txt", "bad.txt holds no valid URL; bad.txt:1: "),
    ],
)
def test_what_is_wrong_is_one_line_and_exit_code_2(
    inside: Call, tmp_path: Path, shop_db: str, words: str, line: str
) -> None:
    (tmp_path / "empty.txt").touch()
    (tmp_path / "bad.txt").write_text("bad\n")
    ran = inside("seed", *(word.replace(",", " ") for word in words.split()), "--job", "shop")
    assert ran.returncode == 2
    assert line in ran.stderr
    assert len(ran.stderr.splitlines()) == 1


def test_a_database_that_is_away_is_exit_code_3_without_its_password(inside: Call) -> None:
    words = ("--sql", "postgresql://me:hush@127.0.0.1:1/shop", "--query", "SELECT 1 AS url")
    ran = inside("seed", *words)
    assert ran.returncode == 3
    assert "refused" in ran.stderr
    assert "hush" not in ran.stderr
    assert json.loads(inside("seed", *words, "--json").stdout)["error"].startswith("postgresql://me:***@")


def test_a_damaged_frontier_is_exit_code_3(inside: Call, tmp_path: Path) -> None:
    inside("seed", PAGE, "--job", "shop")
    path = store_of(tmp_path, "shop")
    with path.open("r+b") as file:
        file.seek(4096)
        file.write(b"\xff" * (path.stat().st_size - 4096))
    ran = inside("seed", "http://b.example/", "--job", "shop")
    assert ran.returncode == 3
    assert len(ran.stderr.splitlines()) == 1


def test_revisit_visits_again_each_time(inside: Call, tmp_path: Path) -> None:
    for _ in range(2):
        ran = inside("seed", PAGE, "--job", "shop", "--revisit")
        assert ran.stdout == "shop: 1 added, 0 duplicate, 0 invalid\n"
    assert urls(tmp_path) == [PAGE, PAGE]


@contextmanager
def seeding(folder: Path, *words: object, job: str = "shop") -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen(
        command("seed", *words, "--job", job),
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


def wait_for(folder: Path, number: int) -> None:
    until_true(lambda: count_in(folder, "shop") >= number)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_at_a_batch_and_says_what_was_added(tmp_path: Path, number: int) -> None:
    with seeding(tmp_path, "-", "--batch", "10") as process:
        assert process.stdin
        process.stdin.write("".join(f"http://a.example/{n}\n" for n in range(30)))
        process.stdin.flush()
        wait_for(tmp_path, 30)
        process.send_signal(number)
        out, errors = process.communicate(timeout=60)
    assert (process.returncode, errors) == (130, "")
    assert out == "shop: 30 added, 0 duplicate, 0 invalid; interrupted, the same command goes on\n"


def test_a_full_queue_is_said_once_and_a_signal_ends_the_wait(tmp_path: Path) -> None:
    (tmp_path / "urls.txt").write_text("".join(f"http://a.example/{n}\n" for n in range(3_000)))
    with seeding(tmp_path, "urls.txt", "--max-waiting", "2000") as process:
        assert process.stderr
        line = process.stderr.readline()
        assert line == (
            "silkline: 2,000 requests are queued and --max-waiting is 2,000: waiting until there are 1,600\n"
        )
        process.send_signal(signal.SIGINT)
        out, errors = process.communicate(timeout=60)
    assert (process.returncode, errors) == (130, "")
    assert out.startswith("shop: 2,000 added, ")


def test_it_repeats_and_a_run_that_fails_is_tried_again_at_its_next_time(
    tmp_path: Path, shop_db: str
) -> None:
    path = tmp_path / "products.db"
    words = ("--sql", shop_db, "--query", "SELECT url FROM products", "--every", "200ms")
    with seeding(tmp_path, *words) as process:
        assert process.stdout
        assert process.stderr
        assert process.stdout.readline().endswith(" shop: 5 added, 0 duplicate, 0 invalid\n")
        assert process.stdout.readline().endswith(" shop: 0 added, 5 duplicate, 0 invalid\n")
        os.rename(path, tmp_path / "away.db")
        failed = process.stderr.readline()
        os.rename(tmp_path / "away.db", path)
        assert re.fullmatch(
            r"silkline: [-\d]+ [:\d]+ the run failed and is tried again at its next time: "
            r"sqlite:///products\.db: no such file\n",
            failed,
        )
        line = process.stdout.readline()
        while "1 added" not in line:
            with closing(sqlite3.connect(path)) as connection, connection:
                connection.execute("INSERT INTO products VALUES (9, 'http://a.example/p/9', 0)")
            line = process.stdout.readline()
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)
    assert process.returncode in (0, 130)
    assert len(urls(tmp_path)) == 6


def test_the_first_run_of_several_ends_the_command_where_the_user_has_to_mend_something(
    inside: Call, shop_db: str
) -> None:
    ran = inside("seed", "--sql", shop_db, "--query", "SELEC", "--every", "1h", "--job", "shop")
    assert ran.returncode == 2
    assert "syntax error" in ran.stderr


def test_a_signal_between_two_runs_is_a_good_end(tmp_path: Path) -> None:
    with seeding(tmp_path, PAGE, "--every", "0 0 1 1 *") as process:
        assert process.stderr
        assert re.fullmatch(
            r"silkline: the first run is at \d{4}-01-01 00:00:00\n", process.stderr.readline()
        )
        process.send_signal(signal.SIGTERM)
        out, errors = process.communicate(timeout=60)
    assert (process.returncode, out, errors) == (0, "", "")


def test_each_run_visits_again_with_revisit(tmp_path: Path) -> None:
    with seeding(tmp_path, PAGE, "--every", "100ms", "--revisit") as process:
        assert process.stdout
        for _ in range(3):
            assert process.stdout.readline().endswith(" shop: 1 added, 0 duplicate, 0 invalid\n")
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)
    keys = [request.key for request in waiting_in(tmp_path, "shop")]
    assert len(set(keys)) == len(keys) >= 3


def test_a_crawl_visits_what_was_seeded(inside: Call, shop: Site) -> None:
    inside("seed", f"{shop.url}/page/2", f"{shop.url}/thing/1a", "--job", "shop")
    ran = inside("crawl", f"{shop.url}/", "--job", "shop", "-o", "items.jsonl")
    assert ran.returncode == 0, ran.stderr
    assert dict(shop.hits) == {"/": 1, "/page/2": 1, "/thing/1a": 1}


def test_killed_in_the_middle_of_a_file_nothing_is_lost_and_nothing_doubled(tmp_path: Path) -> None:
    lines = [f"http://host-{n % 50}.example/p/{n}" for n in range(30_000)]
    (tmp_path / "urls.txt").write_text("\n".join(lines))
    for least in (1, 4_000, 9_000):
        with seeding(tmp_path, "urls.txt", "--batch", "500") as process:
            wait_for(tmp_path, least)
            process.send_signal(signal.SIGKILL)
            assert process.wait(60) in (-signal.SIGKILL, 0)
    with seeding(tmp_path, "urls.txt", "--json") as process:
        out, errors = process.communicate(timeout=100)
    line = json.loads(out)
    assert (process.returncode, errors) == (0, "")
    assert line["added"] + line["duplicate"] == len(lines)
    assert line["duplicate"] > 0
    assert urls(tmp_path) == sorted(lines)
