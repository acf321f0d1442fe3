"""Who the crawler says it is, on the wire of every engine."""

from __future__ import annotations

import base64
import random
import re
from typing import Any

import pytest
from raw_server import Serve, answer_of
from site_of_pages import Engine

from silkline.errors import BadUrlError, ConfigError
from silkline.fetch.cookies.sessions import Sessions
from silkline.fetch.decode import ACCEPT_ENCODING
from silkline.fetch.identity.agent import FOR_ONE_SITE, headers_for_all, user_agent_of
from silkline.fetch.identity.auth import authorizations
from silkline.fetch.identity.browser import SETS, Browser, Browsers, fetch_site, version_of
from silkline.fetch.identity.hop import Identity, identity_hop
from silkline.fetch.identity.referer import POLICIES, referer_by, referer_of
from silkline.request import Request
from silkline.version import __version__

OK = answer_of(200, {}, b"ok")


def to(url: str) -> bytes:
    return answer_of(302, {"Location": url}, b"")


def names(head: str) -> list[str]:
    return [line.partition(":")[0] for line in head.split("\r\n")[1:] if line]


@pytest.mark.parametrize(
    ("user_agent", "contact", "header"),
    [
        ("", "https://me.example/bot", f"silkline/{__version__} (+https://me.example/bot)"),
        ("", "me@example.org", f"silkline/{__version__} (+me@example.org)"),
        ("", "", f"silkline/{__version__} (web crawler)"),
        ("mybot/2", "me@example.org", "mybot/2 (+me@example.org)"),
        ("mybot/2 (me@example.org)", "me@example.org", "mybot/2 (me@example.org)"),
    ],
)
def test_the_user_agent_is_honest_and_has_the_contact(user_agent: str, contact: str, header: str) -> None:
    assert user_agent_of(user_agent, contact) == header


async def test_headers_are_sent_in_the_order_given(serve: Serve, engine: Engine) -> None:
    server = await serve({"/": OK})
    given = {"X-One": "1", "user-agent": "me", "Accept": "a/b", "X-Two": "2", "Accept-Encoding": "gzip"}
    await engine().fetch(Request(server.url(), headers=given))
    sent = [name for name in names(server.heads[0]) if name.lower() != "host"]
    assert sent == list(given)


async def test_what_a_request_says_wins_over_the_identity(serve: Serve, engine: Engine) -> None:
    server = await serve({"/": OK})
    identity = Identity(headers={"X-Team": "all", "X-Key": "1"})
    fetcher = engine(hops=[identity_hop(identity, Sessions())])
    response = await fetcher.fetch(Request(server.url(), headers={"x-team": "own"}))
    assert (server.header("x-team"), server.header("x-key")) == ("own", "1")
    assert names(server.heads[0]).count("x-team") == 1
    assert response.request.headers == {"x-team": "own"}


@pytest.mark.parametrize("name", sorted(FOR_ONE_SITE))
def test_a_header_that_is_for_one_site_is_refused_for_all(name: str) -> None:
    with pytest.raises(ConfigError, match="cannot be sent with every request; "):
        headers_for_all([f"{name.title()}: secret"])


async def test_credentials_go_to_their_origin_alone(serve: Serve, engine: Engine) -> None:
    server = await serve({"/a": to("/b"), "/b": OK})
    other = await serve({"/c": OK})
    server.routes["/b"] = to(other.url("/c"))
    auth = authorizations([f"{server.url('')} basic us er:p:ss"])
    fetcher = engine(hops=[identity_hop(Identity(auth=auth), Sessions())])
    response = await fetcher.fetch(Request(server.url("/a")))
    basic = "Basic " + base64.b64encode(b"us er:p:ss").decode()
    assert [server.header("authorization", n) for n in (0, 1)] == [basic, basic]
    assert other.header("authorization") is None
    assert "Authorization" not in response.request.headers


def test_the_forms_of_credentials() -> None:
    assert authorizations(["API.example.com bearer abc", "http://h:8080/ BASIC u:p"]) == {
        "https://api.example.com": "Bearer abc",
        "http://h:8080": "Basic dTpw",
    }


