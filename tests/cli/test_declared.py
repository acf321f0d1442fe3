from __future__ import annotations

from typing import Any

import msgspec
import pytest

from silkline.cli.declared import (
    Declaration,
    declared_crawler,
    definition_of,
    following_all,
    job_name,
    refuse_unknown_key,
)
from silkline.config import Settings
from silkline.errors import ConfigError
from silkline.resolve import convert, resolve
from silkline.testing import page_from, visit

HTML = """
<title>A shop</title>
<div class="product"><h2>One <b>thing</b></h2><a href="/1">x</a></div>
<div class="product"><h2>Two</h2></div>
<a id="next" href="/page/2">next</a> <a href="https://other.example/">other</a>
"""


async def visited(html: str | bytes = HTML, *, content_type: str = "text/html", **declared: Any) -> Any:
    page = page_from(html, url="https://shop.example/", content_type=content_type)
    return await visit(declared_crawler(Declaration(**declared)), page)


async def test_an_item_without_fields_has_url_status_and_title() -> None:
    result = await visited()
    assert result.items == ({"url": "https://shop.example/", "status": 200, "title": "A shop"},)
    assert result.requests == ()


async def test_fields_come_after_the_url() -> None:
    result = await visited(fields=("name=h2", "link=a::attr(href)", "missing=h5"))
    [item] = result.items
    assert list(item.items()) == [
        ("url", "https://shop.example/"),
        ("name", "One thing"),
        ("link", "https://shop.example/1"),
        ("missing", None),
    ]


async def test_one_item_for_each_match() -> None:
    result = await visited(item="div.product", fields=("name=h2", "link=a::attr(href)"))
    assert [(item["name"], item["link"]) for item in result.items] == [
        ("One thing", "https://shop.example/1"),
        ("Two", None),
    ]


@pytest.mark.parametrize("css", ["#next", " a[id]", "a#next::attr(href)"])
async def test_the_links_that_match_are_followed(css: str) -> None:
    result = await visited(follow=(css,))
    assert [request.url for request in result.requests] == ["https://shop.example/page/2"]


async def test_all_links_of_the_host_and_of_allowed_ones_are_followed() -> None:
    crawler = declared_crawler(Declaration(urls=("https://shop.example/",), follow_all=True))
    page = page_from(HTML, url="https://shop.example/")
    inside = ["https://shop.example/1", "https://shop.example/page/2"]
    crawler.configure(Settings(scope="host"))
    assert [request.url for request in (await visit(crawler, page)).requests] == inside
    crawler.configure(Settings(scope="host", allow_hosts=("other.example",)))
    wider = await visit(crawler, page)
    assert [request.url for request in wider.requests] == [*inside, "https://other.example/"]


def test_following_all_links_means_pages_of_the_same_hosts_unless_more_is_said() -> None:
    usual = following_all(resolve({}, {})).settings
    assert (usual.scope, usual.skip_extensions) == ("host", ("media",))
    said = following_all(resolve({"scope": "site"}, {"SILKLINE_SKIP_EXTENSIONS": "pdf"})).settings
    assert (said.scope, said.skip_extensions) == ("site", ("pdf",))


def test_following_all_links_leaves_pictures_out_unless_there_is_a_folder_for_them() -> None:
    kept = following_all(resolve({"outputs": ["a.csv", "pictures/"]}, {})).settings
    assert (kept.scope, kept.skip_extensions) == ("host", ())


@pytest.mark.parametrize(
    ("declared", "items"),
    [
        ({}, [{"url": "https://shop.example/", "status": 200, "title": None}]),
        ({"fields": ("name=h2",)}, [{"url": "https://shop.example/", "name": None}]),
        ({"fields": ("name=h2",), "item": "p"}, []),
    ],
)
async def test_a_picture_among_the_pages_is_no_error(declared: Any, items: list[Any]) -> None:
    result = await visited(
        b"\x89PNG\x00", content_type="image/png", follow=("a",), follow_all=True, **declared
    )
    assert list(result.items) == items


