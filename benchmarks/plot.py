"""Line charts in small panels, as SVG: text that says the same on every machine."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

WIDTH, HEIGHT = 400, 190
COLUMNS = 2
LEFT, RIGHT, TOP, BOTTOM = 44, 12, 28, 24
HEAD = 30
STYLES = (
    *("#bbb;6", "#d9480f;1.8", "#1971c2;1.2", "#2f9e44;1.2", "#7048e8;1.2"),
    *("#0c8599;1.2", "#e8590c;1.2"),
)
"""Colour and width of each line, the first one at the back."""


@dataclass(frozen=True)
class Line:
    """values: evenly spread over the whole width."""

    name: str
    values: Sequence[float]


@dataclass(frozen=True)
class Panel:
    title: str
    lines: Sequence[Line]


def figure(panels: Sequence[Panel], *, seconds: int) -> str:
    """All panels have the same lines. seconds: what the width stands for."""
    rows = -(-len(panels) // COLUMNS)
    width, height = COLUMNS * WIDTH, HEAD + rows * HEIGHT
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif"'
        ' font-size="11" fill="none">',
        f'<rect width="{width}" height="{height}" fill="#fff"/>',
        *_legend([line.name for line in panels[0].lines]),
    ]
    for number, panel in enumerate(panels):
        x, y = number % COLUMNS * WIDTH, HEAD + number // COLUMNS * HEIGHT
        parts += [f'<g transform="translate({x} {y})">', *_panel(panel, seconds), "</g>"]
    return "\n".join([*parts, "</svg>"]) + "\n"


def _legend(names: Sequence[str]) -> list[str]:
    parts, x = [], LEFT
    for name, style in zip(names, STYLES, strict=False):
        colour, thickness = style.split(";")
        parts.append(f'<path d="M{x} 16h18" stroke="{colour}" stroke-width="{thickness}"/>')
        parts.append(f'<text x="{x + 24}" y="20" fill="#333">{escape(name)}</text>')
        x += 50 + 7 * len(name)
    return parts


def _panel(panel: Panel, seconds: int) -> list[str]:
    top = _round_up(max(max(line.values) for line in panel.lines))
    inner, height = WIDTH - LEFT - RIGHT, HEIGHT - TOP - BOTTOM
    parts = [f'<text x="{LEFT}" y="{TOP - 8}" fill="#000" font-weight="bold">{escape(panel.title)}</text>']
    for share in (0.0, 0.5, 1.0):
        y = TOP + height * (1.0 - share)
        parts.append(f'<path d="M{LEFT} {y:g}h{inner}" stroke="#eee"/>')
        parts.append(
            f'<text x="{LEFT - 6}" y="{y + 4:g}" text-anchor="end" fill="#555">{top * share:g}</text>'
        )
        x = LEFT + inner * share
        label = f"{seconds * share:g} s"
        parts.append(f'<text x="{x:g}" y="{HEIGHT - 8}" text-anchor="middle" fill="#555">{label}</text>')
    for line, style in zip(panel.lines, STYLES, strict=False):
        colour, thickness = style.split(";")
        step = inner / len(line.values)
        points = " ".join(
            f"{LEFT + (place + 0.5) * step:.0f},{TOP + height * (1.0 - value / top):.0f}"
            for place, value in enumerate(line.values)
        )
        parts.append(f'<polyline points="{points}" stroke="{colour}" stroke-width="{thickness}"/>')
    return parts


def _round_up(value: float) -> float:
    """To a number with one digit that is not 0, or a half of it."""
    size = 1.0
    while size * 10.0 <= value:
        size *= 10.0
    return next(
        step * size for step in (1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0) if step * size >= value
    )
