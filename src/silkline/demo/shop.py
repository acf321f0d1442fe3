"""A small shop to crawl: made from a seed, the same every time, with a declared truth to check a crawl by."""

from __future__ import annotations

import asyncio
import gzip
import time
from collections import Counter, deque
from collections.abc import Mapping
from html import escape

import msgspec
from aiohttp import web

from silkline.demo.answers import Answer, all_answers
from silkline.demo.catalogue import CATEGORIES, Product, make_products
from silkline.demo.render import picture, picture_path, text_page
from silkline.errors import ConfigError

LIMITED_PER_SECOND = 4
"""So many requests for rate-limited pages are answered in any one second."""


class Expected(msgspec.Struct, frozen=True):
    """What a crawl that follows every `<a href>` from `home` must find, with the default settings.

    products: product page URL -> the product.
    done: URLs that end well; a URL that redirects is one of them, under its own name.
    dead: URL -> cause of its dead letter.
    redirects: URL -> where it ends up, for those in `done`.
    """

    home: str
    products: Mapping[str, Product]
    done: frozenset[str]
    dead: Mapping[str, str]
    redirects: Mapping[str, str]


class Shop:
    """The shop itself. `handle` answers requests; `hits` counts them by path.

    products: how many articles it sells.
    seed: another one makes other articles.
    latency: seconds added to every answer.
    slowness: factor on the slow pages' 1 to 2.5 seconds; 0 makes them quick.
    per_page: products on one listing page.

    Raises ConfigError for a number that cannot be.
    """

    def __init__(
        self,
        products: int = 144,
        *,
        seed: int = 1,
        latency: float = 0.0,
        slowness: float = 1.0,
        per_page: int = 12,
    ) -> None:
        if products < 1 or per_page < 1:
            raise ConfigError(
                f"a shop of {products} products, {per_page} a page, cannot be: both are at least 1"
            )
        if latency < 0 or slowness < 0:
            raise ConfigError("the demo shop's latency and slowness are at least 0")
        self.products = make_products(products, seed)
        self.hits: Counter[str] = Counter()
        self._latency = latency
        self._slowness = slowness
        self._answers = all_answers(self.products, per_page)
        self._pictures = {picture_path(product): product for product in self.products}
        self._failed: Counter[str] = Counter()
        self._limiter = _Limiter(LIMITED_PER_SECOND)

    async def handle(self, request: web.BaseRequest) -> web.Response:
        """Answer one request; for aiohttp's `web.Server`."""
        if request.method not in ("GET", "HEAD"):
            return _plain_page("Look, but do not touch", 405, {"Allow": "GET, HEAD"})
        path = request.raw_path.partition("?")[0]
        self.hits[path] += 1
        answer = self._answers.get(path) or self._drawn_up(path, f"{request.scheme}://{request.host}")
        if delay := self._latency + answer.delay * self._slowness:
            await asyncio.sleep(delay)
        if answer.limited and not self._limiter.admit():
            return _plain_page("Too many at once", 429, {"Retry-After": "1"})
        if self._failed[path] < len(answer.failures):
            self._failed[path] += 1
            return _plain_page("A bad day", answer.failures[self._failed[path] - 1])
        if answer.failures:
            self._failed[path] = 0
        headers = {"Content-Type": answer.content_type}
        if answer.location:
            headers["Location"] = answer.location
        if not answer.gzipped:
            return web.Response(body=answer.body, status=answer.status, headers=headers)
        headers["Vary"] = "Accept-Encoding"
        if "gzip" not in request.headers.get("Accept-Encoding", ""):
            return web.Response(body=gzip.decompress(answer.body), headers=headers)
        return web.Response(body=answer.body, headers=headers | {"Content-Encoding": "gzip"})

    def expected(self, base_url: str) -> Expected:
        """The truth about the shop as served at `base_url` (scheme, host and port)."""
        base = base_url.rstrip("/")
        done, dead, redirects = set(), {}, {}
        for path, answer in self._answers.items():
            if not answer.linked:
                continue
            end = self._destination(path)
            if end is None:
                dead[base + path] = "too_many_redirects"
            elif self._answers[end].status >= 400:
                dead[base + path] = f"http_{self._answers[end].status}"
            else:
                done.add(base + path)
                if end != path:
                    redirects[base + path] = base + end
        return Expected(
            home=f"{base}/",
            products={base + product.path: product for product in self.products},
            done=frozenset(done),
            dead=dead,
            redirects=redirects,
        )

    def _destination(self, path: str) -> str | None:
        """Where the redirects from `path` end; None if they never do."""
        passed = set()
        while (location := self._answers[path].location) is not None:
            if path in passed:
                return None
            passed.add(path)
            path = location
        return path

    def _drawn_up(self, path: str, base: str) -> Answer:
        """The answers that are made when somebody asks."""
        if path == "/robots.txt":
            rules = f"User-agent: *\nDisallow: /basket\n\nSitemap: {base}/sitemap.xml\n"
            return Answer(body=rules.encode(), content_type="text/plain; charset=utf-8")
        if path == "/sitemap.xml":
            return Answer(body=self._sitemap(base), content_type="application/xml")
        if product := self._pictures.get(path):
            return Answer(body=picture(product).encode(), content_type="image/svg+xml")
        return Answer(
            body=text_page("No such page", ["The address is wrong, or out of date."]).encode(), status=404
        )

    def _sitemap(self, base: str) -> bytes:
        paths = [
            "/",
            *(category.path for category in CATEGORIES),
            *(product.path for product in self.products),
        ]
        entries = "".join(f"<url><loc>{escape(base)}{path}</loc></url>\n" for path in paths)
        return (
            '<?xml version="1.0" encoding="UTF-8"?>\n<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">\n'
            f"{entries}</urlset>\n"
        ).encode()


def _plain_page(title: str, status: int, headers: Mapping[str, str] | None = None) -> web.Response:
    return web.Response(
        text=text_page(title), status=status, content_type="text/html", charset="utf-8", headers=headers
    )


class _Limiter:
    """At most `count` admissions in any one second."""

    def __init__(self, count: int) -> None:
        self._admitted: deque[float] = deque(maxlen=count)

    def admit(self) -> bool:
        now = time.monotonic()
        if len(self._admitted) == self._admitted.maxlen and now - self._admitted[0] < 1.0:
            return False
        self._admitted.append(now)
        return True
