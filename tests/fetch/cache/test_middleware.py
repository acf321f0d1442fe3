"""What the cache does around a hop, beyond the conformance data: modes, owners, redirects, failures."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from tests.fetch.cache.conftest import OpenStore
from tests.fetch.cache.origin import Clock, Fields, Origin, answer_of, date_at, field, refuse

from silkline.errors import DecodeError, FetchError, NotCachedError, ProtocolError
from silkline.fetch.cache.middleware import HttpCache, Mode
from silkline.fetch.cache.store import CacheStore
from silkline.fetch.cookies.cookie import place_of
from silkline.fetch.cookies.hop import cookie_hop
from silkline.fetch.cookies.sessions import Sessions
from silkline.fetch.middleware import compose
from silkline.fetch.mock import MockFetcher
from silkline.request import Request
from silkline.response import Response

URL = "https://shop.example/page"
Fetch = Callable[[Request], Awaitable[Response]]


class Setting:
    """An origin behind a cache; `mode` and `answer` may change on the way."""

    def __init__(self, store: CacheStore, clock: Clock) -> None:
        self.store = store
        self.clock = clock
        self.origin = Origin(lambda request: answer_of(request, 200, []))
        self.mode: Mode = "on"
        self.options: dict[str, Any] = {}

    def says(self, status: int, fields: Fields, body: bytes = b"body") -> None:
        """From now on; with a Date, and a 304 to who has the ETag."""

        def answer(request: Request) -> Response:
            dated = [("Date", date_at(self.clock.now)), *fields]
            etag = dict(fields).get("ETag")
            if etag and field(request, "if-none-match") == etag:
                return answer_of(request, 304, dated, b"")
            return answer_of(request, status, dated, body)

        self.origin.answer = answer

    async def get(self, url: str = URL, **request: Any) -> Response:
        cache = HttpCache(self.store, self.mode, self.clock, **self.options)
        return await compose([cache], self.origin)(Request(url, **request))

    @property
    def asked(self) -> int:
        return len(self.origin.requests)


@pytest.fixture
async def setting(open_store: OpenStore, clock: Clock) -> Setting:
    return Setting(await open_store(), clock)


# A page that has not changed.


async def test_a_304_gives_the_stored_body_and_says_so(setting: Setting) -> None:
    setting.says(200, [("ETag", '"1"'), ("X-A", "old")], b"the page")
    first = await setting.get()
    assert (first.not_modified, first.from_cache, first.wire_bytes) == (False, False, 8)
    request = Request(URL, extra={"n": 1})
    again = await setting.get(extra={"n": 1})
    assert (again.status, again.body, again.wire_bytes) == (200, b"the page", 0)
    assert (again.not_modified, again.from_cache) == (True, True)
    assert again.request == request, "the validators are nothing that a handler asked for"
    assert field(setting.origin.requests[-1], "If-None-Match") == '"1"'


async def test_a_page_that_has_changed_takes_the_place_of_the_old_one(setting: Setting) -> None:
    setting.says(200, [("ETag", '"1"')], b"old")
    await setting.get()
    setting.says(200, [("ETag", '"2"')], b"new")
    changed = await setting.get()
    assert (changed.body, changed.not_modified, changed.from_cache) == (b"new", False, False)
    assert changed.request == Request(URL)
    assert (await setting.get()).body == b"new"
    assert field(setting.origin.requests[-1], "If-None-Match") == '"2"'


async def test_a_304_nobody_asked_for_is_handed_on(setting: Setting) -> None:
    setting.origin.answer = lambda request: answer_of(request, 304, [], b"")
    assert (await setting.get()).status == 304


async def test_a_damaged_body_is_fetched_again(setting: Setting, monkeypatch: pytest.MonkeyPatch) -> None:
    setting.says(200, [("ETag", '"1"'), ("Cache-Control", "max-age=60")], b"whole")
    await setting.get()
    monkeypatch.setattr("silkline.fetch.cache.entry.decompress", _broken)
    assert (await setting.get()).body == b"whole"
    assert field(setting.origin.requests[-1], "If-None-Match") is None
    assert setting.asked == 3, "a 304 is no use without the body"


def _broken(data: bytes) -> bytes:
    from silkline.fetch.cache.entry import ZstdError

    raise ZstdError("damaged")


# Modes.


async def test_revalidate_asks_even_where_the_page_is_fresh(setting: Setting) -> None:
    setting.says(200, [("ETag", '"1"'), ("Cache-Control", "max-age=60, immutable")])
    await setting.get()
    assert (await setting.get()).not_modified is False
    assert setting.asked == 1
    setting.mode = "revalidate"
    assert (await setting.get()).not_modified
    assert setting.asked == 2


@pytest.mark.parametrize("control", ["max-age=1", "no-cache", "max-age=0, must-revalidate"])
async def test_offline_replays_whatever_its_age_and_asks_nobody(setting: Setting, control: str) -> None:
    setting.says(200, [("Cache-Control", control)], b"kept")
    await setting.get()
    setting.mode = "offline"
    setting.origin.answer = refuse
    setting.clock.now += 1_000_000
    replayed = await setting.get()
    assert (replayed.body, replayed.from_cache, replayed.not_modified) == (b"kept", True, False)
    assert setting.asked == 1


async def test_offline_a_page_that_is_not_there_has_its_own_cause(setting: Setting) -> None:
    setting.mode = "offline"
    with pytest.raises(NotCachedError, match="was not stored, and `cache = offline` fetches nothing") as info:
        await setting.get()
    assert info.value.cause == "not_cached"
    for request in ({"method": "POST"}, {"headers": {"Range": "bytes=0-"}}, {"save_to": "file"}):
        with pytest.raises(NotCachedError, match="is no plain GET"):
            await setting.get(**request)
    assert setting.asked == 0


async def test_offline_any_variant_is_better_than_none(setting: Setting) -> None:
    setting.says(200, [("Vary", "Accept-Language")], b"hallo")
    await setting.get(headers={"Accept-Language": "de"})
    setting.mode = "offline"
    assert (await setting.get(headers={"Accept-Language": "fr"})).body == b"hallo"


async def test_redirects_are_replayed_offline_and_otherwise_asked_for(
    setting: Setting, open_store: OpenStore, clock: Clock
) -> None:
    pages: dict[str, Any] = {
        "https://shop.example/old": (302, {"Location": "/new"}, b""),
        "https://shop.example/new": (200, {"Cache-Control": "max-age=60"}, b"new"),
    }
    request = Request("https://shop.example/old")
    online = MockFetcher(pages, hops=[HttpCache(setting.store, "on", clock)])
    for hops in (2, 3):
        assert (await online.fetch(request)).url == "https://shop.example/new"
        assert len(online.requests) == hops, "the redirect may not be reused, the page may"
    offline = MockFetcher({}, hops=[HttpCache(setting.store, "offline", clock)])
    replayed = await offline.fetch(request)
    assert (replayed.body, replayed.url, replayed.history) == (
        b"new",
        "https://shop.example/new",
        ("https://shop.example/old",),
    )
    assert replayed.from_cache
    assert offline.requests == []


# Whose it is.


async def test_sessions_and_credentials_have_caches_of_their_own(setting: Setting) -> None:
    setting.says(200, [("Cache-Control", "max-age=60"), ("ETag", '"1"')], b"mine")
    await setting.get(session="a", headers={"Authorization": "Basic eDp5"})
    for other in (
        {},
        {"session": "a"},
        {"session": "b", "headers": {"Authorization": "Basic eDp5"}},
        {"session": "a", "headers": {"Authorization": "Basic eDp6"}},
    ):
        assert not (await setting.get(**other)).from_cache
        assert field(setting.origin.requests[-1], "If-None-Match") is None
    assert (await setting.get(session="a", headers={"authorization": "Basic eDp5"})).from_cache
    assert not (await setting.get("https://u:p@shop.example/page")).from_cache


async def test_an_unsafe_request_of_one_session_outdates_the_page_for_all(setting: Setting) -> None:
    setting.says(200, [("Cache-Control", "max-age=60")])
    await setting.get(session="a")
    await setting.get(session="b")
    await setting.get(session="c", method="DELETE")
    assert not (await setting.get(session="a")).from_cache
    assert not (await setting.get(session="b")).from_cache


async def test_what_the_engine_adds_counts_for_vary(setting: Setting) -> None:
    setting.says(200, [("Cache-Control", "max-age=60"), ("Vary", "User-Agent")])
    setting.options = {"sent": {"User-Agent": "one/1"}}
    await setting.get()
    assert (await setting.get()).from_cache
    setting.options = {"sent": {"User-Agent": "two/2"}}
    assert not (await setting.get()).from_cache
    assert (await setting.get(headers={"user-agent": "one/1"})).from_cache


async def test_a_page_that_vary_does_not_select_may_still_be_the_right_one(setting: Setting) -> None:
    control = [("Vary", "Cookie"), ("Cache-Control", "max-age=60")]
    for session, etag in (("1", '"a"'), ("2", '"b"')):
        setting.says(200, [("ETag", etag), *control], etag.encode())
        await setting.get(headers={"Cookie": f"sid={session}"})
    setting.origin.answer = lambda request: answer_of(request, 304, [("ETag", '"a"'), *control], b"")
    third = {"Cookie": "sid=3"}
    known = await setting.get(headers=third)
    assert field(setting.origin.requests[-1], "If-None-Match") == '"b", "a"'
    assert (known.body, known.not_modified, known.request.headers) == (b'"a"', True, third)
    assert (await setting.get(headers=third)).from_cache
    assert setting.asked == 3, "now it is stored for that request, too"


async def test_a_304_that_says_nothing_of_which_page_is_not_guessed_at(setting: Setting) -> None:
    for number in (1, 2):
        setting.says(200, [("ETag", f'"{number}"'), ("Vary", "Cookie")])
        await setting.get(headers={"Cookie": str(number)})
    answers = iter([(304, b""), (200, b"whole")])

    def answer(request: Request) -> Response:
        status, body = next(answers)
        return answer_of(request, status, [], body)

    setting.origin.answer = answer
    assert (await setting.get(headers={"Cookie": "3"})).body == b"whole"
    assert field(setting.origin.requests[-1], "If-None-Match") is None


async def test_a_cookie_is_set_when_the_server_sets_it_and_not_by_the_cache(setting: Setting) -> None:
    sessions = Sessions()

    async def get() -> str | None:
        hops = [cookie_hop(sessions, setting.clock), HttpCache(setting.store, setting.mode, setting.clock)]
        await compose(hops, setting.origin)(Request(URL))
        return sessions.get(None).jar.header(place_of(URL), setting.clock())

    setting.says(200, [("ETag", '"1"'), ("Cache-Control", "max-age=60"), ("Set-Cookie", "a=1")])
    assert await get() == "a=1"
    sessions.get(None).jar.take([b"a=2"], place_of(URL), setting.clock())
    assert await get() == "a=2", "what the cache has is no news"
    setting.mode = "revalidate"
    setting.says(200, [("ETag", '"1"')])
    assert await get() == "a=2", "a 304 without a cookie sets none"
    setting.says(200, [("ETag", '"1"'), ("Set-Cookie", "a=3")])
    assert await get() == "a=3"
    assert setting.asked == 3


# Invalidation.


@pytest.mark.parametrize("name", ["Location", "Content-Location"])
@pytest.mark.parametrize(
    ("reference", "kept"),
    [("/list", False), ("https://shop.example/list", False), ("https://other.example/list", True)],
)
async def test_a_post_outdates_what_its_answer_names_on_the_same_origin(
    setting: Setting, name: str, reference: str, kept: bool
) -> None:
    setting.says(200, [("Cache-Control", "max-age=60")])
    target = "https://other.example/list" if kept else "https://shop.example/list"
    await setting.get(target)
    setting.says(201, [(name, reference)])
    await setting.get(method="POST", body=b"a=1")
    assert (await setting.get(target)).from_cache == kept


@pytest.mark.parametrize("reference", ["http://[", "mailto:a@b.example", ""])
async def test_a_location_that_is_no_url_outdates_nothing_else(setting: Setting, reference: str) -> None:
    setting.says(200, [("Location", reference)])
    assert (await setting.get(method="PUT", body=b"x")).status == 200


# Failures.


async def test_stale_if_error_stands_in_for_a_server_that_fails(setting: Setting) -> None:
    setting.says(200, [("Cache-Control", "max-age=10, stale-if-error=100")], b"stale")
    await setting.get()
    setting.clock.now += 50
    for answer in (refuse, lambda request: answer_of(request, 503, [])):
        setting.origin.answer = answer
        response = await setting.get()
        assert (response.status, response.body, response.not_modified) == (200, b"stale", False)
    setting.clock.now += 100
    assert (await setting.get()).status == 503


@pytest.mark.parametrize("error", [DecodeError("bad"), NotCachedError("x")])
async def test_what_is_no_fault_of_the_network_is_no_reason_for_a_stale_page(
    setting: Setting, error: FetchError
) -> None:
    setting.says(200, [("Cache-Control", "max-age=10, stale-if-error=100")])
    await setting.get()
    setting.clock.now += 50
    setting.origin.answer = _raising(error)
    with pytest.raises(type(error)):
        await setting.get()


def _raising(error: Exception) -> Callable[[Request], Response]:
    def answer(request: Request) -> Response:
        raise error

    return answer


async def test_a_failed_fetch_stores_nothing(setting: Setting) -> None:
    setting.origin.answer = _raising(ProtocolError("cut short"))
    with pytest.raises(ProtocolError):
        await setting.get()
    setting.mode = "offline"
    with pytest.raises(NotCachedError):
        await setting.get()


@pytest.mark.parametrize("again", ["retry_count", "spared"])
async def test_a_retry_does_not_get_the_stored_failure_again(setting: Setting, again: str) -> None:
    setting.says(503, [("Cache-Control", "max-age=60")])
    await setting.get()
    assert (await setting.get()).from_cache
    setting.says(200, [], b"well again")
    assert (await setting.get(**{again: 1})).body == b"well again"


# What is none of its business.


@pytest.mark.parametrize(
    "request_",
    [{"headers": {"If-None-Match": '"mine"'}}, {"headers": {"range": "bytes=0-1"}}, {"save_to": "file"}],
)
async def test_own_conditions_ranges_and_downloads_pass_through(
    setting: Setting, request_: dict[str, Any]
) -> None:
    setting.says(200, [("Cache-Control", "max-age=60")])
    await setting.get(**request_)
    assert not (await setting.get()).from_cache
    assert not (await setting.get(**request_)).from_cache
    assert setting.origin.requests[0].headers == request_.get("headers", {})


async def test_a_head_is_answered_from_a_get_and_stores_nothing(setting: Setting) -> None:
    setting.says(200, [("Cache-Control", "max-age=60")], b"body")
    await setting.get(method="HEAD")
    await setting.get()
    assert setting.asked == 2
    head = await setting.get(method="HEAD")
    assert (head.body, head.from_cache, setting.asked) == (b"", True, 2)
