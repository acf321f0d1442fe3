from __future__ import annotations

import asyncio
import contextlib
import json
import ssl
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from aiohttp import web

from tests.proxies import SocksProxy, TestProxy
from tests.site import Site


@pytest.fixture
def site() -> AsyncIterator[str]:
    async def echo(request: web.Request) -> web.Response:
        return web.json_response({"ip": "203.0.113.7"})

    with Site({"/ip": echo}) as site:
        yield site.url


@pytest.fixture
async def tls_site(tmp_path: Path) -> AsyncIterator[tuple[str, Path]]:
    """A URL with a certificate of its own, and that."""
    cert, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    command = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -subj /CN=localhost"
    names = ["-addext", "subjectAltName=DNS:localhost", "-keyout", str(key), "-out", str(cert)]
    await asyncio.to_thread(subprocess.run, [*command.split(), *names], check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(cert, key)

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            await reader.readuntil(b"\r\n\r\n")
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 11\r\nConnection: close\r\n\r\n203.0.113.7")
            await writer.drain()
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1", 0, ssl=context) as server:
        yield f"https://localhost:{server.sockets[0].getsockname()[1]}/", cert


async def silkline(*words: str, cwd: Path) -> tuple[int, str, str]:
    done = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "silkline", *words), cwd=cwd, stdout=-1, stderr=-1
    )
    out, err = await asyncio.wait_for(done.communicate(), 60)
    assert done.returncode is not None
    return done.returncode, out.decode(), err.decode()


async def test_the_table_says_which_proxies_work_and_shows_no_password(site: str, tmp_path: Path) -> None:
    good, dead = await TestProxy("me", "s3cret").start(), await TestProxy().start()
    await dead.stop()
    listed = tmp_path / "proxies.txt"
    listed.write_text(f"{good.url('me:s3cret')} de\n{good.url('me:wr0ng')}\nnonsense\n")
    words = ["proxies", "test", "proxies.txt", "--proxy", dead.url(), "--echo", f"{site}/ip"]
    code, out, err = await silkline(*words, cwd=tmp_path)
    assert (code, "1 of 3 proxies work" in out) == (0, True), err
    assert "203.0.113.7" in out
    assert all(len(line) <= 80 for line in out.splitlines() if line.startswith(("yes", "no")))
    assert "warning: proxies.txt, line 3" in err
    code, out, _ = await silkline(*words, "--json", cwd=tmp_path)
    first, second, third = map(json.loads, out.splitlines())
    assert (first["proxy"], first["works"], first["error"][:6]) == (dead.url(), False, "proxy:")
    assert (second["tags"], second["works"], second["exit"]) == (["de"], True, "203.0.113.7")
    assert second["seconds"] > 0
    assert (third["works"], third["exit"]) == (False, "")
    assert "407" in third["error"]
    assert "s3cret" not in out + err
    assert "wr0ng" not in out + err
    await good.stop()


async def test_proxies_of_one_host_are_told_apart_and_repeated_ones_shown(site: str, tmp_path: Path) -> None:
    good = await TestProxy("me", "s3cret").start()
    entries = [f"{good.url('me:s3cret')} de", good.url("you:wr0ng"), f"{good.url('me:s3cret')} eu"]
    (tmp_path / "proxies.txt").write_text("\n".join(entries))
    words = ["proxies", "test", "proxies.txt", "--echo", f"{site}/ip"]
    _, out, _ = await silkline(*words, "--json", cwd=tmp_path)
    first, second = map(json.loads, out.splitlines())
    assert (first["entry"], first["tags"]) == ("proxies.txt, line 1, 3", ["de", "eu"])
    assert (second["entry"], second["works"]) == ("proxies.txt, line 2", False)
    _, out, _ = await silkline(*words, cwd=tmp_path)
    assert "line 1, 3" in out
    assert "line 2" in out
    await good.stop()


