from __future__ import annotations

import time

import pytest

from silkline.engine.blocks import Blocks
from silkline.events import Event, LeftAlone


def test_a_block_is_told_once_and_again_where_it_gets_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 1_000.0
    monkeypatch.setattr(time, "time", lambda: now)
    told: list[Event] = []
    blocks = Blocks(told.append)
    blocks.block("http://a:80", 9.0)
    assert told == []
    blocks.block("http://a:80", 60.0)
    blocks.block("http://b:80", 10.0)
    now += 0.5
    blocks.block("http://a:80", 60.0)  # another of the requests that were on their way
    assert told == [LeftAlone("http://a:80", 1_060.0), LeftAlone("http://b:80", 1_010.0)]
    blocks.block("http://a:80", 600.0)
    assert told[2:] == [LeftAlone("http://a:80", 1_600.5)]
    now = 1_601.0
    blocks.block("http://a:80", 60.0)
    assert told[3:] == [LeftAlone("http://a:80", 1_661.0)]


def test_the_line_says_until_when() -> None:
    line = LeftAlone("http://a:80", 0.0).message
    assert line == "http://a:80 asks to be left alone until 1970-01-01 00:00:00 UTC (it answered 429 or 503)"
