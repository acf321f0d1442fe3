"""Charsets: the Encoding and HTML Standards' own cases, and what is decided where nothing is declared."""

from __future__ import annotations

import time

import pytest

from silkline.parse.charset import decode, encoding_named, json_charset
from silkline.parse.content import media_type
from tests.conformance import Case, cases, check, raw
from tests.parse.pages import page_of


def differs(got: object, wanted: object) -> str | None:
    return None if got == wanted else f"{got!r}, not {wanted!r}"


def test_every_label_names_the_encoding_that_the_standard_says() -> None:
    check(
        cases("encoding/labels"),
        lambda case: repr(case["label"]),
        lambda case: differs(encoding_named(case["label"]), case["name"]),
    )


def test_every_decoder_is_the_standards() -> None:
    check(
        enumerate_names(cases("encoding/decode"), "encoding"),
        lambda case: case["id"],
        lambda case: differs(decode(raw(case, "bytes_b64"), case["encoding"]), case["text"]),
    )


def test_content_types_are_read_as_the_standard_says() -> None:
    def fault(case: Case) -> str | None:
        essence, label = media_type(case["input"])
        encoding = encoding_named(label) if label else None
        return differs((essence or None, encoding), (case["essence"], case["encoding"]))

    check(cases("encoding/content_type"), lambda case: case["input"], fault)


def test_html_without_a_header_is_sniffed_as_the_standard_says() -> None:
    check(
        enumerate_names(cases("encoding/prescan"), "source"),
        lambda case: case["id"],
        lambda case: differs(page_of(raw(case), case["content_type"]).charset, case["expected_encoding"]),
    )


def test_html_is_decoded_by_mark_then_header_then_meta() -> None:
    def fault(case: Case) -> str | None:
        page = page_of(raw(case), case["content_type"])
        if case["expected_text"] is None:
            return None  # the standard leaves it to the reader, or is disputed
        wanted = (case["expected_encoding"] or page.charset, case["expected_text"])
        return differs((page.charset, page.source), wanted)

    check(enumerate_names(cases("encoding/pipeline"), "name"), lambda case: case["id"], fault)


def test_xml_is_decoded_by_mark_then_header_then_declaration() -> None:
    def fault(case: Case) -> str | None:
        page = page_of(raw(case), case["content_type"])
        if case.get("lenient"):
            return differs(page.document.root is not None, True)
        return differs((page.charset, page.text()), (case["expected_encoding"], case["expected_root_text"]))

    check(cases("encoding/xml"), lambda case: case["name"], fault)


def enumerate_names(given: list[Case], key: str) -> list[Case]:
    return [{**case, "id": f"{number} {case[key]}"} for number, case in enumerate(given)]


RUSSIAN = "Привет, мир! Это страница на русском языке, и она ничего не объявляет."
CHINESE = "中文网页内容测试，这里是一些汉字，用来检测网页的编码。"
TRADITIONAL = "中文網頁內容測試，這裡是一些漢字，用來檢測網頁的編碼。"
JAPANESE = "日本語のページの内容です。テストのために書きます。"
KOREAN = "한국어 페이지의 내용입니다. 시험을 위해 씁니다."
GREEK = "Καλημέρα κόσμε, αυτή είναι μια σελίδα στα ελληνικά"
CZECH = "Příliš žluťoučký kůň úpěl ďábelské ódy"


@pytest.mark.parametrize(
    ("codec", "text"),
    [
        ("utf-8", RUSSIAN),
        ("windows-1251", RUSSIAN),
        ("gb18030", CHINESE),
        ("big5", TRADITIONAL),
        ("shift_jis", JAPANESE),
        ("euc-jp", JAPANESE),
        ("iso-2022-jp", JAPANESE),
        ("euc-kr", KOREAN),
        ("windows-1253", GREEK),
        ("windows-1250", CZECH),
    ],
)
def test_what_declares_nothing_is_detected(codec: str, text: str) -> None:
    page = page_of(f"<title>{text}</title>".encode(codec), "text/html")
    assert (page.title, page.charset_source) == (text, "content")
    plain = page_of(text.encode(codec), "text/plain")
    if codec != "iso-2022-jp":  # which is valid UTF-8
        assert (plain.source, plain.charset_source) == (text, "content")


