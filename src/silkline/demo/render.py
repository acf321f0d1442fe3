"""The demo shop's HTML, from made-up data only."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from html import escape

from silkline.demo.catalogue import CATEGORIES, Product

SHOP_NAME = "Orb & Line"

FOOTER = (
    ("/about", "About us"),
    ("/about/history", "Our history"),
    ("/stores", "Shops"),
    ("/offers", "Limited editions"),
    ("/reviews", "Reviews"),
    ("/delivery", "Delivery"),
    ("/guides", "Guides"),
)

HUES = {category: 20 + 57 * number for number, category in enumerate(CATEGORIES)}


def layout(title: str, main: str, *, crumbs: Sequence[tuple[str, str]] = (), charset: str = "utf-8") -> str:
    """A whole page. crumbs: (path, text) of the pages above it."""
    trail = "".join(f'<li><a href="{path}">{escape(text)}</a></li>' for path, text in crumbs)
    breadcrumbs = f'<ol class="breadcrumbs">{trail}<li>{escape(title)}</li></ol>' if crumbs else ""
    shelves = links((category.path, category.name) for category in CATEGORIES)
    return (
        f'<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="{charset}">\n'
        f"<title>{escape(title)} · {escape(SHOP_NAME)}</title>\n"
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<link rel="stylesheet" href="/style.css">\n'
        '<link rel="alternate" type="application/json" href="/api/products.json">\n'
        f'</head>\n<body>\n<header><a class="brand" href="/">{escape(SHOP_NAME)}</a>'
        f"<nav>{shelves}</nav></header>\n<main>\n{breadcrumbs}{main}\n</main>\n"
        f"<footer><nav>{links(FOOTER)}</nav><p>A made-up shop to practise crawling on. "
        'Write to us at <a href="mailto:hello@shop.example">hello@shop.example</a>.</p></footer>\n'
        "</body>\n</html>\n"
    )


def links(pairs: Iterable[tuple[str, str]]) -> str:
    """Anchors, one per (path, text)."""
    return " ".join(f'<a href="{path}">{escape(text)}</a>' for path, text in pairs)


def text_page(
    title: str,
    paragraphs: Iterable[str] = (),
    pairs: Sequence[tuple[str, str]] = (),
    *,
    charset: str = "utf-8",
) -> str:
    """A page of plain text, then a list of links."""
    entries = "".join(f'<li><a href="{path}">{escape(text)}</a></li>' for path, text in pairs)
    body = "".join(f"<p>{escape(paragraph)}</p>" for paragraph in paragraphs)
    listed = f'<ul class="entries">{entries}</ul>' if pairs else ""
    home = [("/", "Home")]
    return layout(title, f"<h1>{escape(title)}</h1>\n{body}{listed}", crumbs=home, charset=charset)


def listing_page(
    title: str, blurb: str, path: str, pages: Sequence[Sequence[Product]], number: int, *, home: bool = False
) -> str:
    """Page `number` (from 1) of a list of products that starts at `path`."""
    steps = []
    if number > 1:
        steps.append(f'<a class="prev" rel="prev" href="{listing_path(path, number - 1)}">← Previous</a>')
    steps.append(f'<span class="position">Page {number} of {len(pages)}</span>')
    if number < len(pages):
        steps.append(f'<a class="next" rel="next" href="{listing_path(path, number + 1)}">Next →</a>')
    cards = "\n".join(map(_card, pages[number - 1]))
    main = (
        f'<h1>{escape(title)}</h1>\n<p class="blurb">{escape(blurb)}</p>\n'
        f'<div class="grid">\n{cards}\n</div>\n'
        f'<div class="pagination">{"".join(steps)}</div>'
    )
    return layout(title, main, crumbs=() if home else [("/", "Home")])


def listing_path(path: str, number: int) -> str:
    return path if number == 1 else f"{path.rstrip('/')}/page/{number}"


def _card(product: Product) -> str:
    return (
        f'<div class="product"><a href="{product.path}">'
        f'<img src="{picture_path(product)}" alt="" loading="lazy">'
        f"<h2>{escape(product.name)}</h2></a>"
        f'<p class="price">{product.price}</p><p class="stock">{product.availability}</p></div>'
    )


def product_page(product: Product, related: Iterable[Product]) -> str:
    """One product's own page, with its JSON-LD."""
    facts = {
        "@context": "https://schema.org",
        "@type": "Product",
        "name": product.name,
        "sku": product.sku,
        "description": product.description,
        "image": picture_path(product),
        "category": product.category.name,
        "offers": {
            "@type": "Offer",
            "price": f"{product.pence / 100:.2f}",
            "priceCurrency": "GBP",
            "availability": f"https://schema.org/{'InStock' if product.stock else 'OutOfStock'}",
        },
    }
    main = (
        f'<article class="detail"><img src="{picture_path(product)}" alt="">\n<div>'
        f"<h1>{escape(product.name)}</h1>\n"
        f'<p class="price">{product.price}</p>\n<p class="availability">{product.availability}</p>\n'
        f'<p class="sku">Article <span>{product.sku}</span></p>\n'
        f'<p class="description">{escape(product.description)}</p></div></article>\n'
        '<section class="related"><h2>Goes well with</h2>'
        f"{links((other.path, other.name) for other in related)}</section>\n"
        f'<script type="application/ld+json">{_json_in_html(facts)}</script>'
    )
    return layout(product.name, main, crumbs=[("/", "Home"), (product.category.path, product.category.name)])


def _json_in_html(value: object) -> str:
    return json.dumps(value, ensure_ascii=False).replace("<", "\\u003c")


def picture_path(product: Product) -> str:
    return f"/img/{product.sku.lower()}.svg"


def picture(product: Product) -> str:
    """A drawing in the category's colour: three hills and a sun, no two quite the same."""
    hue = HUES[product.category]
    seed = product.pence + 31 * product.stock + 7 * len(product.name)
    hills = "".join(
        f'<path d="M0 {70 + 15 * row} Q{30 + (seed * (row + 3)) % 60} {20 + 22 * row} '
        f'120 {60 + 17 * row} V120 H0Z" fill="hsl({hue} 38% {62 - 15 * row}%)"/>'
        for row in range(3)
    )
    sun = f'<circle cx="{20 + seed % 80}" cy="{18 + seed % 17}" r="9" fill="hsl({hue} 80% 96%)"/>'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 120 120"><rect width="120" height="120" '
        f'fill="hsl({hue} 45% 82%)"/>{sun}{hills}</svg>'
    )


def delivery_zones(size: int = 1_048_576) -> str:
    """A table of at least `size` bytes: nobody needs it, and every shop has one."""
    rows: list[str] = []
    total = 0
    while total < size:
        number = len(rows)
        area = f"{chr(65 + number // 260 % 26)}{chr(65 + number // 10 % 26)}{number % 10}"
        facts = (f"{area} {number // 6760}", f"£{3 + number % 4}.50", f"{1 + number % 5} days")
        row = f"<tr>{''.join(f'<td>{fact}</td>' for fact in facts)}</tr>\n"
        rows.append(row)
        total += len(row.encode())
    table = "<table><tr><th>Postcode</th><th>Charge</th><th>Time</th></tr>\n" + "".join(rows) + "</table>"
    return layout(
        "Delivery zones",
        f"<h1>Delivery zones</h1>\n{table}",
        crumbs=[("/", "Home"), ("/delivery", "Delivery")],
    )
