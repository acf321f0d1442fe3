"""The robots.txt data of tests/data/conformance."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

DATA = Path(__file__).parent.parent / "data" / "conformance" / "robots"


def cases(name: str) -> list[dict[str, Any]]:
    return json.loads((DATA / f"{name}.json").read_text())


def body_of(case: dict[str, Any]) -> bytes:
    return base64.b64decode(case["robots_b64"]) if "robots_b64" in case else case["robots_txt"].encode()
