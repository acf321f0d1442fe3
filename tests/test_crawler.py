"""What a run shows and tells: progress, report, logs, metrics; from one process and from two."""

from __future__ import annotations

import json
import os
import re
import socket
import sqlite3
import threading
import urllib.request
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from silkline import Crawler, Request
from silkline.errors import ConfigError, FatalError
from silkline.events import Event, Seeded, Stopping
from silkline.observe.progress import StderrConsole
from silkline.observe.snapshot import Snapshot
from tests.site import Site, linked_site


def crawler_for(tmp_path: Path, **settings: Any) -> Crawler:
    crawler = Crawler("job", **{"frontier": f"sqlite:///{tmp_path}/job.db", **settings})

    @crawler.handler
    def every(page: Any) -> Any:
        yield {"n": int(page.text("h1"))}
        yield page.follow("a")

    return crawler


@pytest.mark.parametrize("processes", [1, 2])
def test_a_run_off_a_terminal_ends_with_the_report_on_stderr(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], processes: int
) -> None:
    with Site(linked_site(30)) as site:
        report = crawler_for(tmp_path, processes=processes).run(site.url + "/", f"{site.url}/missing")
    shown = capfd.readouterr()
    assert shown.out == ""
    assert "job: finished in" in shown.err
    assert re.search(r"pages +30 in", shown.err)
    assert re.search(r"dead +1: http_404 1", shown.err)
    assert (report.pages, report.items, report.dead) == (30, 30, {"http_404": 1})
    assert report.latency is not None
    assert report.success_rate == pytest.approx(30 / 31)


def test_quiet_shows_nothing(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    with Site(linked_site(3)) as site:
        crawler_for(tmp_path, quiet=True).run(site.url + "/")
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("processes", [1, 2])
def test_a_watcher_sees_the_crawl_from_start_to_end(tmp_path: Path, processes: int) -> None:
    seen: list[Snapshot] = []
    with Site(linked_site(100), delay=0.2) as site:
        crawler_for(tmp_path, processes=processes).run(site.url + "/", watch=seen.append)
    assert {snapshot.phase for snapshot in seen} >= {"crawling", "finished"}
    assert seen[-1].tally.pages == 100
    assert seen[-1].processes == processes
    assert max(snapshot.in_flight for snapshot in seen) > 0


@pytest.mark.parametrize("processes", [1, 2])
def test_metrics_are_served_while_the_crawl_runs(tmp_path: Path, processes: int) -> None:
    scraped: list[str] = []
    with Site(linked_site(80), delay=0.1) as site:
        crawler = crawler_for(tmp_path, quiet=True, processes=processes, metrics_port=(port := free_port()))

        def scrape() -> None:
            while not scraped or "silkline_pages_total 0.0" in scraped[-1]:
                try:
                    url = f"http://127.0.0.1:{port}/metrics"
                    scraped.append(urllib.request.urlopen(url, timeout=1).read().decode())
                except OSError:
                    pass

        thread = threading.Thread(target=scrape, daemon=True)
        # After the fork: the thread starts with the first snapshot.
        crawler.run(site.url + "/", watch=lambda snapshot: None if thread.ident else thread.start())
        thread.join(5)
    text = scraped[-1]
    assert float(re.search(r"^silkline_requests_total.* (\S+)$", text, re.M)[1]) > 0  # type: ignore[index]
    assert "silkline_queue_size" in text
    with pytest.raises(OSError):
        urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=1)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def test_a_metrics_port_in_use_stops_the_run_with_one_line(tmp_path: Path) -> None:
    with Site(linked_site(3)) as site:
        port = int(site.url.rpartition(":")[2])
        with pytest.raises(ConfigError, match=str(port)):
            crawler_for(tmp_path, quiet=True, metrics_port=port).run(site.url + "/")
        with pytest.raises(ConfigError, match=str(port)):
            crawler_for(tmp_path, quiet=True, metrics_port=port, processes=2).run(site.url + "/")


@pytest.mark.parametrize("processes", [1, 2])
def test_the_log_file_names_what_failed_and_why(tmp_path: Path, processes: int) -> None:
    log = tmp_path / "crawl.log"
    with Site(linked_site(20)) as site:
        crawler = crawler_for(tmp_path, quiet=True, log_file=str(log), processes=processes)
        crawler.run(site.url + "/", f"{site.url}/missing")
        missing = f"{site.url}/missing"
    entries = [json.loads(line) for line in log.read_text().splitlines()]
    assert all(entry["job"] == "job" and entry["timestamp"].endswith("Z") for entry in entries)
    failed = [entry for entry in entries if entry.get("cause") == "http_404"]
    assert [(entry["url"], entry["level"], entry["deliveries"]) for entry in failed] == [
        (missing, "error", 1)
    ]


def test_hooks_hear_of_everything(tmp_path: Path) -> None:
    heard: list[Event] = []
    with Site(linked_site(5)) as site:
        crawler = Crawler("job", frontier="memory:", quiet=True, hooks=[heard.append])
        crawler.handler(lambda page: [page.follow("a")])
        crawler.run(site.url + "/", site.url + "/#again")
    assert Seeded(added=1, duplicate=1, invalid=0) in heard
    assert Stopping("finished") in heard
    assert {type(event).__name__ for event in heard} == {"Visited", "Kept", "Seeded", "Stopping"}


