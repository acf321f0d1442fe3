"""What a handler sees: a response, parsed when first asked about its content."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
from turbohtml import Document, Element, HTMLParseError

from silkline.errors import ContentError
from silkline.files import move, placed, write_whole
from silkline.parse.charset import (
    Charset,
    Source,
    decode,
    html_charset,
    json_charset,
    parse_html,
    text_charset,
    xml_charset,
)
from silkline.parse.content import Kind, MediaType, is_json, kind_of, looks_binary, media_type
from silkline.parse.form import URLENCODED, Submission, with_query
from silkline.parse.links import LinkKind, links_in, links_of_kinds, own_links
from silkline.parse.node import Node, Queries
from silkline.parse.query import in_encoding
from silkline.parse.robots_meta import RobotsMeta, asked_of_robots, nofollow_hrefs
from silkline.parse.selector import compile_css, compile_selector
from silkline.parse.text import text_of
from silkline.parse.xml import parse_xml
from silkline.request import DEFAULT_LABEL, Follow, Request
from silkline.response import Response
from silkline.url import resolve, resolve_all

if TYPE_CHECKING:
    from silkline.parse.article import Article
    from silkline.parse.structured import StructuredData

MAX_LINKS = 20_000
"""Links of one page that are looked at; traps and attacks have more."""

_INSIDE = "a[href], area[href]"
_URL_STARTS = ("http://", "https://", "/", "?", "./", "../")
_TITLE = "title:not(svg title)"


class Page(Queries):
    """One page: `response` and what is in it. The body is parsed once, when first asked about.

    See Queries for `css`, `one`, `get`, `get_all`, `text`, `html` and `attr`.
    """

    __slots__ = (
        *("_base", "_charset", "_document", "_files_dir", "_kind", "_links", "_media_type", "response"),
        "__weakref__",
    )

    def __init__(self, response: Response, files_dir: str = "") -> None:
        """files_dir: where `save` puts files; "" for the working directory."""
        self.response = response
        self._files_dir = files_dir
        self._document: Document | None = None
        self._charset: Charset | None = None
        self._kind: Kind | None = None
        self._media_type: MediaType | None = None
        self._base: str | None = None
        self._links: tuple[str, ...] | None = None

    def __repr__(self) -> str:
        return f"<Page {self.status} {self.url}>"

    @property
    def url(self) -> str:
        """The absolute URL that the body came from, after redirects."""
        return self.response.url

    @property
    def request(self) -> Request:
        return self.response.request

    @property
    def status(self) -> int:
        return self.response.status

    @property
    def body(self) -> bytes:
        return self.response.body

    @property
    def not_modified(self) -> bool:
        """Whether the server said that the page is as the cache has it; `body` is the cache's."""
        return self.response.not_modified

    @property
    def from_cache(self) -> bool:
        """Whether `body` is the cache's, be it that the server was asked or not."""
        return self.response.from_cache

    @property
    def label(self) -> str:
        return self.response.request.label

    @property
    def extra(self) -> dict[str, Any]:
        """The user's data of the request."""
        return self.response.request.extra

    def header(self, name: str) -> str | None:
        """The first response header of that name (any case); None if there is none."""
        return self.response.header(name)

    @property
    def media_type(self) -> MediaType:
        """What the Content-Type header says: essence ("text/html") and charset."""
        if self._media_type is None:
            self._media_type = media_type(self.response.header("content-type"))
        return self._media_type

    @property
    def kind(self) -> Kind:
        """How the body is parsed: "html", "xml" or, for anything else, "other"."""
        if self._kind is None:
            self._kind = kind_of(self.media_type.essence, self.body)
        return self._kind

    @property
    def document(self) -> Document:
        """The parsed body, a turbohtml document: for everything that is not offered here, XPath included.

        Raises ContentError if the body is neither HTML nor XML.
        """
        if self._document is None:
            self._document = self._parse()
        return self._document

    @property
    def charset(self) -> str | None:
        """The charset that the body is read in, as the Encoding Standard names it; None for what is no text.

        In the order of the HTML Standard: byte-order mark, HTTP, <meta>, detection; see `parse/charset.py`
        for XML, JSON and other text.
        """
        return self._decided.name

    @property
    def charset_source(self) -> Source:
        """What decided `charset`: bom, http, meta, xml (its declaration), content (detected), default
        (nothing tells) or binary (no text)."""
        return self._decided.source

    @property
    def _decided(self) -> Charset:
        if self._charset is None:
            essence, declared = self.media_type
            if self.kind == "html":
                self._charset = html_charset(self.body, declared, self.document)
            elif self.kind == "xml":
                self._charset = xml_charset(self.body, declared)
            elif is_json(essence):
                self._charset = json_charset(self.body)
            else:
                self._charset = text_charset(self.body, declared, binary=looks_binary(self.body))
        return self._charset

    @property
    def source(self) -> str:
        """The body as text, decoded from `charset`; where it is no text, as if it were UTF-8."""
        if self.kind == "html":
            return decode(self.body, self.document.encoding or "utf-8")
        return decode(self.body, self.charset or "utf-8")

    @property
    def title(self) -> str | None:
        """The text of the first <title> that is not one of a picture (SVG); None for what is no document."""
        try:
            element = self.document.select_one(_TITLE)
        except ContentError:
            return None
        return None if element is None else text_of(element)

    def json(self) -> Any:
        """The body read as JSON (RFC 8259): UTF-8, or UTF-16 or UTF-32 where the first bytes say so.

        Raises ContentError if it is not.
        """
        try:
            encoding = json.detect_encoding(self.body[:4])
            text = self.body if encoding == "utf-8" else self.body.decode(encoding)
            return msgspec.json.decode(text)
        except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
            raise ContentError(f"{self.url} is no JSON: {error}") from error

    @property
    def base_url(self) -> str:
        if self._base is None:
            self._base = self.url
            if self.kind == "html":
                for base in self.document.select("base[href]"):
                    if base.closest("template") is None:
                        (href,) = self._as_sent([base.attr("href") or ""])
                        self._base = resolve(self.url, href) or self.url
                        break
        return self._base

    @property
    def canonical_url(self) -> str | None:
        """What <link rel=canonical> names as the page's address (RFC 6596), absolute; None for nothing."""
        if self.kind != "html" or b"canonical" not in self.body.lower():
            return None
        for link in self.document.select("link[rel~=canonical i][href]"):
            if link.closest("template") is None:
                return self.absolute(link.attr("href") or "")
        return None

    def structured(self) -> StructuredData:
        """What the page says of itself for machines: `.json_ld`, `.microdata`, `.opengraph`, and things by
        their type, `.first("Product")`. What is broken or over a limit is left out; `.notes` say so."""
        from silkline.parse.structured import structured_data

        return structured_data(self.document, self.absolute)

    def article(self) -> Article:
        """The main text, without navigation, comments and the like: `.title`, `.byline`, `.published`,
        `.text`, `.html`, `.markdown`. A guess, but for what the page states; see `parse/article.py`."""
        from silkline.parse.article import article_of

        return article_of(self.document, self.structured(), self.absolute)

    def save(self, path: str | os.PathLike[str], *, folder: str | os.PathLike[str] | None = None) -> Path:
        """Put the body into a file, whole or not at all, and return its absolute path.

        path: a relative one is taken in `folder` (None: the crawl's files_dir, or else the working directory)
            and never leads out of it, so that it may come from the page; folders are made.

        A body that the request has saved already (`Request.save_to`) is moved there. Raises SaveError.
        """
        target = placed(path, folder if folder is not None else self._files_dir or None)
        if self.response.saved_to is not None:
            move(Path(self.response.saved_to), target)
        else:
            write_whole(target, self.body)
        return target

    def links(self, css: str = "", kinds: Iterable[LinkKind] = ("a", "area")) -> tuple[str, ...]:
        """The links of the page, absolute, http(s) only, without fragments, in order, each once.

        css: only those in what this selector matches, or of it. kinds: of elements; see `parse/links.py`.

        Empty for what is not HTML; at most MAX_LINKS. Raises SelectorError, and ValueError for a kind that
        does not exist.
        """
        if css or kinds != ("a", "area"):
            return self._links_of(css, tuple(kinds))
        if self._links is None:
            self._links = ()
            if self.kind == "html":
                hrefs = self._as_sent(links_in(self.document)[:MAX_LINKS])
                self._links = tuple(resolve_all(self.base_url, hrefs))
        return self._links

    def _links_of(self, css: str, kinds: tuple[LinkKind, ...]) -> tuple[str, ...]:
        inside = compile_css(css).css if css else ""
        hrefs = links_of_kinds(self.document, inside, kinds) if self.kind == "html" else []
        return tuple(resolve_all(self.base_url, self._as_sent(hrefs[:MAX_LINKS])))

    def robots_meta(self, agent: str = "silkline") -> RobotsMeta:
        """What the page asks of a robot of that name, by X-Robots-Tag and <meta name=robots>: `.index` and
        `.follow`, both true where it asks nothing."""
        document = self.document if self.kind == "html" else None
        return asked_of_robots(self.response.headers, document, agent)

    def nofollow_links(self) -> frozenset[str]:
        """Those of `links()` that stand there with rel=nofollow only."""
        if self.kind != "html" or not (hrefs := nofollow_hrefs(self.document)):
            return frozenset()
        return frozenset(resolve_all(self.base_url, self._as_sent(list(hrefs))))

    def follow(
        self,
        target: str | Node | Iterable[str | Node],
        *,
        label: str = DEFAULT_LABEL,
        priority: int = 0,
        extra: dict[str, Any] | None = None,
    ) -> Follow:
        """Links to follow, to be yielded by the handler.

        target: a URL, absolute or relative, if it starts with http://, https://, /, ?, ./ or ../; any
            other string is a CSS selector; or an element, or several of all these.

        A matched element gives its own href or src; one that has neither, such as li.next, gives the links
        inside it; with ::attr(NAME) it gives that attribute. What cannot be fetched (mailto:, javascript:,
        data:, URLs over the limit) is left out, as are fragments, and what is beyond MAX_LINKS; no match is
        no link, and no error.
        """
        if isinstance(target, str | Node):
            hrefs = self._hrefs(target)
        else:
            hrefs = [href for one in target for href in self._hrefs(one)]
        urls = resolve_all(self.base_url, self._as_sent(hrefs[:MAX_LINKS]))
        return Follow(tuple(urls), label, priority, extra or {})

    def absolute(self, href: str) -> str | None:
        return resolve(self.base_url, *self._as_sent([href]))

    def _as_sent(self, hrefs: list[str]) -> list[str]:
        """With their queries in the page's encoding, as a browser sends them."""
        encoding = self.document.encoding if self.kind == "html" else None
        return hrefs if encoding is None or encoding == "UTF-8" else in_encoding(hrefs, encoding)

    def form(
        self,
        selector: str = "form",
        data: Mapping[str, str | None] | None = None,
        *,
        label: str = DEFAULT_LABEL,
        priority: int = 0,
        extra: dict[str, Any] | None = None,
    ) -> Request:
        """The request that a browser sends when a form is submitted: with its hidden fields, such as tokens.

        selector: of the form, or of something inside it; the first match counts. data: fields by name that
        are filled in; None takes one out.

        Raises ContentError where there is no such form, or it is not sent as URL-encoded pairs.
        """
        element = self.document.select_one(compile_css(selector).css)
        form = None if element is None else element.closest("form")
        if form is None:
            raise ContentError(f"{self.url} has no form at {selector!r}")
        submission = Submission(form)
        submission.fill(data or {})
        url = resolve(self.base_url, submission.action) if submission.action else self.url
        if url is None:
            raise ContentError(f"the form on {self.url} goes to {submission.action[:200]!r}, no http(s) URL")
        pairs = submission.encoded(self.charset or "utf-8")
        if submission.method == "GET":
            url = with_query(url, pairs)
        return Request(
            url,
            method=submission.method,
            headers={} if submission.method == "GET" else {"Content-Type": URLENCODED},
            body=None if submission.method == "GET" else pairs.encode(),
            label=label,
            priority=priority,
            extra=extra or {},
        )

    def _hrefs(self, target: str | Node) -> list[str]:
        if isinstance(target, Node):
            return own_links([target.element]) or own_links(target.element.select(_INSIDE))
        if target.startswith(_URL_STARTS):
            return [target]
        css, take, attribute = compile_selector(target)
        elements = self.document.select(css) if css else []
        if take == "attr":
            return [value for element in elements if (value := element.attr(attribute)) is not None]
        hrefs = own_links(elements)
        if len(hrefs) < len(elements):
            elements = self.document.select(f":is({css}):is([href], [src]), :is({css}) :is({_INSIDE})")
            hrefs = own_links(elements)
        return hrefs

    @property
    def _scope(self) -> Document:
        return self.document if self._document is None else self._document

    @property
    def _element(self) -> Element | None:
        return self.document.root

    @property
    def _page(self) -> Page:
        return self

    def _parse(self) -> Document:
        essence, charset = self.media_type
        if self.kind == "html":
            return parse_html(self.body, charset)
        if self.kind == "xml":
            try:
                return parse_xml(self.source)
            except HTMLParseError as error:
                raise ContentError(f"{self.url} is no well-formed XML: {error}") from error
        hint = "page.json()" if is_json(essence) else "page.body" if self.charset is None else "page.source"
        raise ContentError(f"{self.url} is {essence or 'binary data'}, no HTML to select from; use {hint}")
