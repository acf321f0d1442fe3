"""docs/fetching.md: every block runs."""

from __future__ import annotations

import asyncio
import base64
import json
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest
from aiohttp import web

from silkline import Crawler, Page, Request, __version__
from silkline.cli.show import settings_table
from silkline.errors import ConnectError
from silkline.resolve import resolve
from silkline.testing import MockFetcher
from tests.documents import ROOT, blocks, check_session, run, snippet
from tests.nginx import nginx
from tests.proxies import SocksProxy, TestProxy
from tests.site import Site

FETCHING = "docs/fetching.md"
SESSIONS = [block.name for block in blocks(FETCHING) if block.language == "pycon" and block.name]


@pytest.mark.parametrize("name", SESSIONS)
def test_sessions_answer_as_shown(name: str) -> None:
    check_session(FETCHING, name)


def test_one_page_is_shown_as_written(tmp_path: Path) -> None:
    with Site({"/": "<title>Shop</title>"}) as site:
        for line in snippet(FETCHING, "fetch").splitlines():
            words = shlex.split(line.replace("https://shop.example", site.url))
            done = subprocess.run(
                [sys.executable, "-m", *words], cwd=tmp_path, capture_output=True, text=True, check=True
            )
            assert "Shop" in done.stdout


def test_files_are_streamed_to_their_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    run(FETCHING, "files", names)
    pages = {
        "/": '<a class="paper" href="/1">One.pdf</a><a class="paper" href="/2">../Two.pdf</a>',
        "/1": "1",
    }
    with Site({**pages, "/2": "2"}) as site:
        report = names["crawler"].run(site.url, quiet=True, outputs=["items.jsonl"])
    assert report.dead == {"save": 1}
    file = tmp_path / "papers" / "One.pdf"
    assert json.loads(Path("items.jsonl").read_text()) == {"url": f"{site.url}/1", "file": str(file)}
    assert file.read_text() == "1"


def test_every_block_is_run_by_a_test() -> None:
    names = [block.name for block in blocks(FETCHING)]
    assert None not in names
    assert len(set(names)) == len(names)
    text = Path(__file__).read_text()
    for name in set(names) - set(SESSIONS):
        assert f'(FETCHING, "{name}"' in text, f"no test runs {name}"


class Members:
    """A shop that lets those in who send its form with the token in it."""

    def __init__(self) -> None:
        self.asked: list[web.BaseRequest] = []
        self.site = Site(
            {"/": self.answer, "/login": self.login, "/session": self.enter, "/orders": self.orders}
        )

    async def answer(self, request: web.Request) -> web.Response:
        self.asked.append(request)
        return web.Response(text="<title>ok</title>", content_type="text/html")

    async def login(self, request: web.Request) -> web.Response:
        form = "<input type=hidden name=csrf value=t0ken><input name=user><input name=password>"
        text = f"<form id=login method=post action=/session>{form}</form>"
        return web.Response(text=text, content_type="text/html")

    async def enter(self, request: web.Request) -> web.Response:
        if dict(await request.post()) != {"csrf": "t0ken", "user": "ann", "password": "s3cret"}:
            return web.Response(status=403)
        response = web.Response(status=302, headers={"Location": "/orders"})
        response.set_cookie("sid", "1")
        return response

    async def orders(self, request: web.Request) -> web.Response:
        if request.cookies.get("sid") != "1":
            return web.Response(status=403)
        return web.Response(text="<p class=order>chair<p class=order>table", content_type="text/html")


def test_the_login_example_gets_in(tmp_path: Path) -> None:
    with Members().site as site:
        code = snippet(FETCHING, "login").replace("https://shop.example", site.url)
        (tmp_path / "members.py").write_text(code)
        done = subprocess.run(
            [sys.executable, "members.py"], cwd=tmp_path, capture_output=True, text=True, timeout=60
        )
        assert done.returncode == 0, done.stderr
    lines = (tmp_path / "orders.jsonl").read_text().splitlines()
    assert [json.loads(line) for line in lines] == [{"order": "chair"}, {"order": "table"}]


def test_the_contact_example_tells_who_asks(tmp_path: Path) -> None:
    shop = Members()
    command = shlex.split(snippet(FETCHING, "contact"))
    with shop.site as site:
        words = [word.replace("https://shop.example", site.url) for word in command[1:]]
        command = [sys.executable, "-m", "silkline", *words]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stderr
    said = f"silkline/{__version__} (+https://example.com/our-crawler)"
    assert said in (ROOT / FETCHING).read_text()
    assert {
        (request.headers["User-Agent"], request.headers["Accept-Language"]) for request in shop.asked
    } == {(said, "de")}


