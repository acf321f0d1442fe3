"""Objects in a bucket: what the manifest names holds each item once, whatever died when."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from silkline.errors import ConfigError, SinkAwayError, SinkError
from silkline.outcome import Item
from silkline.sinks.choose import discard_owned, keyed_sinks_for, objects_sink, sinks_for
from silkline.sinks.objects import ObjectsSink
from silkline.sinks.part import part_sinks
from tests.crash.launcher import Launcher
from tests.objects.running import S3Server
from tests.site import Site


@pytest.fixture
def bucket(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[S3Server]:
    monkeypatch.chdir(tmp_path)
    server = S3Server(tmp_path / "bucket").start()
    yield server
    server.kill()


def items(sink: ObjectsSink, *numbers: int) -> list[Item]:
    return [Item(n, 0, {sink.name: sink.encode({"n": n, "text": "x" * 100})}) for n in numbers]


def numbers(found: list[Any]) -> list[int]:
    return [row["n"] for row in found]


@pytest.mark.parametrize("ending", [".jsonl", ".jsonl.gz"])
def test_parts_are_uploaded_when_they_are_large_enough_and_at_the_end(bucket: S3Server, ending: str) -> None:
    sink = objects_sink(bucket.url(f"a/b/items{ending}", part_bytes="1K"))
    sink.open(None)
    position: str | None = sink.write((), None)
    for start in range(0, 600, 60):
        position = sink.write(items(sink, *range(start, start + 60)), position)
    before = len(bucket.names())
    position = sink.finish(position)
    sink.close()
    names = bucket.names()
    assert before >= 2
    assert names[0] == f"a/b/items-000001{ending}"
    assert names[-1] == f"a/b/items{ending}.manifest.json"
    assert numbers(bucket.items(f"a/b/items{ending}.manifest.json")) == list(range(600))
    assert sink.finish(position) == position


def test_a_large_part_is_uploaded_in_several_pieces(bucket: S3Server) -> None:
    sink = objects_sink(bucket.url("items.jsonl"))
    sink.open(None)
    big = [
        Item(1, n, {sink.name: sink.encode({"n": n, "text": os.urandom(2_000_000).hex()})}) for n in range(4)
    ]
    sink.finish(sink.write(big, None))
    assert len(bucket.content("items-000001.jsonl")) > 15_000_000
    assert numbers(bucket.items("items.jsonl.manifest.json")) == [0, 1, 2, 3]


def test_a_job_goes_on_with_a_new_part_after_it_was_finished(bucket: S3Server) -> None:
    url, position = bucket.url("items.jsonl.gz"), None
    for start in (0, 10, 20):
        sink = objects_sink(url)
        sink.open(position)
        position = sink.finish(sink.write(items(sink, *range(start, start + 10)), position))
        sink.close()
    assert len(bucket.names()) == 4
    assert numbers(bucket.items("items.jsonl.gz.manifest.json")) == list(range(30))


def test_what_was_not_committed_is_not_there(bucket: S3Server) -> None:
    url = bucket.url("items.jsonl.gz", part_bytes="1K")
    sink = objects_sink(url)
    sink.open(None)
    first = sink.write(items(sink, *range(100)), None)
    sink.write(items(sink, *range(100, 200)), first)  # uploads the first part; its commit never comes
    sink.close()
    again = objects_sink(url)
    again.open(first)
    again.finish(again.write(items(again, 300), first))
    assert numbers(bucket.items("items.jsonl.gz.manifest.json")) == [*range(100), 300]


def test_a_bucket_that_is_away_holds_nothing_up_until_the_end(
    bucket: S3Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    from datetime import timedelta

    from silkline.sinks import bucket as module

    monkeypatch.setattr(module, "PATIENCE", timedelta(seconds=0.2))
    sink = objects_sink(bucket.url("items.jsonl.gz", part_bytes="1K"))
    sink.open(None)
    position: str | None = None
    bucket.kill()
    for start in range(0, 200, 20):
        position = sink.write(items(sink, *range(start, start + 20)), position)
    with pytest.raises(SinkError, match=r"the items are kept in .*run the same command again"):
        sink.finish(position)
    bucket.start()
    sink.finish(position)
    assert numbers(bucket.items("items.jsonl.gz.manifest.json")) == list(range(200))


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ({"key": "wrong"}, "refuses access"),
        ({"bucket": "none"}, "make the bucket first"),
        ({"fancy": "1"}, "fancy"),
        ({"part_bytes": "x"}, "part_bytes"),
        ({"name": "items"}, "name the bucket and the objects"),
        ({"name": "items.txt"}, "its ending names no format"),
    ],
)
def test_what_cannot_be_used_is_one_clear_line(bucket: S3Server, url: dict[str, str], said: str) -> None:
    with pytest.raises(ConfigError, match=said) as caught:
        objects_sink(bucket.url(**{"name": "items.jsonl", **url})).open(None)
    assert "\n" not in str(caught.value)
    assert "s3cret" not in str(caught.value)


def test_a_bucket_without_keys_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    from datetime import timedelta

    from silkline.sinks import bucket as module

    monkeypatch.setattr(module, "PATIENCE", timedelta(seconds=0.2))
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(ConfigError, match="no keys given: set AWS_ACCESS_KEY_ID"):
        objects_sink("s3://bucket/items.jsonl").open(None)


def test_objects_that_are_there_are_not_overwritten_and_fresh_removes_a_jobs_own(bucket: S3Server) -> None:
    url = bucket.url("items.jsonl")
    first = objects_sink(url)
    first.open(None)
    first.finish(first.write(items(first, 1), None))
    (bucket.folder / "items-other.jsonl").write_text("")
    with pytest.raises(ConfigError, match="which this job did not write"):
        objects_sink(url).open(None)
    discard_owned([url], frozenset())
    assert len(bucket.names()) == 3
    discard_owned([url], frozenset({first.name}))
    assert bucket.names() == ["items-other.jsonl"]
    objects_sink(url).open(None)


def test_workers_of_a_server_have_parts_and_manifests_of_their_own(bucket: S3Server) -> None:
    for worker in ("h-1", "h-2"):
        [sink] = part_sinks([bucket.url("items.jsonl")], worker)
        assert isinstance(sink, ObjectsSink)
        sink.open(None)
        sink.finish(sink.write(items(sink, 1, 2), None))
    assert [name for name in bucket.names() if "manifest" in name] == [
        "items-h-1.jsonl.manifest.json",
        "items-h-2.jsonl.manifest.json",
    ]


def test_an_object_output_is_no_database_and_is_named_once(bucket: S3Server) -> None:
    url = bucket.url("items.jsonl")
    assert keyed_sinks_for([url]) == ()
    with pytest.raises(ConfigError, match="is named twice"):
        sinks_for([url, url])


SPIDER = """
from silkline import Crawler
crawler = Crawler("job", quiet=True, concurrency=8, adaptive=False, robots=False)
@crawler.handler
def handle(page):
    yield {"url": page.url, "n": 1}
    yield page.follow("a")