def test_the_death_of_a_side_task_stops_the_run_loudly(tmp_path: Path) -> None:
    def broken(event: Event) -> None:
        raise RuntimeError("this hook is broken")

    with Site(linked_site(5)) as site:
        crawler = Crawler("job", frontier="memory:", quiet=True, hooks=[broken])
        crawler.handler(lambda page: None)
        with pytest.raises(RuntimeError, match="this hook is broken"):
            crawler.run(site.url + "/")


def test_memory_is_for_one_process(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="memory: is for one process"):
        crawler_for(tmp_path, frontier="memory:", processes=2).run("http://127.0.0.1:9/")


def test_an_output_that_is_the_frontiers_file_is_refused_before_fresh_removes_it(tmp_path: Path) -> None:
    store = tmp_path / "job.jsonl"
    with Site(linked_site(3)) as site:
        crawler_for(tmp_path, quiet=True, frontier=f"sqlite:///{store}").run(site.url + "/")
        before = store.read_bytes()
        with pytest.raises(ConfigError, match="own file"):
            crawler_for(
                tmp_path, quiet=True, fresh=True, frontier=f"sqlite:///{store}", outputs=[str(store)]
            ).run(site.url + "/")
    assert store.read_bytes() == before


def test_fresh_removes_a_table_in_the_frontiers_file_with_its_pages(tmp_path: Path) -> None:
    with Site(linked_site(3)) as site:
        for _ in range(2):
            crawler = crawler_for(tmp_path, quiet=True, fresh=True, outputs=[f"{tmp_path}/job.db"])
            assert crawler.run(site.url + "/").pages == 3
    with closing(sqlite3.connect(tmp_path / "job.db")) as rows:
        assert rows.execute("SELECT count(*) FROM items").fetchone() == (3,)


def test_workers_that_all_die_are_named(tmp_path: Path) -> None:
    with Site(linked_site(3)) as site:
        crawler = Crawler("job", frontier=f"sqlite:///{tmp_path}/job.db", quiet=True, processes=2)

        @crawler.handler
        def fatal(page: Any) -> None:
            os._exit(7)

        with pytest.raises(FatalError, match="exit code 7"):
            crawler.run(Request(site.url + "/"))


@pytest.mark.parametrize("frontier", ["sqlite", "memory:"])
def test_fresh_removes_only_what_is_the_jobs_own(tmp_path: Path, frontier: str) -> None:
    settings = {"quiet": True, "fresh": True}
    if frontier == "memory:":
        settings["frontier"] = frontier
    else:
        (tmp_path / "other.csv").write_text("somebody,else\n1,2\n")
        with Site(linked_site(3)) as site, pytest.raises(ConfigError, match=r"other\.csv"):
            crawler_for(tmp_path, outputs=[f"{tmp_path}/other.csv"], **settings).run(site.url + "/")
        assert (tmp_path / "other.csv").read_text() == "somebody,else\n1,2\n"
    database = sqlite3.connect(tmp_path / "precious.db")
    database.execute("CREATE TABLE precious AS SELECT 42 AS answer")
    database.commit()
    with Site(linked_site(3)) as site:
        with pytest.raises(ConfigError, match=r"precious\.db"):
            crawler_for(tmp_path, outputs=[f"{tmp_path}/precious.db"], **settings).run(site.url + "/")
        for _ in range(2):
            report = crawler_for(tmp_path, outputs=[f"{tmp_path}/own.db"], **settings).run(site.url + "/")
            assert report.items == 3
    assert database.execute("SELECT answer FROM precious").fetchall() == [(42,)]


def test_a_task_with_an_unknown_label_is_an_invalid_line_like_others(tmp_path: Path) -> None:
    with Site(linked_site(3)) as site:
        tasks = [{"url": site.url + "/p/1"}, {"url": site.url + "/p/2", "label": "detial"}]
        (tmp_path / "tasks.jsonl").write_text("\n".join(map(json.dumps, tasks)))
        report = crawler_for(tmp_path, quiet=True).run(tmp_path / "tasks.jsonl")
    assert report.seeded.invalid == 1
    assert re.search(r"tasks\.jsonl:2: .*'detial'", report.seeded.reasons[0])


def test_one_output_is_no_list_of_letters() -> None:
    assert Crawler("x", outputs="a.csv").settings.outputs == ("a.csv",)


def test_settings_show_no_password() -> None:
    secret = ["https://a.example basic u:s3cret"]
    settings = Crawler(
        "x",
        outputs=["postgresql://u:s3cret@h/db?table=a", "s3://b/a.csv?secret_access_key=s3cret"],
        frontier="redis://u:s3cret@h/0",
        proxy=["http://u:s3cret@h:1"],
        auth=secret,
        headers=["X-Key: s3cret"],
    ).settings
    assert "s3cret" not in repr(settings)
    assert "outputs=('postgresql://h/db?table=a', 's3://b/a.csv')" in repr(settings)


def test_a_report_keeps_text_between_colons(capfd: pytest.CaptureFixture[str]) -> None:
    StderrConsole().print("output a:x:b.csv", markup=False, highlight=False)
    assert capfd.readouterr().err == "output a:x:b.csv\n"