def test_the_identity_file_sends_what_it_says_and_shows_no_secret(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    shop = Members()
    with shop.site as site:
        text = snippet(FETCHING, "identity-toml").replace("http://intranet.example:8080", site.url)
        (tmp_path / "silkline.toml").write_text(text)
        resolved = resolve({}, {})
        crawler = Crawler("me", frontier="memory:", quiet=True)
        crawler.handler(lambda page: None)
        crawler.configure(msgspec.structs.replace(resolved.settings, frontier="memory:", quiet=True))
        crawler.run(f"{site.url}/")
    [request] = shop.asked
    assert request.headers["Accept-Language"] == "de, en;q=0.5"
    assert request.headers["Authorization"] == encode_basic("me", "pass word")
    assert request.headers["User-Agent"].endswith("(+bots@example.com)")
    table = settings_table(resolved)
    assert "https://api.example.com bearer ***" in table
    assert "s3cret" not in table
    assert "pass word" not in table


def encode_basic(user: str, password: str) -> str:
    return "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()


def test_the_cache_example_transfers_only_what_has_changed(tmp_path: Path) -> None:
    root, scratch, here = tmp_path / "root", tmp_path / "nginx", tmp_path / "here"
    for folder in (root, scratch, here):
        folder.mkdir()
    (root / "index.html").write_text("<title>Shop</title><a href=/a.html>a</a><a href=/b.html>b</a>")
    (root / "a.html").write_text("<title>A</title>")
    (root / "b.html").write_text("<title>B</title>")
    with nginx(root, scratch) as server:
        words = shlex.split(snippet(FETCHING, "cache").replace("https://shop.example", server.url))
        for _ in range(2):
            server.forget()
            done = subprocess.run(
                [sys.executable, "-m", *words], cwd=here, capture_output=True, text=True, timeout=60
            )
            assert done.returncode == 0, done.stderr
            (root / "b.html").write_text("<title>New</title>")
        assert sorted((sent.path, sent.status) for sent in server.pages()) == [
            ("/", 304),
            ("/a.html", 304),
            ("/b.html", 200),
        ]
    assert "2 pages came unmodified, 0 without asking" in done.stderr
    titles = {json.loads(line)["title"] for line in (here / "pages.jsonl").read_text().splitlines()}
    assert titles == {"Shop", "A", "New"}
    assert (here / ".silkline" / "shop.cache").exists()


async def test_the_middleware_example_measures_remembers_and_tries_again() -> None:
    names: dict[str, Any] = {}
    run(FETCHING, "middleware", names)
    pages: dict[str, Any] = {
        "https://shop.example/": [ConnectError("refused"), "<a href=/a#1>a</a>"],
        "https://shop.example/a": "<h1>a</h1>",
    }
    shop = MockFetcher(pages)
    crawler = Crawler("shop", middleware=names["crawler"]._middleware, fetcher=shop, frontier="memory:")
    seen: list[str] = []

    @crawler.handler
    def every(page: Page) -> Any:
        seen.append(page.url)
        yield page.follow("a")
        if page.follow("a"):
            yield Request(page.url, key="again")

    report = await crawler.run_async("https://shop.example/")
    assert (report.pages, report.retried) == (3, 0)
    assert sorted(seen) == ["https://shop.example/", "https://shop.example/", "https://shop.example/a"]
    assert len(shop.requests) == 3, "one try more for the refused one, none for the remembered one"
    assert names["seconds"]["shop.example"] > 0.05


async def test_the_proxy_examples_fetch_through_their_proxies(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    german, third = await TestProxy("me", "s3cret").start(), await TestProxy().start()
    european = await SocksProxy("me", "p@ss").start()
    with Members().site as site:
        places = {
            "proxy.example:3128": f"127.0.0.1:{german.port}",
            "proxy.example:1080": f"127.0.0.1:{european.port}",
        }
        (tmp_path / "proxies.txt").write_text(f"{third.url()} eu\n")
        text = snippet(FETCHING, "proxies-toml")
        for written, real in places.items():
            text = text.replace(written, real)
        (tmp_path / "silkline.toml").write_text(text)
        settings = msgspec.structs.replace(resolve({}, {}).settings, frontier="memory:", quiet=True)
        crawler = Crawler("shop")
        crawler.handler(lambda page: None)
        crawler.configure(settings)
        await crawler.run_async(*(Request(f"{site.url}/", key=str(number)) for number in range(12)))
        assert german.asked == []
        assert min(len(european.asked), len(third.asked)) > 0

        names: dict[str, Any] = {}
        run(FETCHING, "proxy-pool", names, {"proxy.example:3128": f"127.0.0.1:{german.port}"})
        crawler = names["crawler"]
        crawler.handler(lambda page: None)
        report = await crawler.run_async(f"{site.url}/", frontier="memory:", robots=False)
        assert (report.pages, len(german.asked)) == (1, 1)

        words = shlex.split(
            snippet(FETCHING, "proxies-test").replace("https://api.ipify.org", f"{site.url}/")
        )
        done = await asyncio.create_subprocess_exec(
            sys.executable, "-m", *words, cwd=tmp_path, stdout=asyncio.subprocess.PIPE
        )
        out, _ = await asyncio.wait_for(done.communicate(), 60)
        assert (done.returncode, b"1 of 1 proxies work" in out) == (0, True)
    for proxy in (german, third, european):
        await proxy.stop()
