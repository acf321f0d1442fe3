from __future__ import annotations

import asyncio
import contextlib
import json
import os
import pty
import subprocess
from pathlib import Path

import msgspec
import pytest

from silkline.config import FrontierOptions
from silkline.frontier.open import frontier_from
from silkline.outcome import Dead, DeadItem, Done, Outcome
from silkline.request import Request
from tests.cli.conftest import Call, clean_environment, command
from tests.site import Site


@pytest.fixture
def broken_shop(inside: Call, shop: Site) -> Site:
    """Job "shop" of which /gone is dead by 404, and the six things by a server error."""
    for path in [path for path in shop.pages if path.startswith("/thing/")]:
        del shop.pages[path]
    done = inside("crawl", f"{shop.url}/", "--follow-all", "--job", "shop", "-o", "items.jsonl")
    assert done.returncode == 0, done.stderr
    assert "silkline dead list --job shop" in done.stderr
    return shop


def test_dead_letters_are_listed_counted_and_resent(inside: Call, broken_shop: Site, tmp_path: Path) -> None:
    listed = inside("dead", "list").stdout.splitlines()
    assert len(listed) == 7
    assert all("http_404  1x  http://127.0.0.1:" in line for line in listed)

    letters = [
        json.loads(line) for line in inside("dead", "list", "--json", "--limit", "3").stdout.splitlines()
    ]
    assert len(letters) == 3
    assert {letter["cause"] for letter in letters} == {"http_404"}
    assert letters[0]["request"]["url"].startswith(broken_shop.url)

    assert inside("dead", "stats", "--job", "shop").stdout.split() == ["7", "http_404", "7", "all"]
    assert json.loads(inside("dead", "stats", "--json").stdout) == {"http_404": 7}
    found = json.loads(inside("status", "--json").stdout)
    assert (found["job"], found["waiting"], found["done"], found["dead"]) == ("shop", 0, 3, 7)

    broken_shop.pages |= {f"/thing/{n}{x}": "<title>back</title>" for n in (1, 2, 3) for x in "ab"}
    assert "5 put back" in inside("dead", "resend", "--limit", "5", "--cause", "http_404").stdout
    found = json.loads(inside("status", "--json").stdout)
    assert (found["waiting"], found["done"], found["dead"]) == (5, 3, 2)
    hits = broken_shop.hits.total()
    again = inside("crawl", f"{broken_shop.url}/", "--follow-all", "--job", "shop", "-o", "items.jsonl")
    assert again.returncode == 0, again.stderr
    assert broken_shop.hits.total() == hits + 5


def test_a_cause_that_none_has_is_told_with_those_that_there_are(inside: Call, broken_shop: Site) -> None:
    line = "no dead letters with cause 'http404'; their causes are: http_404\n"
    assert inside("dead", "list", "--cause", "http404") == (0, "", line)
    assert inside("dead", "export", "--cause", "http404") == (0, "", line)
    assert inside("dead", "resend", "--cause", "http404") == (0, line, "")
    assert inside("dead", "drop", "--yes", "--cause", "http404") == (0, line, "")
    assert inside("dead", "items", "list", "--cause", "http404").stderr == "no dead items\n"
    some = inside("dead", "list", "--cause", "http_404", "--limit", "3")
    assert (len(some.stdout.splitlines()), some.stderr) == (3, "3 of 7 dead letters\n")


def test_a_password_in_a_url_gets_into_no_list(inside: Call, shop: Site, tmp_path: Path) -> None:
    gone = f"{shop.url.replace('://', '://me:hush@')}/gone"
    (tmp_path / "urls.txt").write_text(f"{gone}\n{shop.url}/gone\n")
    ran = inside("crawl", f"{shop.url}/", "--urls", "urls.txt", "--job", "shop")
    told = ran.stdout + ran.stderr + inside("explain", gone).stderr
    for words in (["dead", "list"], ["dead", "list", "--json"], ["dead", "export"], ["status"]):
        told += inside(*words).stdout
    assert "http_404" in told
    assert "basic USER:PASSWORD" in told
    assert "hush" not in told


def test_of_an_error_in_a_handler_its_first_line_is_listed(inside: Call, shop: Site, tmp_path: Path) -> None:
    (tmp_path / "spider.py").write_text(
        "import silkline\ncrawler = silkline.Crawler('broken')\n\n"
        "@crawler.handler\ndef page(page):\n    return {}['price']\n"
    )
    assert inside("run", "spider.py", f"{shop.url}/", "--quiet").returncode == 0
    listed = inside("dead", "list")
    assert listed.stdout.endswith(f"  handler  1x  {shop.url}/  KeyError: 'price'\n")
    assert listed.stderr == "with --json the errors have their tracebacks\n"
    letter = inside("dead", "list", "--json")
    assert 'spider.py\\", line 6, in page' in letter.stdout
    assert letter.stderr == ""


