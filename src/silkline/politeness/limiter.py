"""How fast a host can be asked: found out from what it answers, by rules that one can predict.

A host begins with `start` requests in flight and without a delay. Once a second, or with the fifth failure in
a row, what all workers have seen of it since is judged:

    less than 1 % failures, latency good     x 1.5, up to 95 % of where it last failed; there it waits for
                                             `patience`, then goes on by 5 %, 10 %, 20 %, ...
    the same, but more brings no more        back to where it was, as after a failure
    1 % to 5 % failures                      as it is; where it was a 429, or several 503: x 0.95
    clearly more than 5 % failures           x 0.7 of what it still answered well
    failures that a step down did not halve  back to where it was: they are the host's own, and count no more
    latency more than twice the host's best  x 0.7
    nothing but failures                     a pause of 2 s, 4 s, ... 60 s; then a quarter of the old rate
    the same again, and no 429 or 503        it bans: towards that from what it has borne since, by thirds

Failures are 429 and 503, timeouts, errors of the connection and 403, 408, 425, 500, 502, 504. Only the first
two say by themselves that we ask too much. What three steps down in a row do not mend has other causes: a
latency that stays is the host's new best, failures that stay slow it down no further.

The first step down lowers how many requests may be in flight; where that is not enough, and for every host
that says 429, a delay between two starts follows, down to `floor` requests a second. All of it is pure: time
is passed in.
"""

from __future__ import annotations

from math import inf

from silkline.politeness.evidence import (
    CALM,
    EPOCH,
    LONG_EPOCH,
    TROUBLED,
    add,
    begin_trial,
    idle,
    is_calm,
    is_hopeless,
    is_on_trial,
    is_over,
    is_severe,
    note_block,
    take_for_own,
    watch_own,
)
from silkline.politeness.pace import FIRST_STEP, PATIENCE, LimiterRules, Pace, Sample

SHUT_OUT = 15
"""So many failures of one worker in a row that are no 429 and no 503 say that the host lets nobody in."""
ALARMS = frozenset({5, 20, 80, 320})
"""Failures in a row with which a worker tells at once what it has seen."""

UP, DOWN, BACK = 1.5, 0.7, 0.95
SLOW = 2.0
FEWEST = 5
"""Answers whose latency is judged."""
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

MOST_PATIENCE = 40.0
"""What `PATIENCE` is doubled to, each time that going on has failed again."""
SELDOM, RARELY = 60, 400
"""So many requests pass between two such attempts, at first and in the end, where the rate is low."""
SOON = 30.0
"""Seconds that the first attempt waits at most: what was in the way then may be gone."""
BANNED, MOST_BANNED = 60.0, 900.0
"""The same after nothing but failures; steps stay small then."""
NEAR, PROOF, THIRD = 1.1, 3.0, 1 / 3
"""So near to where it banned is near enough. A rate is borne that lasts so many times as long as the one did
that was not. A ban costs more than a small step."""
LAST_STEP = 0.5
WELL = "it answers well"
PAUSES = 6
FIRST_PAUSE, LONGEST_PAUSE = 2.0, 60.0


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
    # Refusals come back sooner than answers: too soon after a step they alone say nothing.
    fair = sample.failed > 0 or sample.span >= 2.0 * pace.latency
    if not pace.pauses and (shut_out or (now < pace.since and fair and is_hopeless(pace, sample))):
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
    add(pace.sample, sample)
    note_block(pace, now + sample.block_from, now + sample.block_until)
    if is_over(pace, now):
        elapsed = max(0.2, now - pace.since - pace.idle - idle(pace, now))
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


def _judge(pace: Pace, sample: Sample, elapsed: float, began: float, now: float, rules: LimiterRules) -> None:
    bad = sample.busy + sample.failed
    number = sample.answered + bad
    rate, good = number / elapsed, sample.answered / elapsed
    if is_hopeless(pace, sample):
        _pause(pace, rate, now, rules, banned=sample.failed > 0)
        return
    if pace.pauses:
        pace.pauses, pace.begun = 0, now
    share = max(0.0, bad / number - pace.own)
    limited, slow = sample.limited / number, _is_slow(pace, sample)
    severe = limited > TROUBLED or is_severe(pace, bad, number)
    if limited or slow:
        pace.trial = None
    elif is_on_trial(pace, bad, number):
        return
    if severe and not sample.busy and pace.helpless >= HELPLESS:
        return
    if severe or slow:
        if not limited and not slow:
            begin_trial(pace, share + pace.own)
        _step_down(pace, share, good if severe else rate, now, rules, slow=slow and not severe)
    elif limited >= CALM:
        _step_back(pace, share, good, now)
    elif is_calm(pace, bad, number):
        pace.helpless = 0
        pace.seen = good if not pace.seen else 0.7 * pace.seen + 0.3 * good
        watch_own(pace, bad, number)
        if _is_used(pace, rate):
            _step_up_or_back(pace, rate, began, now, rules)
    elif sample.busy:
        begin_trial(pace, share + pace.own)
        _step_back(pace, share, good, now)
    else:
        take_for_own(pace, share + pace.own)


