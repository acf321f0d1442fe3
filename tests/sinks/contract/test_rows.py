"""Rows of keyed sinks: what is there is what was written last, as it was meant."""

from __future__ import annotations

from typing import Any

import pytest

from silkline.outcome import MASK
from silkline.protocols import KeyedSink
from tests.sinks.contract.target import Target, item, own

UNICODE = [
    "Ünï",
    "漢字",
    "🦊 👩‍👩‍👧",
    "e\u0301",
    "\u202eright",
    "'; --",
    '"',
    "\\",
    "%s {x} :y $1 ?",
    "a\nb\tc",
    "\x01\x7f",
]


async def test_values_come_back_as_they_were_meant(target: Target, sink: KeyedSink) -> None:
    await sink.write([item(sink, {name: value for name, (value, _) in target.values.items()})])
    [row] = target.rows()
    expected = {name: value for name, (_, value) in target.values.items() if value is not None}
    assert own(row) == expected
    assert {name: type(value) for name, value in own(row).items()} == {
        name: type(value) for name, value in expected.items()
    }


async def test_every_character_comes_back(target: Target, sink: KeyedSink) -> None:
    await sink.write([item(sink, {"text": text, "list": [text]}, page=n) for n, text in enumerate(UNICODE)])
    assert [row["text"] for row in target.rows()] == UNICODE
    assert [row["list"] for row in target.rows()] == [[text] for text in UNICODE]


async def test_a_row_without_a_key_is_told_apart_by_page_and_place(target: Target, sink: KeyedSink) -> None:
    page = -(2**63) + 5
    await sink.write([item(sink, {"n": n}, page=page, index=n) for n in range(2)])
    assert [(row["_key"], row["_fingerprint"], row["_index"], row["n"]) for row in target.rows()] == [
        (f"{page & MASK:016x}-{n}", page, n, n) for n in range(2)
    ]


async def test_what_is_written_again_is_replaced_as_a_whole(target: Target, sink: KeyedSink) -> None:
    await sink.write([item(sink, {"name": "Chair", "price": 9}, page=1, key="sku-1")])
    await sink.write([item(sink, {"name": "Stool", "colour": "red"}, page=2, index=3, key="sku-1")])
    [row] = target.rows()
    assert own(row) == {"name": "Stool", "colour": "red"}
    assert (row["_key"], row["_fingerprint"], row["_index"]) == ("sku-1", 2, None)
    await sink.write([item(sink, {"name": "Stool", "colour": "red"}, page=2, index=3, key="sku-1")])
    assert len(target.rows()) == 1


async def test_keys_that_look_alike_stay_apart(target: Target, sink: KeyedSink) -> None:
    keys = ["a", "A", "a ", " a", "á", "a\u0301", "ａ", "ß", "ss", "", "0", "00", "🦊", "k" * 500]
    await sink.write([item(sink, {"n": n}, page=n, key=key) for n, key in enumerate(keys)])
    await sink.write([item(sink, {"n": n}, page=n, key=key) for n, key in enumerate(keys)])
    assert {row["_key"]: row["n"] for row in target.rows()} == {key: n for n, key in enumerate(keys)}


async def test_columns_come_as_they_are_needed(target: Target, sink: KeyedSink) -> None:
    await sink.write([item(sink, {"a": 1, "late": None}, page=1)])
    await sink.write([item(sink, {"a": 2, "b": "x"}, page=2), item(sink, {"late": 2.5}, page=3)])
    assert [own(row) for row in target.rows()] == [{"a": 1}, {"a": 2, "b": "x"}, {"late": 2.5}]


async def test_an_item_without_fields_is_a_row(target: Target, sink: KeyedSink) -> None:
    await sink.write([item(sink, {}, page=1), item(sink, {}, page=2)])
    await sink.write([item(sink, {}, page=1), item(sink, {"a": 1}, page=2)])
    assert [own(row) for row in target.rows()] == [{}, {"a": 1}]


