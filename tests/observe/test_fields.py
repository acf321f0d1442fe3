"""What the fields hold: counts, the past, and when a field has fallen."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from silkline.observe.fields import (
    ENOUGH,
    FIELDS_KEPT,
    KINDS_KEPT,
    NAME_LENGTH,
    NO_PAST,
    REMEMBERED,
    FieldTally,
    Past,
    fallen,
    fields_of,
    merge,
    past_from,
    text_of,
    with_run,
)
from silkline.sinks.record import record_of


def run(*groups: tuple[int, dict[str, Any]], kind: str = "default") -> FieldTally:
    tally = FieldTally()
    for times, record in groups:
        for _ in range(times):
            tally.add(kind, record)
    return tally


def rates(tally: FieldTally) -> dict[str, float]:
    return {field.full_name: field.rate for field in fields_of(tally)}


def test_what_is_null_or_empty_is_not_filled_and_zero_and_false_are() -> None:
    empty = {"null": None, "text": "", "list": [], "object": {}}
    filled = {"zero": 0, "float": 0.0, "false": False, "space": " "}
    assert rates(run((1, empty | filled))) == dict.fromkeys(empty, 0.0) | dict.fromkeys(filled, 1.0)


def test_a_field_that_is_missing_in_some_items_is_filled_in_the_others() -> None:
    assert rates(run((3, {"a": 1}), (1, {"b": 2}))) == {"a": 0.75, "b": 0.25}


def test_types_are_named_the_most_frequent_first() -> None:
    (field,) = fields_of(
        run((2, {"a": "x"}), (1, {"a": None}), (1, {"a": 0}), (2, {"a": 1.5}), (1, {"a": True}))
    )
    assert field.types == ("number", "text", "boolean")
    assert (field.filled, field.items) == (6, 7)


def test_kinds_are_apart_and_the_usual_one_needs_no_name() -> None:
    tally = run((1, {"a": 1}))
    tally.add("Product", {"a": None})
    assert rates(tally) == {"a": 1.0, "Product.a": 0.0}


def test_names_made_of_what_pages_say_do_not_pile_up() -> None:
    tally = FieldTally()
    for number in range(1_000):
        tally.add(f"k{number}", {"a": 1})
        tally.add("k0", {f"f{number}": 1, "x" * (NAME_LENGTH + 1) + str(number): 1})
    assert len(tally.kinds) == KINDS_KEPT
    assert len(tally.kinds["k0"].types) == FIELDS_KEPT
    assert tally.kinds["k0"].items == 1_001


# The past.


def past_of(*runs: FieldTally) -> Past:
    past = NO_PAST
    for one in runs:
        past = past_from(text_of(with_run(past, one)))
    return past


def test_the_past_is_kept_as_text_and_read_back() -> None:
    past = past_of(run((100, {"a": 1}), (100, {"b": 1})))
    assert (past.rate("default", "a"), past.rate("default", "c"), past.rate("Product", "a")) == (
        0.5,
        0.0,
        None,
    )


@pytest.mark.parametrize("text", [None, "", "{", '{"items": 7}', '{"items": {"a": "x"}}'])
def test_a_past_that_cannot_be_read_is_none(text: str | None) -> None:
    assert past_from(text) == NO_PAST


def test_a_small_run_changes_little_and_a_large_one_half() -> None:
    before = run((100_000, {"a": 1}))
    small, large = run((3, {"a": None})), run((100_000, {"a": None}))
    assert past_of(before, small).rate("default", "a") == pytest.approx(REMEMBERED / (REMEMBERED + 3))
    assert past_of(before, large).rate("default", "a") == 0.5


def test_a_field_that_comes_no_more_is_forgotten_after_some_runs() -> None:
    later = run((2_000, {"b": 1}))
    past = past_of(run((2_000, {"a": 1})), *[later] * 20)
    assert list(past.filled["default"]) == ["b"]


# What has fallen.


def lines(now: FieldTally, past: Past, pages: int = 100) -> list[str]:
    return fallen(now, past, pages)


def test_a_field_that_fell_is_named_with_both_rates() -> None:
    past = past_of(run((490, {"price": 1, "name": "x"}), (10, {"price": None, "name": "x"})))
    now = run((12, {"price": 1, "name": "x"}), (88, {"price": None, "name": "x"}))
    assert lines(now, past) == [
        "field 'price': filled in 12.0 % of items, 98.0 % in earlier runs: has the page changed?"
    ]


def test_a_field_that_is_gone_altogether_is_named_too() -> None:
    past = past_of(run((100, {"price": 1, "name": "x"}), kind="Product"))
    assert lines(run((100, {"name": "x"}), kind="Product"), past) == [
        "field 'Product.price': filled in 0 % of items, 100 % in earlier runs: has the page changed?"
    ]


@pytest.mark.parametrize(
    ("earlier", "now"),
    [
        (run((100, {"a": 1})), run((ENOUGH - 1, {"a": None}))),
        (run((ENOUGH - 1, {"a": 1})), run((100, {"a": None}))),
        (run((1_000, {"a": 1})), run((920, {"a": 1}), (80, {"a": None}))),
        (run((15, {"a": 1}), (10, {"a": None})), run((10, {"a": 1}), (15, {"a": None}))),
        (run((50, {"a": 1}), (50, {"a": None})), run((100, {"a": 1}))),
        (run((100, {"a": 1})), run((100, {"a": None}), kind="Product")),
    ],
    ids=["few now", "few earlier", "by little", "by luck", "rose", "another kind"],
)
def test_what_may_be_chance_is_not_warned_of(earlier: FieldTally, now: FieldTally) -> None:
    assert lines(now, past_of(earlier)) == []


def test_a_run_without_items_is_warned_of_where_earlier_ones_had_some() -> None:
    past = past_of(run((100, {"a": 1})))
    assert lines(FieldTally(), past, pages=40) == [
        "no items from 40 pages, some in earlier runs: has the site changed?"
    ]
    assert lines(FieldTally(), past, pages=ENOUGH - 1) == []
    assert lines(FieldTally(), NO_PAST, pages=40) == []


def test_names_from_pages_cannot_steer_the_terminal() -> None:
    past = past_of(run((100, {"a\x1b[2J\n": 1})))
    (line,) = lines(run((100, {})), past)
    assert line.isprintable()


records = st.dictionaries(
    st.sampled_from("abcd"),
    st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=2) | st.just([1]),
    max_size=4,
)
several = st.lists(st.tuples(st.sampled_from(["default", "A"]), records), max_size=12)


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(several, several)
def test_parts_that_are_merged_are_as_if_counted_in_one(first: list[Any], second: list[Any]) -> None:
    parts = [FieldTally(), FieldTally()]
    whole = FieldTally()
    for part, items in zip(parts, (first, second), strict=True):
        for kind, item in items:
            part.add(kind, record_of(item))
            whole.add(kind, record_of(item))
    sent = [msgspec.msgpack.decode(msgspec.msgpack.encode(part), type=FieldTally) for part in parts]
    merged = merge(sent)
    assert merged == whole
    for field in fields_of(merged):
        assert 0 <= field.rate <= 1
