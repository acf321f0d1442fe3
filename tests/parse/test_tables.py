"""Tables: where cells stand, what heads them, records, limits."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from silkline.errors import ContentError, SelectorError
from silkline.parse.grid import MAX_COLUMNS, grid_of
from silkline.parse.tables import MAX_PLACES, MAX_TABLES, MAX_TEXT, Table
from tests.parse.pages import page_of


def table(rows: str) -> Table:
    (found,) = page_of(f"<table>{rows}</table>").tables()
    return found


def test_a_header_names_the_fields_of_the_records() -> None:
    found = table(
        "<caption>Prices <i>2026</i></caption><thead><tr><th>Name<th>Price</thead>"
        "<tr><td>Chair<td>9<tr><td>Table<td>"
    )
    assert found == Table("Prices 2026", ("Name", "Price"), (), (("Chair", "9"), ("Table", "")))
    assert found.records() == [{"Name": "Chair", "Price": "9"}, {"Name": "Table", "Price": ""}]


@pytest.mark.parametrize(
    "head",
    [
        "<thead><tr><td>a<td>b</thead>",
        "<tr><th>a<th>b</tr>",
        "<tr><td scope=col>a<td scope=col>b</tr>",
        "<tr role=row><td role=columnheader>a<td role=columnheader>b</tr>",
        "<thead></thead><tr><th>a<th>b</tr>",
        "<thead><tr><th><th></thead><tr><th>a<th>b</tr>",
    ],
)
def test_a_header_is_told_by_its_elements(head: str) -> None:
    found = table(head + "<tr><td>1<td>2")
    assert found.header == ("a", "b")
    assert found.rows[-1] == ("1", "2")


def test_a_table_without_a_header_has_numbered_columns() -> None:
    found = table("<tr><td>a<td>b<tr><td>1<td>2")
    assert (found.header, found.rows) == ((), (("a", "b"), ("1", "2")))
    assert found.records() == [{"column 1": "a", "column 2": "b"}, {"column 1": "1", "column 2": "2"}]


def test_names_of_several_header_rows_are_joined() -> None:
    found = table(
        "<tr><th rowspan=2>Name<th colspan=2>Price<tr><th>net<th>gross"
        "<tr><td>Chair<td>9<td>11<tr><td>x<td>1<td>2"
    )
    assert found.header == ("Name", "Price net", "Price gross")
    assert found.rows == (("Chair", "9", "11"), ("x", "1", "2"))


def test_a_title_above_all_columns_is_a_caption() -> None:
    found = table("<tr><th colspan=2>Results<tr><th>a<th>b<tr><td>1<td>2")
    assert (found.caption, found.header) == ("Results", ("a", "b"))


def test_a_corner_and_names_in_the_rows_are_no_hindrance() -> None:
    found = table("<tr><td><th>2025<th>2026<tr><th scope=row>Chairs<td>1<td>2")
    assert found.header == ("", "2025", "2026")
    assert found.records() == [{"column 1": "Chairs", "2025": "1", "2026": "2"}]


def test_a_list_of_features_gives_a_record_for_each_thing() -> None:
    found = table("<tr><th>Weight<td>3 kg<td>9 kg<tr><th>Colour<td>blue<td>red")
    assert found.row_header == ("Weight", "Colour")
    assert found.rows[0] == ("Weight", "3 kg", "9 kg")
    assert found.records() == [{"Weight": "3 kg", "Colour": "blue"}, {"Weight": "9 kg", "Colour": "red"}]


def test_names_that_come_again_get_numbers() -> None:
    found = table("<tr><th>a<th>a 2<th>a<th><th>a<tr><td>1<td>2<td>3<td>4<td>5")
    assert found.records() == [{"a": "1", "a 2": "2", "a 3": "3", "column 4": "4", "a 4": "5"}]


def test_a_page_that_has_th_everywhere_has_one_header_row() -> None:
    found = table("<tr><th>a<th>b<tr><th>1<th>2")
    assert (found.header, found.rows) == (("a", "b"), (("1", "2"),))


def test_a_header_alone_is_a_table_without_rows() -> None:
    found = table("<tr><th>a<th>b")
    assert (found.header, found.rows, found.records()) == (("a", "b"), (), [])


# Where cells stand (HTML Standard, section 4.9.12).


def test_spans_are_in_each_place_that_they_cover() -> None:
    found = table("<tr><td rowspan=2>a<td colspan=2>b<td>c<tr><td>d<td>e<td>f<tr><td colspan=4>g")
    assert found.rows == (("a", "b", "b", "c"), ("a", "d", "e", "f"), ("g", "g", "g", "g"))


def test_rows_that_are_short_are_filled() -> None:
    assert table("<tr><td>a<tr><td>b<td>c<tr>").rows == (("a", ""), ("b", "c"), ("", ""))


def test_a_rowspan_ends_with_its_section_and_zero_means_till_there() -> None:
    rows = "<tr><td rowspan=9>a<td>1<tr><td>2<tbody><tr><td rowspan=0>b<td>3<tr><td>4<tr><td>5"
    assert table(rows).rows == (("a", "1"), ("a", "2"), ("b", "3"), ("b", "4"), ("b", "5"))


def test_the_foot_is_below_wherever_it_is_written() -> None:
    rows = "<tfoot><tr><td>sum</tfoot><tbody><tr><td>1</tbody><thead><tr><td>n</thead>"
    assert table(rows).header == ("n",)
    assert table(rows).rows == (("1",), ("sum",))


def test_columns_in_which_no_cell_begins_are_none() -> None:
    assert table("<tr><td>a<td>b<tr><td colspan=1000000>c").rows == (("a", "b"), ("c", "c"))


@pytest.mark.parametrize("span", ["x", "-1", "", "0", "1.9", "٣"])
def test_a_colspan_that_is_none_is_one(span: str) -> None:
    assert table(f"<tr><td colspan='{span}'>a<td>b").rows == (("a", "b"),)


def test_cells_do_not_overlap() -> None:
    assert table("<tr><td>a<td rowspan=2>b<td>c<tr><td colspan=3>d<td>e").rows == (
        ("a", "b", "c"),
        ("d", "b", "e"),
    )


# Which tables.


def test_tables_in_tables_are_tables_too() -> None:
    found = page_of("<table id=o><tr><td>a<table><tr><td>in</table><td>b</table><table></table>").tables()
    assert [one.rows for one in found] == [(("a in", "b"),), (("in",),)]


def test_a_selector_chooses_tables_or_what_they_are_in() -> None:
    page = page_of(
        "<table class=p><tr><td>1</table><div class=p><table><tr><td>2</table></div><table><tr><td>3</table>"
    )
    assert [one.rows[0][0] for one in page.tables(".p")] == ["1", "2"]
    assert [one.rows[0][0] for one in page.css("div, table")[1].tables()] == ["2"]
    assert [one.rows[0][0] for one in page.css("table")[-1].tables()] == ["3"]
    assert page.tables("li") == []
    with pytest.raises(SelectorError):
        page.tables("[")


def test_templates_have_none_and_json_cannot_be_asked() -> None:
    assert page_of("<template><table><tr><td>1</table></template>").tables() == []
    with pytest.raises(ContentError):
        page_of(b"{}", "application/json").tables()


# Limits.


def test_a_table_of_spans_is_cut_where_it_has_too_many_places() -> None:
    found = table("<tr><td rowspan=65534 colspan=999>a<td>b" + "<tr><td>x" * 20_000)
    assert found.cut
    assert 0 < len(found.rows) * len(found.rows[0]) <= MAX_PLACES


def test_more_columns_than_the_limit_are_left_out() -> None:
    found = table("<tr>" + "<td>x" * (MAX_COLUMNS + 5))
    assert found.cut
    assert len(found.rows[0]) == MAX_COLUMNS


def test_more_tables_than_the_limit_are_left_out() -> None:
    assert len(page_of("<table><tr><td>x</table>" * (MAX_TABLES + 5)).tables()) == MAX_TABLES


def test_text_in_tables_in_tables_is_read_up_to_a_limit() -> None:
    found = page_of("<table><tr><td>" * 100 + "x" * 500_000).tables()
    assert sum(len(text) for one in found for row in one.rows for text in row) <= MAX_TEXT + 600_000
    assert found[-1].cut


@pytest.mark.parametrize(
    "html",
    [
        "<table>" + "<tr><td colspan=1000 rowspan=65534>x" * 5_000,
        "<table>" + "<tr><td colspan=999>x<td>y" * 5_000,
        "<table><tr>" + "<td rowspan=65534>x" * 999 + "<tr><td>x" * 5_000,
        "<table><tr><td>x" * 2_000,
    ],
)
def test_tables_made_to_be_large_take_little(html: str) -> None:
    """They would have millions to billions of places."""
    assert sum(len(one.rows) * len(one.rows[0]) for one in page_of(html).tables()) <= MAX_PLACES


cells = st.tuples(
    st.sampled_from(["td", "th"]),
    st.sampled_from(["", "1", "2", "3", "99999999", "x"]),
    st.integers(0, 4),
    st.booleans(),
)
rows = st.lists(st.lists(cells, max_size=5), max_size=6)


@given(st.lists(st.tuples(st.sampled_from(["thead", "tbody", "tfoot"]), rows), max_size=3))
def test_any_table_is_a_rectangle_that_has_every_cell(
    sections: list[tuple[str, list[list[tuple[str, ...]]]]],
) -> None:
    html = "<table>"
    wanted = set()
    for name, section in sections:
        html += f"<{name}>"
        for row in section:
            html += "<tr>"
            for tag, across, down, empty in row:
                text = "" if empty else f"c{len(wanted)}"
                wanted.add(text)
                html += f"<{tag} colspan='{across}' rowspan='{down}'>{text}</{tag}>"
    page = page_of(html)
    grid = grid_of(page.document.select("table")[0], MAX_PLACES)
    assert {len(row) for _, row in grid.rows} <= {grid.width}
    places = {cell.element.text for _, row in grid.rows for cell in row if cell}
    assert places == wanted or grid.cut
    for found in page.tables():
        assert len({len(row) for row in found.rows}) <= 1
        assert all(len(record) >= 0 for record in found.records())


tags = st.sampled_from(
    [
        "<table>",
        "</table>",
        "<tr>",
        "<td>",
        "<th rowspan=2>",
        "<td colspan=3>",
        "<thead>",
        "<caption>",
        "x",
        "<p>",
        "<svg>",
    ]
)


@given(st.lists(tags, max_size=40).map("".join))
def test_no_table_raises(html: str) -> None:
    for found in page_of(html).tables():
        found.records()
