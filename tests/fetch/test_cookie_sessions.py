"""Sessions as facts of the job: what one worker stores, another one has."""

from __future__ import annotations

from silkline.fetch.cookies.cookie import place_of
from silkline.fetch.cookies.sessions import FACT, MAX_SESSIONS, Sessions

HERE = place_of("http://shop.example/")
NOW = 1_800_000_000.0


def login(sessions: Sessions, name: str | None, line: bytes, now: float = NOW) -> None:
    sessions.get(name).jar.take([line], HERE, now)


def sent(sessions: Sessions, name: str | None = None) -> str:
    return sessions.get(name).jar.header(HERE, NOW + 1_000)


def test_another_worker_has_the_login_and_sessions_stay_apart() -> None:
    first, second = Sessions(), Sessions()
    login(first, None, b"sid=1")
    login(first, "alice", b"sid=2")
    second.merge(first.changes(NOW))
    assert (sent(second), sent(second, "alice"), sent(second, "bob")) == ("sid=1", "sid=2", "")


def test_only_what_changed_is_stored() -> None:
    sessions = Sessions()
    assert not sessions.changed
    assert sessions.changes(NOW) == {}
    login(sessions, "a", b"x=1")
    login(sessions, "b", b"x=1")
    assert set(sessions.changes(NOW)) == {FACT + "a", FACT + "b"}
    assert sessions.changes(NOW) == {}
    login(sessions, "b", b"x=2", NOW + 1)
    assert sessions.changed
    assert set(sessions.changes(NOW)) == {FACT + "b"}


def test_a_worker_that_was_written_over_writes_again() -> None:
    one, two = Sessions(), Sessions()
    store: dict[str, str] = {}
    login(one, None, b"a=1")
    login(two, None, b"b=1", NOW + 1)
    store |= one.changes(NOW)
    store |= two.changes(NOW)  # it had not read what the first one wrote
    one.merge(store)
    assert one.changed
    store |= one.changes(NOW)
    two.merge(store)
    assert not two.changed
    assert sent(one) == sent(two) == "a=1; b=1"


def test_a_retired_session_begins_anew_everywhere() -> None:
    one, two = Sessions(), Sessions()
    login(one, "pool-1", b"sid=1")
    two.merge(one.changes(NOW))
    one.retire("pool-1")
    facts = one.changes(NOW)
    two.merge(facts)
    assert (sent(two, "pool-1"), two.get("pool-1").generation) == ("", 1)
    late = Sessions()
    login(late, "pool-1", b"sid=old")
    late.merge(facts)
    assert sent(late, "pool-1") == ""


def test_an_older_generation_in_the_store_is_replaced() -> None:
    one = Sessions()
    login(one, "s", b"a=1")
    old = one.changes(NOW)
    one.retire("s")
    one.changes(NOW)
    one.merge(old)
    assert one.changed
    assert '"generation":1' in one.changes(NOW)[FACT + "s"]


def test_a_deletion_reaches_the_other_workers() -> None:
    one, two = Sessions(), Sessions()
    login(one, None, b"sid=1")
    two.merge(one.changes(NOW))
    login(one, None, b"sid=; Max-Age=0", NOW + 1)
    two.merge(one.changes(NOW + 1))
    assert sent(two) == ""


def test_a_fact_that_cannot_be_read_loses_no_other_one() -> None:
    good = Sessions()
    login(good, "good", b"a=1")
    sessions = Sessions()
    sessions.merge({FACT + "bad": "{", "definition": "x", FACT + "empty": "", **good.changes(NOW)})
    assert sent(sessions, "good") == "a=1"


def test_the_number_of_sessions_is_bounded_and_the_default_one_stays() -> None:
    sessions = Sessions()
    login(sessions, None, b"a=1")
    for number in range(MAX_SESSIONS + 10):
        login(sessions, f"s{number}", b"a=1")
    assert len(sessions) == MAX_SESSIONS
    assert sent(sessions) == "a=1"
    assert sent(sessions, f"s{MAX_SESSIONS + 9}") == "a=1"
    assert sessions.changes(NOW)[FACT + "s0"] == ""