"""


def test_killed_at_any_instant_the_manifest_names_every_item_once(
    launcher: Launcher, tmp_path: Path, bucket: S3Server
) -> None:
    """20 kills of the crawl, and some of the bucket."""
    links = "".join(f'<a href="/{n}"></a>' for n in range(300))
    pages = {"/": links, **{f"/{n}": f"<p>{n}</p>" for n in range(300)}}
    spider, chance = tmp_path / "spider.py", random.Random(5)
    spider.write_text(SPIDER)
    with Site(pages, delay=0.02) as site:
        command = [site.url + "/", "-o", bucket.url("items.jsonl.gz", part_bytes="300")]
        for number in range(20):
            enough = sum(site.hits.values()) + 8
            life = launcher.start(command, folder=tmp_path, spider=spider)
            life.until(lambda enough=enough: sum(site.hits.values()) >= enough, patience=20)
            time.sleep(chance.uniform(0, 0.1))
            if number % 7 == 3:
                bucket.kill()
                time.sleep(chance.uniform(0, 0.1))
            life.kill()
            if number % 7 == 3:
                bucket.start()
        assert launcher.start(command, folder=tmp_path, spider=spider).ended() == 0
        found = sorted(row["url"] for row in bucket.items("items.jsonl.gz.manifest.json"))
        assert found == sorted(site.url + path for path in pages)
        assert len(bucket.names()) > 5


def test_a_bucket_that_is_away_at_the_start_is_no_fault_of_the_configuration(
    bucket: S3Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    from datetime import timedelta

    from silkline.sinks import bucket as module

    monkeypatch.setattr(module, "PATIENCE", timedelta(seconds=0.2))
    sink = objects_sink(bucket.url("items.jsonl"))
    bucket.kill()
    with pytest.raises(SinkAwayError, match="when a crawl starts it has to answer"):
        sink.open(None)


FRESH = """
import sys
from silkline import Crawler
crawler = Crawler("job", outputs=[sys.argv[2]], quiet=True, robots=False)
@crawler.handler
def handle(page):
    yield {"n": 1}
print(crawler.run(sys.argv[1], fresh=True).items)
"""


def test_a_script_without_a_guard_starts_over(tmp_path: Path, bucket: S3Server) -> None:
    (tmp_path / "script.py").write_text(FRESH)
    with Site({"/": "<p>one</p>"}) as site:
        for _ in range(2):
            words = [sys.executable, "script.py", f"{site.url}/", bucket.url("items.jsonl")]
            done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, timeout=60)
            assert (done.returncode, done.stdout) == (0, "1\n"), done.stderr
    assert numbers(bucket.items("items.jsonl.manifest.json")) == [1]
