"""OpenGraph: properties, arrays, pictures with their sizes."""

from __future__ import annotations

from silkline.parse.opengraph import MAX_PROPERTIES, Media, OpenGraph
from tests.parse.pages import page_of


def graph(**properties: str) -> OpenGraph:
    return read(*((name.replace("_", ":"), value) for name, value in properties.items()))


def read(*metas: tuple[str, str]) -> OpenGraph:
    html = "".join(f'<meta property="{name}" content="{value}">' for name, value in metas)
    return page_of(html).structured().opengraph


def test_properties_are_asked_for_with_or_without_their_prefix() -> None:
    found = graph(og_title=" Chair ", product_price_amount="9.50", twitter_card="summary", dc_title="x")
    assert found.get("title") == found.get("og:title") == "Chair"
    assert found.get("product:price:amount") == "9.50"
    assert found.get("twitter:card") == "summary"
    assert found.get("dc:title") is found.get("nope") is None
    assert found.get_all("nope") == []


def test_several_values_stay_in_order_and_the_first_that_says_something_counts() -> None:
    found = read(("article:tag", "a"), ("article:tag", "b"), ("og:title", ""), ("og:title", "Chair"))
    assert found.get_all("article:tag") == ["a", "b"]
    assert found.get("title") == "Chair"


def test_names_are_read_in_any_case_and_from_name_too() -> None:
    found = page_of('<meta name="OG:Title" content="Chair"><meta property="og:type">').structured().opengraph
    assert found.properties == {"og:title": ["Chair"]}


def test_urls_are_absolute() -> None:
    found = graph(
        og_url="/p/7", og_image="i.png", og_description="/no url", twitter_image="//cdn.example/t.png"
    )
    assert found.get("url") == "https://shop.example/p/7"
    assert found.get("description") == "/no url"
    assert found.get("twitter:image") == "https://cdn.example/t.png"
    assert found.images == (Media("https://shop.example/list/i.png"),)


def test_each_picture_has_what_is_said_after_it() -> None:
    found = read(
        ("og:image:width", "1"),
        ("og:image", "/1.png"),
        ("og:image:url", "/1.png"),
        ("og:image:secure_url", "/s1.png"),
        ("og:image:width", "1200"),
        ("og:image:height", "wide"),
        ("og:image:alt", "One"),
        ("og:image", "/2.png"),
        ("og:image:type", "image/png"),
        ("og:image", ""),
        ("og:video", "/v.mp4"),
        ("og:audio:url", "/a.mp3"),
    )
    first, second = found.images
    assert first == Media(
        "https://shop.example/1.png", secure_url="https://shop.example/s1.png", width=1200, alt="One"
    )
    assert second == Media("https://shop.example/2.png", type="image/png")
    assert [media.url for media in found.videos + found.audios] == [
        "https://shop.example/v.mp4",
        "https://shop.example/a.mp3",
    ]


def test_a_page_without_any_has_an_empty_one() -> None:
    assert page_of("<p>x").structured().opengraph == OpenGraph()


def test_what_is_over_the_limit_is_left_out() -> None:
    found = read(*(("og:image", f"/{n}.png") for n in range(MAX_PROPERTIES + 10)))
    assert len(found.images) == MAX_PROPERTIES