def _is_slow(pace: Pace, sample: Sample) -> bool:
    """Whether latency is bad; learns what is good."""
    if sample.answered < FEWEST:
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
    pace.trial = None
    pace.why = pace.trouble = "nothing but failures" if banned else "nothing but 429 and 503"
    if pace.pauses == 0:
        seen = pace.seen or rate
        if banned:
            _note_ban(pace, seen, now)
        else:
            pace.limit = 0.5 * seen
        pace.limit = max(rules.floor, pace.limit or 0.0)
        pace.value, pace.paced = max(rules.floor, 0.25 * seen), True
        _rest(pace, now)
    elif pace.pauses >= PAUSES:
        return
    pace.pause = min(LONGEST_PAUSE, FIRST_PAUSE * 2.0**pace.pauses)
    pace.pauses += 1
    pace.since = now + pace.pause


def _note_ban(pace: Pace, seen: float, now: float) -> None:
    """The first one may as well be an outage. After others it goes back to what has been borne since, or to
    a third of what has not."""
    asked = pace.value if pace.paced else seen
    if now <= pace.mark + 2.0 * LONG_EPOCH:
        asked = max(asked, pace.fell_from)  # the step down came of the ban
    pace.bans += 1
    if pace.bans > 1:
        pace.proof = min(BANNED, max(pace.proof, PROOF * (now - pace.begun)))
    pace.banned_at, pace.patience = asked, BANNED
    if not pace.held:
        pace.limit = asked * (0.5 if pace.bans == 1 else THIRD)
    elif pace.held < 0.99 * asked:
        pace.limit = pace.held / BACK
    else:  # it is borne no more
        pace.limit, pace.held = asked / NEAR, 0.0


def _step_towards_ban(pace: Pace, now: float) -> None:
    """It has borne this for long enough: a third of the way from there to where it banned."""
    pace.held = pace.value
    if pace.held >= pace.banned_at:
        pace.bans = 1  # it bans no more where it did
    step = max((pace.banned_at / pace.value) ** THIRD, 1.0 + FIRST_STEP)
    pace.value *= step
    pace.limit = pace.value / BACK
    _rest(pace, now)


def _step_down(pace: Pace, share: float, rate: float, now: float, rules: LimiterRules, *, slow: bool) -> None:
    """share: of failures. rate: what the host still answered well, a second."""
    pace.helpless += 1
    pace.tried = 0.0
    pace.fell_from = _rate_of(pace)
    if slow:
        pace.why = pace.trouble = f"latency of {pace.latency:.2g} s, {pace.best:.2g} s at best"
    else:
        pace.why = pace.trouble = f"{share + pace.own:.0%} failures"
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
    pace.why = pace.trouble = f"{share + pace.own:.0%} answers with 429 or 503"
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
    pace.why = pace.trouble = "more requests brought no more answers"
    _worry(pace)
    _rest(pace, now)
    _wait_for_effect(pace, now, 1.0 - BACK)


def _step_up(pace: Pace, now: float, rules: LimiterRules) -> None:
    top = inf if pace.limit is None else BACK * pace.limit
    if pace.value < top:
        pace.value = min(UP * pace.value, top)
        if pace.value >= top:
            _rest(pace, now)
    elif _bans(pace) and now >= pace.try_at:
        _step_towards_ban(pace, now)
    elif not _bans(pace) and (pace.trying or now >= pace.try_at):
        if pace.paced and pace.bans and not pace.trying:
            pace.held = pace.value
        pace.value *= 1.0 + pace.step
        pace.limit = pace.value / BACK
        wary = pace.bans > 0 and pace.patience >= BANNED
        if pace.step >= LAST_STEP and not wary:
            pace.patience = max(PATIENCE, 0.5 * pace.patience)
        pace.step, pace.trying = min(FIRST_STEP if wary else LAST_STEP, 2.0 * pace.step), True
    if not pace.paced and pace.value >= rules.ceiling:
        pace.value, pace.limit = float(rules.ceiling), None
    elif pace.paced and pace.value > 1.5 * rules.ceiling / max(pace.best, 0.001):
        # The delay says nothing more that the cap does not say.
        pace.value, pace.paced, pace.limit = float(rules.ceiling), False, None
    free = pace.limit is None and not pace.paced
    pace.why = WELL if free or not pace.trouble else f"{pace.trouble}; since then {WELL}"


def _worry(pace: Pace) -> None:
    """Where going up had failed before, it is tried less often."""
    if pace.trying:
        rate = _rate_of(pace)
        most = max(MOST_PATIENCE, RARELY / rate, pace.patience)
        pace.patience = min(most, 2.0 * max(pace.patience, SELDOM / rate))


def _rest(pace: Pace, now: float) -> None:
    wait = pace.patience
    if _bans(pace):
        wait = MOST_BANNED if pace.banned_at <= NEAR * pace.value else pace.proof
    wait = max(wait, min(SOON, SELDOM / _rate_of(pace)))
    pace.try_at, pace.step, pace.trying = now + wait, FIRST_STEP, False


def _bans(pace: Pace) -> bool:
    """Whether it shuts out by how much is asked, not once because it was down."""
    return pace.paced and pace.bans > 1


def _rate_of(pace: Pace) -> float:
    """Requests a second, roughly."""
    return pace.value if pace.paced else max(pace.seen, 1.0)
