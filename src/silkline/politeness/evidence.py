"""What is known of a host since the last step, and whether that is enough to judge by.

A failure alone may be chance: of ten answers it is a tenth. So counts are carried on until their share is
clear, one way or the other. Some hosts fail now and then however slowly they are asked: the share that a step
down does not mend is the host's own, and only what is clearly more counts. All of it is pure.
"""

from __future__ import annotations

from math import ceil, log, sqrt

from silkline.politeness.pace import Pace, Sample, Trial

EPOCH = 1.0
"""Seconds that are judged together, about: workers tell a little sooner or later than that."""
LONG_EPOCH = 5.0
"""Seconds after which fewer than `ENOUGH` answers are judged, too."""
ENOUGH = 10
CLEAR_BY, LONGEST_EPOCH = 100, 20.0
"""So many answers, or seconds, in which there were failures are judged whatever they say."""
ALARM = 5
"""So many failures in a row, and nothing else, are judged at once."""
CHANCE = 1e-6
"""So unlikely are so many in a row of a host that has failures of its own: of them there have to be more."""
SLOWLY = 2.0
"""Requests a second below which two are enough, of a host that has shut us out before."""

CALM, TROUBLED = 0.01, 0.05
CERTAIN = 2.5
"""Standard deviations by which failures have to be more than their share, and one more failure."""
MOST_OWN = 0.25
"""A share of failures up to which one step down mends all of it, if it comes of the pace."""
MENDED = 0.5
TRIED_BY, UNTIL_NONE = 5.0, 3.0
"""So many failures would have come without the step down when it is weighed; so many, if none came."""
OWN_BY, OWN_UNTIL_NONE = 50.0, 6.0
"""The same of the host's own share, which sinks when there are fewer."""


def add(total: Sample, more: Sample) -> None:
    total.answered += more.answered
    total.busy += more.busy
    total.failed += more.failed
    total.limited += more.limited
    total.log_latency += more.log_latency
    total.lag = max(total.lag, more.lag)


def note_block(pace: Pace, start: float, end: float) -> None:
    """Several workers may tell of the same one."""
    if end <= start:
        return
    if start > pace.block_until:
        pace.idle += idle(pace, start)
        pace.block_from = start
    pace.block_until = max(pace.block_until, end)


def idle(pace: Pace, now: float) -> float:
    """Seconds of the epoch for which the last block has lasted."""
    return max(0.0, min(now, pace.block_until) - max(pace.since, pace.block_from))


def is_over(pace: Pace, now: float) -> bool:
    """Whether the epoch is to be judged."""
    sample = pace.sample
    bad = sample.busy + sample.failed
    number = sample.answered + bad
    if not number:
        return False
    elapsed = now - pace.since
    if is_hopeless(pace, sample):
        # Some that are refused at once, while others are still being answered, say less.
        return elapsed >= max(0.25 * EPOCH, 2.0 * pace.latency)
    if elapsed < 0.89 * EPOCH:
        return False
    if sample.limited > 1 or number >= CLEAR_BY or elapsed >= LONGEST_EPOCH:
        return True
    # Where nothing has been answered a ban may have begun: wait for the alarm.
    if (sample.answered or sample.busy) and is_severe(pace, bad, number):
        return True
    if pace.trial is None and not sample.limited and bad > number * (pace.own + CALM):
        return False
    return elapsed >= LONG_EPOCH or number >= ENOUGH


def is_hopeless(pace: Pace, sample: Sample) -> bool:
    """Whether nothing is answered any more, but for what was asked before."""
    alarm = ALARM
    if pace.own:
        alarm = max(alarm, ceil(log(CHANCE) / log(pace.own)))
    if sample.answered:
        return sample.failed >= max(alarm, 10 * sample.answered)
    if pace.pauses:
        alarm = 1
    elif pace.bans and pace.paced and pace.value < SLOWLY:
        alarm = min(alarm, 2)
    return sample.busy + sample.failed >= alarm


def clearly_above(bad: int, number: int, share: float) -> bool:
    """Whether so many failures are more than chance makes of that share."""
    expected = number * share
    return bad > expected + CERTAIN * sqrt(expected) + 1.0


def is_severe(pace: Pace, bad: int, number: int) -> bool:
    return clearly_above(bad, number, pace.own + TROUBLED)


def is_calm(pace: Pace, bad: int, number: int) -> bool:
    """Also where it is not clear: what was seen once does not hold a host down."""
    if pace.own:
        return not clearly_above(bad, number, pace.own + CALM)
    return bad < 2 or bad < CALM * number


def begin_trial(pace: Pace, share: float) -> None:
    """A step down follows: see whether it mends the share of failures that led to it."""
    pace.trial = Trial(share, pace.value, pace.paced) if share <= MOST_OWN else None


def is_on_trial(pace: Pace, bad: int, number: int) -> bool:
    """Take in what came of the last step down; whether this is all there is to do about it."""
    trial = pace.trial
    if trial is None:
        return False
    if clearly_above(bad, number, max(TROUBLED, 2.0 * trial.share)):
        pace.trial = None  # it has become worse: that is another matter
        return False
    trial.bad += bad
    trial.number += number
    expected = trial.share * trial.number
    if trial.bad > 0 or expected < UNTIL_NONE:
        if expected < TRIED_BY:
            return True
        share = trial.bad / trial.number
        if share >= MENDED * trial.share:
            _take_back(pace, trial, share)
            return True
    pace.trial = None
    return False


def _take_back(pace: Pace, trial: Trial, share: float) -> None:
    """The step down was for nothing."""
    take_for_own(pace, share)
    pace.trial = None
    pace.value, pace.paced, pace.limit = trial.value, trial.paced, None
    pace.helpless, pace.tried = 0, 0.0
    pace.why = f"a slower pace did nothing about {share:.0%} failures"


def take_for_own(pace: Pace, share: float) -> None:
    pace.own, pace.own_bad, pace.own_number = min(MOST_OWN, share), 0, 0


def watch_own(pace: Pace, bad: int, number: int) -> None:
    """The host's own share sinks when it fails less; what rises has to be tried first."""
    if not pace.own:
        return
    pace.own_bad += bad
    pace.own_number += number
    expected = pace.own * pace.own_number
    if expected >= OWN_BY or (not pace.own_bad and expected >= OWN_UNTIL_NONE):
        share = pace.own_bad / pace.own_number
        take_for_own(pace, min(pace.own, share) if share >= CALM else 0.0)
