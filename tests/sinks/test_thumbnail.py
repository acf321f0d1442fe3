"""Thumbnails: of whatever is called a picture, beside the file, and never at the expense of the crawl."""

from __future__ import annotations

import hashlib
import json
import struct
import time
import zlib
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from PIL import Image

from silkline import Crawler, Page
from silkline.errors import ConfigError, ItemError
from silkline.files import file_of, is_archive, is_folder
from silkline.sinks.choose import sinks_for
from silkline.sinks.darkroom import Darkroom
from silkline.sinks.folder import FilesSink, folder_sink
from silkline.sinks.part import part_sinks
from silkline.sinks.thumbnail import DECODERS, Box, thumbnails_of
from tests.site import Site

FORMATS = {kind: kind.removeprefix("image/").upper() for kind in DECODERS}


def picture(
    kind: str = "image/png", mode: str = "RGB", size: tuple[int, int] = (400, 200), **how: Any
) -> bytes:
    file = BytesIO()
    Image.new(mode, size, "red").save(file, FORMATS[kind], **how)
    return file.getvalue()


def bomb() -> bytes:
    """A PNG of a few bytes that says it has 100,000 x 100,000 pixels."""

    def chunk(name: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    head = struct.pack(">IIBBBBB", 100_000, 100_000, 8, 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(bytes(100)))


@pytest.mark.parametrize("kind", FORMATS)
def test_every_format_is_made_smaller_and_keeps_its_shape(kind: str) -> None:
    small = thumbnails_of(picture(kind), kind, [Box(64, 64), Box(20, 100), Box(900, 900)])
    assert [(each.box, each.ending) for each in small] == [
        ("64x64", ".jpg"),
        ("20x100", ".jpg"),
        ("900x900", ".jpg"),
    ]
    made = [Image.open(BytesIO(each.content)) for each in small]
    assert [each.size for each in made] == [(64, 32), (20, 10), (400, 200)]
    red, green, blue = made[0].convert("RGB").getpixel((30, 15))  # type: ignore[misc]
    assert red > 240
    assert green < 15
    assert blue < 15


def test_what_is_transparent_stays_so_and_what_lies_on_its_side_is_put_upright() -> None:
    (clear,) = thumbnails_of(picture(mode="RGBA"), "image/png", [Box(64, 64)])
    assert (clear.ending, Image.open(BytesIO(clear.content)).mode) == (".png", "RGBA")
    turned = Image.Exif()
    turned[0x0112] = 6
    (upright,) = thumbnails_of(picture("image/jpeg", exif=turned), "image/jpeg", [Box(50, 100)])
    assert Image.open(BytesIO(upright.content)).size == (50, 100)


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (bomb(), r"has 100,000 x 100,000 pixels, and more than 89,478,485 are not decoded"),
        (picture()[:-40], r"cannot be read as image/png: "),
        (b"\x89PNG\r\n\x1a\nnonsense", r"cannot be read as image/png: "),
    ],
)
def test_bombs_and_broken_pictures_are_one_line(body: bytes, said: str) -> None:
    with pytest.raises(ItemError, match=said) as caught:
        thumbnails_of(body, "image/png", [Box(64, 64)])
    assert "\n" not in str(caught.value)


def test_what_is_no_picture_has_no_thumbnail() -> None:
    assert thumbnails_of(b"%PDF-1.7", "application/pdf", [Box(64, 64)]) == []


def test_broken_pictures_and_bombs_are_kept_with_a_warning_and_the_crawl_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    bodies = {"/good": picture(), "/bomb": bomb(), "/broken": picture()[:-40], "/text": b"%PDF-1.7"}

    async def answer(request: web.Request) -> web.Response:
        return web.Response(body=bodies[request.path], content_type="image/png")

    home = "".join(f'<img src="{path}">' for path in bodies)
    with Site({"/": home, **dict.fromkeys(bodies, answer)}) as site:
        crawler = Crawler(
            "shop", outputs=["files/?thumbnails=64x64,8x8&types=image/*"], quiet=True, robots=False
        )

        @crawler.handler
        def follow(page: Page) -> Any:
            if page.kind == "html":
                yield page.follow("img")

        report = crawler.run(f"{site.url}/")
    assert (report.pages, report.dead) == (5, {})
    lines = [json.loads(line) for line in Path("files/manifest.jsonl").read_text().splitlines()]
    found = {line["url"].removeprefix(site.url): line for line in lines}
    assert set(found) == {"/good", "/bomb", "/broken"}
    assert [path for path, line in found.items() if "thumbnails" in line] == ["/good"]
    digest = hashlib.sha256(bodies["/good"]).hexdigest()
    small = {size: f"thumbnails/{size}/{digest[:2]}/{digest[2:]}.jpg" for size in ("64x64", "8x8")}
    assert found["/good"]["thumbnails"] == small
    assert [Image.open(Path("files", path)).size for path in small.values()] == [(64, 32), (8, 4)]
    said = sorted(report.troubles)
    assert len(said) == 2
    assert said[0].startswith(f"no thumbnail of {site.url}/bomb, which has 100,000 x 100,000 pixels")
    assert said[1].startswith(f"no thumbnail of {site.url}/broken, which cannot be read as image/png")
    assert all(line.endswith("; the file itself is kept") for line in said)


async def test_pictures_are_read_in_another_process_and_its_death_costs_one_thumbnail() -> None:
    large = picture("image/webp", size=(4_000, 4_000), method=0)
    room, before = Darkroom(), time.process_time()
    small = await room.thumbnails_of(large, "image/webp", [Box(64, 64)])
    assert [each.box for each in small] == ["64x64"]
    assert time.process_time() - before < 0.3, "it was made in this process"
    assert room._process is not None
    room._process.kill()
    with pytest.raises(ItemError, match="has ended the process that reads image/webp"):
        await room.thumbnails_of(large, "image/webp", [Box(64, 64)])
    assert len(await room.thumbnails_of(picture(), "image/png", [Box(8, 8)])) == 1
    room.close()


@pytest.mark.parametrize(
    ("output", "said"),
    [
        ("files/?thumbnails=big", "thumbnails='big' is no size in pixels, .*write thumbnails=256x256"),
        ("files/?thumbnails=64x64,99999x1", "up to 10000x10000"),
        ("files/?size=64x64", "there is no option 'size'; there are: thumbnails, types"),
        ("pictures", "its ending names no format; .*; a folder ends with /"),
        ("files/?types=image", r"types=image is no media type; write image/\* or image/png"),
        ("files/?types=", "write types= once"),
        ("files/?types=image/*&types=audio/*", "write types= once"),
    ],
)
def test_options_of_a_folder_that_cannot_be_are_one_line(output: str, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        sinks_for([output])


def test_a_folder_with_options_is_the_folder(tmp_path: Path) -> None:
    output = f"{tmp_path}/a b/?types=image/svg+xml,audio/%2A"
    assert is_folder(output)
    assert is_archive(output)
    assert file_of(output) == f"{tmp_path}/a b/manifest.jsonl"
    sink = folder_sink(output)
    assert sink.name == FilesSink(tmp_path / "a b").name
    assert sink._types == ("image/svg+xml", "audio/*")
    (part,) = part_sinks([output], "w1")
    assert part.name.endswith("/a b/manifest.w1.jsonl")
    with pytest.raises(ConfigError, match="is named twice"):
        sinks_for([output, f"{tmp_path}/a b/"])
