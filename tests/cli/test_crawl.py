from __future__ import annotations

import csv
import json
import signal
import sqlite3
import subprocess
import time
from pathlib import Path

from tests.cli.conftest import Call, Run, clean_environment, command
from tests.site import Site


def rows_of(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def test_a_crawl_without_code_then_again_then_afresh(
    silkline: Run, inside: Call, shop: Site, tmp_path: Path
) -> None:
    declared = ["crawl", f"{shop.url}/", "--follow", "a.next", "--item", "div.product"]
    declared += ["--field", "name=h2", "--field", "price=.price", "--field", "link=a::attr(href)"]

    first = silkline(*declared, "-o", "items.csv")
    assert first.returncode == 0, first.stderr
    assert first.stdout == ""
    rows = rows_of(tmp_path / "items.csv")
    assert sorted(row["name"] for row in rows) == [f"Thing {n}{x}" for n in (1, 2, 3) for x in "ab"]
    one = next(row for row in rows if row["name"] == "Thing 1a")
    assert one == {
        "url": f"{shop.url}/",
        "name": "Thing 1a",
        "price": "£1.50",
        "link": f"{shop.url}/thing/1a",
    }
    assert shop.hits == {"/": 1, "/page/2": 1, "/page/3": 1}

    again = inside(*declared, "-o", "items.csv")
    assert again.returncode == 0, again.stderr
    assert "already finished, nothing was fetched" in again.stderr
    assert shop.hits == {"/": 1, "/page/2": 1, "/page/3": 1}
    assert rows_of(tmp_path / "items.csv") == rows

    afresh = inside(*declared, "-o", "items.csv", "--fresh")
    assert afresh.returncode == 0, afresh.stderr
    assert shop.hits == {"/": 2, "/page/2": 2, "/page/3": 2}
    assert sorted(map(str, rows_of(tmp_path / "items.csv"))) == sorted(map(str, rows))

    other_output = inside(*declared, "-o", "items.jsonl", "-o", "items.db")
    assert other_output.returncode == 0, other_output.stderr
    items = [json.loads(line) for line in (tmp_path / "items.jsonl").read_text().splitlines()]
    assert sorted(item["name"] for item in items) == sorted(row["name"] for row in rows)
    with sqlite3.connect(tmp_path / "items.db") as database:
        assert database.execute("SELECT count(*) FROM items").fetchone() == (6,)
    assert len(list((tmp_path / ".silkline").glob("*.db"))) == 2


def test_jobs_of_one_name_in_two_files_have_outputs_of_their_own(
    inside: Call, shop: Site, tmp_path: Path
) -> None:
    declared = ["crawl", f"{shop.url}/", "--field", "title=title"]
    for place in (
        [],
        ["--frontier", "sqlite:///other/x.db"],
        [],
        ["--frontier", f"sqlite:///{tmp_path}/other/x.db"],
    ):
        done = inside(*declared, *place)
        assert done.returncode == 0, done.stderr
        assert "Page 1" in done.stdout
    kept = list((tmp_path / ".silkline").glob("*.jsonl"))
    assert [len(path.read_text().splitlines()) for path in kept] == [1, 1]
    assert shop.hits["/"] == 2


def test_without_an_output_the_items_are_shown_and_kept_beside_the_job(
    silkline: Run, inside: Call, shop: Site, tmp_path: Path
) -> None:
    declared = ["crawl", f"{shop.url}/", "--follow-all", "--retries", "0"]
    first = silkline(*declared)
    assert first.returncode == 0, first.stderr
    assert "Page 2" in first.stdout
    assert "/thing/3b" in first.stdout
    assert "http_404 1" in first.stderr
    assert "elsewhere" not in first.stdout
    assert "on another host: http://elsewhere" in first.stderr
    [kept] = (tmp_path / ".silkline").glob("*.jsonl")
    items = {item["url"]: item for item in map(json.loads, kept.read_text().splitlines())}
    assert items[f"{shop.url}/"] == {"url": f"{shop.url}/", "status": 200, "title": "Page 1"}
    assert len(items) == 9

    again = inside(*declared)
    assert "/thing/3b" in again.stdout
    assert shop.hits["/"] == 1

    strict = inside(*declared, "--strict", "--quiet")
    assert (strict.returncode, strict.stdout, strict.stderr) == (1, "", "")


def test_urls_come_from_a_file_or_from_standard_input(
    silkline: Run, inside: Call, shop: Site, tmp_path: Path
) -> None:
    lines = f'# things\r\n{shop.url}/thing/1a\r\n\r\nthing/1b\r\n{{"url": "{shop.url}/thing/2a"}}\r\n'
    (tmp_path / "urls.txt").write_text(lines)
    from_file = inside(
        "crawl", "--urls", "urls.txt", "--field", "title=title", "-o", "a.jsonl", "--allow-private"
    )
    assert from_file.returncode == 0, from_file.stderr
    assert "urls.txt:4: 'thing/1b' has no scheme; write https://thing/1b" in from_file.stderr
    from_stdin = silkline(
        "crawl",
        "--urls",
        "-",
        "--field",
        "title=title",
        "-o",
        "b.jsonl",
        "--allow-private",
        stdin=f"{shop.url}/thing/3a",
    )
    assert from_stdin.returncode == 0, from_stdin.stderr
    items = [json.loads(line) for name in "ab" for line in (tmp_path / f"{name}.jsonl").open()]
    assert sorted(item["title"] for item in items) == ["Thing 1a", "Thing 2a", "Thing 3a"]


def test_an_interrupted_crawl_keeps_everything_and_goes_on(silkline: Run, tmp_path: Path) -> None:
    links = "".join(f'<a href="/{number}">x</a>' for number in range(1, 40))
    pages = {"/": f"<title>start</title>{links}", **{f"/{n}": f"<title>{n}</title>" for n in range(1, 40)}}
    with Site(pages, delay=0.1) as site:
        declared = ["crawl", f"{site.url}/", "--follow-all", "-o", "items.jsonl", "--concurrency", "2"]
        with subprocess.Popen(
            command(*declared),
            cwd=tmp_path,
            env=clean_environment(),
            stderr=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        ) as process:
            while site.hits.total() < 5:
                time.sleep(0.02)
                assert process.poll() is None
            process.send_signal(signal.SIGINT)
            _, errors = process.communicate(timeout=60)
        assert process.returncode == 130, errors
        assert "interrupted, everything is kept" in errors
        assert "Traceback" not in errors
        assert site.hits.total() < 40
        site.delay = 0.0
        resumed = silkline(*declared)
        assert resumed.returncode == 0, resumed.stderr
    titles = [json.loads(line)["title"] for line in (tmp_path / "items.jsonl").open()]
    assert sorted(titles) == sorted(["start", *map(str, range(1, 40))])


def test_a_job_that_is_something_else_now_is_warned_about(inside: Call, shop: Site) -> None:
    first = inside("crawl", f"{shop.url}/", "--job", "mine")
    assert first.returncode == 0, first.stderr
    second = inside("crawl", f"{shop.url}/thing/1a", "--job", "mine")
    assert second.returncode == 0, second.stderr
    assert "job 'mine' was started with other options" in second.stderr
    assert "use --fresh to start over, or another --job" in second.stderr


def test_a_reader_that_goes_away_ends_nothing_badly(shop: Site, tmp_path: Path) -> None:
    pipeline = f"{' '.join(command('crawl', f'{shop.url}/', '--follow-all'))} | true; exit ${{PIPESTATUS[0]}}"
    done = subprocess.run(
        ["bash", "-c", pipeline],
        cwd=tmp_path,
        env=clean_environment(),
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    assert "finished" in done.stderr


def test_an_output_that_cannot_be_written_is_one_line_and_exit_2(
    inside: Call, shop: Site, tmp_path: Path
) -> None:
    (tmp_path / "items.csv").mkdir()
    done = inside("crawl", f"{shop.url}/", "-o", "items.csv")
    assert done.returncode == 2
    assert [line for line in done.stderr.splitlines() if line] == [done.stderr.strip()]
    assert "items.csv is not a regular file" in done.stderr
    assert not shop.hits
