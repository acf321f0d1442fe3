"""How fast a host can be asked: found out from what it answers, by rules that one can predict.

A host begins with `start` requests in flight and without a delay. Once a second, or with the fifth failure in
a row, what all workers have seen of it since is judged:

    less than 1 % failures, latency good     x 1.5, up to 95 % of where it last failed; there it waits for
                                             `patience`, then goes on by 5 %, 10 %, 20 %, ...
    the same, but more brings no more        back to where it was, as after a failure
    1 % to 5 % failures                      as it is; where it was a 429 or a 503: x 0.95
    more than 5 % failures                   x 0.7 of what it still answered well
    latency more than twice the host's best  x 0.7
    nothing but failures                     a pause of 2 s, 4 s, ... 60 s; then a quarter of the old rate

Failures are 429 and 503, timeouts, errors of the connection and 403, 408, 425, 500, 502, 504. Only the first
two say by themselves that we ask too much. What three steps down in a row do not mend has other causes: a
latency that stays is the host's new best, failures that stay slow it down no further.

The first step down lowers how many requests may be in flight; where that is not enough, and for every host
that says 429, a delay between two starts follows, down to `floor` requests a second. All of it is pure: time
is passed in.
"""

from __future__ import annotations

from math import ceil, inf, log2

import msgspec

EPOCH = 1.0
"""Seconds that are judged together, about: workers tell a little sooner or later than that."""
LONG_EPOCH = 5.0
"""Seconds after which fewer than `ENOUGH` answers are judged, too."""
ENOUGH = 10
ALARM = 5
"""So many failures in a row, and nothing else, are judged at once."""
SHUT_OUT = 15
"""So many failures of one worker in a row that are no 429 and no 503 say that the host lets nobody in."""
ALARMS = frozenset({5, 20, 80, 320})
"""Failures in a row with which a worker tells at once what it has seen."""

UP, DOWN, BACK = 1.5, 0.7, 0.95
CALM, TROUBLED = 0.01, 0.05
SLOW = 2.0
NOTICED = 0.1
"""Seconds by which latency has to grow at least: less harms nobody, and is lost in the noise."""
HELPLESS = 3
GAIN = 0.3
"""More by a half must bring more answers by 0.3 of that, or it is taken back."""
FEW = 8.0
"""One request less of fewer in flight than that is more than is wanted: then a delay follows."""
CLEAR = 0.15
"""By so much more has to be asked until that shows in the answers."""
QUEUEING = 1.3
"""So many times its best is the latency of a host at which requests wait for each other."""
LONGEST_DRAIN = 10.0

PATIENCE, MOST_PATIENCE = 5.0, 40.0
"""Seconds that it waits at 95 % of where it last failed; doubled each time that going on has failed again."""
SELDOM, RARELY = 60, 400
"""So many requests pass between two such attempts, at first and in the end, where the rate is low."""
BANNED, MOST_BANNED = 60.0, 900.0
"""The same after nothing but failures; steps stay small then."""
FIRST_STEP, LAST_STEP = 0.05, 0.5
PAUSES = 6
FIRST_PAUSE, LONGEST_PAUSE = 2.0, 60.0

OVERHEAD = 0.3
"""Seconds for which a request holds its host's slot beyond its latency: waiting for its moment and for the
commit. Generous, as the delay sets the rate and the cap only bounds what a stalled host gets."""

SHORTEST_DELAY = 0.001


class LimiterRules(msgspec.Struct, frozen=True, kw_only=True):
    """start, ceiling: requests in flight. floor: requests a second below which no host is slowed down."""

    start: int = 8
    ceiling: int = 8
    floor: float = 0.1


class Sample(msgspec.Struct):
    """What one worker saw of one host since it last told.

    busy: 429 and 503. failed: the other failures. log_latency: of those answered, the sum of log2(seconds).
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


class Pace(msgspec.Struct, omit_defaults=True):
    """A host's pace, as all workers share it. `advance` is what changes it.

    value: requests in flight, or a second if `paced`. limit: where it last failed, None if it never did.
    best: the host's best latency in seconds, 0 while unknown; latency: that of the last epoch. seen: requests
    answered a second when all was well last. since: when the epoch began, or will begin; sample: what was
    seen in it; idle: seconds of it in which the host was blocked. mark: since when the last step down shows.
    told: when a worker told last. patience, try_at, step, trying: how it goes on past `limit`. tried,
    tried_rate, stepped: value, answers a second and moment of the last step up. helpless: steps down in a
    row. pauses: so many in a row; pause: how long nobody may ask from now on. why: of the last change.
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
    cap: int = 1
    delay: float = 0.0
    free: bool = True
    why: str = ""

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


