from __future__ import annotations

import gzip
import os
import subprocess
import sys
import threading
import tracemalloc
from pathlib import Path

import pytest

from silkline.errors import ConfigError
from silkline.request import MAX_TASK_BYTES, Request
from silkline.seeds import Seeds
from silkline.seeds.source import KEPT_REASONS
from silkline.seeds.textfile import CHUNK
from tests.seeds.reading import a_file, urls_of
from tests.unprivileged import as_nobody


@pytest.mark.parametrize(
    "data",
    [
        b"http://a/\nhttp://b/caf\xc3\xa9\n",
        b"\xef\xbb\xbfhttp://a/\r\n\r\n  # note\r\n\t http://b/caf\xc3\xa9 \r\n   \r\n",
        "http://a/\r\nhttp://b/café\r\n".encode("utf-16"),
        "\ufeffhttp://a/\nhttp://b/café".encode("utf-16-be"),
        gzip.compress(b"\xef\xbb\xbfhttp://a/\nhttp://b/caf\xc3\xa9\n", mtime=0),
        b'{"url": "http://a/"}\n {"url": "http://b/caf\xc3\xa9", "extra": {"n": 1}}\n',
    ],
    ids=["plain", "bom-crlf-comments", "utf-16-le", "utf-16-be", "gzip", "json"],
)
def test_a_file_is_read_however_it_was_saved(tmp_path: Path, data: bytes) -> None:
    seeds = Seeds(a_file(tmp_path, data))
    assert urls_of(seeds) == ["http://a/", "http://b/caf%C3%A9"]
    assert (seeds.invalid, seeds.reasons) == (0, ())


def test_a_json_line_keeps_all_of_the_task(tmp_path: Path) -> None:
    line = b'{"url": "http://a/", "label": "shop", "priority": 5, "extra": {"n": 1}, "method": "post"}'
    [[request]] = Seeds(a_file(tmp_path, line))
    assert request == Request("http://a/", label="shop", priority=5, extra={"n": 1}, method="POST")


def test_invalid_lines_are_counted_with_their_numbers_and_the_rest_goes_on(tmp_path: Path) -> None:
    path = a_file(
        tmp_path,
        b"# list\nhttp://a/\nshop.example\n\nftp://b/\n\xff\xfe\xfa http://c/\n"
        b'{"url": 5}\n{"url": "http://a/", "colour": 1}\nhttp://d/\n{]\nhttp://\n',
    )
    seeds = Seeds(path)
    assert urls_of(seeds) == ["http://a/", "http://d/"]
    assert seeds.invalid == 7
    assert len(seeds.reasons) == KEPT_REASONS
    places = [reason.removeprefix(str(path)).split(": ")[0] for reason in seeds.reasons]
    assert places == [":3", ":5", ":6", ":7", ":8"]
    assert "write https://shop.example" in seeds.reasons[0]
    assert "not UTF-8" in seeds.reasons[2]


def test_line_numbers_hold_beyond_the_first_chunk(tmp_path: Path) -> None:
    lines = [f"http://a/{n}" for n in range(2 * CHUNK // 10)]
    lines[-3] = "broken"
    seeds = Seeds(a_file(tmp_path, "\n".join(lines).encode()))
    assert urls_of(seeds) == [line for line in lines if line != "broken"]
    assert f":{len(lines) - 2}: " in seeds.reasons[0]


def test_a_file_without_a_single_valid_url_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"urls\.txt holds no valid URL; .*urls\.txt:1: .*has no scheme"):
        urls_of(Seeds(a_file(tmp_path, b"name,price\na,1\n")))


@pytest.mark.parametrize(
    "data", [b"", b"\n", b"# nothing\n\n  # yet", gzip.compress(b"# none\n", mtime=0), b"\xef\xbb\xbf"]
)
def test_a_file_that_says_nothing_is_refused_before_the_crawl_starts(tmp_path: Path, data: bytes) -> None:
    with pytest.raises(ConfigError, match=r"urls\.txt holds no URL$"):
        Seeds(a_file(tmp_path, data))


def test_a_pipe_that_says_nothing_is_refused_when_it_is_read(tmp_path: Path) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    seeds = Seeds(path)
    writer = threading.Thread(target=path.write_bytes, args=(b"# nothing\n",))
    writer.start()
    with pytest.raises(ConfigError, match=r"pipe holds no URL$"):
        urls_of(seeds)
    writer.join()


@pytest.mark.parametrize(
    ("data", "line"),
    [
        (b"http://a/\n\x89PNG\x00\x00", "is a binary file, not a list of URLs"),
        (gzip.compress(b"http://a/\n\x00", mtime=0), "is a binary file, not a list of URLs"),
        (b"\xff\xfea\x00\x00\xd8a\x00", "cannot be read: "),
    ],
    ids=["nul", "nul-in-gzip", "broken-utf-16"],
)
def test_a_file_that_is_no_text_is_refused_before_the_crawl_starts(
    tmp_path: Path, data: bytes, line: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        Seeds(a_file(tmp_path, data))
    assert line in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("data", "line"),
    [
        (b"http://a/\n" * CHUNK + b"\x00", "binary"),
        (gzip.compress(b"http://a/\n" * CHUNK)[:-9], "cannot be read: "),
    ],
    ids=["nul", "cut-gzip"],
)
def test_damage_far_into_a_file_is_refused_when_it_is_met(tmp_path: Path, data: bytes, line: str) -> None:
    batches = iter(Seeds(a_file(tmp_path, data)))
    assert next(batches)[0].url == "http://a/"
    with pytest.raises(ConfigError, match=line):
        list(batches)


def test_a_file_that_cannot_be_opened_is_one_clear_line(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"nowhere\.txt: no such file"):
        Seeds(tmp_path / "nowhere.txt")
    with pytest.raises(ConfigError, match="is a directory, not a file of URLs"):
        Seeds(tmp_path)


def test_a_forbidden_file_is_one_clear_line() -> None:
    def check(folder: Path) -> None:
        path = a_file(folder, b"http://a/")
        path.chmod(0)
        with pytest.raises(ConfigError, match=r"urls\.txt: cannot be read: Permission denied"):
            Seeds(path)

    as_nobody(check)


def test_memory_does_not_grow_with_the_file(tmp_path: Path) -> None:
    one_endless_line = b"x" * (30 * MAX_TASK_BYTES)
    path = a_file(tmp_path, b"http://a/\n" * 50_000 + one_endless_line + b"\nhttp://b/\n")
    seeds = Seeds(path)
    tracemalloc.start()
    try:
        last = [batch[-1].url for batch in seeds][-1]
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert last == "http://b/"
    assert seeds.invalid == 1
    assert ":50001: " in seeds.reasons[0]
    assert peak < 20 * MAX_TASK_BYTES


def test_a_pipe_is_read_once_and_only_when_it_is_needed(tmp_path: Path) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    seeds = Seeds(path)
    writer = threading.Thread(target=path.write_bytes, args=(b"http://a/\nhttp://b/\n",))
    writer.start()
    assert urls_of(seeds) == ["http://a/", "http://b/"]
    writer.join()


def test_standard_input_gives_its_lines_while_it_is_still_open() -> None:
    code = (
        "from pathlib import Path; from silkline.seeds import Seeds\n"
        "for batch in Seeds(Path('-')): print([r.url for r in batch], flush=True)"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin
        assert process.stdout
        process.stdin.write("http://a/\n")
        process.stdin.flush()
        assert process.stdout.readline() == "['http://a/']\n"
        process.stdin.write("http://b/\n")
        process.stdin.close()
        assert process.stdout.readline() == "['http://b/']\n"
