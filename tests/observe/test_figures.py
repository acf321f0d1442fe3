from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from silkline.observe import figures


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (0, "0 B"),
        (999, "999 B"),
        (1_000, "1.0 kB"),
        (999_499, "999 kB"),
        (999_999, "1.0 MB"),
        (12_345_678, "12.3 MB"),
        (2 * 10**15, "2,000 TB"),
    ],
)
def test_sizes(number: int, text: str) -> None:
    assert figures.size(number) == text


def test_a_long_list_of_names_is_cut() -> None:
    names = [str(number) for number in range(1_212)]
    assert figures.listed(names[:10]) == "0, 1, 2, 3, 4, 5, 6, 7, 8, 9"
    assert figures.listed(names) == "0, 1, 2, 3, 4, 5, 6, 7, 8, 9 and 1,202 more"


@pytest.mark.parametrize(
    ("seconds", "text"), [(0, "0:00"), (83.9, "1:23"), (3_723, "1:02:03"), (100_000, "1 d 3:46:40")]
)
def test_durations(seconds: float, text: str) -> None:
    assert figures.elapsed(seconds) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.001, "1 ms"), (0.9996, "1.0 s"), (1.24, "1.2 s"), (99.96, "100 s"), (300, "300 s")],
)
def test_latencies(seconds: float, text: str) -> None:
    assert figures.latency(seconds) == text


@given(st.floats(0, 1))
def test_a_share_says_all_or_none_only_when_it_is_so(part: float) -> None:
    assert (figures.share(part) == "100 %") == (part == 1.0)
    assert figures.share(part).startswith("0 ") == (part == 0.0)


def test_rare_causes_are_put_together_and_none_is_lost() -> None:
    numbers = {"timeout": 5, "dns": 9, "tls": 1, "connect": 1}
    assert figures.causes(numbers) == [("dns", 9), ("timeout", 5), ("connect", 1), ("tls", 1)]
    assert figures.causes(numbers, limit=3) == [("dns", 9), ("timeout", 5), ("other", 2)]


@given(st.text())
def test_one_line_is_one_printable_line(text: str) -> None:
    line = figures.one_line(text, limit=50)
    assert len(line) <= 50
    assert line.isprintable()


@pytest.mark.parametrize(
    ("error", "line"),
    [
        ("HTTP status 404", "HTTP status 404"),
        ("KeyError: 'a'\nTraceback (most recent call last):\n  File ...\nKeyError: 'a'\n", "KeyError: 'a'"),
        ("Traceback (most recent call last):\n  File ...\nOSError: gone\n", "OSError: gone"),
        ("", ""),
    ],
)
def test_of_an_error_with_its_traceback_the_headline_says_what_went_wrong(error: str, line: str) -> None:
    assert figures.headline(error) == line
