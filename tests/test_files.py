"""Files appear whole or not at all, where their names may lead."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from silkline.errors import SaveError
from silkline.files import move, placed, split_ending, write_whole


@given(st.text(alphabet="ab./\0\\", max_size=20))
def test_a_relative_name_stays_inside_whatever_it_is(name: str) -> None:
    try:
        path = placed(name, "/srv/files")
    except SaveError:
        return
    assert os.path.normpath(path) == str(path)
    assert path.is_relative_to("/srv/files")
    assert path != Path("/srv/files")


def test_a_link_does_not_lead_out(tmp_path: Path) -> None:
    (tmp_path / "out").symlink_to("/tmp")
    (tmp_path / "in").symlink_to(tmp_path / "real")
    (tmp_path / "real").mkdir()
    with pytest.raises(SaveError, match="leads out of the folder"):
        placed("out/f", tmp_path)
    assert placed("in/f", tmp_path) == tmp_path / "real" / "f"


def test_an_absolute_path_is_the_users_own_word_unless_there_is_a_folder(tmp_path: Path) -> None:
    assert placed("/elsewhere/f") == Path("/elsewhere/f")
    with pytest.raises(SaveError, match="/elsewhere/f"):
        placed("/elsewhere/f", tmp_path)


def test_a_file_is_replaced_whole_and_has_the_usual_permissions(tmp_path: Path) -> None:
    path = tmp_path / "a" / "f"
    write_whole(path, b"one")
    write_whole(path, b"two")
    (tmp_path / "plain").touch()
    assert path.read_bytes() == b"two"
    assert path.stat().st_mode == (tmp_path / "plain").stat().st_mode
    assert list(path.parent.iterdir()) == [path]


def test_a_failure_is_one_line_and_leaves_the_old_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "f"
    write_whole(path, b"old")

    def no_space(handle: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", no_space)
    with pytest.raises(SaveError) as caught:
        write_whole(path, b"new")
    assert str(caught.value) == f"cannot save to {path}: No space left on device"
    assert (path.read_bytes(), list(tmp_path.iterdir())) == (b"old", [path])


def test_a_file_moves_to_another_file_system_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source, path = tmp_path / "source", tmp_path / "new" / "f"
    source.write_bytes(b"data")
    real = os.replace

    def other_system(old: object, new: object) -> None:
        if old == source:
            raise OSError(18, "Invalid cross-device link")
        real(old, new)  # type: ignore[arg-type]

    monkeypatch.setattr(os, "replace", other_system)
    move(source, path)
    assert (path.read_bytes(), source.exists(), list(path.parent.iterdir())) == (b"data", False, [path])


def test_no_device_or_pipe_is_replaced_and_a_link_is_written_through(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(SaveError, match="it is no regular file"):
        placed(str(tmp_path / "pipe"))
    with pytest.raises(SaveError, match="it is no regular file"):
        placed("/dev/null")
    (tmp_path / "link").symlink_to("target")
    write_whole(placed(str(tmp_path / "link")), b"x")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "target").read_bytes() == b"x"


@pytest.mark.parametrize(
    ("path", "parts"),
    [
        ("a.b/out.jsonl", ("a.b/out", ".jsonl")),
        ("out.2030.jsonl.gz", ("out.2030", ".jsonl.gz")),
        ("out.CSV.ZST", ("out", ".CSV.ZST")),
        ("out.gz", ("out", ".gz")),
        ("out", ("out", "")),
        (".jsonl", (".jsonl", "")),
    ],
)
def test_the_ending_of_a_compressed_file_tells_its_format(path: str, parts: tuple[str, str]) -> None:
    assert split_ending(path) == parts
