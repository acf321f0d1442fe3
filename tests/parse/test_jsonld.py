"""JSON-LD: what is read, what is mended, what is left out with a note."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from silkline.parse.jsonld import MAX_TEXT
from tests.parse.pages import page_of


def block(text: str) -> str:
    return f'<script type="application/ld+json">{text}</script>'


def read(html: str) -> tuple[list[dict[str, Any]], list[str]]:
    found = page_of(html).structured()
    return found.json_ld, found.notes


def test_all_blocks_are_read_in_order_and_no_other_scripts() -> None:
    html = '<script type="Application/LD+JSON; charset=utf-8">{"a": 1}</script><script>{"b": 2}</script>'
    assert read(html + "<body>" + block('{"c": 3}')) == ([{"a": 1}, {"c": 3}], [])


def test_arrays_and_graphs_give_their_objects_one_by_one() -> None:
    html = block('[{"a": 1}, [{"b": 2}], 3, "x"]') + block(
        '{"@context": "https://schema.org", "@graph": [{"@type": "A"}, {"@type": "B"}]}'
    )
    assert read(html)[0] == [{"a": 1}, {"b": 2}, {"@type": "A"}, {"@type": "B"}]


def test_a_named_graph_keeps_what_is_said_of_it() -> None:
    assert read(block('{"@id": "g", "@graph": {"a": 1}}'))[0] == [{"@id": "g"}, {"a": 1}]


def test_what_stands_in_a_template_is_not_part_of_the_page() -> None:
    assert read(f"<template>{block('[1]')}{block('{}')}</template>") == ([], [])


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{"a": "two\nlines\tand a tab"}', "two\nlines\tand a tab"),
        ('{"a": "x",\n}', "x"),
        ('{"a": ["x", ] , }', ["x"]),
        ('{"a": "x"};', "x"),
        ('// a note\n{"a": /* here */ "x"}', "x"),
        ('{"a": "https://x.example/ /* no comment */, ]"};', "https://x.example/ /* no comment */, ]"),
        ('<!--\n{"a": "x"}\n-->', "x"),
        ('//<![CDATA[\n{"a": "x"}\n//]]>', "x"),
        ('/*<![CDATA[*/ {"a": "x"} /*]]>*/', "x"),
        ('\ufeff{"a": "x"}', "x"),
        ("{&quot;a&quot;: &quot;x&quot;}", "x"),
        (r'{"a": "\ud83d"}', "\ufffd"),
        (r'{"a": "\ude00\ud83d\ude00 \\ud83d",}', "\ufffd\U0001f600 \\ud83d"),
    ],
)
def test_what_has_one_meaning_only_is_mended_and_noted(text: str, value: Any) -> None:
    objects, notes = read(block(text))
    assert objects == [{"a": value}]
    assert notes == ["JSON-LD block 1: not quite JSON, mended"]


@pytest.mark.parametrize(
    "text",
    [
        '{"a": 1',
        '{"a": 1}{"b": 2}',
        "{'a': 1}",
        '{"a": NaN}',
        '{"a": 1e999,}',
        '{"a": ' + "9" * 5_000 + "}",
        "x",
    ],
)
def test_what_is_broken_is_left_out_with_a_note_and_the_others_stay(text: str) -> None:
    objects, notes = read(block('{"first": 1}') + block(text) + block('{"last": 1}'))
    assert objects == [{"first": 1}, {"last": 1}]
    assert len(notes) == 1
    assert notes[0].startswith("JSON-LD block 2: ")
    assert notes[0].endswith(", left out")


def test_empty_blocks_need_no_note() -> None:
    assert read(block(" \n ") + block("{}") + block('{"@context": "https://schema.org"}')) == ([], [])


@pytest.mark.parametrize("text", ["[" * 100_000, '{"a":' * 100_000, "[" * 100_000 + "]" * 100_000])
def test_nesting_without_end_is_left_out(text: str) -> None:
    objects, notes = read(block(text) + block('{"a": 1}'))
    assert objects == [{"a": 1}]
    assert len(notes) == 1


def test_more_than_the_limit_is_not_read() -> None:
    html = block('{"a": 1}') + block('{"b": "' + "x" * MAX_TEXT + '"}') + block('{"c": 1}')
    objects, notes = read(html)
    assert objects == [{"a": 1}]
    assert notes == ["JSON-LD block 2 and what follows: over 2,000,000 characters, left out"]


@pytest.mark.parametrize(
    "unit", [r"\"\"", "\"'", ", ", ",/*", "//", "/*", " ;", "&quot;", "<!--", "]]>", r"\ud83d", "*/ "]
)
def test_mending_takes_time_in_proportion_to_the_length(unit: str) -> None:
    """By a count of characters that would take minutes if every part were looked at from every other."""
    objects, notes = read(block("[x" + unit * 300_000 + '"'))
    assert (objects, len(notes)) == ([], 1)


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@given(st.dictionaries(st.text(min_size=1).filter(lambda name: not name.startswith("@")), values, min_size=1))
def test_good_json_is_read_as_it_is(value: dict[str, Any]) -> None:
    try:
        text = msgspec.json.encode(value).decode()
    except msgspec.MsgspecError:
        return
    if "<" in text:
        text = text.replace("<", r"\u003c")
    assert read(block(text)) == ([msgspec.json.decode(text)], [])


@given(st.text(alphabet='{}[]",:/*\\u0dD8 \n;<!->1ae&'))
def test_no_text_at_all_raises(text: str) -> None:
    objects, _ = read(block(text))
    assert all(isinstance(one, dict) for one in objects)
