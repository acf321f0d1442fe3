from __future__ import annotations

from silkline.engine.known import KnownUrls


def test_what_was_added_is_known() -> None:
    known = KnownUrls()
    known.add(["https://a/", "https://b/"])
    assert "https://a/" in known
    assert "https://c/" not in known
    assert known.missing(["https://c/", "https://a/", "https://d/"]) == ["https://c/", "https://d/"]


def test_memory_is_bounded_and_the_newest_survive() -> None:
    known = KnownUrls(capacity=100)
    for number in range(10_000):
        known.add([f"https://a/{number}"])
        assert len(known) <= 100
    assert all(f"https://a/{number}" in known for number in range(9_960, 10_000))
    assert "https://a/1" not in known
