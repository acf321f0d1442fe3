"""How proxies are written, and where their lists come from."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from silkline.errors import ConfigError, ConnectError, ProxyError
from silkline.fetch.mock import MockFetcher
from silkline.fetch.proxies.proxy import Proxy, proxies_from, proxy_from
from silkline.fetch.proxies.roster import Roster
from silkline.fetch.proxies.sources import (
    FixedProxies,
    JoinedSources,
    ProxyFile,
    ProxyProvider,
    source_of,
)

FETCH = MockFetcher({}).fetch


@pytest.mark.parametrize(
    ("text", "url", "tags"),
    [
        ("http://h.example:3128", "http://h.example:3128", ""),
        ("HTTPS://u:p@h.example:3128/", "https://u:p@h.example:3128", ""),
        ("socks5h://u:p%40ss@h:1080 de, EU", "socks5h://u:p%40ss@h:1080", "de eu"),
        ("http://us@er:p#%w:/ ü@h:1", "http://us%40er:p%23%25w%3A%2F%20%C3%BC@h:1", ""),
        ("http://us%40er:p%23%25w%3A%2F@h:1", "http://us%40er:p%23%25w%3A%2F@h:1", ""),
        ("h.example:8080", "http://h.example:8080", ""),
        ("10.0.0.1:8080:user:p@:ss us", "http://user:p%40%3Ass@10.0.0.1:8080", "us"),
        ("http://[::1]:3128", "http://[::1]:3128", ""),
    ],
)
def test_the_forms_of_a_proxy(text: str, url: str, tags: str) -> None:
    assert proxy_from(text) == Proxy(url, frozenset(tags.split()))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "sesame",
        "ftp://u:sesame@h:1",
        "http://u:sesame@",
        "http://u:sesame@h:x",
        "h:1:sesame",
        "http://h/p",
        "http://u:sesame",
        "http://h:1 u sesame!",
        "h:1 u sesame:",
        "http://h:1 u pass@sesame",
    ],
)
def test_what_is_no_proxy_is_one_line_without_the_password(text: str) -> None:
    with pytest.raises(ConfigError, match="write http://user:password@host:3128") as error:
        proxy_from(text)
    assert "sesame" not in str(error.value)


@given(st.text(min_size=1, max_size=8), st.text(max_size=8))
def test_any_user_and_password_survive(user: str, password: str) -> None:
    from urllib.parse import quote, unquote

    proxy = proxy_from(f"http://{quote(user, safe='')}:{quote(password, safe='')}@h:1")
    found_user, _, found_password = proxy.url.removeprefix("http://").partition("@")[0].partition(":")
    assert (unquote(found_user), unquote(found_password)) == (user, password)
    assert proxy.name == "http://h:1"


def test_lists_of_lines_and_of_json() -> None:
    lines = "# ours\n\nhttp://a:1 de\nhttp://a:1\nnonsense\nb:2 # spare\n"
    proxies, wrong = proxies_from(lines, "list.txt")
    assert [proxy.url for proxy in proxies] == ["http://a:1", "http://b:2"]
    assert [line.partition(":")[0] for line in wrong] == ["list.txt, line 5"]
    json = '["http://a:1 de", {"url": "http://b:2", "tags": ["us", "EU"]}, 7]'
    proxies, wrong = proxies_from(json, "list")
    assert [(proxy.url, sorted(proxy.tags)) for proxy in proxies] == [
        ("http://a:1", ["de"]),
        ("http://b:2", ["eu", "us"]),
    ]
    assert len(wrong) == 1
    assert proxies_from("[nonsense", "list")[1][0].startswith("list: is no JSON list")


def test_a_source_that_cannot_be_is_refused(tmp_path: Path) -> None:
    (tmp_path / "empty.txt").write_text("# none\n")
    (tmp_path / "bad.txt").write_text("nonsense\n")
    for name, message in (("gone", "No such file"), ("empty", "no proxy in it"), ("bad", "bad.txt, line 1")):
        with pytest.raises(ConfigError, match=message):
            source_of(str(tmp_path / f"{name}.txt"), 600.0)
    with pytest.raises(ConfigError, match="proxies, entry 2: "):
        FixedProxies(["http://a:1", "nonsense"])


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


async def listed(roster: Roster, clock: Clock, seconds: float = 0.0) -> list[str]:
    """After that time, and after what that starts."""
    clock.now += seconds
    await roster.refresh(FETCH)
    await asyncio.sleep(0.01)
    return [proxy.name for proxy in roster.tagged("")]


async def test_a_file_is_read_again_when_it_changed_and_a_bad_edit_loses_nothing(tmp_path: Path) -> None:
    file, clock = tmp_path / "proxies.txt", Clock()
    told: list[str] = []
    file.write_text("http://a:1\n")
    roster = Roster(ProxyFile(file), told.append, clock)
    assert await listed(roster, clock) == ["http://a:1"]
    file.write_text("http://a:1\nhttp://b:2 de\nwrong\n")
    assert await listed(roster, clock, 1.0) == ["http://a:1"]
    assert await listed(roster, clock, 2.0) == ["http://a:1", "http://b:2"]
    assert [proxy.name for proxy in roster.tagged("de")] == ["http://b:2"]
    file.write_text("# all gone\n")
    assert await listed(roster, clock, 3.0) == ["http://a:1", "http://b:2"]
    os.remove(file)
    for _ in range(2):
        assert await listed(roster, clock, 3.0) == ["http://a:1", "http://b:2"]
    where = [line.partition(":")[0].rpartition("/")[2] for line in told]
    assert where == ["proxies.txt, line 3", "proxies.txt", "proxies.txt"]
    file.write_text("http://c:3\n")
    assert await listed(roster, clock, 3.0) == ["http://c:3"]


async def test_a_provider_is_asked_again_after_its_period() -> None:
    clock, answers = Clock(), iter([["http://a:1"], ValueError("moved"), ["http://b:2"]])
    told: list[str] = []

    async def provide() -> list[str]:
        answer = next(answers)
        if isinstance(answer, Exception):
            raise answer
        return answer

    roster = Roster(ProxyProvider(provide, 60.0), told.append, clock)
    assert await listed(roster, clock) == ["http://a:1"]
    assert await listed(roster, clock, 59.0) == ["http://a:1"]
    assert await listed(roster, clock, 1.0) == ["http://a:1"]
    assert told == ["the proxy provider failed: ValueError: moved; the last list stays"]
    assert await listed(roster, clock, 60.0) == ["http://b:2"]


async def test_a_provider_that_answers_with_nothing_useful_is_an_error() -> None:
    fetcher = MockFetcher({"http://p.test/": 503, "http://down.test/": ConnectError("down")})
    for url in ("http://p.test/", "http://down.test/"):
        with pytest.raises(ProxyError, match="the proxy provider"):
            await ProxyProvider(url).load(fetcher.fetch)
    assert all(request.proxy == "" for request in fetcher.requests)


async def test_joined_sources_keep_the_list_of_the_one_that_fails(tmp_path: Path) -> None:
    file = tmp_path / "proxies.txt"
    file.write_text("http://b:2\n")
    joined = JoinedSources([FixedProxies(["http://a:1"]), ProxyFile(file)])
    loaded = await joined.load(FETCH)
    assert loaded is not None
    assert [proxy.name for proxy in loaded[0]] == ["http://a:1", "http://b:2"]
    os.remove(file)
    loaded = await joined.load(FETCH)
    assert loaded is not None
    assert [proxy.name for proxy in loaded[0]] == ["http://a:1", "http://b:2"]
    assert "cannot be read" in loaded[1][0]
