from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.seeds.databases import Database, opened


@pytest.fixture(params=["sqlite", "postgresql", "mysql"])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Database]:
    yield from opened(request.param, tmp_path)
