from __future__ import annotations

import random

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from silkline.observe.histogram import HIGHEST, LOWEST, Histogram, merge


def filled(values: list[float]) -> Histogram:
    histogram = Histogram()
    for value in values:
        histogram.add(value)
    return histogram


@given(
    st.lists(st.floats(LOWEST, HIGHEST, exclude_max=True), min_size=1, max_size=200),
    st.sampled_from([0.01, 0.5, 0.95, 0.99, 1.0]),
)
def test_a_quantile_is_within_two_percent_of_the_exact_one(values: list[float], q: float) -> None:
    exact = sorted(values)[max(1, -int(-q * len(values) // 1)) - 1]
    found = filled(values).quantile(q)
    assert found is not None
    assert found == pytest.approx(exact, rel=0.02)


def test_nothing_measured_has_no_quantile() -> None:
    assert Histogram().quantile(0.5) is None


@pytest.mark.parametrize("seconds", [0.0, 1e-9, 0.000999, HIGHEST, 1e9, float("inf")])
def test_values_out_of_range_are_counted_at_the_ends(seconds: float) -> None:
    histogram = filled([seconds])
    assert len(histogram) == 1
    assert histogram.quantile(0.5) == (LOWEST if seconds < LOWEST else HIGHEST)


def test_a_merge_equals_one_histogram_of_everything() -> None:
    source = random.Random(7)
    values = [source.lognormvariate(-2, 2) for _ in range(1_000)]
    merged = merge([filled(values[:300]), filled(values[300:]), Histogram()])
    assert merged.counts == filled(values).counts
    assert merged.total == pytest.approx(sum(values))
    assert merge([]) == Histogram()


def test_a_merge_leaves_its_parts_alone() -> None:
    part = filled([0.5])
    merge([part, part]).add(0.5)
    assert len(part) == 1


@given(st.lists(st.floats(0, 400), max_size=100), st.integers(0, 18))
def test_the_count_below_a_power_of_two_milliseconds_is_exact(values: list[float], power: int) -> None:
    bound = LOWEST * 2**power
    near = [v for v in values if abs(v - bound) > 1e-9 * bound]
    assert filled(near).below(bound) == sum(v < bound for v in near)


def test_it_survives_the_wire() -> None:
    histogram = filled([0.01, 5.0, 1_000.0])
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(histogram), type=Histogram) == histogram
