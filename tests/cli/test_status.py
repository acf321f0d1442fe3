"""Which job `status` and `dead` are about, and what they leave alone."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from tests.cli.conftest import Call
from tests.site import Site


@pytest.fixture
def two_jobs(inside: Call, shop: Site) -> Site:
    """Job "one" is done; "second" has six things to go and a dead letter."""
    assert inside("crawl", f"{shop.url}/thing/1a", "--job", "one", "--quiet").returncode == 0
    seeds = [f"{shop.url}/gone", *(f"{shop.url}/thing/{n}{x}" for n in (1, 2, 3) for x in "ab")]
    done = inside("crawl", *seeds, "--job", "second", "--quiet", "--concurrency", "1", "--max-pages", "1")
    assert done.returncode == 0
    return shop


def test_several_jobs_are_listed_where_none_is_named(inside: Call, two_jobs: Site, tmp_path: Path) -> None:
    (tmp_path / ".silkline" / "notes.db").write_text("no frontier " * 100)
    (tmp_path / ".silkline" / "copy.db").write_bytes((tmp_path / ".silkline" / "one.db").read_bytes())
    done = inside("status")
    assert (done.returncode, done.stderr) == (0, "")
    assert [line.split() for line in done.stdout.splitlines()] == [
        ["job", "waiting", "delayed", "leased", "done", "dead", "inbox"],
        ["one", "0", "0", "0", "1", "0", "0"],
        ["second", "6", "0", "0", "0", "1", "0"],
    ]
    listed = [json.loads(line) for line in inside("status", "--json").stdout.splitlines()]
    assert [(job["job"], job["waiting"], job["dead"]) for job in listed] == [("one", 0, 0), ("second", 6, 1)]
    assert inside("status", "--job", "one").stdout.split()[:3] == ["one", "0", "waiting"]


def test_a_damaged_job_hides_none_of_the_others(inside: Call, two_jobs: Site, tmp_path: Path) -> None:
    path = tmp_path / ".silkline" / "one.db"
    with path.open("r+b") as file:
        file.seek(4096)
        file.write(b"\xff" * (path.stat().st_size - 4096))
    done = inside("status")
    assert (done.returncode, done.stdout.split()[0]) == (0, "second")
    assert "one.db failed: database disk image is malformed" in done.stderr


def test_seeds_beyond_the_budget_of_their_host_are_told_of(inside: Call, shop: Site) -> None:
    def told() -> tuple[str, str]:
        url = f"{shop.url}/thing/9"
        return inside("status").stdout, inside("explain", url, "--job", "one").stdout

    seeds = [f"{shop.url}/thing/{n}" for n in ("1a", "1b", "2a", "9")]
    done = inside("crawl", *seeds, "--job", "one", "--max-pages-per-host", "2")
    assert f"2 seeds, more than max_pages_per_host: {shop.url}/thing/2a" in " ".join(done.stderr.split())
    assert f"2  seeds left out, more than max_pages_per_host: {shop.url}/thing/2a" in told()[0]
    assert told()[1] == f"never seen: {shop.url} has its 2 pages already (max_pages_per_host)\n"
    assert json.loads(inside("status", "--json").stdout)["refused_seeds"]["count"] == 2

    inside("crawl", "--job", "one")
    assert "2  seeds left out" in told()[0], "nothing was seeded since"
    inside("crawl", seeds[0], "--job", "one", "--max-pages-per-host", "2")
    assert "left out" not in told()[0]


def test_seeds_of_a_job_that_is_begun_are_held_to_its_budget(inside: Call, shop: Site) -> None:
    inside("crawl", f"{shop.url}/", "--job", "one", "--max-pages-per-host", "2", "--quiet")
    ran = inside("seed", *(f"{shop.url}/thing/{n}" for n in ("1a", "1b", "2a")), "--job", "one")
    assert ran.stdout.splitlines() == [
        "one: 1 added, 0 duplicate, 0 invalid, 2 refused",
        f"  left out 2 seeds, more than max_pages_per_host: {shop.url}/thing/1b",
    ]


def test_a_frontier_alone_names_its_job(inside: Call, two_jobs: Site, tmp_path: Path) -> None:
    (tmp_path / ".silkline" / "second.db").rename(tmp_path / "x.db")
    assert inside("status", "--frontier", "sqlite:///x.db").stdout.split()[:3] == ["second", "6", "waiting"]
    assert inside("dead", "stats", "--frontier", "sqlite:///x.db").stdout.split() == (
        ["1", "http_404", "1", "all"]
    )
    other = inside("status", "--frontier", "sqlite:///x.db", "--job", "third")
    assert (other.returncode, other.stdout) == (2, "")
    assert "x.db belongs to the job 'second', not 'third'" in other.stderr


def test_a_spider_without_a_name_goes_on_with_the_job_of_the_frontier(
    inside: Call, two_jobs: Site, tmp_path: Path
) -> None:
    (tmp_path / ".silkline" / "second.db").rename(tmp_path / "x.db")
    spider = tmp_path / "spider.py"
    spider.write_text("import silkline\ncrawler = silkline.Crawler()\ncrawler.handler(lambda page: [])\n")
    done = inside("run", "spider.py", "--frontier", "sqlite:///x.db")
    assert done.returncode == 0, done.stderr
    assert inside("status", "--frontier", "sqlite:///x.db", "--json").stdout.startswith(
        '{"job":"second","waiting":0,"delayed":0,"leased":0,"done":6,"dead":1,"inbox":0,'
    )
    spider.write_text(
        "import silkline\ncrawler = silkline.Crawler('other')\ncrawler.handler(lambda page: [])\n"
    )
    refused = inside("run", "spider.py", "--frontier", "sqlite:///x.db")
    assert (refused.returncode, refused.stdout) == (2, "")
    assert "belongs to the job 'second', not 'other'" in refused.stderr


def test_an_empty_frontier_file_stays_empty(inside: Call, tmp_path: Path) -> None:
    (tmp_path / "x.db").touch()
    done = inside("status", "--frontier", "sqlite:///x.db")
    assert done == (2, "", "silkline: there is no job: sqlite:///x.db is empty\n")
    assert (tmp_path / "x.db").stat().st_size == 0


def test_settings_of_a_crawl_are_not_looked_at(
    inside: Call, two_jobs: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TIMEOUT", "another program's")
    monkeypatch.setenv("LOG_LEVEL", "5")
    monkeypatch.setenv("SILKLINE_DELAY", "some")
    (tmp_path / "silkline.toml").write_text("retries = 'many'\n")
    for words in (["status"], ["dead", "list", "--job", "second"]):
        done = inside(*words)
        assert (done.returncode, done.stderr) == (0, "")


def test_a_bare_variable_that_does_not_fit_is_warned_about(
    inside: Call, shop: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TIMEOUT", "another program's")
    done = inside("crawl", f"{shop.url}/thing/1a")
    assert done.returncode == 0, done.stderr
    assert "silkline: warning: environment variable TIMEOUT: timeout must be seconds" in done.stderr
    monkeypatch.setenv("SILKLINE_TIMEOUT", "long")
    assert inside("crawl", f"{shop.url}/thing/1a").returncode == 2


def test_looking_leaves_the_limits_of_the_crawl_alone(inside: Call, shop: Site, tmp_path: Path) -> None:
    crawl = ["crawl", f"{shop.url}/gone", "--job", "slow", "--delay", "7", "--per-host", "2", "--quiet"]
    crawl += ["--adaptive-ceiling", "5"]
    assert inside(*crawl).returncode == 0
    for words in (["status"], ["dead", "stats"], ["dead", "resend"]):
        assert inside(*words).returncode == 0
    with closing(sqlite3.connect(tmp_path / ".silkline" / "slow.db")) as db:
        assert db.execute("SELECT per_host, delay, ceiling FROM meta").fetchone() == (2, 7.0, 5)
