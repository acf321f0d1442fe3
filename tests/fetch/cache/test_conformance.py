"""The cache against http-tests/cache-tests and the cases written from the RFCs."""

from __future__ import annotations

from email.utils import parsedate_to_datetime
from typing import Any

import pytest
from tests.conformance import Case, cases, check
from tests.fetch.cache.conftest import OpenStore
from tests.fetch.cache.origin import (
    Clock,
    Fields,
    Origin,
    answer_of,
    date_at,
    field,
    fields_of,
    refuse,
)

from silkline.errors import FetchError
from silkline.fetch.cache.middleware import HttpCache
from silkline.fetch.cache.store import CacheStore
from silkline.fetch.middleware import compose
from silkline.protocols import CallNext
from silkline.request import Request
from silkline.response import Response

DATES = ("date", "expires", "last-modified", "if-modified-since")


@pytest.fixture
async def store(open_store: OpenStore) -> CacheStore:
    return await open_store()


# http-tests/cache-tests.


class Steps:
    """One case of cache_tests.json, driven through the middleware."""

    def __init__(self, case: Case, store: CacheStore) -> None:
        self.case = case
        self.clock = Clock()
        self.origin = Origin(lambda request: self.answer(request))
        self.fetch: CallNext = compose([HttpCache(store, "on", self.clock)], self.origin)
        self.step: dict[str, Any] = {}
        self.number = 0
        self.faults: list[str] = []
        self.last_validators: dict[str, str] = {}

    async def run(self) -> str | None:
        for number, step in enumerate(self.case["steps"], start=1):
            self.step, self.number = step, number
            asked = len(self.origin.requests)
            response = await self.response()
            reached = self.origin.requests[asked:]
            if (fault := self.judge(step.get("expect") or {}, response, reached)) is not None:
                return f"{self.case['words']}: step {number}: {fault}"
            self.clock.now += step.get("wait_after_s", 0)
        return "; ".join(self.faults) or None

    async def response(self) -> Response | None:
        request = self.step["request"]
        headers: dict[str, str] = {}
        for name, value in self.fields(request.get("headers") or []):
            # A Request has one value a name; several lines of a list are one (RFC 9110, section 5.3).
            headers[name] = f"{headers[name]}, {value}" if name in headers else value
        if request.get("fetch_cache_mode") == "no-cache":
            headers["Cache-Control"] = "max-age=0"  # which is what the Fetch Standard makes of it
        query = f"?{request['query']}" if "query" in request else ""
        url = f"http://{self.case['id'].lower()}.example/{query}"
        body = request["body"].encode() if "body" in request else None
        try:
            return await self.fetch(Request(url, method=request["method"], headers=headers, body=body))
        except FetchError:
            return None

    def answer(self, request: Request) -> Response:
        server = self.step["server"]
        if server.get("disconnect"):
            return refuse(request)
        validators = self.last_validators
        fields = self.fields(server["headers"])
        if not any(name.lower() == "date" for name, _ in fields):
            fields.append(("Date", date_at(self.clock.now)))
        fields.append(("Client-Request-Count", str(self.number)))
        fields.append(("Server-Request-Count", str(len(self.origin.requests))))
        self.last_validators = {name.lower(): value for name, value in fields}
        if server.get("answers_304_if_the_validator_matches"):
            for condition, validator in (("if-none-match", "etag"), ("if-modified-since", "last-modified")):
                sent = field(request, condition)
                if sent is not None and sent == validators.get(validator):
                    return answer_of(request, 304, fields, b"")
            self.faults.append(f"step {self.number}: no validator that matches")
        body = server["body"] if "body" in server else self.case["id"]
        return answer_of(request, server["status"], fields, (body or "").encode())

    def fields(self, given: list[list[Any]]) -> Fields:
        return [
            (name, date_at(self.clock.now + value) if isinstance(value, int) else value)
            for name, value in given
        ]

    def judge(self, expect: dict[str, Any], response: Response | None, reached: list[Request]) -> str | None:
        kind = expect.get("type")
        if kind == "cached" and reached:
            return "the origin was asked"
        if kind in ("not_cached", "etag_validated", "lm_validated") and not reached:
            return "the origin was not asked"
        condition = {"etag_validated": "if-none-match", "lm_validated": "if-modified-since"}.get(kind or "")
        if condition and field(reached[0], condition) is None:
            return f"the origin was asked without {condition}"
        for name, value in expect.get("request_headers") or ():
            if not reached or field(reached[0], name) != value:
                return f"the request's {name} is not {value}"
        if "status" in expect and (response.status if response else None) != expect["status"]:
            return f"status {response and response.status}"
        return self.judge_fields(expect, response)

    def judge_fields(self, expect: dict[str, Any], response: Response | None) -> str | None:
        for name, *wanted in expect.get("response_headers") or ():
            if response is None:
                return "no response"
            got = fields_of(response, name)
            if wanted[0] == ">":
                if not got or not int(got[0]) > wanted[1]:
                    return f"{name} is {got}, not over {wanted[1]}"
            elif isinstance(wanted[0], int):
                if got != [date_at(self.clock.now - 3 + wanted[0])]:
                    return f"{name} is {got}"
            elif wanted[0] not in got:
                return f"{name} is {got}, not {wanted[0]}"
        for missing in expect.get("response_headers_missing") or ():
            name, value = missing if isinstance(missing, list) else (missing, None)
            got = fields_of(response, name) if response is not None else []
            if (value is None and got) or value in got:
                return f"{name} is there: {got}"
        return None


