"""A host's pace: how fast it is asked, as all workers share it, and what they see of it.

`limiter.advance` changes it; the frontier keeps it as it is written here. All of it is pure.
"""

from __future__ import annotations

from math import ceil, inf, log2

import msgspec

OVERHEAD = 0.3
"""Seconds for which a request holds its host's slot beyond its latency: waiting for its moment and for the
commit. Generous, as the delay sets the rate and the cap only bounds what a stalled host gets."""

SHORTEST_DELAY = 0.001

PATIENCE = 5.0
"""Seconds that a pace waits just below where it last failed, at first."""
FIRST_STEP = 0.05
"""How much more it tries then."""


class LimiterRules(msgspec.Struct, frozen=True, kw_only=True):
    """start, ceiling: requests in flight. floor: requests a second below which no host is slowed down."""

    start: int = 8
    ceiling: int = 8
    floor: float = 0.1


class Sample(msgspec.Struct):
    """What one worker saw of one host since it last told.

    busy: 429 and 503; limited: of these, 429. failed: the other failures. log_latency: of those answered, the
    sum of log2(seconds).
    block_from, block_until: when nobody asked because the host had said that it is busy, as seconds from now;
    both 0 for never.
    lag: seconds by which the worker itself was late, so that its latencies cannot be trusted further.
    span: seconds that it has been gathered for.
    """

    answered: int = 0
    busy: int = 0
    failed: int = 0
    log_latency: float = 0.0
    block_from: float = 0.0
    block_until: float = 0.0
    lag: float = 0.0
    span: float = 0.0
    limited: int = 0


class Trial(msgspec.Struct):
    """A step down because of failures, until it is known whether it mends them.

    share: of failures before. value, paced: of the pace before. bad, number: failures and all, since.
    """

    share: float
    value: float
    paced: bool
    bad: int = 0
    number: int = 0


class Pace(msgspec.Struct, omit_defaults=True):
    """A host's pace, as all workers share it. `advance` is what changes it.

    value: requests in flight, or a second if `paced`. limit: where it last failed, None if it never did.
    best: the host's best latency in seconds, 0 while unknown; latency: that of the last epoch. seen: requests
    answered a second when all was well last. since: when the epoch began, or will begin; sample: what was
    seen in it; idle: seconds of it in which the host was blocked. mark: since when the last step down shows.
    told: when a worker told last. patience, try_at, step, trying: how it goes on past `limit`. tried,
    tried_rate, stepped: value, answers a second and moment of the last step up. helpless: steps down in a
    row. pauses: so many in a row; pause: how long nobody may ask from now on. why: of the last change;
    trouble: of the last step down.
    bans: how often it shut us out. banned_at, held: requests a second at which it did last, and which it has
    borne since it does; 0 for none. begun: when the last pause was over. proof: seconds after which a rate
    counts as borne. fell_from: requests a second before the last step down.
    own: share of failures that a slower pace does not mend; own_bad, own_number: failures and all since that
    was found out. trial: of the last step down, None where nothing is to be found out.
    """

    value: float
    paced: bool = False
    limit: float | None = None
    best: float = 0.0
    latency: float = 0.0
    seen: float = 0.0
    since: float = 0.0
    mark: float = 0.0
    block_from: float = 0.0
    block_until: float = 0.0
    idle: float = 0.0
    told: float = 0.0
    sample: Sample = msgspec.field(default_factory=Sample)
    patience: float = PATIENCE
    try_at: float = inf
    step: float = FIRST_STEP
    trying: bool = False
    tried: float = 0.0
    tried_rate: float = 0.0
    stepped: float = -inf
    helpless: int = 0
    pauses: int = 0
    pause: float = 0.0
    bans: int = 0
    banned_at: float = 0.0
    held: float = 0.0
    begun: float = 0.0
    proof: float = 0.0
    fell_from: float = 0.0
    own: float = 0.0
    own_bad: int = 0
    own_number: int = 0
    trial: Trial | None = None
    cap: int = 1
    delay: float = 0.0
    free: bool = True
    why: str = ""
    trouble: str = ""

    def hold(self, rules: LimiterRules) -> None:
        """Say in cap and delay what `value` means."""
        if self.paced:
            self.value = max(self.value, rules.floor)
            self.delay = max(SHORTEST_DELAY, 1.0 / self.value)
            wanted = ceil(self.value * (self.latency + OVERHEAD) * 2.0)
            self.cap = 1 if self.pauses else max(1, min(wanted, rules.ceiling))
        else:
            self.delay = 0.0
            self.cap = max(1, min(int(self.value + 1e-6), rules.ceiling))
        self.free = not self.paced and not self.pauses and self.cap >= rules.ceiling


written = msgspec.msgpack.Encoder().encode
"""A pace as it is kept."""

read = msgspec.msgpack.Decoder(Pace).decode
"""Raises MsgspecError for the pace of another version."""


def fresh(now: float, rules: LimiterRules) -> Pace:
    """The pace of a host that nothing is known about."""
    pace = Pace(float(min(rules.start, rules.ceiling)), since=now, told=now)
    pace.hold(rules)
    return pace


def why(state: bytes) -> str:
    """The reason of the last change, from a pace as it is kept; "" where it cannot be read."""
    try:
        return read(state).why
    except msgspec.MsgspecError:
        return ""


def log_seconds(seconds: float) -> float:
    """What `Sample.log_latency` sums up."""
    return log2(max(seconds, 0.001))