def test_dropping_asks_first_and_can_be_limited_to_a_host(inside: Call, broken_shop: Site) -> None:
    refused = inside("dead", "drop")
    assert refused.returncode == 2
    assert "add --yes" in refused.stderr
    other = inside("dead", "drop", "--yes", "--host", "shop.example")
    assert "no such dead letters" in other.stdout
    assert "7 dropped" in inside("dead", "drop", "--yes", "--host", broken_shop.url).stdout
    gone = inside("dead", "list")
    assert (gone.returncode, gone.stdout, gone.stderr) == (0, "", "no dead letters\n")


def test_a_question_without_an_answer_drops_nothing_and_names_the_option(
    inside: Call, broken_shop: Site, tmp_path: Path
) -> None:
    ours, terminal = pty.openpty()
    with subprocess.Popen(
        command("dead", "drop"),
        cwd=tmp_path,
        env=clean_environment(),
        stdin=terminal,
        stderr=terminal,
        stdout=subprocess.PIPE,
    ) as process:
        os.close(terminal)
        shown = b""
        while b"[y/N]" not in shown:
            shown += os.read(ours, 1_000)
        os.write(ours, b"\x04")  # Ctrl-D
        with contextlib.suppress(OSError):  # how the end of a terminal reads on Linux
            while more := os.read(ours, 1_000):
                shown += more
        os.close(ours)
        assert process.wait(30) == 2
        assert process.stdout
        assert process.stdout.read().strip() == b""
    assert b"Forget these dead letters of shop for good?" in shown
    assert b"nobody was there to ask: add --yes" in shown
    assert inside("dead", "stats").stdout.split()[0] == "7"


def test_of_several_jobs_one_must_be_named(inside: Call, shop: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    for job in ("one", "two"):
        assert inside("crawl", f"{shop.url}/thing/1a", "--job", job, "-o", f"{job}.csv").returncode == 0
    asked = inside("dead", "stats")
    assert asked.returncode == 2
    assert "which job? there are: one, two; name it with --job NAME" in asked.stderr
    monkeypatch.setenv("SILKLINE_JOB", "two")
    assert inside("dead", "stats").returncode == 0


def test_of_many_jobs_the_first_ones_are_named(inside: Call, tmp_path: Path) -> None:
    async def begun(job: str) -> None:
        frontier = frontier_from(f"sqlite:///{tmp_path}/.silkline/{job}.db", FrontierOptions(job=job))
        await frontier.open()
        await frontier.close()

    for number in range(12):
        asyncio.run(begun(f"job{number:02}"))
    asked = inside("dead", "stats")
    assert (asked.returncode, asked.stderr.count("\n")) == (2, 1)
    assert "which job? there are: job00, job01, " in asked.stderr
    assert "job09 and 2 more; name it with --job NAME" in asked.stderr


def test_what_robots_txt_refuses_is_listed_only_where_it_is_asked_for(inside: Call) -> None:
    robots = "User-agent: *\nDisallow: /private\n"
    with Site({"/": "<a href='/private'>1</a><a href='/gone'>2</a>", "/robots.txt": robots}) as site:
        crawl = inside("crawl", f"{site.url}/", "--follow-all", "--job", "shop", "--strict", "--retries", "0")
        assert crawl.returncode == 1, "one page is gone"
        assert "refused   1: robots 1" in crawl.stderr
        assert f"1 refused by line 2 of {site.url}/robots.txt: Disallow: /private" in crawl.stderr
    listed = inside("dead", "list")
    assert "http_404" in listed.stdout
    assert "robots" not in listed.stdout
    assert listed.stderr == "1 refused by robots.txt are not listed: --cause robots lists them\n"
    refused = inside("dead", "list", "--cause", "robots")
    assert f"{site.url}/private" in refused.stdout
    assert "Disallow: /private" in refused.stdout


def test_passwords_in_the_dead_letters_of_an_old_job_are_hidden(inside: Call, tmp_path: Path) -> None:
    url = "http://me:hush@shop.example/"

    async def begun() -> None:
        frontier = frontier_from(f"sqlite:///{tmp_path}/.silkline/old.db", FrontierOptions(job="old"))
        await frontier.open()
        await frontier.add([Request(f"{url}gone"), Request(f"{url}page")])
        gone, page = (await frontier.lease(2)).leases
        record = msgspec.json.encode(
            {"from": "http://shop.example:80", "mail": "a@b.example", "url": url, "to": ["http://h:1/"]}
        )
        item = DeadItem(0, 0, f"{url}page", "item", f"{url}page is no number", record.decode())
        letter = Dead("redirect", f"redirected to {url}away")
        await frontier.commit([Outcome(gone, letter), Outcome(page, Done(), dead_items=(item,))])
        await frontier.close()

    asyncio.run(begun())
    told = ""
    for words in (["list"], ["list", "--json"], ["items", "list"], ["items", "list", "--json"]):
        shown = inside("dead", *words).stdout
        assert "http://me:***@shop.example/" in shown
        told += shown
    for path in ("gone", "page"):
        told += inside("explain", f"{url}{path}").stdout + inside("explain", f"{url}{path}", "--json").stdout
    told += inside("status").stdout
    assert "hush" not in told
    assert told.count("a@b.example") == 2
    assert "hush" in inside("dead", "export").stdout
    assert "hush" in inside("dead", "items", "export").stdout
