"""The conformance data, and how a miss is argued: with what the standard says, and only while it is one."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

DATA = Path(__file__).parent / "data" / "conformance"

Case = dict[str, Any]


def cases(name: str) -> list[Case]:
    """`url/toascii` and the like."""
    found: list[Case] = json.loads((DATA / f"{name}.json").read_text())
    return found


def raw(case: Case, key: str = "body_b64") -> bytes:
    return base64.b64decode(case[key])


def check(
    given: Iterable[Case],
    name_of: Callable[[Case], str],
    fault_of: Callable[[Case], object],
    argued: Mapping[str, str] | None = None,
) -> None:
    """Every case passes (its fault is None) or is argued; an argued one that passes fails the test.

    argued: why the standard allows the miss, by the case's name.
    """
    argued = argued or {}
    faults = {name_of(case): fault_of(case) for case in given}
    wrong = {name: fault for name, fault in faults.items() if fault is not None and name not in argued}
    assert not wrong, "\n".join(f"{name}: {fault}" for name, fault in wrong.items())
    passing = [name for name in argued if faults[name] is None]
    assert not passing, f"argued as misses, but they pass: {passing}"
