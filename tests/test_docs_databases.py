"""docs/databases.md: what it shows can be typed, and gives what it says."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from silkline.demo import serve_in_thread
from tests.documents import snippet
from tests.mongodb.running import any_url, documents_in

DATABASES = "docs/databases.md"


def crawl(name: str, folder: Path, **replace: str) -> None:
    """Type a snippet's command, with the demo shop in place of the example's."""
    path = f"{Path(sys.executable).parent}:/usr/bin:/bin"
    with serve_in_thread() as shop:
        code = snippet(DATABASES, name).rstrip().replace("https://shop.example", shop)
        for old, new in replace.items():
            assert old in code
            code = code.replace(old, new)
        done = subprocess.run(
            ["bash", "-euc", f"{code} --allow-private"],
            cwd=folder,
            env={"PATH": path},
            capture_output=True,
            text=True,
            timeout=100,
        )
    assert done.returncode == 0, done.stderr


def test_a_crawl_fills_a_collection_of_mongodb(tmp_path: Path) -> None:
    crawl("mongodb", tmp_path, **{"mongodb://localhost:27017/shop": f"{any_url()}/silkline_test"})
    documents = list(documents_in(any_url(), "products").values())
    assert len(documents) > 10
    assert all(each["name"] and each["price"] and each["_fingerprint"] for each in documents)
