"""What tests of seeds read."""

from __future__ import annotations

from pathlib import Path

from silkline.request import Request
from silkline.seeds import SeedSource


def urls_of(seeds: SeedSource) -> list[str]:
    return [request.url for batch in seeds for request in batch]


def a_file(tmp_path: Path, data: bytes) -> Path:
    path = tmp_path / "urls.txt"
    path.write_bytes(data)
    return path


def requests_of(seeds: SeedSource) -> list[Request]:
    return [request for batch in seeds for request in batch]
