"""What --debug-http prints and --har records, over every engine."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import signal
import ssl
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import msgspec
import pytest
from har_schema import entries
from hypothesis import given
from hypothesis import strategies as st
from raw_server import Serve, answer_of, then_reset
from site_of_pages import Engine

from silkline.errors import ConfigError, ConnectError, FetchError, ProtocolError
from silkline.fetch.options import FetchOptions
from silkline.fetch.wire.exchange import Exchange, wire_hop
from silkline.fetch.wire.har import HarFile
from silkline.fetch.wire.redact import redacted_fields, redacted_url
from silkline.fetch.wire.show import printer
from silkline.request import Request
from silkline.response import Response

DEFAULTS = FetchOptions().headers
SECRET = "s3cret"


def watched(engine: Engine, **options: Any) -> tuple[Any, list[Exchange]]:
    seen: list[Exchange] = []
    return engine(hops=[wire_hop([seen.append], DEFAULTS)], **options), seen


async def test_each_hop_is_an_exchange_with_what_was_really_sent(serve: Serve, engine: Engine) -> None:
    server = await serve({"/end": answer_of(200, {"X-A": "1", "x-a": "2"}, b"home")})
    server.routes["/"] = answer_of(302, {"Location": "/end"}, b"moved")
    fetcher, seen = watched(engine)
    await fetcher.fetch(Request(server.url(), headers={"X-Mine": "yes"}))
    assert [(e.url, e.response and e.response.status) for e in seen] == [
        (server.url(), 302),
        (server.url("/end"), 200),
    ]
    assert [field for field in seen[1].received if field[0].lower() == "x-a"] == [("X-A", "1"), ("x-a", "2")]
    for number, exchange in enumerate(seen):
        for name, value in exchange.sent:
            assert server.header(name, number) == value


async def test_what_was_sent_along_with_a_body_and_a_password_is_seen(serve: Serve, engine: Engine) -> None:
    server = await serve({"/": answer_of(200, {}, b"")})
    fetcher, seen = watched(engine)
    url = server.url().replace("://", f"://ann:{SECRET}@")
    await fetcher.fetch(Request(url, method="POST", body=b"x=1"))
    assert seen[0].url == server.url()
    for name in ("Authorization", "Content-Length"):
        assert dict(seen[0].sent)[name] == server.header(name)


async def test_a_failure_is_seen_too(serve: Serve, engine: Engine) -> None:
    server = await serve({"/": then_reset(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nx")})
    fetcher, seen = watched(engine)
    with pytest.raises(ProtocolError):
        await fetcher.fetch(Request(server.url()))
    assert (seen[0].response, type(seen[0].error)) == (None, ProtocolError)


def exchange_of(**changes: Any) -> Exchange:
    request = Request("http://h.test/a?access_token=s3cret&b=1", method="POST", body=b"password=s3cret")
    headers = (
        (b"Content-Type", b"text/html"),
        (b"Set-Cookie", b"sid=s3cret; Path=/; HttpOnly"),
        (b"set-cookie", b"other=s3cret"),
        (b"Location", b"https://ann:s3cret@h.test/?x=1&api_key=s3cret#token=s3cret"),
        (b"X-Evil", b"\x1b[2Jgone"),
    )
    sent = (
        ("Host", "h.test"),
        ("authorization", "Bearer s3cret"),
        ("AUTHORIZATION", "s3cret"),
        ("Proxy-Authorization", "Basic s3cret"),
        ("Cookie", "a=s3cret; b=s3cret"),
        ("X-Api-Key", "s3cret"),
        ("X-Auth-Token", "s3cret"),
        ("X-CSRF-Token", "s3cret"),
        ("Referer", "http://ann:s3cret@h.test/"),
        ("X-Other", "shown"),
    )
    response = Response("http://h.test/a", 200, headers, b"home", request, peer="[2001:db8::1]:443")
    made = Exchange(request, request.url, sent, 1_800_000_000.0, 0.5, response)
    return msgspec.structs.replace(made, **changes)


def test_credentials_are_printed_only_when_that_is_asked_for() -> None:
    for secrets in (False, True):
        said: list[str] = []
        printer(said.append, secrets=secrets)(exchange_of())
        text = "".join(said)
        assert (SECRET in text) == secrets
        assert "> X-Other: shown\n" in text
        assert "< X-Evil: \\x1b[2Jgone\n" in text
        assert "[2001:db8::1]:443" in text
    assert "> Cookie: a=s3cret; b=s3cret\n" in text


def test_the_names_of_what_is_hidden_stay() -> None:
    fields = dict(redacted_fields(exchange_of().sent))
    assert fields["authorization"] == "Bearer ***"
    assert fields["Cookie"] == "a=***; b=***"
    assert dict(redacted_fields(exchange_of().received))["Set-Cookie"] == "sid=***; Path=/; HttpOnly"
    assert (
        redacted_url("http://u:p@h.test/a@b?q=x@y&sig=1&page=2")
        == "http://***@h.test/a@b?q=x@y&sig=***&page=2"
    )


@given(st.text(alphabet="ab:@/?#&=;% ", max_size=30))
def test_no_userinfo_of_a_url_is_ever_shown(rest: str) -> None:
    assert SECRET not in redacted_url(f"http://ann:{SECRET}@h.test/{rest}")


def test_a_har_file_is_valid_after_every_exchange(tmp_path: Path) -> None:
    har = HarFile(str(tmp_path / "a" / "out.har"), print)
    path = tmp_path / "a" / "out.har"
    assert entries(path) == []
    binary = Response("http://h.test/", 200, (), b"\xff\x00", Request("http://h.test/"))
    failure = ConnectError("cannot reach http://ann:s3cret@h.test/")
    seen = [exchange_of(), exchange_of(response=None, error=failure), exchange_of(response=binary)]
    for number, exchange in enumerate(seen, 1):
        har.watch(exchange)
        assert len(entries(path)) == number
    har.close()
    first, failed, last = entries(path)
    assert SECRET not in path.read_text()
    answer = first.response
    assert (answer.status, answer.statusText, answer.content.text) == (200, "OK", "home")
    assert (first.serverIPAddress, first.connection) == ("2001:db8::1", "443")
    assert [pair.name for pair in first.request.queryString] == ["access_token", "b"]
    assert [pair.name for pair in first.response.cookies] == ["sid", "other"]
    assert failed.response.status == 0
    said = json.loads(path.read_text())["log"]["entries"][1]["response"]["_error"]
    assert said == "cannot reach http://***@h.test/"
    assert base64.b64decode(str(last.response.content.text)) == b"\xff\x00"
    assert path.stat().st_mode & 0o077 == 0


def test_a_har_file_holds_credentials_when_that_is_asked_for(tmp_path: Path) -> None:
    har = HarFile(str(tmp_path / "out.har"), print, secrets=True)
    har.watch(exchange_of())
    har.close()
    (entry,) = entries(tmp_path / "out.har")
    assert entry.request.postData != msgspec.UNSET
    assert entry.request.postData.text == "password=s3cret"  # type: ignore[union-attr]


@pytest.mark.parametrize("torn", [0, 1, 3, 4, 60, 70_000])
def test_half_a_line_that_a_kill_left_is_cut_off(tmp_path: Path, torn: int) -> None:
    path = tmp_path / "out.har"
    har = HarFile(str(path), print)
    har.watch(exchange_of())
    big = Response("http://h.test/", 200, (), b"x" * 100_000, Request("http://h.test/"))
    har.watch(exchange_of(response=big))
    har.close()
    os.truncate(path, path.stat().st_size - torn)
    again = HarFile(str(path), print)
    again.watch(exchange_of())
    again.close()
    assert len(entries(path)) == (3 if torn <= 4 else 2)


FULL = """
import resource, sys
sys.path.insert(0, sys.argv[1])
from test_wire import exchange_of
from silkline.fetch.wire.har import HarFile
from silkline.request import Request
from silkline.response import Response
har = HarFile(sys.argv[2], print)
har.watch(exchange_of())
resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, resource.RLIM_INFINITY))
for body in (b"x" * 30_000, b"small", b"y" * 30_000):
    har.watch(exchange_of(response=Response("http://h.test/", 200, (), body, Request("http://h.test/"))))
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
har.watch(exchange_of())
"""


def test_an_exchange_that_finds_no_space_is_cut_off_and_told(tmp_path: Path) -> None:
    """A file that may not grow takes a part of a write first, as a full disk does."""
    path = tmp_path / "out.har"
    command = [sys.executable, "-c", FULL, str(Path(__file__).parent), str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout == f"{path} cannot be written: File too large; exchanges are lost\n"
    assert [str(entry.response.content.text) for entry in entries(path)] == ["home", "small", "home"]


def test_another_programs_file_is_not_touched(tmp_path: Path) -> None:
    path = tmp_path / "notes.har"
    path.write_text('{"log": {}}')
    with pytest.raises(ConfigError, match="no HAR file of silkline's"):
        HarFile(str(path), print)
    assert path.read_text() == '{"log": {}}'
    with pytest.raises(ConfigError, match="cannot be written"):
        HarFile(str(tmp_path), print)


WRITER = """
import sys
sys.path.insert(0, sys.argv[1])
from test_wire import exchange_of
from silkline.fetch.wire.har import HarFile
har = HarFile(sys.argv[2], print)
print("writing", flush=True)
while True:
    har.watch(exchange_of())
