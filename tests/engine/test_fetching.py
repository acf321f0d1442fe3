"""What a crawl fetches with, as the settings say, and what is refused before anything starts."""

from __future__ import annotations

import json
import subprocess
import sys
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest
from tests.site import Site

from silkline import Crawler
from silkline.config import FrontierOptions, Settings
from silkline.engine.around import proxies_of
from silkline.engine.fetching import check_settings, fetcher_for, options_of
from silkline.engine.named import NamedHosts
from silkline.errors import ConfigError
from silkline.fetch.cookies.sessions import Sessions
from silkline.fetch.curl import CurlFetcher
from silkline.fetch.http import HttpFetcher
from silkline.fetch.mock import MockFetcher
from silkline.fetch.proxies.roster import Roster
from silkline.frontier.memory import MemoryFrontier
from silkline.resolve import settings_from, shown


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"headers": ["Authorization: Basic abc"]}, "headers: Authorization cannot be sent .* use auth"),
        ({"headers": {"Cookie": "a=1"}}, "headers: Cookie cannot be sent"),
        ({"auth": ["https://h.example token sesame"]}, "auth, entry 1: is not in its form"),
        ({"identity": "browser", "contact": "me@h.example"}, "leave out user_agent and contact"),
    ],
)
def test_an_identity_that_cannot_be_is_refused_before_anything_is_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, settings: dict[str, object], message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".silkline").mkdir()
    kept = tmp_path / ".silkline" / "spider.db"
    kept.write_text("not ours")
    crawler = Crawler(quiet=True, fresh=True, **settings)
    crawler.handler(lambda page: None)
    with pytest.raises(ConfigError, match=message):
        crawler.run("http://127.0.0.1:9/")
    assert kept.read_text() == "not ours"


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("headers", "A: 1, 2\n B: 3", ("A: 1, 2", "B: 3")),
        ("headers", {"A": "1"}, ("A: 1",)),
        ("auth", {"https://h.example": "bearer x"}, ("https://h.example bearer x",)),
        ("contact", "me@h.example", "me@h.example"),
        ("referer", "Origin", "origin"),
        ("cookies", "off", "off"),
    ],
)
def test_the_forms_of_identity_settings(name: str, value: object, expected: object) -> None:
    assert getattr(settings_from({name: value}, "here"), name) == expected


@pytest.mark.parametrize(
    ("name", "value"),
    [("headers", "no colon"), ("headers", ["A\r\nB: 1"]), ("contact", "me"), ("contact", "x\ny@z")],
)
def test_identity_settings_that_are_none_are_refused(name: str, value: object) -> None:
    with pytest.raises(ConfigError, match=f"here: {name} must be "):
        settings_from({name: value}, "here")


def test_no_secret_is_quoted_or_shown() -> None:
    with pytest.raises(ConfigError) as error:
        settings_from({"auth": ["https://h.example bearer sesame\nx"]}, "here")
    assert "sesame" not in str(error.value)
    settings = settings_from({"auth": ["https://h.example bearer sesame", "h.example basic a:sesame b"]}, "")
    assert shown("auth", settings) == "https://h.example bearer ***, h.example basic ***"


@pytest.mark.parametrize("name", ["http", "curl"])
async def test_the_settings_choose_the_engine_and_its_limits(name: Any) -> None:
    async with AsyncExitStack() as opened:
        settings = Settings(fetcher=name, connect_timeout=3, max_headers=1_000, insecure=True)
        fetcher = await fetcher_for(
            settings, opened, NamedHosts(MemoryFrontier(FrontierOptions())), Sessions()
        )
    assert type(fetcher) is {"http": HttpFetcher, "curl": CurlFetcher}[name]
    options = options_of(settings)
    assert (options.connect_timeout, options.max_headers, options.verify) == (3, 1_000, False)


def test_connections_are_at_least_300_and_enough_for_the_concurrency() -> None:
    assert options_of(Settings()).limit == 300
    assert options_of(Settings(concurrency=1_000)).limit == 2_000
    assert options_of(Settings(concurrency=1_000, connections=50)).limit == 50