ARGUED_STEPS = {
    "cc-resp-immutable-fresh": "optimal; RFC 8246, section 2.1: immutable holds unless the user overrides "
    "it, and a max-age=0 in a Request is the user's word",
    "stale-while-revalidate": "optimal; RFC 5861, section 3: a cache MAY serve stale while it revalidates; "
    "a crawler has nobody who waits, so it gives the handler the current page",
    "method-POST": "optimal; RFC 9111, section 2: a cache may limit itself to GET",
    "vary-normalise-lang-order": "optimal; RFC 9111, section 4.1: normalising is for fields whose order "
    "is known to mean nothing, and the order of languages of equal weight is used by some servers",
    "vary-normalise-lang-case": "optimal; RFC 9111, section 4.1: normalising is allowed, not asked for",
    "vary-normalise-lang-select": "optimal; RFC 9111, section 4.1: a response's language selects nothing",
}
"""No miss is of the level "required"."""


async def test_cache_tests(store: CacheStore) -> None:
    faults = {case["id"]: await Steps(case, store).run() for case in cases("http-cache/cache_tests")}
    counted = [
        case
        for case in cases("http-cache/cache_tests")
        if not any(faults.get(name) for name in case["depends_on"])
    ]
    check(counted, lambda case: case["id"], lambda case: faults[case["id"]], ARGUED_STEPS)


def test_no_argued_miss_is_required() -> None:
    levels = {
        case["id"]: case["level"] for case in cases("http-cache/cache_tests") + cases("http-cache/cases")
    }
    assert {levels[name] for name in ARGUED_STEPS | ARGUED_CASES} == {"optimal", "may"}


# Cases from the RFCs.


def moment(text: str) -> float:
    return parsedate_to_datetime(text).timestamp()


def request_of(described: dict[str, Any], url: str, method: str | None = None) -> Request:
    headers = dict(described.get("headers") or ())
    return Request(url, method=method or described["method"], headers=headers)


