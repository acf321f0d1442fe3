from __future__ import annotations

import pytest

from silkline.errors import ContentError
from silkline.parse.page import Page
from silkline.testing import page_from

LOGIN = """
<form id=search action="/find"><input name=q></form>
<form id="login" method="POST" action="session?next=%2F">
  <input type="hidden" name="csrf" value="t0k&amp;n">
  <input name="user"><input name="password" type="password">
  <input type=checkbox name=stay checked><input type=checkbox name=spam>
  <select name=lang><option value=de>D<option value=en selected>E</select>
  <textarea name=note>a
b</textarea>
  <input name=off disabled value=1>
  <button name="go" value="in">Log in</button><button name=go value=register>Register</button>
</form>
"""


def page(html: str, url: str = "https://shop.example/account/login#top") -> Page:
    return page_from(html, url=url)


def test_a_filled_form_is_sent_with_its_hidden_fields_and_first_button() -> None:
    request = page(LOGIN).form("#login", {"user": "me", "password": "p&w ü", "new": "1"}, label="in")
    assert (request.method, request.url) == ("POST", "https://shop.example/account/session?next=%2F")
    assert request.headers == {"Content-Type": "application/x-www-form-urlencoded"}
    assert request.label == "in"
    assert request.body == (
        b"csrf=t0k%26n&user=me&password=p%26w+%C3%BC&stay=on&lang=en&note=a%0D%0Ab&go=in&new=1"
    )


def test_none_takes_a_field_out_and_fields_of_one_name_keep_their_places() -> None:
    html = "<form method=post><input name=a value=1><input name=b value=2><input name=a value=3></form>"
    assert page(html).form(data={"a": "x", "b": None}).body == b"a=x"


def test_a_get_form_replaces_the_query_of_its_action() -> None:
    request = page('<form action="/find?old=1#x"><input name=q></form>').form(data={"q": "a b"})
    assert (request.method, request.url, request.body) == ("GET", "https://shop.example/find?q=a+b", None)


def test_a_form_without_an_action_goes_to_its_page_and_one_is_found_by_what_is_in_it() -> None:
    html = "<form method=post><input name=q value=1></form><form method=post><p class=x><input name=z></form>"
    assert page(html).form().url == "https://shop.example/account/login#top"
    assert page(html).form(".x").body == b"z="


def test_values_are_sent_in_the_charset_of_the_page() -> None:
    body = '<meta charset=windows-1251><form method=post><input name=q value="п"></form>'
    found = page_from(body.encode("cp1251"), content_type="text/html").form(data={"r": "ü"})
    assert found.body == b"q=%EF&r=%26%23252%3B"


@pytest.mark.parametrize(
    ("html", "selector", "message"),
    [
        ("<p>none", "form", "has no form at 'form'"),
        ("<p class=x>none", ".x", "has no form at '.x'"),
        ('<form method=post enctype="multipart/form-data">', "form", "multipart/form-data: build"),
        ('<form action="javascript:x()">', "form", "no http"),
    ],
)
def test_a_form_that_cannot_be_sent_is_the_pages_fault(html: str, selector: str, message: str) -> None:
    with pytest.raises(ContentError, match=message):
        page(html).form(selector)