def advance(pace: Pace, sample: Sample, now: float, rules: LimiterRules) -> bool:
    """Take in what a worker has seen until `now`; whether cap, delay or pause are to be told anew.

    After it `pace.pause` is how long nobody may be asked from now on, 0 for no pause.
    """
    before = (pace.cap, pace.delay)
    pace.pause = 0.0
    _keep_in_bounds(pace, rules)
    if now - pace.told > _stale(pace):
        pace.since, pace.sample = max(pace.since, now - EPOCH), Sample()
    pace.told = now
    shut_out = not sample.answered and sample.failed >= SHUT_OUT
    if not pace.pauses and (shut_out or (now < pace.since and _is_hopeless(pace, sample))):
        # At once, also while a step down is to show first: what has been asked since then fails, too.
        pace.sample = Sample()
        _pause(pace, sample.failed / max(0.2, sample.span), now, rules, banned=sample.failed > 0)
        pace.hold(rules)
        return True
    if now < pace.since:
        return before != (pace.cap, pace.delay)
    if now - sample.span < pace.mark - 0.05:
        # A worker that has only now learnt of the step: what it saw is of before, for the greater part.
        pace.since = max(pace.since, min(now, pace.mark + EPOCH))
        return before != (pace.cap, pace.delay)
    _add(pace.sample, sample)
    _note_block(pace, now + sample.block_from, now + sample.block_until)
    if _is_over(pace, now):
        elapsed = max(0.2, now - pace.since - pace.idle - _idle(pace, now))
        pace.idle = 0.0
        judged, began = pace.sample, pace.since
        pace.sample, pace.since = Sample(), now
        _judge(pace, judged, elapsed, began, now, rules)
        pace.hold(rules)
    return pace.pause > 0.0 or before != (pace.cap, pace.delay)


def _stale(pace: Pace) -> float:
    """Seconds without a word after which the epoch begins anew: little was asked."""
    return max(2.0 * LONG_EPOCH, 3.0 * pace.delay)


def _keep_in_bounds(pace: Pace, rules: LimiterRules) -> None:
    """The rules may have changed since."""
    if not pace.paced:
        pace.value = min(pace.value, float(rules.ceiling))
    pace.hold(rules)


def _add(total: Sample, more: Sample) -> None:
    total.answered += more.answered
    total.busy += more.busy
    total.failed += more.failed
    total.log_latency += more.log_latency
    total.lag = max(total.lag, more.lag)


def _note_block(pace: Pace, start: float, end: float) -> None:
    """Several workers may tell of the same one."""
    if end <= start:
        return
    if start > pace.block_until:
        pace.idle += _idle(pace, start)
        pace.block_from = start
    pace.block_until = max(pace.block_until, end)


def _idle(pace: Pace, now: float) -> float:
    """Seconds of the epoch for which the last block has lasted."""
    return max(0.0, min(now, pace.block_until) - max(pace.since, pace.block_from))


def _is_over(pace: Pace, now: float) -> bool:
    sample = pace.sample
    bad = sample.busy + sample.failed
    number = sample.answered + bad
    if not number:
        return False
    elapsed = now - pace.since
    if _is_hopeless(pace, sample):
        # Some that are refused at once, while others are still being answered, say less.
        return elapsed >= max(0.25 * EPOCH, 2.0 * pace.latency)
    return elapsed >= LONG_EPOCH or (elapsed >= 0.89 * EPOCH and (number >= ENOUGH or sample.busy > 1))


def _is_hopeless(pace: Pace, sample: Sample) -> bool:
    """Whether nothing is answered any more, but for what was asked before."""
    if sample.answered:
        return sample.failed >= max(ALARM, 10 * sample.answered)
    return sample.busy + sample.failed >= (1 if pace.pauses else ALARM)


