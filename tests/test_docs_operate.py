"""What docs/distributed.md says of workers and operators, run as it is written."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest

from silkline.cli.main import main
from tests.documents import snippet
from tests.site import Site

DISTRIBUTED = "docs/distributed.md"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(name: str, site: str) -> None:
    for command in snippet(DISTRIBUTED, name).splitlines():
        words = shlex.split(command.replace("https://shop.example", site))
        assert words[0] == "silkline"
        if words[1] == "work":
            words.append("--allow-private")  # the address that the tests' site has
        assert main(words[1:]) == 0, command


def test_workers_and_operators_do_as_written(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with Site({f"/p/{n}": f"<title>{n}</title>" for n in range(7)}) as site:
        (folder / "urls.txt").write_text("".join(f"{site.url}/p/{n}\n" for n in range(8)))
        run("work", site.url)
        titles = [json.loads(line)["title"] for line in (folder / "out.jsonl").read_text().splitlines()]
        assert sorted(titles) == [str(n) for n in range(7)]
        capsys.readouterr()
        run("operate", site.url)
        shown = capsys.readouterr().out
    assert "          7  done" in shown
    assert '"job":"shop","waiting":0' in shown
    assert "dead: http_404: HTTP status 404" in shown
    assert "concurrency=100\ndelay=0.5\n" in shown
    assert json.loads((folder / "dead.jsonl").read_text())["cause"] == "http_404"
    assert list((folder / ".silkline").glob("shop.db*")) == []
