"""How alike two texts are: 64-bit SimHash over shingles of words (Charikar 2002; Manku et al. 2007)."""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator, Mapping
from hashlib import blake2b

SHINGLE = 3
"""Words in a row."""

MOST_SHINGLES = 4_000
"""Of one text that are looked at."""

NEAR = 3
"""Bits by which two near-identical texts differ at most."""

_words = re.compile(r"\w+").findall
_NO_WORDS = {code: " " for code in range(128) if not re.match(r"\w", chr(code))}


def simhash(text: str, *, leave_out: frozenset[str] = frozenset()) -> int | None:
    """The hash of a text; None for one without words.

    leave_out: words that make no difference, such as the page's own number.
    """
    words = _words_of(text.lower())[: MOST_SHINGLES + SHINGLE]
    if not leave_out.isdisjoint(words):
        words = ["#" if word in leave_out else word for word in words]
    if not words:
        return None
    if len(words) < SHINGLE:
        words += [""] * (SHINGLE - len(words))
    # Each word is hashed once; a tuple of numbers has the same hash in every process.
    numbers = {word: _number(word) for word in set(words)}
    row = list(map(numbers.__getitem__, words))
    shingles = set(map(hash, zip(row, row[1:], row[2:], strict=False)))
    count, result = len(shingles), 0
    digests = struct.pack(f"={count}q", *shingles)
    ones = int.from_bytes(b"\1" * count)
    for place in range(8):
        # All digests' bytes at one place are one number: counting its bits takes no step for each digest.
        column = int.from_bytes(digests[place::8])
        for bit in range(8):
            if (column & ones << bit).bit_count() > count / 2:
                result |= 1 << (8 * place + bit)
    return result


def _words_of(text: str) -> list[str]:
    """Of ASCII, as most texts are, in a quarter of the time that the pattern takes."""
    return text.translate(_NO_WORDS).split() if text.isascii() else _words(text)


def _number(word: str) -> int:
    return int.from_bytes(blake2b(word.encode("utf-8", "surrogatepass"), digest_size=7).digest())


def alike(one: int, other: int) -> bool:
    return (one ^ other).bit_count() <= NEAR


class Sketches:
    """The hashes of the last texts, to be asked for one that is near-identical to a new one.

    Of four 16-bit parts of hashes that differ in three bits at most, one is equal: only those are compared.
    Two generations: the older one is forgotten when the younger one is full.
    """

    def __init__(self, capacity: int = 65_536) -> None:
        self._limit = capacity // 2
        self._young: dict[tuple[int, int], dict[int, str]] = {}
        self._old: Mapping[tuple[int, int], Mapping[int, str]] = {}
        self._count = 0

    def find(self, sketch: int) -> str | None:
        """The name of a near-identical one."""
        for part in _parts(sketch):
            for generation in (self._young, self._old):
                for known, name in generation.get(part, {}).items():
                    if alike(known, sketch):
                        return name
        return None

    def add(self, sketch: int, name: str) -> None:
        for part in _parts(sketch):
            self._young.setdefault(part, {}).setdefault(sketch, name)
        self._count += 1
        if self._count >= self._limit:
            self._old, self._young, self._count = self._young, {}, 0


def _parts(sketch: int) -> Iterator[tuple[int, int]]:
    return ((place, sketch >> (16 * place) & 0xFFFF) for place in range(4))