def _judge(pace: Pace, sample: Sample, elapsed: float, began: float, now: float, rules: LimiterRules) -> None:
    bad = sample.busy + sample.failed
    number = sample.answered + bad
    rate, good = number / elapsed, sample.answered / elapsed
    if _is_hopeless(pace, sample):
        _pause(pace, rate, now, rules, banned=sample.failed > 0)
        return
    pace.pauses = 0
    slow = _is_slow(pace, sample)
    share = bad / number
    severe = share > TROUBLED and (sample.busy > 0 or sample.failed > 1)
    if severe and not sample.busy and pace.helpless >= HELPLESS:
        return
    if severe or slow:
        _step_down(pace, share, good if severe else rate, now, rules, slow=slow and not severe)
    elif sample.busy and share >= CALM:
        _step_back(pace, share, good, now)
    elif share < CALM:
        pace.helpless = 0
        pace.seen = good if not pace.seen else 0.7 * pace.seen + 0.3 * good
        if not _is_used(pace, rate):
            return
        _step_up_or_back(pace, rate, began, now, rules)


def _is_slow(pace: Pace, sample: Sample) -> bool:
    """Whether latency is bad; learns what is good."""
    if sample.answered < min(5, ENOUGH):
        return False
    pace.latency = 2.0 ** (sample.log_latency / sample.answered)
    if not pace.best or pace.latency < pace.best:
        pace.best = pace.latency
    elif pace.latency > max(SLOW * pace.best, pace.best + NOTICED + 5.0 * sample.lag):
        if pace.helpless < HELPLESS:
            return True
        # Going slower has not made it quicker, so this is how quick the host is now.
        pace.best, pace.helpless, pace.limit, pace.patience = pace.latency, 0, None, PATIENCE
    else:
        pace.best += 0.002 * (pace.latency - pace.best)
    return False


def _is_used(pace: Pace, rate: float) -> bool:
    """Whether the pace is what holds us back, so that all being well says something about it."""
    if pace.paced and rate >= 0.7 * pace.value:
        return True
    return rate * (pace.latency + 0.05) >= 0.6 * pace.cap


def _pause(pace: Pace, rate: float, now: float, rules: LimiterRules, *, banned: bool) -> None:
    """Nothing but failures: the host is down, or has shut us out, or (not `banned`) says that it is busy."""
    pace.why = "nothing but failures" if banned else "nothing but 429 and 503"
    if pace.pauses == 0:
        seen = pace.seen or rate
        # The first time nobody knows by how much it was too quick; later it was tried in small steps.
        pace.limit = max(rules.floor, (DOWN if pace.patience >= BANNED else 0.5) * seen)
        pace.value, pace.paced = max(rules.floor, 0.25 * seen), True
        if banned:
            pace.patience = min(MOST_BANNED, max(BANNED, 4.0 * pace.patience))
        _rest(pace, now)
    elif pace.pauses >= PAUSES:
        return
    pace.pause = min(LONGEST_PAUSE, FIRST_PAUSE * 2.0**pace.pauses)
    pace.pauses += 1
    pace.since = now + pace.pause


def _step_down(pace: Pace, share: float, rate: float, now: float, rules: LimiterRules, *, slow: bool) -> None:
    """share: of failures. rate: what the host still answered well, a second."""
    pace.helpless += 1
    pace.tried = 0.0
    if slow:
        pace.why = f"latency of {pace.latency:.2g} s, {pace.best:.2g} s at best"
    else:
        pace.why = f"{share:.0%} failures"
    first = pace.limit is None and not pace.paced
    if not pace.paced and (slow or first) and pace.value > 1.5:
        pace.value = max(1.0, DOWN * pace.value)
        pace.limit = pace.value / BACK
    else:
        # Of a pace that is set the share of good answers says best what was still borne: what was counted
        # in a short time, by several workers, between blocks, does not. No step is longer than to a half.
        failed_at = pace.value * max(1.0 - share, 0.5 / DOWN) if pace.paced else rate
        # What few answers between blocks say is too uncertain to be a limit: the next trouble shows it.
        pace.limit = max(rules.floor, failed_at) if pace.paced else None
        pace.paced = True
        pace.value = max(rules.floor, DOWN * failed_at)
    _worry(pace)
    _rest(pace, now)
    _wait_for_effect(pace, now, 1.0 - DOWN)


