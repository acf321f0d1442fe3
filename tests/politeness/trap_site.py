"""Sites for the traps: one with a dozen kinds of them, and one that has what looks like them and is none."""

from __future__ import annotations

import random
import re
from urllib.parse import parse_qsl

_ALL = "amber birch cedar dune ember fjord grove heath inlet jetty knoll ledge marsh north ocean pine"
WORDS = _ALL.split()


def prose(seed: object, count: int = 40) -> str:
    dice = random.Random(str(seed))
    return " ".join(dice.choice(WORDS) for _ in range(count))


def links(*hrefs: str) -> str:
    return "".join(f'<li><a href="{href}">more</a></li>' for href in hrefs)


class Made(dict[str, str]):
    """Pages that are made when they are asked for. `real`: those that a crawl should find."""

    real: frozenset[str] = frozenset()

    def get(self, path: str, default: object = None) -> str | None:  # type: ignore[override]
        return self.page(path)

    def page(self, path: str) -> str | None:
        raise NotImplementedError


class TrapSite(Made):
    """Real pages stand inside or behind most of the traps."""

    TRAPS = (
        *(
            "/loop/",
            "/grow?on=1",
            "/calendar/2026/06",
            "/shop?sid=0123456789abcdef0123",
            "/old/0;jsessionid=A1",
        ),
        *("/s/0123456789abcdef0/page/0", "/list?page=1", "/wiki/nothing", "/find?a=0&b=0&c=0&d=0", "/deep/1"),
        *("/news/0?utm_source=home", "/order?a=1&b=2&c=3"),
    )

    def __init__(self) -> None:
        super().__init__()
        self._dice = random.Random(7)
        self.real = frozenset(
            ["/", "/loop/"]
            + [f"/event/{month}" for month in range(1, 13)]
            + [f"/thing/{n}" for n in range(20)]
            + [f"/item/{n}" for n in range(200)]
            + [f"/product/{n}" for n in range(30)]
        )
        self.real_behind = {f"/old/{n}" for n in range(8)} | {f"/page/{n}" for n in range(10)}
        self.real_behind |= {f"/news/{n}" for n in range(10)}

    def token(self) -> str:
        return f"{self._dice.getrandbits(80):020x}"

    def page(self, path: str) -> str | None:
        if path == "/":
            return f"<h1>Home</h1>{prose('home')}{links(*self.TRAPS)}"
        name, _, query = path.partition("?")
        kind = re.sub(r"[^a-z].*", "", name[1:])
        body = getattr(self, f"{kind}_page", None)
        return None if body is None else body(name, dict(parse_qsl(query)), query)

    def loop_page(self, path: str, given: dict[str, str], query: str) -> str:
        return f"<h1>Loop</h1>{links('loop/', '../', 'a/b/')}" + (prose("loop") if path == "/loop/" else "")

    def grow_page(self, path: str, given: dict[str, str], query: str) -> str:
        return f"<h1>Filters</h1>{links(f'/grow?{query}&on=1')}"

    def calendar_page(self, path: str, given: dict[str, str], query: str) -> str:
        year, month, *day = (int(part) for part in path.split("/")[2:])
        months = year * 12 + month - 1
        if day:
            return f"<h1>No events on this day</h1>{links(f'/calendar/{year}/{month:02}')}"
        around = [f"/calendar/{(months + n) // 12}/{(months + n) % 12 + 1:02}" for n in (-1, 1)]
        days = [f"/calendar/{year}/{month:02}/{day:02}" for day in (1, 11, 21)]
        events = [f"/event/{month}"] if year == 2026 else []
        return f"<h1>Events in {month}/{year}</h1>{links(*around, *days, *events)}"

    def event_page(self, path: str, given: dict[str, str], query: str) -> str:
        return f"<h1>{path}</h1>{prose(path)}"

    item_page = product_page = thing_page = event_page

    def shop_page(self, path: str, given: dict[str, str], query: str) -> str:
        things = [f"/thing/{n}?sid={self.token()}" for n in range(20)]
        return f"<h1>Shop</h1>{links(f'/shop?sid={self.token()}', *things)}"

    def old_page(self, path: str, given: dict[str, str], query: str) -> str:
        number = int(re.findall(r"\d+", path)[0])
        return f"<h1>{number}</h1>{prose(number)}" + links(
            *(f"/old/{(number + n) % 8};jsessionid={self.token()}" for n in (1, 3))
        )

    def s_page(self, path: str, given: dict[str, str], query: str) -> str:
        number = int(path.rpartition("/")[2])
        return f"<h1>Page</h1>{prose(f'page {number}')}" + links(
            *(f"/s/{self.token()}/page/{(number + n) % 10}" for n in (1, 3))
        )

    def list_page(self, path: str, given: dict[str, str], query: str) -> str:
        number = int(given["page"])
        items = [f"/item/{n}" for n in range((number - 1) * 5, number * 5) if n < 200]
        return f"<h1>List</h1><p>Page {number}</p>{links(*items, f'/list?page={number + 1}')}"

    def wiki_page(self, path: str, given: dict[str, str], query: str) -> str:
        return "<h1>There is no such article yet</h1><p>You may write it.</p>" + links(
            *(
                f"/wiki/{self._dice.choice(WORDS)}{self._dice.choice(WORDS)}{self._dice.random()}"[:28]
                for _ in "123"
            )
        )

    def find_page(self, path: str, given: dict[str, str], query: str) -> str:
        chosen = [int(given.get(name, 0)) for name in "abcd"]
        others = []
        for place in range(4):
            for value in range(5):
                changed = [*chosen[:place], value, *chosen[place + 1 :]]
                others.append("/find?" + "&".join(f"{n}={v}" for n, v in zip("abcd", changed, strict=True)))
        products = {(sum(chosen) * 3 + n) % 30 for n in range(4)}
        return f"<h1>Found</h1>{links(*others, *(f'/product/{n}' for n in products))}"

    def deep_page(self, path: str, given: dict[str, str], query: str) -> str:
        return "<h1>Deeper</h1>" + links(f"{path}/{path.count('/')}")

    def news_page(self, path: str, given: dict[str, str], query: str) -> str:
        number = int(path.rpartition("/")[2])
        return f"<h1>{path}</h1>{prose(path)}" + links(
            *(f"/news/{(number + n) % 10}?utm_source={self.token()}&gclid={self.token()}" for n in (1, 2))
        )

    def order_page(self, path: str, given: dict[str, str], query: str) -> str:
        pairs = query.split("&")
        self._dice.shuffle(pairs)
        return f"<h1>Ordered</h1>{links('/order?' + '&'.join(pairs))}"