@pytest.mark.parametrize("label", ["gb2312", "GBK", " gb18030 ", "GB_2312-80", "x-gbk"])
def test_labels_of_one_family_are_one_superset(label: str) -> None:
    page = page_of("<p>\u9555€".encode("gb18030"), f'text/html; charset="{label}"')
    assert page.text() == "\u9555€"


@pytest.mark.parametrize(
    ("body", "content_type", "charset", "source"),
    [
        (b"\xef\xbb\xbf<p>", "text/html; charset=gbk", "UTF-8", "bom"),
        (b"<meta charset=gbk><p>", "text/html; charset=Shift_JIS", "Shift_JIS", "http"),
        (b"<meta charset=gbk><p>", "text/html; charset=nonsense", "GBK", "meta"),
        (
            b"<meta content='text/html;charset=koi8-r' http-equiv=Content-Type>",
            "text/html",
            "KOI8-R",
            "meta",
        ),
        (b"<?xml version='1.0' encoding='gbk'?><p>", "text/html", "GBK", "xml"),
        (b"<?xml version='1.0' encoding='gbk'?><meta charset=big5>", "text/html", "Big5", "meta"),
        ("<?xml version='1.0'?><p>x".encode("utf-16-be"), "text/html", "UTF-16BE", "xml"),
        ("<p>é".encode(), "text/html", "UTF-8", "content"),
        (b"<p>", "text/html", "windows-1252", "default"),
        (b"<r/>", "text/xml", "UTF-8", "default"),
        (b"\n<?xml version='1.0' encoding='koi8-r'?><r/>", "text/xml", "KOI8-R", "xml"),
        (b"a;b", "text/csv", "UTF-8", "default"),
        (b"a;b", "text/csv; charset=latin1", "windows-1252", "http"),
        (b"{}", "application/json; charset=latin1", "UTF-8", "default"),
        (b"\x89PNG\r\n\x1a\n", "image/png", None, "binary"),
        (b"\xff\xfea\0", "text/plain", "UTF-16LE", "bom"),
    ],
)
def test_a_page_says_what_decided_its_charset(
    body: bytes, content_type: str, charset: str | None, source: str
) -> None:
    page = page_of(body, content_type)
    assert (page.charset, page.charset_source) == (charset, source)


@pytest.mark.parametrize(
    "codec", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-32-le", "utf-32-be"]
)
def test_json_is_read_in_every_unicode_encoding(codec: str) -> None:
    page = page_of('{"ключ": ["é", 1]}'.encode(codec), "application/json; charset=windows-1251")
    assert page.json() == {"ключ": ["é", 1]}
    assert page.source == '{"ключ": ["é", 1]}'


def test_a_label_without_end_is_no_label_and_not_remembered() -> None:
    assert encoding_named("utf-8" + " " * 1_000_000) is None


LARGE = [
    ("windows-1251", RUSSIAN),
    ("gb18030", CHINESE),
    ("shift_jis", JAPANESE),
    ("euc-kr", KOREAN),
    ("big5", TRADITIONAL),
    ("utf-8", RUSSIAN),
]


@pytest.mark.parametrize("before", [0, 1, 200_000])
@pytest.mark.parametrize(("codec", "text"), LARGE)
def test_a_large_text_is_detected_by_a_part_of_it(codec: str, text: str, before: int) -> None:
    started = time.perf_counter()
    body = b"x" * before + f"{text}\n".encode(codec) * 60_000
    page = page_of(b"<p>" + body, "text/html")
    assert (page.source[-len(text) - 1 :], page.charset_source) == (f"{text}\n", "content")
    assert page_of(body, "text/plain").source[-len(text) - 1 :] == f"{text}\n"
    assert time.perf_counter() - started < 10


def test_a_large_page_is_still_read_as_its_late_meta_says() -> None:
    body = b"<!--" + b"x" * 100_000 + b"--><meta charset=koi8-r><p>" + RUSSIAN.encode("koi8-r")
    page = page_of(body, "text/html")
    assert (page.text("p"), page.charset, page.charset_source) == (RUSSIAN, "KOI8-R", "meta")


def test_the_charset_of_json_is_told_by_its_start() -> None:
    assert json_charset(b"[" + b"1," * 2_000_000).name == "UTF-8"
