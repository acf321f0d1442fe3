from __future__ import annotations

import csv
import json
import re
from pathlib import Path

import pytest

from tests.cli.conftest import Call, Run
from tests.site import Site

SPIDER = """
from silkline import Crawler

crawler = Crawler("things", outputs=["things.jsonl"], concurrency=3, timeout=20)

@crawler.handler
async def listing(page):
    yield page.follow("a.next")
    yield page.follow(".product a", label="thing")

@crawler.handler("thing")
def thing(page):
    yield {"name": page.title}

if __name__ == "__main__":
    raise SystemExit("must not run")
"""


@pytest.fixture
def spider(tmp_path: Path) -> Path:
    path = tmp_path / "things.py"
    path.write_text(SPIDER)
    return path


def names_in(path: Path) -> list[str]:
    return sorted(json.loads(line)["name"] for line in path.read_text().splitlines())


ALL = sorted(f"Thing {n}{x}" for n in (1, 2, 3) for x in "ab")


def test_a_spider_file_runs_and_goes_on_without_a_url(
    inside: Call, spider: Path, shop: Site, tmp_path: Path
) -> None:
    budget = inside("run", "things.py", f"{shop.url}/", "--max-pages", "4")
    assert budget.returncode == 0, budget.stderr
    assert "page budget is spent" in budget.stderr
    assert shop.hits.total() == 4

    rest = inside("run", "things.py:crawler")
    assert rest.returncode == 0, rest.stderr
    assert names_in(tmp_path / "things.jsonl") == ALL
    assert shop.hits.total() == 9


def test_several_processes_give_one_output(silkline: Run, spider: Path, shop: Site, tmp_path: Path) -> None:
    done = silkline("run", "things.py", f"{shop.url}/", "--processes", "2", "-o", "things.csv")
    assert done.returncode == 0, done.stderr
    with (tmp_path / "things.csv").open(newline="") as file:
        assert sorted(row["name"] for row in csv.DictReader(file)) == ALL
    assert set(shop.hits.values()) == {1}
    assert not (tmp_path / "things.jsonl").exists()


def test_everything_wins_over_what_the_file_sets(inside: Call, spider: Path, tmp_path: Path) -> None:
    (tmp_path / "silkline.toml").write_text("timeout = 10\nconcurrency = 10\n")
    shown = inside("run", "things.py", "--show-config", "--concurrency", "5").stdout
    origins = {line.split()[0]: line.split(maxsplit=2)[1:] for line in shown.splitlines()}
    assert origins["concurrency"] == ["5", "--concurrency"]
    assert origins["timeout"] == ["10", "silkline.toml"]
    assert origins["job"] == ["things", "things.py"]
    assert origins["outputs"] == ["things.jsonl", "things.py"]
    assert origins["retries"] == ["3", "default"]


def test_a_job_that_was_never_begun_needs_a_url(inside: Call, spider: Path, tmp_path: Path) -> None:
    for words in ([], ["--fresh"]):
        done = inside("run", "things.py", *words)
        assert done.returncode == 2
        assert done.stderr == (
            "silkline: job 'things' has nothing to crawl yet: silkline run things.py https://...\n"
        )
    assert not (tmp_path / ".silkline").exists()


def test_queued_pages_without_a_handler_are_no_requests_and_the_remedy_is_told(
    inside: Call, spider: Path, shop: Site, tmp_path: Path
) -> None:
    task = '{{"url": "{}/thing/{}", "label": "{}"}}\n'
    tasks = [task.format(shop.url, f"{n}a", label) for n, label in ((1, "thing"), (2, "thng"), (3, "thng"))]
    (tmp_path / "tasks.jsonl").write_text("".join(tasks))
    assert inside("seed", "tasks.jsonl", "--job", "labels").returncode == 0
    done = inside("work", "things.py", "--job", "labels", "--allow-private")
    assert done.returncode == 0, done.stderr
    assert re.search(r"requests +1, 100 % succeeded", done.stderr), done.stderr
    assert re.search(r"dead +2: label 2", done.stderr), done.stderr
    told = re.sub(r"\s+", " ", done.stderr)
    assert "no handler for the label 'thng'; there are: default, thing; what waits for it" in told
    assert "silkline dead resend --job labels --cause label" in told
    assert "times)" not in told  # once, however many die of it
    assert names_in(tmp_path / "things.jsonl") == ["Thing 1a"]
    resent = inside("dead", "resend", "--job", "labels", "--cause", "label")
    assert resent.stdout.startswith("2 put back")
    again = inside("work", "things.py", "--job", "labels", "--allow-private")
    assert "requests" not in again.stderr  # nothing was asked for
    assert "already finished" not in again.stderr


def test_a_file_that_fails_to_import_is_one_line(inside: Call, tmp_path: Path) -> None:
    (tmp_path / "broken.py").write_text("import silkline\n\nsilkline.Crawlr()\n")
    done = inside("run", "broken.py", "http://127.0.0.1:9/")
    assert done.returncode == 2
    assert done.stderr.startswith("silkline: broken.py:3: AttributeError: ")
    assert done.stderr.count("\n") == 1
    debugged = inside("run", "broken.py", "http://127.0.0.1:9/", "--debug")
    assert "Traceback" in debugged.stderr
    assert "silkline.Crawlr()" in debugged.stderr


def test_a_seed_for_an_unknown_label_is_one_line(inside: Call, spider: Path) -> None:
    Path("tasks.jsonl").write_text('{"url": "http://127.0.0.1:9/", "label": "x"}')
    done = inside("run", "things.py", "--urls", "tasks.jsonl")
    assert done.returncode == 2
    assert "no handler for the label 'x'; there are: default, thing" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_line_for_an_unknown_label_is_told_and_the_rest_goes_on(
    inside: Call, spider: Path, shop: Site, tmp_path: Path
) -> None:
    (tmp_path / "tasks.jsonl").write_text(
        f'{{"url": "{shop.url}/thing/1a", "label": "thing"}}\n{{"url": "{shop.url}/x", "label": "thng"}}\n'
    )
    done = inside("run", "things.py", "--urls", "tasks.jsonl", "--allow-private")
    assert done.returncode == 0, done.stderr
    assert "1 seed is invalid" in done.stderr
    assert "tasks.jsonl:2: no handler for the label 'thng'; there are: default, thing" in done.stderr
    assert names_in(tmp_path / "things.jsonl") == ["Thing 1a"]
