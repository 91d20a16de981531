"""Future admissions in steps of five seconds, with visitors as a fluid. In each step sessions end by
age and free their units; as many visitors enter as free units, the sliding minute and pacing allow. A
freed unit is used a little later (`reuse`).
"""

from collections.abc import Sequence
from itertools import pairwise
from operator import mul

STEP_S = 5
WINDOW_STEPS = 12
STEPS_MAX = 360
STEPS_LEAST = 24
LONG_STEPS = 480
"""For sessions over 40 minutes, steps of 10 or 15 s are as good."""


def ends_of_the_living(
    living: Sequence[float], survival: Sequence[float], passed: float, steps: int
) -> list[float]:
    shares = list(map(float.__sub__, survival, survival[1:]))
    last = len(shares)
    weights = [
        count / (reached - passed * share)
        for count, reached, share in zip(living, survival, shares, strict=False)
    ]
    by_step = [(1 - passed) * sum(map(mul, weights, shares))]
    stride = 1 + last // LONG_STEPS
    for ahead in range(1, min(steps + 1, last), stride):
        by_step += [sum(map(mul, weights, shares[ahead:]))] * stride
    del by_step[steps + 1 :]
    # sessions older than all known ones end like the oldest known
    rest = sum(living) - sum(by_step)
    hazard = shares[-1] / survival[-2] if survival[-2] else 1.0
    while len(by_step) <= steps:
        by_step.append(rest * hazard)
        rest -= rest * hazard
    ends = [by_step[0] + passed * by_step[1]]
    ends += [(1 - passed) * early + passed * late for early, late in pairwise(by_step[1:])]
    return ends[:steps]


def admissions(
    ends: Sequence[float],
    survival: Sequence[float],
    free: float,
    permits: float,
    per_minute: int,
    recent: Sequence[float],
    enough: float,
    idle_s: float,
) -> list[float]:
    """Stops at `enough`, or with the last step of `ends`. `permits`: granted and unused; their
    holders are left out. `recent`: admissions in each step of the last minute, oldest first.
    `idle_s`: from the end of a session to the admission with its unit.
    """
    shares = list(map(float.__sub__, survival, survival[1:]))
    last = len(shares)
    while last > 1 and not shares[last - 1]:  # all steps where nothing is known of sessions
        last -= 1
    backward = shares[last - 1 :: -1]
    late = idle_s / STEP_S
    entered = [permits]
    window = [*recent[:-1], recent[-1] + permits]
    total, kept = 0.0, 0.0
    for step, ended in enumerate(ends, 1):  # without max() and min(): thousands of times a second
        if step < last:
            freed = ended + sum(map(mul, entered, backward[last - 1 - step :]))
        else:
            freed = ended + sum(map(mul, entered[step - last + 1 :], backward))
        free += kept + freed * (1 - late)
        kept = freed * late
        leaving = window[-WINDOW_STEPS]
        left = per_minute - sum(window[-WINDOW_STEPS + 1 :])
        ahead = left - leaving
        now = (per_minute + ahead if ahead > 0.0 else per_minute) * STEP_S / 60
        allowed = left - leaving * late
        if allowed < now:
            now = allowed
        if free < now:
            now = free
        if now < 0.0:
            now = 0.0
        free -= now
        kept += now * shares[0]
        entered.append(now)
        window.append(now)
        total += now
        if total >= enough and step >= STEPS_LEAST:
            break
    return entered[1:]
