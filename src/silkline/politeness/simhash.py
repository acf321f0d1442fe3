"""How alike two texts are: 64-bit SimHash over shingles of words (Charikar 2002; Manku et al. 2007)."""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterator, Mapping
from hashlib import blake2b

SHINGLE = 3
"""Words in a row."""

MOST_SHINGLES = 4_000
"""Of one text that are looked at."""

NEAR = 3
"""Bits by which two near-identical texts differ at most."""

_words = re.compile(r"\w+").findall
_BITS = [bytes(byte >> bit & 1 for byte in range(256)) for bit in range(8)]


def simhash(text: str, *, leave_out: frozenset[str] = frozenset()) -> int | None:
    """The hash of a text; None for one without words.

    leave_out: words that make no difference, such as the page's own number.
    """
    words = ["#" if word in leave_out else word for word in _words(text.lower())[: MOST_SHINGLES + SHINGLE]]
    if not words:
        return None
    if len(words) < SHINGLE:
        words += [""] * (SHINGLE - len(words))
    # Each word is hashed once; a tuple of numbers has the same hash in every process.
    numbers = {word: _number(word) for word in set(words)}
    row = [numbers[word] for word in words]
    digests = array("q", map(hash, set(zip(row, row[1:], row[2:], strict=False)))).tobytes()
    half, result = len(digests) / 16, 0
    for bit in range(64):
        # All digests' bytes at one place, as zeros and ones: counting them so takes no step for each digest.
        if digests[bit // 8 :: 8].translate(_BITS[bit % 8]).count(1) > half:
            result |= 1 << bit
    return result


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