@pytest.mark.parametrize("version", ["2", "3"])
def test_a_version_that_the_engine_does_not_speak_is_refused(version: Any) -> None:
    with pytest.raises(ConfigError, match="--fetcher curl"):
        check_settings(Settings(http_version=version))
    check_settings(Settings(http_version=version, fetcher="curl"))


def test_an_engine_that_is_not_installed_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "silkline.fetch.curl", raising=False)
    monkeypatch.setitem(sys.modules, "pycurl", None)
    with pytest.raises(ConfigError, match=r"pip install 'silkline\[curl\]'"):
        check_settings(Settings(fetcher="curl"))


def test_a_ca_file_that_is_none_is_refused_before_the_crawl(tmp_path: Path) -> None:
    path = tmp_path / "ca.pem"
    with pytest.raises(ConfigError, match=r"ca_file: .*No such file"):
        check_settings(Settings(ca_file=str(path)))
    path.write_text("nonsense")
    with pytest.raises(ConfigError, match="ca_file"):
        check_settings(Settings(ca_file=str(path)))


def test_a_socks_proxy_without_its_package_is_refused_at_the_start(monkeypatch: pytest.MonkeyPatch) -> None:
    settings = Settings(proxy=("http://h:3128", "socks5h://u:secret@h:1080 de"))
    check_settings(settings)
    monkeypatch.setattr("silkline.fetch.socks.python_socks", None)
    check_settings(Settings(proxy=settings.proxy[:1]))
    with pytest.raises(ConfigError, match=r"pip install 'silkline\[socks\]'") as raised:
        check_settings(settings)
    assert "secret" not in str(raised.value)


def test_a_crawl_loads_only_the_engine_that_it_uses_and_no_log_that_nobody_reads(tmp_path: Path) -> None:
    code = """
import subprocess
import sys
from silkline import Crawler
crawler = Crawler(fetcher="curl", frontier="memory:", quiet=True)
crawler.handler(lambda page: None)
crawler.run(["http://127.0.0.1:1/"], allow_private=True, retries=0)
print(sorted({"aiohttp", "structlog", "regex", "prometheus_client", "pycurl"} & sys.modules.keys()))
"""
    ran = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, timeout=60
    )
    assert ran.stdout.splitlines()[-1] == "['pycurl']", ran.stderr


def test_exchanges_that_a_full_disk_loses_are_in_the_report(tmp_path: Path) -> None:
    code = """
import resource, sys
from silkline import Crawler
resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, resource.RLIM_INFINITY))
crawler = Crawler(frontier="memory:", quiet=True, har="out.har", robots="off")
crawler.handler(lambda page: None)
print(crawler.run([sys.argv[1]], allow_private=True).troubles)
"""
    with Site({"/": "<h1>x</h1>" + "x" * 30_000}) as site:
        command = [sys.executable, "-c", code, site.url]
        ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert ran.stdout == "('out.har cannot be written: File too large; exchanges are lost',)\n", ran.stderr
    assert json.loads((tmp_path / "out.har").read_text())["log"]["entries"] == []


async def test_socks_proxies_of_a_file_are_left_out_without_their_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    listed, told = tmp_path / "proxies.txt", list[str]()
    listed.write_text("http://h:3128\nsocks5://u:secret@h:1080\nsocks5h://h:1081 de\n")
    settings = Settings(proxies=str(listed))
    monkeypatch.setattr("silkline.fetch.socks.python_socks", None)
    check_settings(settings)
    source = proxies_of(settings)
    assert source is not None
    roster = Roster(source, told.append)
    await roster.refresh(MockFetcher({}).fetch)
    assert [proxy.name for proxy in roster.tagged("")] == ["http://h:3128"]
    (line,) = told
    assert line.startswith(f"{listed}, line 2: left out: a SOCKS proxy needs")
    assert line.endswith("pip install 'silkline[socks]' (and 1 more)")
    listed.write_text("socks5://u:secret@h:1080\n")
    with pytest.raises(ConfigError, match=r"line 1: left out: .*pip install 'silkline\[socks\]'"):
        check_settings(settings)
    check_settings(Settings(proxies=str(listed), fetcher="curl"))
