"""What is in a bucket becomes one file again: the parts that the manifests name, and nothing else."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from silkline.errors import ConfigError, SinkError
from silkline.outcome import Item
from silkline.sinks.bucket_parts import bucket_parts
from silkline.sinks.choose import discard_owned, objects_sink
from silkline.sinks.export import Target, export
from silkline.sinks.format import Format
from silkline.sinks.objects import ObjectsSink
from tests.objects.running import S3Server
from tests.sinks.conftest import read_rows
from tests.sinks.test_committed import ENDINGS

WORKERS = ("box-1-12-0a1b2c3d", "box-2-7-00000000")


@pytest.fixture
def bucket(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[S3Server]:
    monkeypatch.chdir(tmp_path)
    server = S3Server(tmp_path / "bucket").start()
    yield server
    server.kill()


def filled(output: str, numbers: range, worker: str = "") -> ObjectsSink:
    """A finished output with so many rows, in parts of 100."""
    sink = objects_sink(output, worker)
    sink.open(None)
    position: str | None = sink.write((), None)
    for start in range(numbers.start, numbers.stop, 100):
        rows = [
            {"n": n, "text": f'={n}"\n', "tags": [n]} for n in range(start, min(start + 100, numbers.stop))
        ]
        items = [Item(row["n"], 0, {sink.name: sink.encode(row)}) for row in rows]
        position = sink.write(items, position)
    sink.finish(position)
    sink.close()
    return sink


@pytest.mark.parametrize("ending", ENDINGS)
def test_parts_of_any_format_become_one_file(bucket: S3Server, tmp_path: Path, ending: str) -> None:
    url = bucket.url(f"a/items{ending}", part_bytes="1K")
    filled(url, range(450))
    (bucket.folder / "a%2Fitems-000099.jsonl").write_text('{"n":-1}\n')
    parts = bucket_parts(url)
    assert len(parts) >= 2
    assert parts[0].path == f"s3://shop/a/items-000001{ending}"
    assert export(parts, Target("all.jsonl")).rows == 450
    rows = read_rows(tmp_path / "all.jsonl")
    assert [int(row["n"]) for row in rows] == list(range(450))
    assert rows[7]["text"] == '=7"\n'
    assert rows[7]["tags"] == ([7] if ending not in (".csv", ".tsv", ".db") else "[7]")


@pytest.mark.parametrize("ending", [".parquet", ".db"])
def test_what_a_killed_run_left_of_a_part_is_not_taken_for_another_jobs(
    bucket: S3Server, ending: str
) -> None:
    url = bucket.url(f"items{ending}")
    killed = objects_sink(url)
    killed.open(None)
    position = killed.write((), None)
    killed.write([Item(1, 0, {killed.name: killed.encode({"n": 1})})], position)  # and no commit
    killed.close()
    sink = objects_sink(url)
    sink.open(position)
    sink.finish(sink.write([Item(2, 0, {sink.name: sink.encode({"n": 2})})], position))
    sink.close()
    export(bucket_parts(url), Target("all.jsonl"))
    assert read_rows(Path("all.jsonl")) == [{"n": 2}]


def test_csv_for_spreadsheets_is_read_as_it_was_meant(bucket: S3Server, tmp_path: Path) -> None:
    sink = objects_sink(bucket.url("items.csv"), format=Format(excel=True))
    sink.open(None)
    sink.finish(sink.write([Item(1, 0, {sink.name: sink.encode({"=a": "=1+1"})})], None))
    sink.close()
    export(bucket_parts(bucket.url("items.csv")), Target("all.jsonl"))
    assert read_rows(tmp_path / "all.jsonl") == [{"=a": "=1+1"}]


def test_the_manifests_of_all_workers_count_and_those_of_other_outputs_do_not(bucket: S3Server) -> None:
    url = bucket.url("items.jsonl")
    for place, worker in enumerate(WORKERS):
        filled(url, range(place * 10, place * 10 + 10), worker)
    filled(bucket.url("items-old.jsonl"), range(5))
    export(bucket_parts(url), Target("all.jsonl"))
    assert [row["n"] for row in read_rows(Path("all.jsonl"))] == list(range(20))


def test_outputs_that_differ_only_in_the_ending_are_read_each_by_itself(bucket: S3Server) -> None:
    endings = (".jsonl", ".csv", ".jsonl.gz")
    sinks = [objects_sink(bucket.url(f"items{ending}")) for ending in endings]
    for sink in sinks:
        sink.open(None)
    for n, sink in enumerate(sinks):
        sink.finish(sink.write([Item(1, 0, {sink.name: sink.encode({"n": n})})], None))
        sink.close()
    for n, ending in enumerate(endings):
        export(bucket_parts(bucket.url(f"items{ending}")), Target(f"{n}.jsonl"))
        assert [int(row["n"]) for row in read_rows(Path(f"{n}.jsonl"))] == [n]
    with pytest.raises(ConfigError, match=r"items\.parquet: there is no manifest of it"):
        bucket_parts(bucket.url("items.parquet"))


def rows_of(output: str) -> list[int]:
    Path("all.jsonl").unlink(missing_ok=True)
    export(bucket_parts(output), Target("all.jsonl"))
    return [int(row["n"]) for row in read_rows(Path("all.jsonl"))]


def shared_manifest(bucket: S3Server, stem: str, *endings: str) -> Path:
    """In place of the outputs' own ones, as they were written once."""
    own = [bucket.folder / f"{stem}{ending}.manifest.json" for ending in endings]
    manifests = [json.loads(path.read_bytes()) for path in own]
    parts = [part for manifest in manifests for part in manifest["parts"]]
    shared = bucket.folder / f"{stem}.manifest.json"
    shared.write_text(json.dumps({**manifests[0], "parts": parts}))
    for path in own:
        path.unlink()
    return shared


