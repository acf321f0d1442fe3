"""How numbers, and text from elsewhere, are written for people."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

LISTED = 10


def count(number: int) -> str:
    """1234567 -> 1,234,567"""
    return f"{number:,}"


def size(number: int) -> str:
    """Bytes in units of 1,000: 12345678 -> 12.3 MB"""
    if number < 1_000:
        return f"{number} B"
    value = float(number)
    for unit in ("kB", "MB", "GB", "TB"):
        value /= 1_000
        if value < 999.5 or unit == "TB":
            break
    return f"{value:.1f} {unit}" if value < 99.95 else f"{value:,.0f} {unit}"


def rate(per_second: float) -> str:
    """2.345 -> 2.3/s, 2345.6 -> 2,346/s"""
    return f"{per_second:.1f}/s" if per_second < 99.95 else f"{per_second:,.0f}/s"


def elapsed(seconds: float) -> str:
    """As a clock: 83 -> 1:23, 3723 -> 1:02:03, 100000 -> 1 d 3:46:40"""
    minutes, second = divmod(int(seconds), 60)
    hours, minute = divmod(minutes, 60)
    days, hour = divmod(hours, 24)
    if days:
        return f"{days} d {hour}:{minute:02}:{second:02}"
    return f"{hour}:{minute:02}:{second:02}" if hour else f"{minute}:{second:02}"


def latency(seconds: float) -> str:
    """0.0123 -> 12 ms, 1.234 -> 1.2 s"""
    if seconds < 0.9995:
        return f"{seconds * 1_000:.0f} ms"
    return f"{seconds:.1f} s" if seconds < 99.95 else f"{seconds:.0f} s"


def share(part: float) -> str:
    """0.98765 -> 98.8 %. Never says 100 or 0 unless it is exactly that."""
    if part in (0.0, 1.0):
        return f"{part * 100:.0f} %"
    return f"{min(max(part * 100, 0.1), 99.9):.1f} %"


def causes(numbers: Mapping[str, int], limit: int | None = None) -> list[tuple[str, int]]:
    """The most frequent ones first; past `limit` the rest is put together as "other"."""
    ordered = sorted(numbers.items(), key=lambda entry: (-entry[1], entry[0]))
    if limit is None or len(ordered) <= limit:
        return ordered
    head, rest = ordered[: limit - 1], ordered[limit - 1 :]
    return [*head, ("other", sum(number for _, number in rest))]


def listed(names: Sequence[str]) -> str:
    """The first ten, and how many more there are."""
    more = len(names) - LISTED
    return ", ".join(names[:LISTED]) + (f" and {count(more)} more" if more > 0 else "")


def printable(text: str) -> str:
    """Text from the network must not move the cursor: a space for each character that is not printable."""
    return text if text.isprintable() else "".join(c if c.isprintable() else " " for c in text)


def one_line(text: str, limit: int = 500) -> str:
    """Printable, and not so long that it fills the screen."""
    return printable(text if len(text) <= limit else text[: limit - 1] + "…").strip()


def headline(error: str) -> str:
    """Of an error, with or without its traceback, the line that says what went wrong."""
    lines = error.strip().splitlines() or [""]
    return lines[-1 if lines[0].startswith("Traceback") else 0]
