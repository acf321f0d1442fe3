"""Imports run one way: vocabulary <- parts <- engine <- crawler <- cli; parts never import each other."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

SOURCE = Path(__file__).parent.parent / "src" / "silkline"

LAYERS: list[set[str]] = [
    {"version", "errors", "header", "site"},
    {"url", "files"},
    {"values"},
    {"config"},
    {"request", "resolve"},
    {"response", "outcome", "live", "keys"},
    {"events"},
    {"protocols"},
    {"frontier", "politeness", "fetch", "parse", "sinks", "observe", "router", "seeds", "demo"},
    {"items"},
    {"steps"},
    {"engine"},
    {"crawler", "producer"},
    {"testing"},
    {"cli"},
    {"__main__"},
]
RANK = {part: rank for rank, parts in enumerate(LAYERS) for part in parts}


def part_of(path: Path) -> str:
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


def imported_parts(path: Path) -> set[str]:
    parts = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        else:
            continue
        parts |= {name.split(".")[1] for name in names if name.startswith("silkline.")}
    return parts


FILES = sorted(p for p in SOURCE.rglob("*.py") if p != SOURCE / "__init__.py")


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(SOURCE)))
def test_imports_point_down_only(path: Path) -> None:
    mine = part_of(path)
    assert mine in RANK, f"{mine} has no layer: give it one in this test"
    for other in imported_parts(path) - {mine}:
        if other == "__version__":
            continue
        assert other in RANK, f"{path} imports {other}, which has no layer"
        assert RANK[other] < RANK[mine], f"{path}: {mine} must not import {other}"


def test_the_walk_sees_real_imports() -> None:
    assert "errors" in imported_parts(SOURCE / "request.py")
