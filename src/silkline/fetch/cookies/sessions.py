"""The sessions of a job: each has its cookies, and a generation that counts how often it began anew."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping

import msgspec

from silkline.fetch.cookies.cookie import Cookie
from silkline.fetch.cookies.jar import Jar

DEFAULT_SESSION = "default"
"""What a request without a session belongs to."""

MAX_SESSIONS = 1_000
"""Sessions with something in them; beyond, the one that was used longest ago is forgotten."""

FACT = "session:"
"""How the names of the job's facts begin that hold sessions."""


class Session:
    """`jar`: its cookies. `generation`: how often it was retired and began anew, without cookies."""

    __slots__ = ("generation", "jar", "kept")

    def __init__(self, jar: Jar | None = None, generation: int = 0) -> None:
        self.jar = jar or Jar()
        self.generation = generation
        self.kept = (0, generation)
        """The version of the jar and the generation that the store has."""

    @property
    def changed(self) -> bool:
        return self.kept != (self.jar.version, self.generation)


class _Kept(msgspec.Struct, omit_defaults=True):
    cookies: list[Cookie] = []
    generation: int = 0


_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(_Kept).decode


class Sessions:
    """By name, in memory, and as facts of the job: `changes` for the store, `merge` what came from there."""

    def __init__(self) -> None:
        self._sessions: OrderedDict[str, Session] = OrderedDict()
        self._forgotten: dict[str, str] = {}
        self._seen: dict[str, int] = {}
        self.on_change: Callable[[], None] = lambda: None
        """Is called when there may be something to be stored."""

    def __len__(self) -> int:
        return len(self._sessions)

    def get(self, name: str | None) -> Session:
        name = DEFAULT_SESSION if name is None else name
        session = self._sessions.get(name)
        if session is None:
            session = self._sessions[name] = Session()
            if len(self._sessions) > MAX_SESSIONS:
                oldest = next(key for key in self._sessions if key not in (name, DEFAULT_SESSION))
                del self._sessions[oldest]
                self._forgotten[FACT + oldest] = ""
        elif len(self._sessions) > MAX_SESSIONS // 2:
            self._sessions.move_to_end(name)
        return session

    def retire(self, name: str) -> None:
        """Begin anew: no cookies, and another identity and proxy for those that choose by generation."""
        session = self.get(name)
        session.jar = Jar()
        session.generation += 1
        self.on_change()

    @property
    def changed(self) -> bool:
        """Whether there is something that the store does not have."""
        return bool(self._forgotten) or any(session.changed for session in self._sessions.values())

    def changes(self, now: float) -> dict[str, str]:
        """The facts to be stored; from then on they count as stored. now: Unix seconds."""
        facts, self._forgotten = self._forgotten, {}
        for name, session in self._sessions.items():
            if session.changed:
                kept = _Kept(list(session.jar.kept(now)), session.generation)
                facts[FACT + name] = text = _encode(kept).decode()
                self._seen[FACT + name] = hash(text)
                session.kept = (session.jar.version, session.generation)
        return facts

    def merge(self, facts: Mapping[str, str]) -> None:
        """Take over what other workers, or an earlier run, stored. What cannot be read is left alone."""
        for key, text in facts.items():
            if not text or not key.startswith(FACT) or self._seen.get(key) == hash(text):
                continue
            try:
                kept = _decode(text)
            except msgspec.DecodeError:
                continue  # of a newer release; its cookies are lost, the job is not
            session = self.get(key.removeprefix(FACT))
            if kept.generation > session.generation:
                session.jar, session.generation = Jar(), kept.generation
            had = session.changed
            ahead = kept.generation < session.generation
            if not ahead:
                ahead = session.jar.merge(kept.cookies)
            if not ahead:
                session.kept = (session.jar.version, session.generation)
            elif not had:
                session.kept = (-1, -1)  # the store has less than we have: another worker wrote over it
