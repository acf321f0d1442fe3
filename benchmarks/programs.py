"""The programs that are compared, and the environments they run in."""

from __future__ import annotations

import hashlib
import subprocess
import sys
import venv
from collections.abc import Sequence
from pathlib import Path

import msgspec

from benchmarks.site import Missing

HERE = Path(__file__).parent
PEERS = HERE / "peers"
WORK = HERE / ".work"
REQUIREMENTS = PEERS / "requirements.txt"


class Program(msgspec.Struct, frozen=True):
    """name: on the command line. title: in the table. packages: whose versions are told. own: runs in
    this environment, not in the peers'. rival: name of the silkline that it is compared with."""

    name: str
    title: str
    script: Path
    packages: tuple[str, ...]
    own: bool = False
    arguments: tuple[str, ...] = ()
    rival: str = "silkline"

    @property
    def python(self) -> str:
        return sys.executable if self.own else str(_peers_python())

    def command(self, workload: str, urls: Path, out: Path) -> list[str]:
        return [self.python, str(self.script), workload, str(urls), str(out), *self.arguments]


PEER_PROGRAMS = (
    Program("limit", "limit of one aiohttp client", PEERS / "limit.py", ("aiohttp", "turbohtml"), own=True),
    Program(
        "limit-curl",
        "limit of one libcurl client",
        PEERS / "limit_curl.py",
        ("pycurl", "turbohtml"),
        own=True,
        rival="silkline-curl",
    ),
    Program("tutorial", "tutorial template", PEERS / "tutorial.py", ("aiohttp", "lxml")),
    Program("scrapling", "Scrapling", PEERS / "scrapling_spider.py", ("scrapling",)),
    Program("crawlee", "Crawlee", PEERS / "crawlee_crawler.py", ("crawlee",)),
    Program("scrapy", "Scrapy", PEERS / "scrapy_spider.py", ("scrapy",)),
)


def silkline(processes: int, fetcher: str = "http") -> Program:
    """silkline in so many processes, with this engine."""
    script = HERE / "silkline_crawl.py"
    name = "silkline" if fetcher == "http" else f"silkline-{fetcher}"
    title = "silkline" if fetcher == "http" else f"silkline, engine {fetcher}"
    if processes > 1:
        name, title = f"{name}-{processes}", f"{title}, {processes} processes"
    return Program(name, title, script, ("silkline",), True, (str(processes), fetcher))


def prepare(programs: Sequence[Program]) -> None:
    """Create the peers' environment if one of `programs` needs it and it is not there yet.

    Raises Missing where it cannot be installed.
    """
    if all(program.own for program in programs):
        return
    wanted = hashlib.sha256(REQUIREMENTS.read_bytes()).hexdigest()
    stamp = WORK / "venv" / "installed"
    if stamp.exists() and stamp.read_text() == wanted:
        return
    print(f"installing the other crawlers in {WORK / 'venv'}", file=sys.stderr)
    venv.create(WORK / "venv", with_pip=True, clear=True)
    install = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "-r", str(REQUIREMENTS)]
    if subprocess.run([str(_peers_python()), *install]).returncode != 0:
        raise Missing("the other crawlers could not be installed; --peers limit does without them")
    stamp.write_text(wanted)


def versions(program: Program) -> str:
    """As "aiohttp 3.14.5, lxml 6.1.3"."""
    code = (
        "import sys, importlib.metadata as m; print(', '.join(f'{p} {m.version(p)}' for p in sys.argv[1:]))"
    )
    command = [program.python, "-c", code, *program.packages]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def _peers_python() -> Path:
    return WORK / "venv" / "bin" / "python"
