"""The main text of a page: what a reader came for, without navigation, teasers, comments and banners.

turbohtml scores which element holds it; here what does not belong there is taken out, and what the page
states for machines is believed before what can be guessed.
"""

from __future__ import annotations

import html
import re
from collections.abc import Callable
from typing import Any

import msgspec
from turbohtml import Document, Element, Text

from silkline.parse.excerpt import excerpt, markdown_of, text_of_blocks
from silkline.parse.structured import StructuredData
from silkline.parse.text import text_of

_KINDS = (
    *(
        "Article",
        "NewsArticle",
        "BlogPosting",
        "ReportageNewsArticle",
        "AnalysisNewsArticle",
        "OpinionNewsArticle",
    ),
    *("LiveBlogPosting", "Report", "TechArticle", "ScholarlyArticle", "SocialMediaPosting", "Recipe"),
)
"""Types of schema.org that state headline, author and date of a text."""

_DATES = (
    'meta[property="article:published_time" i], meta[itemprop=datePublished], meta[name="date" i],'
    'meta[name="pubdate" i], meta[name="publishdate" i], meta[name="publish-date" i], meta[name="dc.date" i],'
    'meta[name="dc.date.issued" i], meta[name="dcterms.created" i], meta[name="parsely-pub-date" i],'
    'meta[name="sailthru.date" i], meta[name="article:published_time" i]'
)
_separators = re.compile(r"\s+[|\u2013\u2014\u00b7:\u00bb-]+\s+|_").split
_NOISE = "nav, aside, form, footer, [role=navigation], [role=complementary], [role=search]"
_is_noise = re.compile(
    r"(?:^|[\s_-])(?:shar(?:e|ing|edaddy)|social|related|recommend(?:ed|ations?)|comments?|newsletter|subscribe|promo"
    r"|advert(?:isement)?s?|ads?|sponsored|cookies?|consent|breadcrumbs?|toc|sidebar|paywall|outbrain|taboola"
    r"|byline|pag(?:er|ination)|editsection|references?|reflist|noprint|headerlink)(?:$|[\s_-])",
    re.I,
).search
_MOST = 0.3
"""The share of the text that what looks like noise may have: more than that is the text."""
_LOOKED_AT = 200
"""Elements that look like noise, and lists."""
_BYLINE = 120
"""Characters of a byline at most."""


class Article(msgspec.Struct, frozen=True):
    """title, byline (who wrote it), published, language: as the page states them, None where it states none.

    image: the URL of the picture that stands for it.

    text, html, markdown: the main text, with absolute links; "" where nothing reads as one, as on a page
        of links.
    """

    title: str | None = None
    byline: str | None = None
    published: str | None = None
    language: str | None = None
    image: str | None = None
    text: str = ""
    html: str = ""
    markdown: str = ""


def article_of(document: Document, data: StructuredData, absolute: Callable[[str], str | None]) -> Article:
    """data: what the page says of itself. absolute: makes a link of the document absolute."""
    scored = document.article()
    element = scored.element or _densest(document)
    stated = data.first(*_KINDS) or {}
    title = _title(document, element, stated, data.opengraph.get("title"), scored.site_name)
    image = data.opengraph.images[0].url if data.opengraph.images else scored.image
    article = Article(
        title=title,
        byline=_names(stated.get("author")) or scored.byline,
        published=_line(stated.get("datePublished")) or _published(document) or scored.date,
        language=scored.lang,
        image=absolute(image) or image if image else None,
    )
    if element is None:
        return article
    part = excerpt(element, absolute)
    _clean(part, title)
    plain, markup = text_of_blocks(part), part.html
    return msgspec.structs.replace(article, text=plain, html=markup, markdown=markdown_of(part))


def _line(value: Any) -> str | None:
    """Text of JSON-LD in one line; much of it is escaped as HTML once too often."""
    return " ".join(html.unescape(value).split()) or None if isinstance(value, str) else None


def _names(author: Any) -> str | None:
    authors = author if isinstance(author, list) else [author]
    names = [_line(one.get("name") if isinstance(one, dict) else one) for one in authors[:20]]
    return ", ".join(dict.fromkeys(name for name in names if name)) or None


def _published(document: Document) -> str | None:
    for meta in document.select(_DATES):
        if content := (meta.attr("content") or "").strip():
            return content
    return None


def _title(
    document: Document, element: Element | None, stated: dict[str, Any], shared: str | None, site: str | None
) -> str | None:
    """The headline. shared: the title for those who share the page. site: the name of the site."""
    if headline := _line(stated.get("headline")):
        return headline
    title = document.select_one("title:not(svg title)")
    whole = shared or (text_of(title) if title else "")
    inside = element.select("h1, h2")[:50] if element else []
    has_own = any(heading.tag == "h1" for heading in inside)  # then those around it are the site's
    headings = inside if has_own else document.select("h1, h2")[:50]
    found: list[tuple[bool, int, int, str]] = []
    for number, heading in enumerate(headings):
        text = text_of(heading).rstrip("#¶ ")
        place = whole.casefold().find(text.casefold())
        if text and place >= 0 and text != site:
            found.append((heading not in inside, place, number, text))
    if found:
        return min(found)[-1]
    if not whole:
        first = document.select_one("h1")
        return text_of(first).rstrip("#¶ ") or None if first else None
    if site and whole.endswith(site):
        return whole.removesuffix(site).rstrip(" |–—·:»-_") or whole
    parts = _separators(whole)
    return (
        max(parts[0], whole.removesuffix(parts[-1]).rstrip(" |–—·:»-_"), key=len) if len(parts) > 1 else whole
    )


def _clean(part: Element, title: str | None) -> None:
    """Take out what stands in the text and is none of it."""
    part.remove(_NOISE)
    for heading in part.select("h1, h2")[:_LOOKED_AT]:
        if text_of(heading).rstrip("#¶ ") == title:
            heading.decompose()
    for link in part.select("[rel~=author], [itemprop=author], .author, address")[:_LOOKED_AT]:
        around = link.parent
        if isinstance(around, Element) and around != part and len(around.text) < _BYLINE:
            around.decompose()
        elif len(link.text) < _BYLINE:
            link.decompose()
    for time in part.select("time")[:_LOOKED_AT]:
        if isinstance(time.parent, Element) and time.parent.tag not in ("p", "li", "td", "span", "a"):
            time.decompose()
    most = len(part.text) * _MOST
    named = [
        one for one in part.select("[class], [id]") if _is_noise(f"{one.attr('class')} {one.attr('id')}")
    ]
    for one in named[:_LOOKED_AT]:
        if len(one.text) <= most:
            one.decompose()
    for one in part.select("ul, ol")[:_LOOKED_AT]:
        links = one.select("a")
        length = len(one.text)
        if len(links) > 2 and length <= most and sum(len(link.text) for link in links) > length * 0.8:
            one.decompose()


def _densest(document: Document) -> Element | None:
    """Where most text stands that is in no paragraphs: some sites have nothing but <div>."""
    scores: dict[Element, int] = {}
    for block in document.select("body div, body td, body section, body article, body main, body")[:20_000]:
        own = sum(len(child.data.strip()) for child in block.children if isinstance(child, Text))
        if own >= 60:
            scores[block] = scores.get(block, 0) + own
            if isinstance(block.parent, Element):
                scores[block.parent] = scores.get(block.parent, 0) + own
    best = max(scores, key=lambda block: scores[block], default=None)
    return best if best is not None and scores[best] >= 250 else None
