"""docs/fetching.md: every block runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.documents import blocks, check_session

FETCHING = "docs/fetching.md"
SESSIONS = [block.name for block in blocks(FETCHING) if block.language == "pycon" and block.name]


@pytest.mark.parametrize("name", SESSIONS)
def test_sessions_answer_as_shown(name: str) -> None:
    check_session(FETCHING, name)


def test_every_block_is_run_by_a_test() -> None:
    names = [block.name for block in blocks(FETCHING)]
    assert None not in names
    assert len(set(names)) == len(names)
    text = Path(__file__).read_text()
    for name in set(names) - set(SESSIONS):
        assert f'(FETCHING, "{name}"' in text, f"no test runs {name}"