@pytest.mark.parametrize(
    "line",
    [
        "https://a.example",
        "https://a.example digest sesame",
        "https://a.example/path bearer sesame",
        "https://a.example basic sesame",
        "https://a.example bearer open sesame",
        "ftp://a.example bearer sesame",
        "https:// bearer sesame",
    ],
)
def test_credentials_that_cannot_be_used_are_one_line_without_the_secret(line: str) -> None:
    with pytest.raises(ConfigError, match=r"^auth, entry 1: ") as error:
        authorizations([line])
    assert "sesame" not in str(error.value)


def test_one_origin_has_one_set_of_credentials() -> None:
    lines = ["https://a.example bearer one", "https://b.example bearer two", "A.example:443 basic sesame:x"]
    with pytest.raises(ConfigError, match=r"^auth, entry 3: .* for https://a.example already") as error:
        authorizations(lines)
    assert "sesame" not in str(error.value)


async def test_a_header_with_control_characters_is_not_sent(serve: Serve, engine: Engine) -> None:
    server = await serve({"/": OK})
    for value in ("a\x01b", "a\x1bb", "a\x7f"):
        with pytest.raises(BadUrlError):
            await engine().fetch(Request(server.url(), headers={"X-Key": value}))
    assert server.heads == []


def test_browser_sets_agree_in_themselves() -> None:
    for browser in Browsers("job").sets:
        headers = {name.lower(): value for name, value in browser.headers.items()}
        user_agent, hints = headers["user-agent"], headers.get("sec-ch-ua", "")
        assert set(headers["accept-encoding"].split(", ")) <= set(ACCEPT_ENCODING.split(", "))
        assert ("Chrome/" in user_agent) == bool(hints)
        assert ("Edg/" in user_agent) == ("Microsoft Edge" in hints)
        if hints:
            assert f'v="{version_of(browser.headers)}"' in hints
            system = {'"Windows"': "Windows NT", '"macOS"': "Macintosh", '"Linux"': "X11"}
            assert system[headers["sec-ch-ua-platform"]] in user_agent
        assert headers["sec-fetch-mode"] == "navigate"
        assert headers["accept-language"].startswith("en-US,en;q=")


def test_a_session_shows_a_host_one_browser_and_the_crawl_many() -> None:
    browsers, elsewhere = Browsers("job"), Browsers("job")
    assert len(browsers.sets) == SETS
    shown = [browsers.of("s", 0, f"h{n}.example") for n in range(200)]
    assert shown == [elsewhere.of("s", 0, f"h{n}.example") for n in range(200)]
    assert len({browser.headers["User-Agent"] for browser in shown}) > 4
    anew = [browsers.of("s", 1, f"h{n}.example") for n in range(200)]
    assert sum(a != b for a, b in zip(shown, anew, strict=True)) > 50


def test_choosing_browsers_leaves_the_programs_own_random_numbers_alone() -> None:
    random.seed(1)
    expected = random.random()
    random.seed(1)
    Browsers("job")
    assert random.random() == expected


def family(name: str) -> Browser:
    return next(browser for browser in Browsers("job").sets if browser.family == name)


def test_a_browsers_headers_come_in_its_own_order() -> None:
    own = {"Cookie": "a=1", "Referer": "https://a.example/", "accept-language": "de"}
    sent = family("chrome").request_headers("https://a.example/x", "https://a.example/", own)
    assert [name.lower() for name in sent] == [
        *("sec-ch-ua", "sec-ch-ua-mobile", "sec-ch-ua-platform", "upgrade-insecure-requests", "user-agent"),
        *("accept", "sec-fetch-site", "sec-fetch-mode", "sec-fetch-user", "sec-fetch-dest", "referer"),
        *("accept-encoding", "accept-language", "cookie"),
    ]
    assert sent["Accept-Language"] == "de"
    assert sent["Sec-Fetch-Site"] == "same-origin"


