"""How requests, leases and dead letters are written for Redis, and read back."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from silkline.errors import BadUrlError, TaskError
from silkline.frontier import rules
from silkline.frontier.dead_pages import DeadPage
from silkline.frontier.groups import KeyOf
from silkline.keys import KeyRules
from silkline.outcome import DeadItem, DeadLetter, Lease, Refused
from silkline.request import Request, request_from_task
from silkline.url import host_of

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(Request).decode


class Arrivals(msgspec.Struct, frozen=True):
    """A batch to enqueue, no fingerprint twice, in order of arrival.

    runs: (host, priority, how many in a row). args: for each request its fingerprint in decimal digits, and
    its payload: 8 bytes of fingerprint, then its JSON.
    """

    runs: list[tuple[str, int, int]]
    args: list[bytes]

    def __len__(self) -> int:
        return len(self.args) // 2


class Placed(msgspec.Struct, frozen=True):
    """A request ready to be enqueued."""

    host: str
    priority: int
    fingerprint: int
    payload: bytes


def placed(requests: Iterable[Request], keys: KeyRules, key_of: KeyOf) -> list[Placed]:
    """Raises BadUrlError or TaskError; then nothing of the batch can be added."""
    unique: dict[int, Placed] = {}
    for request in rules.without_repeats(requests):
        fingerprint = keys.of(request)
        if fingerprint not in unique:
            payload = fingerprint_bytes(fingerprint) + json_of(request)
            unique[fingerprint] = Placed(key_of(request.url), request.priority, fingerprint, payload)
    return list(unique.values())


def arrivals(requests: Iterable[Placed]) -> Arrivals:
    runs: list[tuple[str, int, int]] = []
    args: list[bytes] = []
    host, priority, count = "", 0, 0
    for request in requests:
        if request.host != host or request.priority != priority:
            if count:
                runs.append((host, priority, count))
            host, priority, count = request.host, request.priority, 0
        count += 1
        args += (b"%d" % request.fingerprint, request.payload)
    if count:
        runs.append((host, priority, count))
    return Arrivals(runs, args)


def json_of(request: Request) -> bytes:
    try:
        return _encode(request)
    except (TypeError, ValueError, msgspec.MsgspecError) as error:
        raise TaskError(f"a request cannot be kept as JSON: {error}") from error


def fingerprint_bytes(fingerprint: int) -> bytes:
    return fingerprint.to_bytes(8, "big", signed=True)


def leases_of(first_token: bytes, flat: Sequence[Any]) -> list[Lease]:
    """From runs of leases: host, deliveries, starts_in, delay, how many, their payloads. Each has the next
    token."""
    leases: list[Lease] = []
    token, at = int(first_token), 0
    while at < len(flat):
        host, deliveries, starts_in, delay, count = flat[at : at + 5]
        alike = (host.decode(), deliveries, float(starts_in), float(delay))
        for payload in flat[at + 5 : at + 5 + count]:
            fingerprint = int.from_bytes(payload[:8], "big", signed=True)
            leases.append(Lease(_decode(payload[8:]), token, fingerprint, *alike))
            token += 1
        at += 5 + count
    return leases


def request_of(payload: bytes) -> Request:
    return _decode(payload[8:])


def refused_of(count: int, payload: bytes) -> Refused:
    """payload: of one of them, where there are any."""
    return Refused(count, _decode(payload[8:]).url if count else "")


class Letter(msgspec.Struct, frozen=True):
    """A dead letter as it stands in the list: `text`, at `place`.

    raw: of an entry that was no task, what it was. id, fingerprint: 0 where another program wrote it.
    """

    text: bytes
    request: Request
    cause: str
    error: str
    deliveries: int
    worker: str
    at: float
    id: int
    fingerprint: int
    host: str
    place: int
    raw: str | None = None

    def told(self) -> DeadLetter:
        return DeadLetter(
            self.request, self.fingerprint, self.cause, self.error, self.deliveries, self.worker, self.at
        )


class _Page(msgspec.Struct):
    fingerprint: int
    request: Request
    items: tuple[DeadItem, ...]


_page = msgspec.json.Decoder(_Page)


def member_of(lease: Lease, items: tuple[DeadItem, ...]) -> bytes:
    """The end of a member of `dead_items`; its id comes first."""
    try:
        return _encode(_Page(lease.fingerprint, lease.request, items))
    except (TypeError, ValueError, msgspec.MsgspecError) as error:
        raise TaskError(f"a request cannot be kept as JSON: {error}") from error


def dead_page_of(member: bytes, at: float) -> DeadPage:
    page = _page.decode(member[16:])
    items = tuple(msgspec.structs.replace(item, at=at) for item in page.items)
    return DeadPage(int(member[:16]), page.fingerprint, host_of(page.request.target), page.request, items, at)


def rest_of(page: DeadPage) -> bytes:
    """The whole member, or nothing where the page has no dead items any more."""
    if not page.items:
        return b""
    items = tuple(msgspec.structs.replace(item, at=0.0) for item in page.items)
    return b"%016d" % page.id + _encode(_Page(page.fingerprint, page.request, items))


_FACTS = ("cause", "error", "deliveries", "worker", "at", "id", "fingerprint", "raw")
_is_fingerprint = re.compile(r"[0-9a-f]{16}").fullmatch
_MAX_ID = 2**53


def letter_of(text: bytes, place: int = 0) -> Letter:
    """Another program may have written anything; what cannot be read is shown as it stands."""
    try:
        task = msgspec.json.decode(text)
        facts = {name: task.pop(name, None) for name in _FACTS}
        raw, fingerprint, id = facts["raw"], str(facts["fingerprint"]), facts["id"]
        if raw is not None:
            request, raw = Request(url=task["url"]), str(raw)
        elif _is_fingerprint(fingerprint):
            request = msgspec.convert(task, Request)
        else:
            request = request_from_task(msgspec.json.encode(task))
        return Letter(
            text=text,
            request=request,
            cause=str(facts["cause"] or "unknown"),
            error=str(facts["error"] or ""),
            deliveries=int(facts["deliveries"] or 0),
            worker=str(facts["worker"] or ""),
            at=float(facts["at"] or 0.0),
            id=id if isinstance(id, int) and 0 < id < _MAX_ID else 0,
            fingerprint=(
                int.from_bytes(bytes.fromhex(fingerprint), "big", signed=True)
                if _is_fingerprint(fingerprint)
                else 0
            ),
            host=host_of(request.target) if raw is None else "",
            place=place,
            raw=raw,
        )
    except _UNREADABLE as error:
        shown = text[:500].decode("utf-8", "replace")
        why = f"no dead letter: {error}"
        return Letter(text, Request(url=shown), "unknown", why, 0, "", 0.0, 0, 0, "", place, raw=shown)


_UNREADABLE = (
    ValueError,
    TypeError,
    KeyError,
    AttributeError,
    OverflowError,
    RecursionError,
    TaskError,
    BadUrlError,
    msgspec.MsgspecError,
)


def bad_task(entry: bytes, error: str, worker: str) -> bytes:
    """The dead letter of an inbox entry that is no task, without its end: time and id are the server's."""
    shown = entry[:2000].decode("utf-8", "replace").replace("\0", "\ufffd")
    letter = {
        "url": shown,
        "raw": entry[:100_000].decode("utf-8", "replace"),
        "cause": "bad_task",
        "error": error,
        "deliveries": 0,
        "worker": worker,
    }
    return msgspec.json.encode(letter)[:-1]
