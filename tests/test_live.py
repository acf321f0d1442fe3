from __future__ import annotations

import pytest

from silkline.config import Settings
from silkline.errors import ConfigError
from silkline.live import LIVE, assigned, read_live


def test_what_is_set_is_kept_as_any_program_reads_it() -> None:
    words = ["delay=500ms", "timeout=1.5m", "concurrency=100", "per-host= 3", "retries=0", "paused=Yes"]
    assert assigned(words) == {
        "delay": "0.5",
        "timeout": "90",
        "concurrency": "100",
        "per_host": "3",
        "retries": "0",
        "paused": "true",
    }
    assert assigned([]) == {}


@pytest.mark.parametrize(
    ("word", "complaint"),
    [
        ("concurrency", "'concurrency' sets nothing: write concurrency=VALUE"),
        ("concurrency=0", "concurrency must be a whole number from 1 to 10000, not '0'"),
        ("delay=soon", "delay must be seconds, 0 or more, .* not 'soon'"),
        ("paused=perhaps", "paused must be on or off, not 'perhaps'"),
        ("fresh=true", "no live setting 'fresh'; there are concurrency, per_host, delay"),
        ("delay=" + "9" * 500, "delay must be shorter, not 500 characters long"),
    ],
)
def test_what_cannot_be_set_is_refused_in_one_line(word: str, complaint: str) -> None:
    with pytest.raises(ConfigError, match=complaint) as caught:
        assigned([word])
    assert "\n" not in str(caught.value)


def test_of_what_other_programs_wrote_the_good_is_used_and_the_bad_is_named() -> None:
    live = read_live({"delay": "2s", "concurrency": "many", "colour": "red", "paused": "on"}, "live settings")
    assert (live.settings, live.paused) == ({"delay": 2.0}, True)
    assert [line.partition(" must")[0].partition(" 'col")[0] for line in live.complaints] == [
        "live settings: there is no live setting",
        "live settings: concurrency",
    ]
    assert live.over(Settings(delay=9.0, retries=7)) == Settings(delay=2.0, retries=7)


def test_every_live_setting_but_paused_is_a_setting() -> None:
    assert set(LIVE) - {"paused"} <= set(Settings.__struct_fields__)
