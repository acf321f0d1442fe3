"""What each path of the demo shop answers: the catalogue, and the nuisances that every real site has."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator, Mapping, Sequence
from importlib import resources

import msgspec

from silkline.demo.catalogue import CATEGORIES, Product
from silkline.demo.render import (
    delivery_zones,
    listing_page,
    listing_path,
    product_page,
    text_page,
)

HTML = "text/html; charset=utf-8"

HANGING_PATH = "/hang"
"""Answers after an hour. Nothing links to it: it is for trying timeouts."""


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """One path's answer.

    location: where it redirects to (then `status` is 301).
    delay: seconds before it answers.
    failures: the statuses that it gives first; then it works once, and starts again.
    limited: one of the pages that only a few requests a second may see.
    gzipped: the body is gzip.
    linked: a crawl that follows every <a href> from "/" finds it.
    """

    body: bytes = b""
    content_type: str = HTML
    status: int = 200
    location: str | None = None
    delay: float = 0.0
    failures: tuple[int, ...] = ()
    limited: bool = False
    gzipped: bool = False
    linked: bool = True


def all_answers(products: Sequence[Product], per_page: int) -> Mapping[str, Answer]:
    """Path -> answer, for the whole shop."""
    return {
        **dict(_catalogue(products, per_page)),
        **dict(_about()),
        **dict(_stores()),
        **dict(_reviews()),
        **dict(_offers()),
        **dict(_guides(products)),
        **dict(_redirects(products)),
        **dict(_for_machines(products)),
    }


def _page(html: str) -> Answer:
    return Answer(body=html.encode())


def _catalogue(products: Sequence[Product], per_page: int) -> Iterator[tuple[str, Answer]]:
    welcome = f"{len(products)} things for small adventures, in no particular order."
    yield from _listing("Everything we make", welcome, "/", products, per_page)
    for category in CATEGORIES:
        shelf = [product for product in products if product.category == category]
        blurb = f"{category.blurb} {len(shelf)} articles."
        yield from _listing(category.name, blurb, category.path, shelf, per_page)
        for number, product in enumerate(shelf):
            related = [shelf[(number + step) % len(shelf)] for step in range(1, min(5, len(shelf)))]
            yield product.path, _page(product_page(product, related))


def _listing(
    title: str, blurb: str, path: str, products: Sequence[Product], per_page: int
) -> Iterator[tuple[str, Answer]]:
    pages = [products[start : start + per_page] for start in range(0, len(products), per_page)] or [[]]
    for number in range(1, len(pages) + 1):
        html = listing_page(title, blurb, path, pages, number, home=path == "/")
        yield listing_path(path, number), _page(html)


def _about() -> Iterator[tuple[str, Answer]]:
    yield (
        "/about",
        _page(text_page("About us", ["Six people, one van and a workshop above the old rope walk."])),
    )
    history = text_page(
        "Our history",
        [
            "Founded in 1987 by Zoë and Søren Ångström in the back room of a café in Besançon.",
            "The first guy line cost £2 and is still in use; the naïveté of the founders is not.",
        ],
        charset="iso-8859-1",
    )
    yield (
        "/about/history",
        Answer(body=history.encode("latin-1"), content_type="text/html; charset=iso-8859-1"),
    )
    delivery = text_page("Delivery", ["Twice a week, by van."], [("/delivery/zones", "All delivery zones")])
    yield "/delivery", _page(delivery)
    yield "/delivery/zones", _page(delivery_zones())


def _stores() -> Iterator[tuple[str, Answer]]:
    """Slow pages: the till of each shop is asked for its stock."""
    seconds = {"Aviemore": 1.0, "Betws-y-Coed": 1.5, "Keswick": 2.0, "Tavistock": 2.5}
    paths = {town: f"/stores/{town.lower()}" for town in seconds}
    yield "/stores", _page(text_page("Shops", ["Each page asks the till."], [(paths[t], t) for t in seconds]))
    for town, delay in seconds.items():
        html = text_page(f"Our shop in {town}", ["Open from nine to five.", "Stock as of just now."])
        yield paths[town], Answer(body=html.encode(), delay=delay)


def _reviews() -> Iterator[tuple[str, Answer]]:
    """Failing pages: the reviews come from a service that has bad days."""
    failures: list[tuple[int, ...]] = [(500,), (503,), (500, 503), (502,), (503, 503)]
    months = ["January", "February", "March", "April", "May"]
    paths = {month: f"/reviews/{month.lower()}" for month in months}
    index = [(paths[month], month) for month in months]
    index += [("/reviews/archive", "Archive"), ("/reviews/2019", "2019"), ("/reviews/withdrawn", "Withdrawn")]
    yield "/reviews", _page(text_page("Reviews", ["What people say."], index))
    for month, statuses in zip(months, failures, strict=True):
        html = text_page(f"Reviews of {month}", ["“Kept me dry.”", "“The spork is a triumph.”"])
        yield paths[month], Answer(body=html.encode(), failures=statuses)
    yield "/reviews/archive", Answer(body=text_page("The archive is down").encode(), status=500)
    yield "/reviews/2019", Answer(body=text_page("No such page").encode(), status=404)
    yield "/reviews/withdrawn", Answer(body=text_page("This page is gone").encode(), status=410)


def _offers() -> Iterator[tuple[str, Answer]]:
    """Rate-limited pages: too many requests in a second are answered with 429."""
    paths = {number: f"/limited/no-{number}" for number in range(1, 9)}
    index = [(path, f"Limited edition no. {number}") for number, path in paths.items()]
    yield "/offers", _page(text_page("Limited editions", ["Please, one at a time."], index))
    for number, path in paths.items():
        html = text_page(f"Limited edition no. {number}", [f"One of {number * 25}, signed by its maker."])
        yield path, Answer(body=html.encode(), limited=True)


def _guides(products: Sequence[Product]) -> Iterator[tuple[str, Answer]]:
    """Prose with the links of ten years: old addresses, one that is dead, one that goes in circles."""
    index = [
        ("/guides/care", "Caring for wax and wool"),
        ("/guides/gifts", "Gifts for the outdoors"),
        ("/sale", "Winter sale"),
        ("/members", "Members’ corner"),
        ("/guides/knots-poster", "Poster of knots"),
    ]
    yield "/guides", _page(text_page("Guides", ["Written on rainy days."], index))
    care = text_page("Caring for wax and wool", ["Brush, air, and leave the washing machine alone."] * 40)
    yield "/guides/care", Answer(body=gzip.compress(care.encode(), mtime=0), gzipped=True)
    gifts = [(old_product_path(product), product.name) for product in products[:3]]
    yield "/guides/gifts", _page(text_page("Gifts for the outdoors", ["Three that never fail."], gifts))
    yield "/guides/knots-poster", Answer(body=text_page("No such page").encode(), status=404)


def old_product_path(product: Product) -> str:
    """Where the product was before the shop got readable addresses."""
    return f"/item/{product.sku[3:]}"


def _redirects(products: Sequence[Product]) -> Iterator[tuple[str, Answer]]:
    for product in products[:3]:
        yield old_product_path(product), _moved(product.path)
    yield "/sale", _moved("/sale/winter")
    yield "/sale/winter", _moved("/sale/last-chance", linked=False)
    yield "/sale/last-chance", _moved("/offers", linked=False)
    yield "/members", _moved("/members/sign-in")
    yield "/members/sign-in", _moved("/members", linked=False)


def _moved(location: str, *, linked: bool = True) -> Answer:
    return Answer(status=301, location=location, linked=linked)


def _for_machines(products: Sequence[Product]) -> Iterator[tuple[str, Answer]]:
    listed = [
        {
            "sku": product.sku,
            "name": product.name,
            "price": product.pence / 100,
            "currency": "GBP",
            "stock": product.stock,
            "url": product.path,
        }
        for product in products
    ]
    feed = json.dumps({"products": listed}, ensure_ascii=False).encode()
    yield "/api/products.json", Answer(body=feed, content_type="application/json", linked=False)
    style = resources.files("silkline.demo").joinpath("style.css").read_bytes()
    yield "/style.css", Answer(body=style, content_type="text/css; charset=utf-8", linked=False)
    waiting = text_page("You have a lot of patience").encode()
    yield HANGING_PATH, Answer(body=waiting, delay=3_600, linked=False)