async def test_whole_numbers_and_others_share_a_column(target: Target, sink: KeyedSink) -> None:
    prices: list[Any] = [9, 9.75, 2**60 + 1, 0.5, 12]
    for page, price in enumerate(prices):
        await sink.write([item(sink, {"price": price}, page=page)])
    assert [row["price"] for row in target.rows()] == prices


async def test_text_columns_take_everything(target: Target, sink: KeyedSink) -> None:
    await sink.write([item(sink, {"v": "n/a"}, page=0)])
    for page, value in enumerate([7, True, 1.5, [1]], 1):
        await sink.write([item(sink, {"v": value}, page=page)])
    said = ["n/a", "7", "true", "1.5", "[1]"] if target.columns else ["n/a", 7, True, 1.5, [1]]
    assert [row["v"] for row in target.rows()] == said


async def test_fields_that_clash_or_are_too_long_are_kept_too(target: Target, sink: KeyedSink) -> None:
    fields = {"Name": 1, "name": 2, "_key": "mine", "_INDEX": 3, "n" * 300: 4, "": 5, "🦊": 6}
    await sink.write([item(sink, fields, page=1, key="k")])
    [row] = target.rows()
    assert row["_key"] == "k"
    found = {name: value for name, value in row.items() if name not in ("_key", "_fingerprint", "_index")}
    found |= found.pop("_more", None) or {}
    assert sorted(map(str, found.values())) == ["1", "2", "3", "4", "5", "6", "mine"]
    assert found["Name"] == 1


@pytest.mark.needs("most")
async def test_more_fields_than_columns_are_kept_too(target: Target, sink: KeyedSink) -> None:
    assert target.most is not None
    fields = {f"f{n}": "x" for n in range(target.most + 20)}
    await sink.write([item(sink, fields, page=1)])
    await sink.write([item(sink, {"f0": "y", f"f{target.most + 19}": [1]}, page=2)])
    first, second = target.rows()
    assert len(first) <= target.most
    assert own(first) | first["_more"] == fields
    assert own(second) == {"f0": "y"}
    assert second["_more"] == {f"f{target.most + 19}": [1]}


async def test_trim_removes_what_earlier_visits_left(target: Target, sink: KeyedSink) -> None:
    await sink.write([item(sink, {"n": n}, page=page, index=n) for page in (-1, 1, 2) for n in range(4)])
    await sink.write([item(sink, {"n": 9}, page=1, index=9, key="kept"), item(sink, {}, page=1, index=12)])
    await sink.trim({1: 2, -1: 0, 77: 0})
    left = {(row["_fingerprint"], row["_key"], row.get("n")) for row in target.rows()}
    assert {(page, n) for page, key, n in left if key != "kept"} == {
        (1, 0),
        (1, 1),
        *((2, n) for n in range(4)),
    }
    assert (1, "kept", 9) in left
    await sink.trim({})


INJECTIONS = [
    "x'); DROP TABLE silkline_victim; --",
    'x"); DROP TABLE silkline_victim; --',
    "x`); DROP TABLE silkline_victim; --",
    "\\'); DROP TABLE silkline_victim; --",
    "a.b",
    "$where",
    "{{x}}",
    "%(x)s %s",
]


@pytest.mark.parametrize("attempt", INJECTIONS)
async def test_names_and_values_cannot_inject(target: Target, sinks: list[KeyedSink], attempt: str) -> None:
    suffix = attempt if target.columns and "." not in attempt else ""
    target.table = f"{target.table[:20]}{suffix}"[:60]
    sink = target.sink()
    sinks.append(sink)
    await sink.open()
    await sink.write([item(sink, {attempt: attempt, "list": [attempt]}, key=attempt)])
    await sink.write([item(sink, {attempt: attempt, "list": [attempt]}, key=attempt)])
    [row] = target.rows()
    assert row["_key"] == attempt
    assert (row.get(attempt) or row["_more"][attempt]) == attempt
    assert target.table in target.names()
