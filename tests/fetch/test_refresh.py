"""Refreshes by header and <meta>, over every fetcher: an option, for what sends its reader on at once."""

from __future__ import annotations

import ada_url
import pytest
from site_of_pages import OpenSite
from tests.conformance import Case, cases, check

from silkline.errors import TooManyRedirects
from silkline.fetch.refresh import parse_refresh

HOME = (200, {"Content-Type": "text/html"}, b"home")


def page(content: str, before: str = "") -> tuple[int, dict[str, str], bytes]:
    html = f'<html><head>{before}<meta http-equiv="Refresh" content="{content}"></head>hop</html>'
    return 200, {"Content-Type": "text/html"}, html.encode()


@pytest.mark.parametrize(
    ("text", "parsed"),
    [
        ("0", (0, "")),
        ("5; url=/next", (5, "/next")),
        (" 1.9,URL = '/a b' c", (1, "/a b")),
        ('0;url="/next', (0, "/next")),
        ("0 /next", (0, "/next")),
        (".5;next", (0, "next")),
        ("0;;url=x", (0, ";url=x")),
        ("00000000000000000003;x", (3, "x")),
        ("99999999999999999999;x", (999999999, "x")),
        ("0;urlx", (0, "urlx")),
        ("x;url=/next", None),
        ("-1;url=/next", None),
        ("0x;url=/next", None),
        ("", None),
    ],
)
def test_a_refresh_is_read_as_the_html_standard_says(text: str, parsed: tuple[int, str] | None) -> None:
    assert parse_refresh(text) == parsed


def test_where_a_refresh_leads_is_what_browsers_make_of_it() -> None:
    page_url = "http://h.test/dir/page"

    def fault(case: Case) -> object:
        wanted = case["refresh"] and (case["refresh"]["delay"], case["refresh"]["url"])
        got = parse_refresh(case["content"])
        leads = [
            pair and (pair[0], ada_url.join_url(page_url, pair[1]) if pair[1] else None)
            for pair in (got, wanted)
        ]
        return None if leads[0] == leads[1] else got

    check(cases("html-links/meta_refresh"), lambda case: case["content"], fault)


async def test_by_default_a_refreshing_page_is_the_answer(open_site: OpenSite) -> None:
    site = await open_site({"/": page("0;url=/next"), "/next": HOME})
    assert (await site.fetch()).url == site.url("/")


@pytest.mark.parametrize(
    "first",
    [
        page("0; url=/dir/next"),
        page("3;URL='next'", before='<base href="/dir/">'),
        page("0; url=/dir/next", before="<noscript>"),
        (200, {"Refresh": "0; url=/dir/next"}, b"x"),
        (200, {"Refresh": "0; url=/dir/next", "Content-Type": "text/plain"}, b"x"),
    ],
)
async def test_a_page_that_refreshes_at_once_is_left(
    open_site: OpenSite, first: tuple[int, dict[str, str], bytes]
) -> None:
    site = await open_site({"/": first, "/dir/next": HOME}, follow_refresh=True)
    response = await site.fetch()
    assert (response.url, response.history) == (site.url("/dir/next"), (site.url("/"),))
    assert (response.body, site.targets) == (b"home", ["/", "/dir/next"])


@pytest.mark.parametrize(
    "first",
    [
        page("6; url=/next"),
        page("0"),
        page("0; url=/"),
        page("0; url=#part"),
        page("0; url=javascript:x()"),
        page("0; url=mailto:x@h.test"),
        page("0; url=http://["),
        (404, {"Content-Type": "text/html"}, page("0;url=/next")[2]),
        (200, {"Content-Type": "text/plain"}, page("0;url=/next")[2]),
        (200, {"Content-Type": "text/html"}, b"<!--" + page("0;url=/next")[2] + b"-->"),
        (200, {"Content-Type": "text/html"}, b"x" * 70_000 + page("0;url=/next")[2]),
        (404, {"Refresh": "0; url=/next"}, b"x"),
    ],
)
async def test_other_pages_are_answers(open_site: OpenSite, first: tuple[int, dict[str, str], bytes]) -> None:
    site = await open_site({"/": first, "/next": HOME}, follow_refresh=True)
    response = await site.fetch()
    assert (response.history, site.targets) == ((), ["/"])


async def test_pages_that_refresh_to_each_other_end_in_an_answer(open_site: OpenSite) -> None:
    site = await open_site({"/": page("0;url=/b"), "/b": page("0;url=/")}, follow_refresh=True)
    assert (await site.fetch()).url == site.url("/b")
    assert site.targets == ["/", "/b"]


async def test_redirects_and_refreshes_share_one_limit(open_site: OpenSite) -> None:
    pages = {f"/{n}": page(f"0;url=/{n + 1}") for n in range(0, 6, 2)}
    pages |= {f"/{n}": (302, {"Location": f"/{n + 1}"}, b"") for n in range(1, 6, 2)}
    site = await open_site({**pages, "/6": HOME}, follow_refresh=True, max_redirects=5)
    assert (await site.fetch("/1")).url == site.url("/6")
    with pytest.raises(TooManyRedirects):
        await site.fetch("/0")


async def test_a_refresh_is_a_get_without_credentials_for_others(open_site: OpenSite) -> None:
    first = (200, {"Refresh": "0;url=http://{other}/next"}, b"hop")
    site = await open_site({"/": first, "/next": HOME}, follow_refresh=True)
    await site.fetch(method="POST", body=b"x=1", headers={"Authorization": "Basic x", "X-Other": "kept"})
    assert site.sent_line() == ("GET", b"")
    assert (site.sent("Authorization"), site.sent("X-Other")) == (None, "kept")