def test_over_plain_http_browsers_say_less() -> None:
    sent = family("chrome").request_headers("http://a.example/", None, {})
    assert not [name for name in sent if name.lower().startswith("sec-")]
    assert sent["Accept-Encoding"] == "gzip, deflate"


@pytest.mark.parametrize(
    ("url", "referer", "site"),
    [
        ("https://a.example.com/", None, "none"),
        ("https://a.example.com/x", "https://a.example.com/", "same-origin"),
        ("https://a.example.com/", "https://b.example.com/", "same-site"),
        ("https://a.example.com/", "http://a.example.com/", "cross-site"),
        ("https://a.co.uk/", "https://b.co.uk/", "cross-site"),
        ("https://127.0.0.1/", "https://127.0.0.2/", "cross-site"),
    ],
)
def test_fetch_metadata_tells_how_pages_are_related(url: str, referer: str | None, site: str) -> None:
    assert fetch_site(url, referer) == site


async def test_a_browser_identity_on_the_wire(serve: Serve, engine: Engine) -> None:
    server = await serve({"/": OK})
    browsers = Browsers("job")
    fetcher = engine(hops=[identity_hop(Identity(browsers=browsers), Sessions())])
    for session in ("one", "two", "one"):
        await fetcher.fetch(Request(server.url(), session=session))
    expected = browsers.of("one", 0, "127.0.0.1").request_headers(server.url(), None, {})
    for head in (server.heads[0], server.heads[2]):
        lines = [line for line in head.split("\r\n")[1:] if line and not line.lower().startswith("host:")]
        assert lines == [f"{name}: {value}" for name, value in expected.items()]


PAGE = "https://u:p@a.example/dir/page?q=1#part"
SAME, OTHER, PLAIN = "https://a.example/x", "https://b.example/x", "http://a.example/x"
WHOLE, ORIGIN = "https://a.example/dir/page?q=1", "https://a.example/"


@pytest.mark.parametrize(
    ("policy", "same", "other", "plain"),
    [
        ("origin", ORIGIN, ORIGIN, ORIGIN),
        ("same-origin", WHOLE, None, None),
        ("strict-origin", ORIGIN, ORIGIN, None),
        ("origin-when-cross-origin", WHOLE, ORIGIN, ORIGIN),
        ("strict-origin-when-cross-origin", WHOLE, ORIGIN, None),
        ("no-referrer-when-downgrade", WHOLE, WHOLE, None),
        ("unsafe-url", WHOLE, WHOLE, WHOLE),
    ],
)
def test_referrer_policies(policy: str, same: str | None, other: str | None, plain: str | None) -> None:
    assert [referer_of(policy, PAGE, target) for target in (SAME, OTHER, PLAIN)] == [same, other, plain]


def test_every_policy_is_tested_and_off_is_none() -> None:
    assert referer_by("off") is None
    assert len(POLICIES) == 8


def test_a_page_with_a_very_long_url_tells_only_its_origin() -> None:
    assert referer_of("unsafe-url", "https://a.example/" + "x" * 5_000, OTHER) == ORIGIN


async def test_a_redirect_to_another_origin_cuts_the_referer(serve: Serve, engine: Engine) -> None:
    server, other = await serve(), await serve({"/c": OK})
    server.routes |= {"/a": to("/b"), "/b": to(other.url("/c"))}
    referer = referer_by("strict-origin-when-cross-origin")
    fetcher = engine(hops=[identity_hop(Identity(referer=referer), Sessions())])
    page = server.url("/list?page=2")
    await fetcher.fetch(Request(server.url("/a"), headers={"Referer": page}))
    assert [server.header("referer", n) for n in (0, 1)] == [page, page]
    assert other.header("referer") == server.url("/")


def test_a_missing_browserforge_is_one_line_that_says_what_to_install(monkeypatch: Any) -> None:
    monkeypatch.setitem(__import__("sys").modules, "browserforge.headers", None)
    with pytest.raises(ConfigError, match=re.escape('pip install "silkline[identity]"')):
        Browsers("job")