class Situation:
    """One case of cases.json: something is stored, something is asked."""

    def __init__(self, case: Case, store: CacheStore) -> None:
        self.case = case
        self.store = store
        self.clock = Clock()
        self.origin = Origin(lambda request: self.answers(request, case["stored"]["response"]))
        self.fetch: CallNext = compose([HttpCache(store, "on", self.clock)], self.origin)
        host = f"{case['id']}.example"
        self.stored_url = case.get("stored_url", f"https://{host}/").replace("example.com", host)
        self.url = case.get("request_url", f"https://{host}/").replace("example.com", host)

    def answers(self, request: Request, described: dict[str, Any] | None) -> Response:
        described = described or {"status": 200}
        if "error" in described:
            return refuse(request)
        fields = [tuple(pair) for pair in described.get("headers", ())]
        return answer_of(request, described["status"], fields, described.get("body", "stored").encode())

    async def run(self) -> str | None:
        case = self.case
        if (stored := case["stored"]) is not None:
            self.clock.now = moment(stored["received_at"])
            if "body_bytes_received" in case:
                self.origin.answer = refuse  # as both engines do it for a body that ends early
            await self.ask(request_of(stored["request"], self.stored_url, case.get("stored_method")))
        if (unsafe := case.get("unsafe_request_between")) is not None:
            self.origin.answer = lambda request: answer_of(request, unsafe["status"], [])
            await self.ask(Request(self.url, method=unsafe["method"]))
        self.clock.now = moment(case["request"]["at"])
        self.origin.answer = lambda request: self.answers(request, case.get("origin_answers"))
        self.origin.requests.clear()
        response = await self.ask(request_of(case["request"], self.url))
        reached = self.origin.requests
        fault = self.judge(case["expect"], response, reached)
        if fault is not None and "or" in case["expect"]:
            fault = self.judge({**case["expect"], "action": case["expect"]["or"]}, response, reached)
        return fault or await self.judge_later(case["expect"])

    async def ask(self, request: Request) -> Response | None:
        try:
            return await self.fetch(request)
        except FetchError:
            return None

    def judge(self, expect: dict[str, Any], response: Response | None, reached: list[Request]) -> str | None:
        action = expect["action"]
        validated = response is not None and response.not_modified
        answered = {
            "serve_stored": response is not None and response.from_cache and (not reached or validated),
            "fetch": bool(reached) and not self.asked_conditionally(reached[-1]),
            "conditional_request": bool(reached) and self.asked_conditionally(reached[0]),
            "serve_origin": response is not None and bool(reached) and not response.from_cache,
            "error": response is None,
            "error_or_retry": response is None or response.status == 304,  # a 304 is no success: an error
            "answer": response is not None,
            "pass_through": bool(reached) and response is not None and not response.from_cache,
        }
        if action == "serve_stored" and "origin_answers" in self.case and reached:
            answered[action] = response is not None and response.from_cache
        if not answered[action]:
            return f"{self.case['words']}: {action} did not happen: {len(reached)} asked, {response!r:.200}"
        for name, value in expect.get("request_headers", ()):
            if field(reached[0], name) != value:
                return f"{self.case['words']}: {name} is {field(reached[0], name)}"
        if "status" in expect and (response is None or response.status != expect["status"]):
            return f"{self.case['words']}: another status"
        return self.judge_fields(expect, response)

    def judge_fields(self, expect: dict[str, Any], response: Response | None) -> str | None:
        if response is None:
            return None
        for name, value in expect.get("headers", ()):
            if fields_of(response, name) != [value]:
                return f"{self.case['words']}: {name} is {fields_of(response, name)}"
        for name in expect.get("headers_absent", ()):
            if fields_of(response, name):
                return f"{self.case['words']}: {name} is there"
        if expect.get("body") is False and response.body:
            return "there is a body"
        if "cookie_stored" in expect and fields_of(response, "set-cookie") != [expect["cookie_stored"]]:
            return "the cookie is not handed on"
        return None

    def asked_conditionally(self, request: Request) -> bool:
        return field(request, "if-none-match") is not None or field(request, "if-modified-since") is not None

    async def judge_later(self, expect: dict[str, Any]) -> str | None:
        """What has to hold of the store afterwards."""
        if "fresh_until" in expect:
            for shift, fresh in ((-1, True), (0, False)):
                self.clock.now = moment(expect["fresh_until"]) + shift
                self.origin.requests.clear()
                self.origin.answer = refuse
                await self.ask(Request(self.url))
                if bool(self.origin.requests) == fresh:
                    return f"{self.case['words']}: fresh at {shift} s: {not fresh}"
        if expect.get("kept") is False or expect.get("stored") is False or "stored_etag" in expect:
            self.origin.requests.clear()
            self.origin.answer = lambda request: answer_of(request, 200, [("Cache-Control", "no-store")])
            await self.ask(Request(self.url))
            (request,) = self.origin.requests
            if field(request, "if-none-match") != expect.get("stored_etag"):
                return f"{self.case['words']}: asked with {field(request, 'if-none-match')}"
        return None


ARGUED_CASES = {
    "stale-10": "may; RFC 5861, section 3: see stale-while-revalidate above",
}
"""No miss is of the level "must" or "should"."""


async def test_cases_of_the_rfcs(store: CacheStore) -> None:
    faults = {case["id"]: await Situation(case, store).run() for case in cases("http-cache/cases")}
    check(cases("http-cache/cases"), lambda case: case["id"], lambda case: faults[case["id"]], ARGUED_CASES)
