"""Bodies that go into files, over every engine: whole or not there, resumed where they broke."""

from __future__ import annotations

import asyncio
import gzip
import json
import os
from pathlib import Path
from typing import Any

import pytest
from file_server import FileServer
from raw_server import Serve, answer_of, then_close
from site_of_pages import Engine, OpenSite

from silkline.errors import (
    BlockedError,
    DecodeError,
    FetchTimeout,
    ProtocolError,
    SaveError,
    TooLargeError,
)
from silkline.request import Request

CONTENT = os.urandom(300_000)


@pytest.fixture
async def file(serve: Serve) -> FileServer:
    return FileServer(await serve(), CONTENT)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory: names are taken in it."""
    inside = tmp_path / "work"
    inside.mkdir()
    monkeypatch.chdir(inside)
    return inside


def content(name: str) -> bytes:
    return Path(name).read_bytes()


def put(name: str, data: bytes) -> None:
    Path(name).write_bytes(data)


def left(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


async def test_a_body_goes_to_its_file_and_not_into_memory(open_site: OpenSite, folder: Path) -> None:
    site = await open_site({"/": (200, {"X-Some": "header"}, CONTENT)})
    response = await site.fetch(save_to="a/b.bin")
    assert (response.status, response.body, response.header("x-some")) == (200, b"", "header")
    assert response.saved_to == str(folder / "a/b.bin")
    assert (folder / "a/b.bin").read_bytes() == CONTENT
    assert left(folder) == ["a/b.bin"]


async def test_an_existing_file_is_replaced_when_the_new_one_is_complete(
    file: FileServer, engine: Engine, folder: Path
) -> None:
    put("f", b"before")
    file.etag, file.breaks = None, [100]
    with pytest.raises(ProtocolError):
        await engine().fetch(Request(file.url, save_to="f"))
    assert content("f") == b"before"
    await engine().fetch(Request(file.url, save_to="f"))
    assert content("f") == CONTENT
    assert left(folder) == ["f"]


@pytest.mark.parametrize("status", [204, 404, 503])
async def test_only_a_success_is_saved(open_site: OpenSite, folder: Path, status: int) -> None:
    body = b"" if status == 204 else b"sorry"
    site = await open_site({"/": (status, {}, body)})
    response = await site.fetch(save_to="f")
    assert (response.status, response.body) == (status, body)
    assert left(folder) == (["f"] if status == 204 else [])
    assert (response.saved_to is not None) == (status == 204)


async def test_a_redirect_is_followed_to_the_file(open_site: OpenSite, folder: Path) -> None:
    site = await open_site({"/": (302, {"Location": "/f"}, b"moved"), "/f": (200, {}, b"data")})
    response = await site.fetch(save_to="f")
    assert (response.url, content("f")) == (site.url("/f"), b"data")
    assert left(folder) == ["f"]


async def test_a_coded_body_is_saved_decoded(serve: Serve, engine: Engine, folder: Path) -> None:
    coded = gzip.compress(CONTENT)
    server = await serve({"/": answer_of(200, {"Content-Encoding": "gzip", "ETag": '"x"'}, coded)})
    await engine().fetch(Request(server.url(), save_to="f"))
    assert content("f") == CONTENT
    assert server.header("accept-encoding") == "identity"
    server.routes["/"] = answer_of(200, {"Content-Encoding": "gzip"}, coded[:-9])
    with pytest.raises(DecodeError):
        await engine().fetch(Request(server.url(), save_to="g"))
    assert left(folder) == ["f"]


async def test_a_broken_transfer_is_resumed_at_once(file: FileServer, engine: Engine, folder: Path) -> None:
    file.breaks = [100_000, 50_000]
    response = await engine().fetch(Request(file.url, save_to="f"))
    assert (response.status, content("f")) == (200, CONTENT)
    assert file.ranges == [None, "bytes=100000-", "bytes=150000-"]


async def test_a_transfer_that_always_breaks_ends(file: FileServer, engine: Engine, folder: Path) -> None:
    file.breaks = [1_000] * 100
    with pytest.raises(ProtocolError):
        await engine().fetch(Request(file.url, save_to="f"))
    assert len(file.ranges) == 6


async def test_a_transfer_is_resumed_by_the_next_fetch(
    file: FileServer, engine: Engine, folder: Path
) -> None:
    file.breaks = [100_000, 0]
    with pytest.raises(ProtocolError):
        await engine().fetch(Request(file.url, save_to="f"))
    assert left(folder) == ["f.part", "f.part.json"]
    response = await engine().fetch(Request(file.url, save_to="f"))
    assert (response.status, content("f")) == (200, CONTENT)
    assert file.ranges == [None, "bytes=100000-", "bytes=100000-"]
    assert file.conditions == [None, '"v1"', '"v1"']
    assert left(folder) == ["f"]


async def test_a_file_that_changed_in_between_is_fetched_anew(
    file: FileServer, engine: Engine, folder: Path
) -> None:
    file.breaks = [100_000, 0]
    with pytest.raises(ProtocolError):
        await engine().fetch(Request(file.url, save_to="f"))
    file.content, file.etag = os.urandom(200_000), '"v2"'
    await engine().fetch(Request(file.url, save_to="f"))
    assert content("f") == file.content
    assert file.ranges[-1] == "bytes=100000-"


async def test_a_server_that_forgets_if_range_is_found_out_by_its_etag(
    file: FileServer, engine: Engine, folder: Path
) -> None:
    file.breaks = [100_000, 0]
    with pytest.raises(ProtocolError):
        await engine().fetch(Request(file.url, save_to="f"))
    changed = os.urandom(len(CONTENT))
    tail = 'HTTP/1.1 206 P\r\nETag: "v2"\r\nContent-Range: bytes 100000-299999/300000\r\n'
    answers = [
        tail.encode() + b"Content-Length: 200000\r\n\r\n" + changed[100_000:],
        answer_of(200, {"ETag": '"v2"'}, changed),
    ]

    async def next_answer(writer: asyncio.StreamWriter) -> None:
        writer.write(answers.pop(0))

    file.server.routes["/file"] = next_answer
    await engine().fetch(Request(file.url, save_to="f"))
    assert content("f") == changed


@pytest.mark.parametrize(
    ("etag", "modified", "resumed"),
    [
        ('W/"v1"', None, False),
        ("v1", None, False),
        (None, None, False),
        (None, "Mon, 01 Jan 2024 11:00:00 GMT", True),
        (None, "Mon, 01 Jan 2024 11:59:30 GMT", False),
        ('W/"v1"', "Mon, 01 Jan 2024 11:00:00 GMT", False),
    ],
)
async def test_only_a_strong_validator_is_trusted(
    file: FileServer, engine: Engine, folder: Path, etag: str | None, modified: str | None, resumed: bool
) -> None:
    file.etag, file.modified, file.breaks = etag, modified, [100_000, 0]
    with pytest.raises(ProtocolError):
        await engine().fetch(Request(file.url, save_to="f"))
    file.breaks = []
    await engine().fetch(Request(file.url, save_to="f"))
    assert content("f") == CONTENT
    assert (file.ranges[-1] is not None) == resumed
    assert left(folder) == ["f"]


async def test_what_came_from_another_url_is_not_continued(
    file: FileServer, engine: Engine, folder: Path
) -> None:
    file.breaks = [100_000, 0]
    with pytest.raises(ProtocolError):
        await engine().fetch(Request(file.url, save_to="f"))
    other = FileServer(file.server, b"other", "/other")
    await engine().fetch(Request(other.url, save_to="f"))
    assert (content("f"), other.ranges) == (b"other", [None])


async def test_a_complete_part_is_only_given_its_name(file: FileServer, engine: Engine, folder: Path) -> None:
    """As where a process died between the last byte and the rename."""
    file.breaks = [100_000, 0]
    with pytest.raises(ProtocolError):
        await engine().fetch(Request(file.url, save_to="f"))
    put("f.part", CONTENT)
    await engine().fetch(Request(file.url, save_to="f"))
    assert (content("f"), file.ranges[-1]) == (CONTENT, "bytes=300000-")


async def test_after_another_boot_only_what_was_synced_is_trusted(
    file: FileServer, engine: Engine, folder: Path
) -> None:
    file.breaks = [100_000, 0]
    with pytest.raises(ProtocolError):
        await engine().fetch(Request(file.url, save_to="f"))
    said = json.loads(content("f.part.json"))
    put("f.part.json", json.dumps({**said, "boot": "another", "synced": 60_000}).encode())
    put("f.part", CONTENT[:60_000] + bytes(40_000))
    await engine().fetch(Request(file.url, save_to="f"))
    assert (content("f"), file.ranges[-1]) == (CONTENT, "bytes=60000-")


@pytest.mark.parametrize(
    "lie",
    [
        "Content-Range: bytes 0-299999/300000\r\nContent-Length: 300000\r\n",
        "Content-Range: bytes 100000-299999/999999\r\nContent-Length: 200000\r\n",
        "Content-Range: bytes */300000\r\nContent-Length: 200000\r\n",
        "Content-Range: bytes 100000-100009/300000\r\nContent-Length: 200000\r\n",
        "Content-Length: 200000\r\n",
    ],
)
async def test_a_range_that_does_not_fit_is_not_glued_on(
    file: FileServer, engine: Engine, folder: Path, lie: str
) -> None:
    file.breaks = [100_000, 0]
    with pytest.raises(ProtocolError):
        await engine().fetch(Request(file.url, save_to="f"))
    honest = file.script

    async def liar(writer: asyncio.StreamWriter) -> None:
        if file.server.header("range") is None:
            return await honest(writer)
        writer.write(f"HTTP/1.1 206 P\r\n{lie}\r\n".encode() + bytes(300_000))
        await writer.drain()
        writer.close()
        return None

    file.server.routes["/file"] = liar
    await engine().fetch(Request(file.url, save_to="f"))
    assert content("f") == CONTENT


async def test_a_server_that_lies_about_the_length_leaves_no_file(
    serve: Serve, engine: Engine, folder: Path
) -> None:
    head = b'HTTP/1.1 200 OK\r\nETag: "x"\r\nContent-Length: 1000\r\n\r\n'
    server = await serve({"/": then_close(head + b"x" * 900)})
    with pytest.raises(ProtocolError):
        await engine().fetch(Request(server.url(), save_to="f"))
    assert "f" not in left(folder)
    assert len(server.heads) <= 7


async def test_the_limit_of_a_file_is_its_own(file: FileServer, engine: Engine, folder: Path) -> None:
    for limit, extra in ((299_999, ""), (1_000, "Content-Encoding: identity")):
        file.extra = extra
        with pytest.raises(TooLargeError, match=rf"{limit} bytes \(max_save\)"):
            await engine(max_save=limit).fetch(Request(file.url, save_to="f"))
    assert left(folder) == []
    await engine(max_save=300_000, max_body=10).fetch(Request(file.url, save_to="f"))
    assert content("f") == CONTENT


async def test_a_bomb_stops_at_the_limit_of_a_file(serve: Serve, engine: Engine, folder: Path) -> None:
    bomb = gzip.compress(bytes(50_000_000))
    server = await serve({"/": answer_of(200, {"Content-Encoding": "gzip"}, bomb)})
    with pytest.raises(TooLargeError):
        await engine(max_save=1_000_000).fetch(Request(server.url(), save_to="f"))
    assert left(folder) == []


async def test_a_time_limit_keeps_what_came(file: FileServer, engine: Engine, folder: Path) -> None:
    async def stall(writer: asyncio.StreamWriter) -> None:
        head = 'HTTP/1.1 200 OK\r\nETag: "v1"\r\nContent-Length: 300000\r\n\r\n'
        writer.write(head.encode() + CONTENT[:100_000])
        await writer.drain()
        await asyncio.Event().wait()

    honest, file.server.routes["/file"] = file.script, stall
    with pytest.raises(FetchTimeout):
        await engine(read_timeout=0.5).fetch(Request(file.url, save_to="f"))
    file.server.routes["/file"] = honest
    await engine().fetch(Request(file.url, save_to="f"))
    assert (content("f"), file.ranges) == (CONTENT, ["bytes=100000-"])


async def test_a_file_has_a_time_limit_of_its_own(serve: Serve, engine: Engine, folder: Path) -> None:
    async def slow(writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\n")
        for _ in range(8):
            await asyncio.sleep(0.1)
            writer.write(b"x")

    server = await serve({"/": slow})
    fetcher = engine(timeout=0.4, save_timeout=20.0)
    assert (await fetcher.fetch(Request(server.url(), save_to="f"))).saved_to
    with pytest.raises(FetchTimeout):
        await fetcher.fetch(Request(server.url()))
    with pytest.raises(FetchTimeout, match=r"within 0\.3 s"):
        await engine(save_timeout=0.3).fetch(Request(server.url(), save_to="g"))


async def test_two_fetches_of_one_file_do_not_mix(file: FileServer, engine: Engine, folder: Path) -> None:
    fetcher = engine()
    await asyncio.gather(*(fetcher.fetch(Request(f"{file.url}", save_to="f")) for _ in range(5)))
    assert content("f") == CONTENT
    assert left(folder) == ["f"]


@pytest.mark.parametrize("name", ["../f", "a/../../f", "link/f", "", "a/", ".", "..", "a\0b"])
async def test_a_relative_name_does_not_lead_out_of_the_folder(
    file: FileServer, engine: Engine, folder: Path, name: str
) -> None:
    (folder / "link").symlink_to("/tmp")
    with pytest.raises(SaveError) as caught:
        await engine().fetch(Request(file.url, save_to=name))
    assert "\n" not in str(caught.value)
    assert file.ranges == []


async def test_files_dir_keeps_absolute_paths_in_it_too(
    file: FileServer, engine: Engine, folder: Path, tmp_path: Path
) -> None:
    outside, inside = tmp_path / "f", tmp_path / "files" / "f"
    await engine().fetch(Request(file.url, save_to=str(outside)))
    assert outside.read_bytes() == CONTENT
    fetcher = engine(files_dir=str(tmp_path / "files"))
    with pytest.raises(SaveError, match="leads out of the folder"):
        await fetcher.fetch(Request(file.url, save_to=str(outside)))
    assert (await fetcher.fetch(Request(file.url, save_to="f"))).saved_to == str(inside)
    await fetcher.fetch(Request(file.url, save_to=str(inside)))


async def test_what_the_system_says_is_one_line(file: FileServer, engine: Engine, folder: Path) -> None:
    (folder / "taken").mkdir()
    put("plain", b"x")
    for name in ("taken", "plain/f", "x" * 300):
        with pytest.raises(SaveError, match=r"^cannot save to [^\n]*$"):
            await engine().fetch(Request(file.url, save_to=name))
    assert left(folder) == ["plain"]


async def test_a_full_disk_is_the_pages_own_failure_and_leaves_nothing(
    file: FileServer, engine: Engine, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = os.write

    def full(handle: int, data: Any) -> int:
        if os.fstat(handle).st_size > 50_000:
            raise OSError(28, "No space left on device")
        return real(handle, data)

    monkeypatch.setattr("silkline.fetch.partial.os.write", full)
    with pytest.raises(SaveError, match="No space left on device"):
        await engine().fetch(Request(file.url, save_to="f"))
    monkeypatch.undo()
    assert left(folder) == []


async def test_nothing_is_opened_for_a_url_that_is_blocked(engine: Engine, folder: Path) -> None:
    with pytest.raises(BlockedError):
        await engine().fetch(Request("ftp://h.test/", save_to="f"))
    assert left(folder) == []
