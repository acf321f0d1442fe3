"""Small versions of pictures, made with Pillow of what anybody may have sent."""

from __future__ import annotations

import re
from collections.abc import Sequence
from io import BytesIO

import msgspec
from PIL import (
    AvifImagePlugin,
    BmpImagePlugin,
    GifImagePlugin,
    Image,
    ImageFile,
    ImageOps,
    JpegImagePlugin,
    PngImagePlugin,
    TiffImagePlugin,
    WebPImagePlugin,
)

from silkline.errors import ConfigError, ItemError

DECODERS: dict[str, type[ImageFile.ImageFile]] = {
    "image/jpeg": JpegImagePlugin.JpegImageFile,
    "image/png": PngImagePlugin.PngImageFile,
    "image/gif": GifImagePlugin.GifImageFile,
    "image/webp": WebPImagePlugin.WebPImageFile,
    "image/avif": AvifImagePlugin.AvifImageFile,
    "image/bmp": BmpImagePlugin.BmpImageFile,
    "image/tiff": TiffImagePlugin.TiffImageFile,
}
"""By the media type that the first bytes show. Pillow knows more, some of which start other programs."""

LARGEST = 10_000
ORIENTATION = 0x0112
SIDEWAYS = range(5, 9)


class Box(msgspec.Struct, frozen=True):
    """What a thumbnail fits into, in pixels."""

    width: int
    height: int

    def __str__(self) -> str:
        return f"{self.width}x{self.height}"


class Thumbnail(msgspec.Struct, frozen=True):
    """box: as it was asked for. ending: ".jpg", or ".png" where it has transparent places."""

    box: str
    ending: str
    content: bytes


def box_of(output: str, text: str) -> Box:
    """Raises ConfigError. output: whose option it is, for messages."""
    match = re.fullmatch(r"([1-9]\d{0,4})x([1-9]\d{0,4})", text)
    if match is None or max(int(match[1]), int(match[2])) > LARGEST:
        raise ConfigError(
            f"output {output!r}: thumbnails={text!r} is no size in pixels, up to {LARGEST}x{LARGEST}; "
            "write thumbnails=256x256"
        )
    return Box(int(match[1]), int(match[2]))


def thumbnails_of(body: bytes, kind: str, boxes: Sequence[Box]) -> list[Thumbnail]:
    """One for each box, never larger than the picture; none where the type is no picture's. Takes long.

    Raises ItemError for a picture that cannot be read, or has more pixels than `Image.MAX_IMAGE_PIXELS`.
    """
    if kind not in DECODERS:
        return []
    try:
        with DECODERS[kind](BytesIO(body)) as picture:
            _check_size(picture)
            small = _reduced(picture, kind, boxes)
        return [_fitted(small, box) for box in boxes]
    except ItemError:
        raise
    except Exception as error:  # decoders raise whatever the bytes lead them to
        line = " ".join(str(error).split())[:200] or type(error).__name__
        raise ItemError(f"cannot be read as {kind}: {line}") from error


def _check_size(picture: Image.Image) -> None:
    """Before anything is decoded: a few kilobytes may stand for gigabytes."""
    most = Image.MAX_IMAGE_PIXELS
    if most is not None and picture.width * picture.height > most:
        raise ItemError(
            f"has {picture.width:,} x {picture.height:,} pixels, and more than {most:,} are not decoded"
        )


def _reduced(picture: Image.Image, kind: str, boxes: Sequence[Box]) -> Image.Image:
    """Upright, with real colours, and as large as the boxes need it."""
    mode = "RGBA" if picture.has_transparency_data else "RGB"
    if kind != "image/jpeg":  # which is read at a fraction of its size
        picture = picture.convert(mode)
    room = (max(box.width for box in boxes), max(box.height for box in boxes))
    if picture.getexif().get(ORIENTATION) in SIDEWAYS:
        room = room[::-1]
    picture.thumbnail(room)
    return ImageOps.exif_transpose(picture).convert(mode)


def _fitted(picture: Image.Image, box: Box) -> Thumbnail:
    small = picture.copy()
    small.thumbnail((box.width, box.height))
    file = BytesIO()
    if small.mode == "RGBA":
        small.save(file, "PNG")
    else:
        small.save(file, "JPEG", quality=85)
    return Thumbnail(str(box), ".png" if small.mode == "RGBA" else ".jpg", file.getvalue())
