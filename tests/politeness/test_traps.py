from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from silkline.outcome import Refused
from silkline.politeness.simhash import NEAR, Sketches, alike, simhash
from silkline.politeness.traps import NearDuplicates, Traps, pattern_of
from silkline.request import Request
from tests.politeness.trap_site import prose

HOST = "https://shop.example"


@pytest.mark.parametrize(
    ("url", "trap"),
    [
        ("/a/b/c/a/b/c/a/b/c/", "the path goes in circles at https://shop.example/a/b/c/"),
        ("/shop/shop/shop/shop/x/y", "the path goes in circles at https://shop.example/shop/x/"),
        ("/img/x/img/y/img/z/img/w/img/v", "the path goes in circles"),
        ("/" + "/".join(f"s{n}x" for n in range(41)), "a path of more than 40 segments"),
        ("/list?page=1&on=1&on=1&on=1", "the query says on=1 again and again at https://shop.example/list?"),
        ("/list?" + "&".join(f"p{n}={n}" for n in range(41)), "a query of more than 40 parameters"),
    ],
)
def test_a_link_that_repeats_itself_or_has_no_end_is_a_trap_by_its_url(url: str, trap: str) -> None:
    assert Traps(print).shape(HOST + url).startswith(f"trap: {trap}")


@pytest.mark.parametrize(
    "url",
    [
        "/2011/11/11/11/11/11/11/11",
        "/1/1/1/1/1/1/1",
        "/a/b/c/d/e/f/g/h/i/j/k/l/m/n",
        "/docs/en/guide/docs/en/guide/api",
        "/a/a/a/b/c/d/e",
        "/list?f=1&f=2&f=3&f=4&f=5&f=6",
        "/list?a=&b=&c=&d=&e=",
        "/list?a=1&a=1",
        "//////////",
        "/",
    ],
)
def test_deep_paths_dates_and_filters_of_many_values_are_no_traps(url: str) -> None:
    assert Traps(print).shape(HOST + url) == ""


@pytest.mark.parametrize(
    ("url", "pattern"),
    [
        ("/", "/"),
        ("/a", "/"),
        ("/product/12", "/product/"),
        ("/calendar/2026/11", "/calendar/0/"),
        ("/calendar/2026/11/05", "/calendar/0/"),
        ("/calendar/2026-11-05/", "/calendar/0/"),
        ("/s/0123456789abcdef/page/3", "/s/*/page/"),
        ("/list?page=3&sort=x", "/list?"),
        ("/a/b/c/a/b/c/x", "/a/b/c/"),
        ("/a/b/a/x", "/a/b/a/"),
    ],
)
def test_the_pattern_of_a_url_leaves_out_numbers_dates_and_tokens(url: str, pattern: str) -> None:
    assert pattern_of(HOST + url) == HOST + pattern


class Walk:
    """Pages of one pattern, one after the other, each with a new link to the next one."""

    def __init__(self, text: str = "Nothing here") -> None:
        self.told: list[str] = []
        self.traps = Traps(self.told.append)
        self.number = 0
        self._text = text

    def go(
        self, pages: int, *others: str, text: str | None = None, depth: int | None = None, title: str = ""
    ) -> str:
        """The reason for which the links of the last page are refused."""
        reason = ""
        for _ in range(pages):
            self.number += 1
            links = [f"{HOST}/list/{self.number + 1}", *others]
            says = f"{self._text} on page {self.number}" if text is None else text.format(prose(self.number))
            deep = self.number if depth is None else depth
            here = f"{HOST}/list/{self.number}"
            named = title.format(prose(-self.number, 3), self.number)
            reason = self.traps.barred(
                here, deep, map(Request, links), lambda says=says: says, lambda named=named: named
            )
        return reason


def test_a_chain_of_pages_that_say_the_same_is_a_trap_and_told_once() -> None:
    walk = Walk()
    assert walk.go(80) == ""
    assert walk.go(20) == f"trap: pages without end at {HOST}/list/"
    assert walk.go(500) != ""
    assert len(walk.told) == 1
    assert f"{HOST}/list/" in walk.told[0]


def test_a_chain_whose_pages_differ_goes_on_for_ever() -> None:
    walk = Walk()
    assert walk.go(3_000, text="A chapter: {0}") == ""
    assert walk.told == []


def test_pages_that_say_nearly_the_same_under_names_of_their_own_are_no_trap() -> None:
    walk = Walk(prose("of the whole site", 300))
    assert walk.go(2_000, title="{0} - shop.example") == ""
    assert walk.told == []