@pytest.mark.parametrize(
    ("words", "line"),
    [
        ((), "no proxy to try: name a file"),
        (("gone.txt", "--echo", "http://h.example/"), "gone.txt: the proxies cannot be read: No such file"),
        (("--proxy", "nonsense", "--echo", "http://h.example/"), "--proxy, entry 1: "),
        (("--proxy", "http://h:1"), "for example --echo"),
        (("--proxy", "http://h:1", "--echo", "nonsense"), "--echo: "),
        (("--proxy", "http://h:1", "--echo", "http://h.example/", "--timeout", "x"), "--timeout: "),
        (("--proxy", "http://h:1", "--echo", "http://h.example/", "--ca-file", "gone.pem"), "gone.pem"),
    ],
)
async def test_what_is_missing_is_one_line(words: tuple[str, ...], line: str, tmp_path: Path) -> None:
    code, out, err = await silkline("proxies", "test", *words, cwd=tmp_path)
    assert (code, out) == (2, "")
    assert err.startswith("silkline: ")
    assert line in err
    assert err.count("\n") == 1


async def test_the_engine_and_its_trust_may_be_chosen(tmp_path: Path, tls_site: tuple[str, Path]) -> None:
    url, certificate = tls_site
    socks = await SocksProxy("me", "s3cret").start()
    words = ["proxies", "test", "--proxy", socks.url("me:s3cret"), "--echo", url, "--fetcher", "curl"]
    code, out, err = await silkline(*words, cwd=tmp_path)
    assert (code, "tls: " in out) == (1, True), err
    for trust in (["--insecure"], ["--ca-file", str(certificate)]):
        code, out, err = await silkline(*words, *trust, cwd=tmp_path)
        assert (code, "1 of 1 proxies work" in out) == (0, True), out + err
    await socks.stop()


async def test_none_that_works_is_exit_code_1(site: str, tmp_path: Path) -> None:
    dead = await TestProxy().start()
    await dead.stop()
    code, out, _ = await silkline("proxies", "test", "--proxy", dead.url(), "--echo", site, cwd=tmp_path)
    assert (code, "0 of 1 proxies work" in out) == (1, True)


async def test_a_crawl_outlives_its_proxies_and_shows_no_password(tmp_path: Path) -> None:
    """One dies for good, the other for a while; no page uses a retry, and nothing is lost."""
    pages = {"/": "".join(f'<a href="/{n}">{n}</a>' for n in range(40))}
    with Site({**pages, **{f"/{n}": f"<title>{n}</title>" for n in range(40)}}) as shop:
        first, second = await TestProxy("me", "s3cret").start(), await TestProxy("me", "s3cret").start()
        (tmp_path / "proxies.txt").write_text(f"{first.url('me:s3cret')}\n{second.url('me:s3cret')}\n")
        words = ["crawl", f"{shop.url}/", "--follow-all", "--proxies", "proxies.txt", "--retries", "0"]
        crawl = asyncio.create_task(
            silkline(*words, "--log-file", "log", "-o", "out.jsonl", "--delay", "20ms", cwd=tmp_path)
        )
        await asyncio.wait_for(first.busy.wait(), 30)
        await first.stop()
        await second.stop()
        await asyncio.sleep(0.3)
        await second.start()
        code, out, err = await crawl
        await second.stop()
    assert code == 0, err
    assert len((tmp_path / "out.jsonl").read_text().splitlines()) == 41
    everything = out + err + (tmp_path / "log").read_text()
    assert "proxies works for" in everything
    assert "s3cret" not in everything
    code, out, _ = await silkline(
        "crawl", shop.url, "--proxies", "proxies.txt", "--show-config", cwd=tmp_path
    )
    assert "s3cret" not in out
    code, out, _ = await silkline(
        "crawl", shop.url, "--proxy", "http://me:s3cret@h:1", "--show-config", cwd=tmp_path
    )
    assert "http://***@h:1" in out
    assert "s3cret" not in out


async def test_a_single_fetch_goes_through_the_proxy_too(site: str, tmp_path: Path) -> None:
    proxy = await TestProxy("me", "s3cret").start()
    (tmp_path / "silkline.toml").write_text(f"proxy = [{proxy.url('me:s3cret')!r}]\n")
    code, out, err = await silkline("fetch", f"{site}/ip", "--debug-http", cwd=tmp_path)
    await proxy.stop()
    assert (code, "203.0.113.7" in out) == (0, True), err
    assert proxy.asked == [f"GET {site}/ip", f"GET {site}/robots.txt"]
    assert "s3cret" not in out + err
