"""Requests on their way into an SQLite file, made ready before its lock is taken."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from silkline.frontier import rules
from silkline.frontier.groups import KeyOf
from silkline.frontier.sqlite_file import Database
from silkline.keys import KeyRules
from silkline.outcome import NONE_REFUSED, Refused
from silkline.request import Request

Row = tuple[int, int, Request]
"""Fingerprint, index of its host and priority in the groups, request."""


class Arrivals(msgspec.Struct, frozen=True):
    """A batch for `add_requests`: two JSON texts, and how many different requests there are in it."""

    groups: str
    fingerprints: str
    requests: str
    count: int
    rows: Sequence[Row]
    hosts: Sequence[tuple[str, int]]


def arrivals(requests: Iterable[Request], keys: KeyRules, key_of: KeyOf) -> Arrivals:
    """Raises BadUrlError or TaskError; then nothing of the batch can be added."""
    rows: dict[int, Row] = {}
    groups: dict[tuple[str, int], int] = {}
    for request in rules.without_repeats(requests):
        fingerprint = keys.of(request)
        if fingerprint not in rows:
            group = groups.setdefault((key_of(request.url), request.priority), len(groups))
            rows[fingerprint] = (fingerprint, group, request)
    return _written(list(rows.values()), list(groups))


def within_budget(database: Database, most: int, batch: Arrivals) -> tuple[Arrivals, Refused]:
    """What of a batch is new and its hosts have room for, and the rest. Inside a transaction."""
    known = {
        row[0]
        for row in database.rows(
            "SELECT value FROM json_each(?) WHERE value IN (SELECT fingerprint FROM seen)",
            batch.fingerprints,
        )
    }
    hosts = _json(sorted({host for host, _ in batch.hosts}))
    taken = Counter(
        dict(
            database.rows(
                "SELECT host, count FROM taken WHERE host IN (SELECT value FROM json_each(?))", hosts
            )
        )
    )
    rows: list[Row] = []
    refused = NONE_REFUSED
    for row in batch.rows:
        host = batch.hosts[row[1]][0]
        if row[0] in known:
            continue
        if taken[host] >= most:
            refused += Refused(1, row[2].url)
            continue
        taken[host] += 1
        rows.append(row)
    for count in taken.items():
        database.run("INSERT OR REPLACE INTO taken (host, count) VALUES (?, ?)", *count)
    return _written(rows, batch.hosts), refused


def claim(database: Database, outcomes: Sequence[Any]) -> set[int]:
    """Make the aliases of outcomes seen; the tokens of the duplicates. Inside a transaction."""
    asked = _json([alias.fingerprint for outcome in outcomes for alias in outcome.aliases])
    seen = {
        row[0]
        for row in database.rows(
            "SELECT value FROM json_each(?) WHERE value IN (SELECT fingerprint FROM seen)", asked
        )
    }
    duplicates, claimed = rules.first_claims(outcomes, seen.__contains__)
    for table in ("seen", "aliases"):
        database.run(f"INSERT INTO {table} SELECT value FROM json_each(?)", _json(claimed))
    return duplicates


def _written(rows: Sequence[Row], hosts: Sequence[tuple[str, int]]) -> Arrivals:
    fingerprints = sorted([row[0] for row in rows])
    return Arrivals(_json(hosts), _json(fingerprints), rules.encode(rows).decode(), len(rows), rows, hosts)


def _json(value: Any) -> str:
    return msgspec.json.encode(value).decode()
