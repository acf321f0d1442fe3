"""The text of sitemaps and feeds, whole, broken or hostile, in pieces of any size."""

from __future__ import annotations

import json
import zlib
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import ada_url
import pytest
from hypothesis import given
from hypothesis import strategies as st

from silkline.seeds.sitemap import Entry, SitemapReader, moment_of, w3c_date
from silkline.seeds.sitemap_text import MAX_TOKEN, Tokens

DATA = Path(__file__).parent.parent / "data" / "conformance" / "sitemaps"
CASES = json.loads((DATA / "index.json").read_text())
LARGE = {"files/zip-bomb.xml.gz", "files/fifty-thousand.xml.gz"}


def read(data: bytes, url: str = "http://e.com/s.xml", piece: int = 65_536) -> tuple[str, list[Entry]]:
    reader = SitemapReader(url)
    entries = [entry for at in range(0, len(data), piece) for entry in reader.feed(data[at : at + piece])]
    entries += reader.finish()
    return reader.kind, entries


def unpacked(data: bytes) -> bytes:
    while data.startswith(b"\x1f\x8b"):
        data = zlib.decompressobj(31).decompress(data, 50 * 2**20)
    return data


def same(url: str) -> str:
    return ada_url.normalize_url(url).partition("#")[0]


def is_right(case: dict[str, Any], found: list[str]) -> bool:
    if "count" in case:
        return len(found) == case["count"]
    expected = case.get("urls", case.get("sitemaps"))
    if expected is None:
        return True
    right = [same(url) for url in expected]
    if case.get("contains"):
        return set(right) <= set(found)
    if case.get("must_contain"):
        return {same(url) for url in case["must_contain"]} <= set(found)
    other = case.get("also_ok")
    return found == right or (other is not None and found == [same(url) for url in other])


PIECES = [(case, size) for case in CASES for size in (7, 65_536) if size > 7 or case["file"] not in LARGE]


@pytest.mark.parametrize(
    ("case", "piece"), PIECES, ids=lambda value: value["file"][6:] if isinstance(value, dict) else str(value)
)
def test_every_file_gives_its_urls(case: dict[str, Any], piece: int) -> None:
    data = unpacked((DATA / case["file"]).read_bytes())
    _, entries = read(data, case["sitemap_url"], piece)
    assert is_right(case, [entry.url for entry in entries if entry.url])
    assert {entry.sitemap for entry in entries} <= {case["type"] == "sitemapindex"}


def test_dates() -> None:
    for case in json.loads((DATA / "lastmod.json").read_text()):
        utc = case["utc"] and datetime.fromisoformat(case["utc"]).timestamp()
        assert w3c_date(case["lastmod"]) == utc, case


def test_what_a_user_may_give_for_a_moment() -> None:
    midnight = datetime(2026, 1, 31, tzinfo=UTC)
    for value in ("2026-01-31", date(2026, 1, 31), midnight, midnight.replace(tzinfo=None)):
        assert moment_of(value) == midnight.timestamp()
    assert moment_of("last week") is None


def test_entries_have_their_dates() -> None:
    _, entries = read(
        b"<urlset><url><loc>http://e.com/1</loc><lastmod>2026-01-31</lastmod></url>"
        b"<url><lastmod>2026-02-01</lastmod><loc>http://e.com/2</loc></url><url><loc>http://e.com/3</loc></url>"
        b"<url><loc>http://e.com/4</loc><lastmod>soon</lastmod></url></urlset>"
    )
    assert [(entry.url, entry.lastmod) for entry in entries] == [
        ("http://e.com/1", w3c_date("2026-01-31")),
        ("http://e.com/2", w3c_date("2026-02-01")),
        ("http://e.com/3", None),
        ("http://e.com/4", None),
    ]


def test_an_unknown_entity_makes_no_url() -> None:
    _, entries = read(b"<urlset><url><loc>http://e.com/&secret;</loc></url></urlset>")
    assert [entry.url for entry in entries] == [None]


def test_memory_is_bounded_whatever_never_ends() -> None:
    inside = (b"<url><loc>", b"<!--", b"<a b='", b"<![CDATA[")
    for start in (*(b"<urlset>" + part for part in inside), b"<!DOCTYPE x ["):
        reader = SitemapReader("http://e.com/s.xml")
        entries = list(reader.feed(start))
        for _ in range(200):
            entries += reader.feed(b"x" * 65_536)
        xml = reader._xml
        assert xml is None or len(xml._tokens.rest) <= MAX_TOKEN + 65_536
        entries += reader.finish()
        assert [entry for entry in entries if entry.url] == []
    reader = SitemapReader("http://e.com/s.txt")
    for _ in range(200):
        list(reader.feed(b"x" * 65_536))
    assert len(reader._line) <= 65_536


LOCATIONS = ["http://e.com/1", " http://e.com/2\n", "http://e.com/?a=1&amp;b=2", "ftp://no", "", "/x"]
EXTRAS = [
    "",
    "<lastmod>2026-01-01</lastmod>",
    "<priority>1</priority>",
    "<i:i><i:loc>x</i:loc></i:i>",
    "<!-- -->",
]
plain_entry = st.builds(
    "<url><loc>{}</loc>{}</url>".format, st.sampled_from(LOCATIONS), st.sampled_from(EXTRAS)
)


@given(st.lists(plain_entry, max_size=6), st.integers(1, 40))
def test_the_short_way_for_plain_entries_reads_what_the_long_one_reads(rows: list[str], piece: int) -> None:
    quick = f"<urlset>{''.join(rows)}</urlset>".encode()
    slow = quick.replace(b"<url>", b"<url >")  # which the short way does not know
    assert read(quick, piece=piece)[1] == read(slow)[1]


@given(st.binary(max_size=200), st.integers(1, 50))
def test_any_bytes_can_be_read(data: bytes, piece: int) -> None:
    read(b"<urlset><url><loc>" + data, piece=piece)
    read(data, piece=piece)


@given(st.text("<>/!-[]CDAT\"'= aurl&;#x1", max_size=60), st.integers(1, 10))
def test_tokens_do_not_depend_on_the_pieces(text: str, piece: int) -> None:
    def text_of(size: int) -> tuple[str, list[Any]]:
        tokens = Tokens()
        found = [token for at in range(0, len(text), size) for token in tokens.feed(text[at : at + size])]
        return "".join(token.text for token in found if not token.name), [t for t in found if t.name]

    assert text_of(piece) == text_of(len(text) or 1)
