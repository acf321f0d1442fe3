"""Quotes and their authors from a paginated site: `silkline run examples/quotes.py`."""

from dataclasses import dataclass

from silkline import Crawler, Page

crawler = Crawler("quotes", outputs=["quotes.jsonl"])


@dataclass
class Author:
    name: str | None


@crawler.handler
async def listing(page: Page):
    for quote in page.css("div.quote"):
        yield {"text": quote.text(".text"), "author": quote.text(".author")}
    yield page.follow("li.next a")
    yield page.follow(".author + a", label="author", priority=5)


@crawler.handler("author")
def author(page):
    yield Author(name=page.text("h3"))


if __name__ == "__main__":
    crawler.run("https://quotes.example/")
