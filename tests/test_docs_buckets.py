"""docs/buckets.md: its command runs on a real server, and what it says is there is there."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

from silkline.demo import serve_in_thread
from tests.documents import blocks, snippet
from tests.objects.running import S3Server
from tests.test_docs import silkline

BUCKETS = "docs/buckets.md"


def test_the_command_fills_the_bucket_as_shown(tmp_path: Path) -> None:
    server = S3Server(tmp_path / "bucket").start()
    try:
        with serve_in_thread() as shop:
            url = server.url("items.jsonl.gz", part_bytes="64MB")
            command = snippet(BUCKETS, "bucket").replace("\\\n", " ")
            command = command.replace("https://shop.example/", shop)
            words = shlex.split(command)[1:]
            words[-1] = url
            done = silkline(*words, cwd=tmp_path)
            assert done.returncode == 0, done.stderr
            assert "s3cret" not in done.stderr + done.stdout
        [shown] = [json.loads(block.code) for block in blocks(BUCKETS) if block.language == "json"]
        manifest = json.loads(server.content("items.jsonl.gz.manifest.json"))
        assert manifest.keys() == shown.keys()
        assert manifest["parts"][0].keys() == shown["parts"][0].keys()
        assert [part["name"] for part in manifest["parts"]] == ["items-000001.jsonl.gz"]
        assert all(row["price"] for row in server.items("items.jsonl.gz.manifest.json"))
    finally:
        server.kill()