@pytest.mark.parametrize(
    ("declared", "line"),
    [
        ({"fields": ("h2",)}, "field 'h2' has no '='"),
        ({"fields": ("a=p[",)}, "field 'a': selector 'p['"),
        ({"fields": ("a=p", "a=h2")}, "field 'a' is given more than once"),
        ({"item": "div"}, "--item needs fields; add for example --field name=h2"),
        ({"item": "div::text", "fields": ("a=p",)}, "--item: selector 'div::text'"),
        ({"follow": ("a[",)}, "--follow: selector 'a['"),
        ({"follow": ("https://shop.example/",)}, "--follow: selector 'https://shop.example/'"),
    ],
)
def test_what_cannot_work_is_refused_before_anything_starts(declared: Any, line: str) -> None:
    with pytest.raises(ConfigError) as caught:
        declared_crawler(Declaration(**declared))
    assert str(caught.value).startswith(line)
    assert "\n" not in str(caught.value)


BASE = Declaration(urls=("https://shop.example/",), fields=("a=p",), outputs=("a.csv",))
CHANGES: list[dict[str, Any]] = [
    {"urls": ("https://shop.example/x",)},
    {"urls_file": "urls.txt"},
    {"sitemaps": ("https://shop.example/sitemap.xml",)},
    {"sitemaps": ("https://shop.example/sitemap.xml",), "since": "2026-01-31"},
    {"fields": ("a=h2",)},
    {"item": "div"},
    {"follow": ("a",)},
    {"follow_all": True},
    {"follow_all": True, "allow_hosts": ("b.example",)},
    {"follow_all": True, "scope": "site"},
    {"allow": ("/p/",)},
    {"deny": ("/p/",)},
    {"paths": ("/p/",)},
    {"outputs": ("b.csv",)},
]


@pytest.mark.parametrize("change", CHANGES, ids=str)
def test_another_crawl_has_another_name_and_definition(change: dict[str, Any]) -> None:
    other = msgspec.structs.replace(BASE, **change)
    assert job_name(other) != job_name(BASE)
    assert definition_of(other) != definition_of(BASE)


def test_a_crawl_keeps_the_name_that_it_had_before_there_were_sitemaps() -> None:
    assert job_name(BASE) == "shop.example-aed855e8"


def test_every_part_of_a_declaration_is_covered_by_the_test_above() -> None:
    assert {name for change in CHANGES for name in change} == set(Declaration.__struct_fields__)


@pytest.mark.parametrize(
    ("declared", "start"),
    [
        ({"urls": ("https://Shop.example:443/a", "https://x.example/")}, "shop.example-"),
        ({"urls": ("http://shop.example:8080/",)}, "shop.example-8080-"),
        ({"urls": ("http://[::1]:80/",)}, "1-"),
        ({"urls": ("https://bücher.example/",)}, "xn--bcher-kva.example-"),
        ({"urls": (f"https://{'a.' * 100}example/",)}, "a.a.a."),
        ({"urls_file": "lists/my urls.txt"}, "my-urls.txt-"),
        ({"urls_file": "-"}, "stdin-"),
        ({"urls_file": "-.-"}, "crawl-"),
    ],
)
def test_the_name_says_where_the_crawl_starts_and_is_a_valid_one(declared: Any, start: str) -> None:
    name = job_name(Declaration(**declared))
    assert name.startswith(start)
    assert convert("job", name, "here") == name == Settings(job=name).job
    assert name == job_name(Declaration(**declared))


def test_a_definition_reads_like_the_command_and_stays_short() -> None:
    assert definition_of(BASE) == "https://shop.example/ --field a=p --output a.csv"
    long = [Declaration(urls=tuple(f"https://shop.example/{n}" for n in range(count))) for count in (99, 100)]
    assert all(len(definition_of(one)) <= 300 for one in long)
    assert definition_of(long[0]) != definition_of(long[1])


def test_a_key_that_no_item_has_is_refused() -> None:
    refuse_unknown_key(BASE, ("url", "a"))
    refuse_unknown_key(Declaration(), ("title",))
    with pytest.raises(ConfigError, match="item_key 'b' is a field of no item; there are url, a"):
        refuse_unknown_key(BASE, ("a", "b"))


def test_another_table_of_one_database_is_another_definition() -> None:
    one, other = (
        definition_of(Declaration(outputs=(f"postgresql://u:s3cret@h/db?table={t}",))) for t in "ab"
    )
    assert one != other
    assert "s3cret" not in one
