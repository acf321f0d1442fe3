from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from silkline.errors import ConfigError, SinkError
from silkline.outcome import Done, Lease, Outcome
from silkline.protocols import Sink
from silkline.request import Request
from silkline.sinks.choose import deliver_to, finish_all
from silkline.sinks.outputfile import name_of
from silkline.sinks.part import discard_parts, part_at, part_path, part_sinks, parts_of
from tests.sinks.conftest import Items
from tests.unprivileged import as_nobody

WORKER = "box-7-0a1b2c3d"
ENDINGS = [".jsonl", ".jsonl.gz", ".jsonl.zst", ".parquet", ".csv", ".tsv", ".db"]


def part_in(folder: Path, ending: str, worker: str = WORKER) -> Sink:
    (sink,) = part_sinks([str(folder / f"out{ending}")], worker)
    return sink


@pytest.mark.parametrize(
    ("output", "part"),
    [
        ("out.jsonl", "out.box-7-0a1b2c3d.jsonl"),
        ("out.jsonl.gz", "out.box-7-0a1b2c3d.jsonl.gz"),
        ("a.b/out.2030.csv", "a.b/out.2030.box-7-0a1b2c3d.csv"),
        ("a.b/.hidden.db", "a.b/.hidden.box-7-0a1b2c3d.db"),
    ],
)
def test_a_part_is_named_after_its_output_and_its_worker(output: str, part: str) -> None:
    assert part_path(output, WORKER) == part


def test_a_host_cannot_lead_a_part_out_of_its_folder() -> None:
    assert part_path("out.jsonl", "../../etc-1-00") == "out..._.._etc-1-00.jsonl"


@pytest.mark.parametrize("ending", ENDINGS)
def test_who_writes_nothing_leaves_neither_a_file_nor_a_position(tmp_path: Path, ending: str) -> None:
    sink = part_in(tmp_path, ending)
    sink.open(None)
    assert sink.write((), None) is None
    assert finish_all([sink])((), {}) == {}
    sink.close()
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("ending", ENDINGS)
def test_what_was_written_and_never_counted_is_removed_at_the_end(
    tmp_path: Path, ending: str, items_for: Items
) -> None:
    sink = part_in(tmp_path, ending)
    sink.open(None)
    assert sink.write(items_for(sink, {"n": 1}), None)
    assert len(os.listdir(tmp_path)) >= 1
    assert sink.finish(None) is None
    sink.close()
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("ending", ENDINGS)
def test_items_that_are_delivered_again_are_there_once(
    tmp_path: Path, ending: str, items_for: Items, rows_in: Callable[[Path], list]
) -> None:
    """A commit that fails is tried again from the same position, without the pages that came too late."""
    sink = part_in(tmp_path, ending)
    sink.open(None)
    first, second, third = items_for(sink, {"n": 1}, {"n": 2}, {"n": 3})
    sink.write([first, second], None)
    position = sink.write([second], None)
    assert position is not None
    sink.write([first, third], position)
    position = sink.write([third], position)
    assert position is not None
    sink.finish(position)
    sink.close()
    assert [int(row["n"]) for row in rows_in(Path(sink.name))] == [2, 3]
    mark = part_at(position)
    assert mark is not None
    assert (mark.output, mark.worker, mark.items) == (str(tmp_path / f"out{ending}"), WORKER, 2)


def test_an_item_goes_to_the_parts_of_all_outputs(tmp_path: Path, items_for: Items) -> None:
    sinks = part_sinks([str(tmp_path / "a.jsonl"), str(tmp_path / "b.csv")], WORKER)
    (item,) = items_for(sinks[0], {"n": 1})
    item.data[sinks[1].name] = sinks[1].encode({"n": 1})  # type: ignore[index]
    lease = Lease(Request("http://a.example/"), 1, 1, "h")
    positions = deliver_to(sinks)([Outcome(lease, Done(), (item,))], {"another": "1"})
    assert positions.keys() == {"another", *(sink.name for sink in sinks)}


def test_a_folder_that_cannot_be_written_to_is_told_before_the_first_page() -> None:
    def check(folder: Path) -> None:
        folder.chmod(0o500)
        with pytest.raises(ConfigError, match="cannot create files in"):
            part_in(folder, ".jsonl").open(None)

    as_nobody(check)


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="a place that takes no files is needed")
def test_a_folder_where_no_files_can_be_made_is_told_before_the_first_page() -> None:
    with pytest.raises(ConfigError, match="no files can be made there"):
        part_in(Path("/proc"), ".jsonl").open(None)


def test_a_part_that_is_there_already_is_nobodys_to_overwrite(tmp_path: Path, items_for: Items) -> None:
    sink = part_in(tmp_path, ".jsonl")
    Path(sink.name).write_text("precious\n")
    sink.open(None)
    with pytest.raises(SinkError, match="was not written by this job"):
        sink.write(items_for(sink, {"n": 1}), None)
    assert Path(sink.name).read_text() == "precious\n"


def test_parts_are_counted_and_removed_by_their_output(
    tmp_path: Path, items_for: Items, monkeypatch: pytest.MonkeyPatch
) -> None:
    positions = {"elsewhere": "{}", "/not/a/part.jsonl": '{"at":0,"inode":0,"tail":0}'}
    for output, worker in (("a.jsonl", "box-1-00"), ("a.jsonl", "box-2-00"), ("b.jsonl", "box-1-00")):
        (sink,) = part_sinks([str(tmp_path / output)], worker)
        sink.open(None)
        position = sink.write(items_for(sink, {"n": 1}), None)
        assert position is not None
        positions[sink.name] = position
        sink.close()
    foreign = tmp_path / "a.box-3-00.jsonl"
    foreign.write_text("precious\n")
    elsewhere = positions[str(tmp_path / "a.box-1-00.jsonl")].replace(str(tmp_path), "/srv")
    positions["/srv/a.box-9-00.jsonl"] = elsewhere.replace('"host":"', '"host":"another-')
    monkeypatch.chdir(tmp_path)

    parts = [str(tmp_path / f"a.box-{n}-00.jsonl") for n in (1, 2)]
    assert parts_of("a.jsonl", positions) == ("/srv/a.box-9-00.jsonl", *parts)
    assert parts_of("c.jsonl", positions) == ()

    discard_parts(positions, ["a.jsonl"])
    assert sorted(os.listdir(tmp_path)) == ["a.box-3-00.jsonl", "b.box-1-00.jsonl"]
    assert name_of("a.jsonl") == str(tmp_path / "a.jsonl")