"""


def test_a_killed_run_leaves_a_file_that_opens(tmp_path: Path) -> None:
    """Several write to it at the same time, and die. A kill may come within a write, at the end of a page of
    memory: then the file is whole again after the next exchange."""
    path = tmp_path / "out.har"
    count = 0
    for _ in range(3):
        command = [sys.executable, "-c", WRITER, str(Path(__file__).parent), str(path)]
        writers = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
        for writer in writers:
            assert writer.stdout is not None
            writer.stdout.readline()
        time.sleep(0.1)
        for writer in writers:
            writer.send_signal(signal.SIGKILL)
            writer.communicate()
        try:
            entries(path)
        except ValueError:
            HarFile(str(path), print).watch(exchange_of())
        now = len(entries(path))
        assert now > count
        count = now


async def test_a_cancelled_fetch_is_seen(serve: Serve, engine: Engine) -> None:
    async def wait(writer: asyncio.StreamWriter) -> None:
        await asyncio.Event().wait()

    server = await serve({"/": wait})
    fetcher, seen = watched(engine)
    task = asyncio.create_task(fetcher.fetch(Request(server.url())))
    await server.asked.wait()
    task.cancel()
    with pytest.raises((asyncio.CancelledError, FetchError)):
        await task
    assert (seen[0].response, seen[0].error) == (None, None)


async def test_the_version_of_tls_is_told(serve: Serve, engine: Engine, tls_context: ssl.SSLContext) -> None:
    tls_context.maximum_version = ssl.TLSVersion.TLSv1_2
    server = await serve({"/": answer_of(200, {}, b"")}, tls=tls_context)
    plain = await serve({"/": answer_of(200, {}, b"")})
    fetcher = engine(verify=False, watched=True)
    for _ in range(2):  # on a new connection and on the same again
        assert (await fetcher.fetch(Request(server.url()))).tls == "TLSv1.2"
    assert (await fetcher.fetch(Request(plain.url()))).tls == ""
    assert server.connections == 1
