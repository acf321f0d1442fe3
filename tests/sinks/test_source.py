from __future__ import annotations

from pathlib import Path

import pytest

from silkline.errors import ConfigError, SilklineError
from silkline.sinks.jsonl import JsonLinesSink
from silkline.sinks.part import PartMark, part_at
from silkline.sinks.source import Source, chosen, left_out, located, sources_in

EMPTY = '{"at":0,"inode":0,"tail":0}'


def part(folder: str, name: str, worker: str, host: str = "box1", items: int = 2) -> Source:
    stem, _, ending = name.rpartition(".")
    return Source(f"{folder}/{stem}.{worker}.{ending}", EMPTY, f"{folder}/{name}", worker, host, items)


ONE, TWO = part("/srv", "out.jsonl", "w1"), part("/home/me", "out.jsonl", "w2", "box2")
CSV_ONE, CSV_TWO = part("/srv", "out.csv", "w1"), part("/home/me", "out.csv", "w2", "box2")
WHOLE, OTHER = Source("/srv/a.csv", EMPTY, "/srv/a.csv"), Source("/srv/b/a.csv", EMPTY, "/srv/b/a.csv")


def test_parts_and_outputs_are_found_among_the_positions_and_sinks_of_others_are_not() -> None:
    mark = '{"kind":"part","output":"/srv/out.jsonl","worker":"w1","host":"box1","items":2,"mark":"{}"}'
    assert part_at(mark) == PartMark("/srv/out.jsonl", "w1", "box1", 2, "{}")
    positions = {"/srv/out.w1.jsonl": mark, "/srv/a.csv": EMPTY, "postgres": "7", "/srv/theirs": "7"}
    assert sources_in(positions) == [
        WHOLE,
        Source("/srv/out.w1.jsonl", "{}", "/srv/out.jsonl", "w1", "box1", 2),
    ]


@pytest.mark.parametrize(
    ("known", "wanted", "taken"),
    [
        ([], [], []),
        ([WHOLE], [], [WHOLE]),
        ([ONE, TWO], [], [ONE, TWO]),
        ([ONE, CSV_TWO], [], [ONE, CSV_TWO]),  # each worker's items once, whatever it called its output
        ([ONE, TWO, CSV_ONE, CSV_TWO], ["out.csv"], [CSV_ONE, CSV_TWO]),
        ([ONE, TWO, CSV_ONE, CSV_TWO], ["./out.jsonl"], [ONE, TWO]),
        ([ONE, TWO], ["/srv/out.jsonl"], [ONE]),
        ([WHOLE, OTHER], ["b/a.csv"], [OTHER]),
        ([WHOLE, OTHER], ["srv/a.csv"], [WHOLE]),
        ([ONE, CSV_ONE, CSV_TWO], ["/srv/out.jsonl", "me/out.csv"], [ONE, CSV_TWO]),
    ],
)
def test_an_output_is_chosen_by_the_end_of_its_name(
    known: list[Source], wanted: list[str], taken: list[Source]
) -> None:
    assert chosen(known, wanted) == taken


@pytest.mark.parametrize(
    ("known", "wanted", "message"),
    [
        ([ONE, CSV_ONE], [], "several outputs, choose one with --from: out.csv, out.jsonl$"),
        ([WHOLE, OTHER], [], "choose one with --from: /srv/a.csv, /srv/b/a.csv$"),
        ([WHOLE, OTHER], ["a.csv"], "choose one with --from: /srv/a.csv, /srv/b/a.csv$"),
        ([ONE, CSV_ONE], ["all.db"], "no output 'all.db'; there are: out.csv, out.jsonl$"),
        ([ONE], ["ut.jsonl"], "no output 'ut.jsonl'; there are: /srv/out.jsonl$"),
        ([], ["all.db"], "no output 'all.db'; it has written none yet$"),
    ],
)
def test_no_item_can_be_taken_twice_or_from_an_output_that_is_not_there(
    known: list[Source], wanted: list[str], message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        chosen(known, wanted)


def test_workers_that_wrote_nothing_of_what_was_chosen_are_named() -> None:
    assert left_out([ONE, CSV_ONE, CSV_TWO], [ONE]) == [CSV_TWO]
    assert left_out([ONE, CSV_ONE], [ONE]) == []


def test_a_part_is_found_where_it_was_written_or_among_copies(tmp_path: Path) -> None:
    here, copies = tmp_path / "here", tmp_path / "copies"
    for folder in (here, copies):
        folder.mkdir()
        sink = JsonLinesSink(folder / "out.w1.jsonl")
        sink.open(None)
        position = sink.write((), None)
        sink.close()
    source = Source(str(here / "out.w1.jsonl"), position, str(here / "out.jsonl"), "w1", "box1", 0)
    unread = Source(str(here / "gone.jsonl"), "", "", "w0", "box1", 0)
    assert located([unread], []) == ([], [])  # nothing counts in it: it may be anywhere

    counted = Source(source.path, position, source.output, "w1", "box1", 1)
    (found,), missing = located([counted], [str(copies)])
    assert (found.path, missing) == (source.path, [])
    (here / "out.w1.jsonl").unlink()
    (found,), missing = located([counted], [str(tmp_path), str(copies)])
    assert (found.path, missing) == (str(copies / "out.w1.jsonl"), [])


def test_missing_parts_are_named_with_their_host(tmp_path: Path) -> None:
    with pytest.raises(
        ConfigError, match=r"^/home/me/out.w2.jsonl of box2 is not here \(2 items\); .* --parts"
    ):
        located([TWO], [])
    many = [part("/srv", "out.jsonl", f"w{n}") for n in range(1_000)]
    with pytest.raises(ConfigError, match=r"out.w2.jsonl of box1 and 997 more are not here \(2,000 items\)"):
        located(many, [str(tmp_path)])
    assert located(many, [], partial=True) == ([], many)


def test_a_position_of_another_format_is_one_line(tmp_path: Path) -> None:
    path = tmp_path / "out.jsonl"
    path.touch()
    with pytest.raises(SilklineError, match="cannot be read"):
        located([Source(str(path), "no position", str(path))], [])
