from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from silkline.cli.main import main
from silkline.resolve import BARE_NAMES, ENV_PREFIX
from tests.site import Site

Run = Callable[..., "subprocess.CompletedProcess[str]"]
Call = Callable[..., "Ran"]


def is_a_setting(variable: str) -> bool:
    return variable.startswith(ENV_PREFIX) or variable.lower() in BARE_NAMES


def clean_environment() -> dict[str, str]:
    """What the tests' own environment says must not reach the program."""
    kept = {name: value for name, value in os.environ.items() if not is_a_setting(name)}
    return kept | {"COLUMNS": "120"}


def command(*arguments: object) -> list[str]:
    return [sys.executable, "-m", "silkline", *map(str, arguments)]


@pytest.fixture
def silkline(tmp_path: Path) -> Run:
    """Run the real program in an empty directory."""

    def run(*arguments: object, stdin: str = "", **environment: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            command(*arguments),
            cwd=tmp_path,
            env=clean_environment() | environment,
            input=stdin,
            capture_output=True,
            text=True,
            timeout=100,
            check=False,
        )

    return run


class Ran(NamedTuple):
    returncode: int
    stdout: str
    stderr: str


@pytest.fixture
def inside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Call:
    """The same without a process of its own: quicker, for what does not depend on one."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "120")
    for name in filter(is_a_setting, list(os.environ)):
        monkeypatch.delenv(name)

    def run(*arguments: object) -> Ran:
        capsys.readouterr()
        code = main(list(map(str, arguments)))
        printed = capsys.readouterr()
        return Ran(code, printed.out, printed.err)

    return run


def listing(number: int, last: int) -> str:
    products = "".join(
        f'<div class="product"><h2>Thing {number}{letter}</h2><a href="/thing/{number}{letter}">more</a>'
        f'<p class="price">£{number}.50</p></div>'
        for letter in "ab"
    )
    following = f'<a class="next" id="next" href="/page/{number + 1}">next</a>' if number < last else ""
    return (
        f"<title>Page {number}</title>{products}{following}"
        '<a href="http://elsewhere.invalid/">elsewhere</a><a href="/gone">old</a>'
    )


@pytest.fixture
def shop() -> Iterator[Site]:
    """Three listing pages with two products each; /gone, which all link to, is a 404."""
    pages = {f"/page/{number}": listing(number, 3) for number in (2, 3)}
    things = {
        f"/thing/{number}{letter}": f"<title>Thing {number}{letter}</title>"
        for number in (1, 2, 3)
        for letter in "ab"
    }
    with Site({"/": listing(1, 3), **pages, **things}) as site:
        yield site