def test_an_output_beside_one_with_another_ending_comes_and_goes_alone(bucket: S3Server) -> None:
    old, new = bucket.url("items.jsonl"), bucket.url("items.jsonl.gz")
    filled(old, range(3))
    sink = filled(new, range(5))
    assert (rows_of(old), rows_of(new)) == (list(range(3)), list(range(5)))
    discard_owned([new], frozenset({sink.name}))
    assert rows_of(old) == list(range(3))
    assert bucket.names() == ["items-000001.jsonl", "items.jsonl.manifest.json"]


def test_a_manifest_that_outputs_shared_is_read_until_each_has_its_own(bucket: S3Server) -> None:
    outputs = [bucket.url(f"items{ending}") for ending in (".jsonl", ".csv")]
    sinks = [filled(output, range(3)) for output in outputs]
    shared = shared_manifest(bucket, "items", ".jsonl", ".csv")
    assert [rows_of(output) for output in outputs] == [[0, 1, 2]] * 2
    for left, (output, sink) in enumerate(zip(outputs, sinks, strict=True)):
        again = objects_sink(output)
        again.open(position := '{"number":2}')
        again.finish(again.write([Item(9, 0, {sink.name: sink.encode({"n": 9})})], position))
        again.close()
        assert rows_of(output) == [0, 1, 2, 9]
        assert shared.exists() is (left == 0)
        assert [rows_of(each)[:3] for each in outputs] == [[0, 1, 2]] * 2


def test_starting_over_takes_an_output_out_of_the_manifest_that_it_shared(bucket: S3Server) -> None:
    kept, gone = bucket.url("items.jsonl"), bucket.url("items.csv")
    filled(kept, range(3))
    sink = filled(gone, range(4))
    shared_manifest(bucket, "items", ".jsonl", ".csv")
    discard_owned([gone], frozenset({sink.name}))
    assert bucket.names() == ["items-000001.jsonl", "items.manifest.json"]
    assert rows_of(kept) == [0, 1, 2]
    with pytest.raises(ConfigError, match="there is no manifest of it"):
        bucket_parts(gone)


def test_manifests_of_workers_from_before_and_of_now_are_read_together(bucket: S3Server) -> None:
    url = bucket.url("items.jsonl")
    for place, worker in enumerate(WORKERS):
        filled(url, range(place * 10, place * 10 + 10), worker)
    shared_manifest(bucket, f"items-{WORKERS[0]}", ".jsonl")
    assert rows_of(url) == list(range(20))


def test_a_mended_item_goes_beside_the_good_ones_of_its_page_in_a_part(bucket: S3Server) -> None:
    sink = objects_sink(bucket.url("items.db"))

    def item(n: int, missed: bool) -> Item:
        return Item(1, n, {sink.name: sink.encode({"n": n})}, missed=missed)

    sink.open(None)
    position = sink.write([item(0, False), item(2, False)], None)
    sink.finish(sink.write([item(1, True)], position))
    sink.close()
    export(bucket_parts(bucket.url("items.db")), Target("all.jsonl"))
    assert sorted(row["n"] for row in read_rows(Path("all.jsonl"))) == [0, 1, 2]


def test_a_part_that_was_changed_and_a_manifest_that_is_missing_are_one_line(bucket: S3Server) -> None:
    url = bucket.url("items.jsonl")
    with pytest.raises(ConfigError, match=r"s3://shop/items\.jsonl: there is no manifest of it"):
        bucket_parts(url)
    filled(url, range(10))
    path = bucket.folder / "items-000001.jsonl"
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(SinkError, match=r"s3://shop/items-000001\.jsonl has .* in its manifest"):
        export(bucket_parts(url), Target("all.jsonl"))
    assert not Path("all.jsonl").exists()
    path.unlink()
    with pytest.raises(SinkError, match="is not there"):
        export(bucket_parts(url), Target("all.jsonl"))
    (bucket.folder / "items.jsonl.manifest.json").write_text("{")
    with pytest.raises(SinkError, match="its manifest cannot be read"):
        bucket_parts(url)