def _step_back(pace: Pace, share: float, good: float, now: float) -> None:
    pace.why = f"{share:.0%} answers with 429 or 503"
    if pace.paced:
        pace.value *= BACK * (1.0 - share)
    elif pace.value < FEW:
        pace.value, pace.paced = BACK * good, True
    else:
        pace.value *= BACK
    pace.limit = pace.value / BACK
    _worry(pace)
    _rest(pace, now)
    _wait_for_effect(pace, now, 1.0 - BACK)


def _wait_for_effect(pace: Pace, now: float, left_free: float) -> None:
    """What was asked before a step down still comes in, and a queue that has built up at the host empties
    with what the step leaves free: until then nothing is judged."""
    queue = max(0.0, pace.latency - pace.best)
    pace.since = now + min(LONGEST_DRAIN, max(0.9 * EPOCH, pace.latency + queue / left_free))
    pace.mark = pace.since


def _step_up_or_back(pace: Pace, rate: float, began: float, now: float, rules: LimiterRules) -> None:
    """To ask more is good for something only where more answers come of it."""
    if pace.limit is not None and pace.value < BACK * pace.limit:
        pace.tried = 0.0
        _step_up(pace, now, rules)
        return
    if pace.tried and pace.value > pace.tried:
        # Other workers tell up to an epoch later what they have seen.
        if began < pace.stepped + EPOCH + pace.latency:
            return
        gain, wanted = rate / max(pace.tried_rate, 0.01) - 1.0, pace.value / pace.tried - 1.0
        # Where a pace is set, few answers alone may be chance; a queue at the host shows in its latency, too.
        queueing = not pace.paced or pace.latency > QUEUEING * pace.best
        if wanted >= CLEAR and gain < GAIN * wanted and queueing:
            _take_back(pace, now)
            return
        if wanted < CLEAR:
            pace.stepped = now
            _step_up(pace, now, rules)
            return
    pace.tried, pace.tried_rate, pace.stepped = pace.value, rate, now
    _step_up(pace, now, rules)


def _take_back(pace: Pace, now: float) -> None:
    pace.value, pace.limit, pace.tried = BACK * pace.tried, pace.tried / BACK, 0.0
    pace.trying = True
    pace.why = "more requests brought no more answers"
    _worry(pace)
    _rest(pace, now)
    _wait_for_effect(pace, now, 1.0 - BACK)


def _step_up(pace: Pace, now: float, rules: LimiterRules) -> None:
    top = inf if pace.limit is None else BACK * pace.limit
    pace.why = "it answers well"
    if pace.value < top:
        pace.value = min(UP * pace.value, top)
        if pace.value >= top:
            _rest(pace, now)
    elif pace.trying or now >= pace.try_at:
        pace.value *= 1.0 + pace.step
        pace.limit = pace.value / BACK
        wary = pace.patience >= BANNED
        if pace.step >= LAST_STEP and not wary:
            pace.patience = max(PATIENCE, 0.5 * pace.patience)
        pace.step, pace.trying = min(FIRST_STEP if wary else LAST_STEP, 2.0 * pace.step), True
    if not pace.paced and pace.value >= rules.ceiling:
        pace.value, pace.limit = float(rules.ceiling), None
    elif pace.paced and pace.value > 1.5 * rules.ceiling / max(pace.best, 0.001):
        # The delay says nothing more that the cap does not say.
        pace.value, pace.paced, pace.limit = float(rules.ceiling), False, None


def _worry(pace: Pace) -> None:
    """Where going up had failed before, it is tried less often."""
    if pace.trying:
        rate = _rate_of(pace)
        most = max(MOST_PATIENCE, RARELY / rate, pace.patience)
        pace.patience = min(most, 2.0 * max(pace.patience, SELDOM / rate))


def _rest(pace: Pace, now: float) -> None:
    wait = max(pace.patience, SELDOM / _rate_of(pace))
    pace.try_at, pace.step, pace.trying = now + wait, FIRST_STEP, False


def _rate_of(pace: Pace) -> float:
    """Requests a second, roughly."""
    return pace.value if pace.paced else max(pace.seen, 1.0)


def log_seconds(seconds: float) -> float:
    """What `Sample.log_latency` sums up."""
    return log2(max(seconds, 0.001))