class RealSite(Made):
    """What looks like a trap and is none: deep paths, a long list with and without links, a long archive by
    dates, a story in chapters, products that name each other, all articles behind one script, goods that say
    much the same under names of their own."""

    LISTED, PLAIN, CHAPTERS, MONTHS, RELATED, SCRIPT, GOODS = 150, 300, 300, 260, 600, 400, 200

    def __init__(self) -> None:
        super().__init__()
        self.real = frozenset(
            ["/", *(self._deep(n) for n in range(1, 30))]
            + [f"/list?page={n}" for n in range(1, self.LISTED + 1)]
            + [f"/item/{n}" for n in range(self.LISTED)]
            + [f"/table?page={n}" for n in range(1, self.PLAIN + 1)]
            + [f"/story/chapter-{n}" for n in range(1, self.CHAPTERS + 1)]
            + [self._month(n) for n in range(self.MONTHS)]
            + [f"/post/{n}" for n in range(0, self.MONTHS, 20)]
            + [f"/product/{n}" for n in range(self.RELATED)]
            + [f"/index.php?option=content&view=article&id={n}" for n in range(self.SCRIPT)]
            + [f"/goods/{n}" for n in range(self.GOODS)]
        )

    def _deep(self, levels: int) -> str:
        return "/docs/" + "/".join(f"{WORDS[n % 16]}{n}" for n in range(levels))

    def _month(self, number: int) -> str:
        months = 2026 * 12 + 10 - number
        return f"/archive/{months // 12}/{months % 12 + 1:02}"

    def page(self, path: str) -> str | None:
        if path not in self.real:
            return None
        if path == "/":
            script = "/index.php?option=content&view=article&id=0"
            return f"<h1>Home</h1>{links(self._deep(1), '/list?page=1', '/table?page=1')}" + links(
                "/story/chapter-1", self._month(0), "/product/0", script, "/goods/0"
            )
        further = [href for href in self._next(path) if href in self.real]
        if path.startswith("/goods/"):
            return f"<h1>{prose(path, 3)}</h1><p>{prose('terms', 1_500)}</p>{links(*further)}"
        return f"<h1>Our site</h1><p>{prose(path)}</p>{links(*further)}"

    def _next(self, path: str) -> list[str]:
        number = int(re.findall(r"\d+", path)[-1])
        if path.startswith("/docs/"):
            return [self._deep(path.count("/"))]
        if path.startswith("/archive/"):
            year, month = (int(part) for part in path.split("/")[2:])
            at = 2026 * 12 + 10 - (year * 12 + month - 1)
            return [self._month(at + 1), f"/post/{at}"]
        if path.startswith("/product/"):
            return [f"/product/{number * 2 + n}" for n in (1, 2)]
        if path.startswith("/list"):
            return [f"/list?page={number + 1}", f"/item/{number - 1}"]
        return [re.sub(r"\d+$", str(number + 1), path)]
