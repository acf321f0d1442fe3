"""What is known of a host's robots.txt, as it is kept for all workers, and what is in memory of it."""

from __future__ import annotations

import zlib
from collections import OrderedDict
from time import monotonic

import msgspec

from silkline.errors import FetchError
from silkline.politeness.robots_txt import RobotsTxt

MAX_IN_MEMORY = 10_000
MAX_RULES_IN_MEMORY = 200_000
"""Hosts, and rules of all of them, that one process keeps parsed: about 100 MB at worst."""

_COMPRESSED = b"z"
_PLAIN = b"p"
_WORTH_COMPRESSING = 512


class Known(msgspec.Struct, frozen=True, array_like=True):
    """What the last attempt to read a host's robots.txt has brought.

    source: URL of the file. robots: what it says. note: why it says nothing, in words.
    failures, waited: attempts in a row that found it unreachable, and the seconds since the first one.
    given_up: that has lasted too long.
    """

    source: str
    robots: RobotsTxt = RobotsTxt()
    note: str = ""
    failures: int = 0
    waited: float = 0.0
    given_up: bool = False


class Entry:
    """A Known in memory. until: fresh until then (monotonic seconds).

    error: why the host cannot be asked at all.
    """

    __slots__ = ("error", "known", "until")

    def __init__(self, known: Known, seconds: float, error: FetchError | None = None) -> None:
        self.known = known
        self.until = monotonic() + seconds
        self.error = error


class Memory:
    """The entries used last."""

    def __init__(self, hosts: int = MAX_IN_MEMORY, rules: int = MAX_RULES_IN_MEMORY) -> None:
        self._entries: OrderedDict[str, Entry] = OrderedDict()
        self._hosts = hosts
        self._most_rules = rules
        self._rules = 0

    def __len__(self) -> int:
        return len(self._entries)

    def get(self, host: str) -> Entry | None:
        """What is known of the host and still fresh."""
        entry = self._entries.get(host)
        if entry is None or entry.until <= monotonic():
            return None
        self._entries.move_to_end(host)
        return entry

    def put(self, host: str, entry: Entry) -> None:
        self._drop(host)
        self._entries[host] = entry
        self._rules += len(entry.known.robots.rules)
        while len(self._entries) > self._hosts or (self._rules > self._most_rules and len(self._entries) > 1):
            self._drop(next(iter(self._entries)))

    def _drop(self, host: str) -> None:
        entry = self._entries.pop(host, None)
        if entry is not None:
            self._rules -= len(entry.known.robots.rules)


def encode(known: Known) -> bytes:
    data = msgspec.msgpack.encode(known)
    return _PLAIN + data if len(data) < _WORTH_COMPRESSING else _COMPRESSED + zlib.compress(data)


def decode(value: bytes) -> Known | None:
    """None for what another version has written."""
    try:
        data = zlib.decompress(value[1:]) if value[:1] == _COMPRESSED else value[1:]
        return msgspec.msgpack.decode(data, type=Known)
    except (zlib.error, msgspec.MsgspecError):
        return None