def test_titles_that_say_what_the_url_says_make_no_difference() -> None:
    walk = Walk()
    assert walk.go(100, title="List {1}, page {1} - shop.example") != ""


def test_pages_that_bring_something_else_are_never_a_trap() -> None:
    walk = Walk()
    for number in range(40):
        walk.go(25)
        assert walk.go(1, f"{HOST}/item/{number}") == ""
    assert walk.told == []


def test_a_trap_that_bears_fruit_again_is_open_again() -> None:
    walk = Walk()
    assert walk.go(120) != ""
    assert walk.go(1, f"{HOST}/event/1") == ""
    assert walk.go(20) == ""


def test_near_the_start_it_takes_a_crowd_of_pages() -> None:
    walk = Walk()
    assert walk.go(300, depth=5) == ""
    assert walk.go(100, depth=5) != ""


def test_a_pattern_has_its_budget() -> None:
    refused: dict[str, Refused] = {}
    traps = Traps(print, budget=2, looks_for_traps=False)
    urls = [f"{HOST}/p/{n}" for n in range(4)] + [f"{HOST}/q/1", f"{HOST}/a/a/a/a/a/a/a/a/"]
    assert traps.outside(urls, refused) == [*urls[:2], *urls[4:]]
    assert refused == {f"more than max_pages_per_pattern of {HOST}/p/": Refused(2, urls[2])}
    assert traps.barred(HOST, 99, map(Request, urls), str) == ""


def test_memory_does_not_grow_with_the_patterns() -> None:
    traps = Traps(print, budget=5)
    for number in range(20_000):
        folder = f"{HOST}/{''.join(chr(97 + int(digit)) for digit in str(number))}"
        traps.barred(f"{folder}/1", 1, [Request(f"{folder}/2")], str)
        traps.outside([f"{folder}/2"], {})
    assert len(traps._young) + len(traps._old) + len(traps._taken) <= 3 * 4_096


class TestSimHash:
    def test_texts_with_a_changed_word_are_alike_and_others_are_not(self) -> None:
        dice = random.Random(3)
        for seed in range(50):
            words = prose(seed, 300).split()
            changed = list(words)
            changed[dice.randrange(300)] = "changed"
            one, near, far = (
                simhash(" ".join(text)) for text in (words, changed, prose(-seed - 1, 300).split())
            )
            assert one is not None
            assert near is not None
            assert far is not None
            assert (one ^ near).bit_count() <= 8
            assert not alike(one, far)

    def test_words_can_be_left_out_and_case_does_not_matter(self) -> None:
        one = simhash("page 17 of many", leave_out=frozenset({"17"}))
        assert one == simhash("PAGE, 18: of many!", leave_out=frozenset({"18"}))
        assert simhash("") is simhash("… !") is None
        assert simhash("one") is not None

    @given(st.integers(0, 2**64 - 1), st.sets(st.integers(0, 63), max_size=NEAR))
    def test_what_differs_in_three_bits_is_found(self, sketch: int, bits: set[int]) -> None:
        sketches = Sketches()
        sketches.add(sketch, "first")
        assert sketches.find(sketch ^ sum(1 << bit for bit in bits)) == "first"

    def test_sketches_are_bounded_and_the_newest_are_kept(self) -> None:
        dice = random.Random(5)
        sketches = Sketches(capacity=1_000)
        numbers = [dice.getrandbits(64) for _ in range(5_000)]
        for number in numbers:
            sketches.add(number, str(number))
        assert sketches.find(numbers[-1]) == str(numbers[-1])
        assert sketches.find(numbers[-400]) is not None
        assert sketches.find(numbers[0]) is None


def test_near_duplicates_are_counted_by_the_first_of_them() -> None:
    twins = NearDuplicates()
    for number in range(12):
        twins.look(f"{HOST}/gone/{number}", f"Sorry, there is nothing here. {prose('footer', 200)}")
        twins.look(f"{HOST}/page/{number}", prose(number, 200))
    twins.look(f"{HOST}/empty", "")
    assert twins.lines() == [f"11 more pages are nearly identical to {HOST}/gone/0"]


def test_pages_without_text_are_no_trap_whatever_their_number() -> None:
    """Scripts fill them: nobody can tell that they say the same."""
    walk = Walk()
    assert walk.go(3_000, text=" ") == ""
    assert walk.told == []
