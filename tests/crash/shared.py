"""One crawl by several workers that share nothing but a Redis: starting them, and comparing what `silkline
export` makes of their part files with the truth."""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from silkline.cli.main import main
from silkline.frontier.open import positions_in
from tests import servers
from tests.crash.crawl import Row, text_of
from tests.crash.launcher import Launcher, Running
from tests.crash.pages import Pages

LEASE_SECONDS = "1"


class SharedCrawl:
    """ending: of the output. Every worker is started by the same command, in a process of its own.

    url: of the server, as an operator sees it; a worker may be given another way to it.
    env: more settings of all workers.
    """

    def __init__(
        self,
        launcher: Launcher,
        pages: Pages,
        folder: Path,
        ending: str,
        url: str | None = None,
        **env: str,
    ) -> None:
        self.pages = pages
        self.url = url or servers.valkey_url()
        self.job = f"shared-{zlib.crc32(bytes(folder)):x}"
        self.output = folder / f"items{ending}"
        self._folder = folder
        self._launcher = launcher
        self._env = {
            "SILKLINE_LEASE_SECONDS": LEASE_SECONDS,
            "SILKLINE_MAX_DELIVERIES": "10000",  # pages that are in flight at many kills must not die of it
            "SILKLINE_ALLOW_PRIVATE": "true",
            **env,
        }
        self._exported = folder / "exported.jsonl"
        pages.write_seeds(folder / "seeds.txt")

    def start(self, *words: str, through: str | None = None, **env: str) -> Running:
        named = ["--job", self.job, "--frontier", through or self.url]
        words = ("--urls", "seeds.txt", "-o", self.output.name, *named, *words)
        return self._launcher.start(words, folder=self._folder, env={**self._env, **env})

    @property
    def parts(self) -> dict[str, int]:
        """The part files in the folder, with their sizes."""
        stem, ending = self.output.stem, self.output.suffix
        return {path.name: path.stat().st_size for path in self._folder.glob(f"{stem}.*{ending}")}

    def committed(self) -> set[str]:
        return {Path(path).name for path in positions_in(self.url, self.job)}

    def check_running(self) -> int:
        """What counts at this moment is a set of whole pages, each of them once. Returns how many."""
        found = self._export()
        truth = self.pages.truth()
        for number, rows in found.items():
            assert rows == [text_of(item) for item in truth[number]]
        return len(found)

    def check_finished(self, capsys: pytest.CaptureFixture[str]) -> None:
        truth = {number: items for number, items in self.pages.truth().items() if items}
        capsys.readouterr()
        assert main(["status", "--json", *self._named]) == 0
        status = json.loads(capsys.readouterr().out)
        sizes = {name: status[name] for name in ("waiting", "delayed", "leased", "done", "dead")}
        expected = {"waiting": 0, "delayed": 0, "leased": 0, "done": self.pages.count, "dead": 0}
        assert sizes == expected, f"{sizes}, not {expected}"
        differing = sorted(self._export().keys() ^ truth.keys())
        assert not differing, f"pages of which there are items, or none, against what they say: {differing}"
        assert self.check_running() == len(truth)
        capsys.readouterr()
        assert main(["export", "--json", "--replace", *self._named, "-o", str(self._exported)]) == 0
        summary = json.loads(capsys.readouterr().out)
        assert summary["rows"] == sum(map(len, truth.values()))
        assert summary["parts"] == len(self.committed())

    def _export(self) -> dict[int, list[Row]]:
        """The exported items as text, by page."""
        assert main(["export", "--replace", *self._named, "-o", str(self._exported)]) == 0
        found: dict[int, list[Row]] = {}
        for line in self._exported.read_text().splitlines():
            row = text_of(json.loads(line))
            found.setdefault(int(row["page"]), []).append(row)
        return found

    @property
    def _named(self) -> list[str]:
        return ["--job", self.job, "--frontier", self.url]


@contextmanager
def shared(
    launcher: Launcher, folder: Path, ending: str, count: int, *, url: str | None = None, **options: Any
) -> Iterator[SharedCrawl]:
    with Pages(count, **options) as pages:
        yield SharedCrawl(launcher, pages, folder, ending, url)
