"""Crawls into databases: killed again and again, and with a server that goes away in between."""

from __future__ import annotations

import random
import signal
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from silkline.outcome import Stats
from tests.crash.crawl import Crawl, text_of
from tests.crash.launcher import Launcher, Running
from tests.crash.pages import Pages
from tests.crash.test_random_kills import kill_again_and_again, kill_at_the_end
from tests.crash.test_server_faults import cutting
from tests.sinks.contract.conftest import TARGETS
from tests.sinks.contract.sql import PostgresqlTarget
from tests.sinks.contract.target import Target, own

KILLS = 20
AT_THE_END = 4


class TableCrawl(Crawl):
    """The same crawl, with a table as its output. port: another way to its server."""

    def __init__(
        self,
        launcher: Launcher,
        pages: Pages,
        folder: Path,
        target: Target,
        processes: int = 1,
        port: int | None = None,
    ) -> None:
        super().__init__(launcher, pages, folder, "", processes)
        self.target = target
        self._port = port

    more: Sequence[str] = ()
    """Further options."""

    def start(self, *, max_bytes: int | None = None, **env: str) -> Running:
        return self._launcher.start(
            [
                "--urls",
                "seeds.txt",
                "-o",
                self.target.url(port=self._port),
                *self.more,
                "--processes",
                str(self._processes),
            ],
            folder=self.folder,
            env={**self.env, **env},
            max_bytes=max_bytes,
        )

    def check_killed(self) -> None:
        """Pages that are done have their rows; others may have theirs by now."""
        state = self.state()
        if state is not None:
            self._check_rows(state.done)

    def check_finished(self, dead: Mapping[str, int] | None = None) -> None:
        state = self.state()
        assert state is not None
        assert state.dead == (dead or {})
        assert state.stats == Stats(done=len(self.pages.truth()), dead=sum((dead or {}).values()))
        assert self._check_rows(state.done) == {page for page, items in self.pages.truth().items() if items}

    def _check_rows(self, done: set[int]) -> set[int]:
        """Returns the pages that have rows."""
        found: dict[int, list[dict[str, str]]] = {}
        for row in sorted(self.target.rows(), key=lambda row: (row["page"], row["_index"])):
            assert self._numbers[row["_fingerprint"]] == row["page"]
            assert row["_index"] == row["index"]
            found.setdefault(row["page"], []).append(text_of(own(row)))
        truth = {page: [text_of(item) for item in items] for page, items in self.pages.truth().items()}
        assert found == {page: truth[page] for page in found}
        assert {page for page in done if truth[page]} <= found.keys()
        return {*found}


RESTARTABLE = [kind for kind in TARGETS if "on_its_own_server" in vars(kind)]

every_kind = pytest.mark.parametrize("kind", TARGETS, ids=lambda kind: kind.kind)
every_server = pytest.mark.parametrize("kind", RESTARTABLE, ids=lambda kind: kind.kind)


@every_kind
def test_kills_at_random_instants_lose_nothing_and_double_nothing(
    launcher: Launcher, tmp_path: Path, kind: type[Target]
) -> None:
    _killed(launcher, tmp_path, kind, pages=300, kills=KILLS, processes=1)


@every_kind
@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_two_hundred_kills_of_several_processes(
    launcher: Launcher, tmp_path: Path, kind: type[Target]
) -> None:
    _killed(launcher, tmp_path, kind, pages=3_000, kills=200, processes=3)


def _killed(
    launcher: Launcher, folder: Path, kind: type[Target], *, pages: int, kills: int, processes: int
) -> None:
    seed = random.randrange(2**32)
    print(f"seed {seed}")
    chance = random.Random(seed)
    target = kind()
    try:
        with Pages(pages, big=20_000) as site:
            crawl = TableCrawl(launcher, site, folder, target, processes)
            kill_again_and_again(crawl, kills, chance)
            kill_at_the_end(crawl, AT_THE_END, chance)
            crawl.finish()
    finally:
        target.drop()


@every_server
def test_a_server_that_is_restarted_in_mid_batch_costs_nothing(
    launcher: Launcher, tmp_path: Path, kind: type[Target]
) -> None:
    with kind.on_its_own_server() as (server, target), Pages(400, big=20_000) as pages:
        crawl = TableCrawl(launcher, pages, tmp_path, target, 2)
        pages.allowed = 50
        run = crawl.start()
        for number, kill in enumerate((False, True, True)):
            assert run.until(pages.exhausted), run.log
            pages.allowed += 100
            assert run.until(lambda: len(pages.answered) > 70 + 100 * number), run.log  # noqa: B023
            server.stop(kill=kill)
            assert not run.over(within=0.3), run.log
            server.start()
        pages.allowed = pages.count
        crawl.hurry(run)
        assert run.ended() == 0, run.log
        assert "waiting for it, nothing is lost" in run.log
        assert "is back after" in run.log
        assert "Traceback" not in run.log
        crawl.check_finished()


@every_server
def test_a_crawl_told_to_stop_while_the_server_is_away_ends_soon_and_resumes(
    launcher: Launcher, tmp_path: Path, kind: type[Target]
) -> None:
    with kind.on_its_own_server() as (server, target), Pages(60, big=20_000) as pages:
        crawl = TableCrawl(launcher, pages, tmp_path, target)
        pages.allowed = 20
        run = crawl.start()
        assert run.until(pages.exhausted), run.log
        server.stop()
        pages.allowed = 60
        assert run.until(lambda: "waiting for it" in run.log), run.log
        began = time.monotonic()
        run.signal(signal.SIGTERM)
        run.until(lambda: "stopping" in run.log)
        run.signal(signal.SIGTERM)  # at once, please
        assert run.ended() == 130, run.log
        assert time.monotonic() - began < 5
        assert "Traceback" not in run.log
        server.start()
        crawl.finish()


def test_an_interrupted_crawl_with_a_database_out_of_reach_ends_with_its_grace_and_loses_nothing(
    launcher: Launcher, tmp_path: Path
) -> None:
    target = PostgresqlTarget()
    try:
        with cutting(target.port, 0) as proxy, Pages(60, big=20_000) as pages:
            crawl = TableCrawl(launcher, pages, tmp_path, target, port=proxy.port)
            crawl.more = ["-o", "too.jsonl"]
            pages.allowed = 20
            run = crawl.start(SILKLINE_GRACE="1")
            assert run.until(pages.exhausted), run.log
            proxy.cut_request = lambda data: True
            pages.allowed = 60
            assert run.until(lambda: "waiting for it" in run.log), run.log
            began = time.monotonic()
            run.signal(signal.SIGINT)
            assert run.until(lambda: "told to stop" in run.log), run.log
            assert time.monotonic() - began < 1 + 4  # on a busy machine
            assert run.ended() == 130, run.log
            assert "are not done; the same command visits them again, nothing is lost" in run.log, run.log
            assert "Traceback" not in run.log
            crawl.check_killed()
            proxy.cut_request = lambda data: False
            crawl.finish()
            lines = (tmp_path / "too.jsonl").read_text().splitlines()
            assert len(lines) == len(target.rows()) == sum(map(len, pages.truth().values()))
    finally:
        target.drop()
