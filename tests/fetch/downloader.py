"""Fetch a URL into a file and tell how much memory that took: `downloader.py ENGINE URL FILE`."""

from __future__ import annotations

import asyncio
import json
import re
import sys
from pathlib import Path

from silkline.request import Request


def memory(key: str) -> int:
    """VmRSS or VmHWM of this process, in bytes."""
    match = re.search(rf"^{key}:\s+(\d+) kB", Path("/proc/self/status").read_text(), re.M)
    assert match
    return int(match[1]) * 1_024


def memory_from_here() -> int:
    """What it is now; the peak starts anew."""
    Path("/proc/self/clear_refs").write_text("5")
    return memory("VmRSS")


async def main(engine: str, url: str, name: str) -> None:
    from conftest import ENGINES

    fetcher = ENGINES[engine]()
    await fetcher.fetch(Request(f"{url}?small", save_to=f"{name}.small"))
    before = memory_from_here()
    response = await fetcher.fetch(Request(url, save_to=name))
    print(json.dumps({"growth": memory("VmHWM") - before, "status": response.status}))
    await fetcher.close()


asyncio.run(main(*sys.argv[1:]))
