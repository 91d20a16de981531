"""Advice from a room's figures of a span: what its limits cost, each with the figures it rests on.

Figures of a step are its maxima. Nothing is said with too little data: MINUTES_LEAST recorded
minutes, and SESSIONS_LEAST sessions or visitors for what is said about them.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from greenroom.model.fields import plural, with_unit

MINUTES_LEAST = 30
SESSIONS_LEAST = 100
REACHED = 0.97
"""Figures of several data centers are seconds apart."""


class AdviceStep(NamedTuple):
    """`admitted` within the step, `rate` in its busiest minute."""

    start_s: int
    active: float
    active_limit: float
    rate: float
    rate_limit: float
    admitted: float
    waiting: float


class AdviceEvent(NamedTuple):
    name: str
    opens_s: int
    start_s: int


class AdviceFacts(NamedTuple):
    """`visit_s`: median and p95 from admission to the last click; None: no session ended."""

    steps: Sequence[AdviceStep]
    step_s: int
    session_s: int
    renewed: bool
    sessions: float
    visit_s: tuple[float, float] | None
    events: Sequence[AdviceEvent] = ()


class Advice(NamedTuple):
    """`setting`: the field of the room that it is about."""

    word: str
    title: str
    text: str
    setting: str


def cause(step: AdviceStep) -> str:
    """What visitors waited for: active, rate, both or hold (an event, health or an operator);
    empty: nobody waited.
    """
    if step.waiting <= 0:
        return ""
    full, fast = _is_full(step), _is_fast(step)
    return "both" if full and fast else "active" if full else "rate" if fast else "hold"


def advise(facts: AdviceFacts) -> list[Advice]:
    if len(facts.steps) * facts.step_s < MINUTES_LEAST * 60:
        return []
    return [found for rule in _RULES for found in rule(facts)]


def _is_full(step: AdviceStep) -> bool:
    return step.active >= REACHED * step.active_limit > 0


def _is_fast(step: AdviceStep) -> bool:
    return step.rate >= REACHED * step.rate_limit > 0


def _waiting(facts: AdviceFacts) -> list[AdviceStep]:
    """Steps with a line; empty when they are too few to tell."""
    found = [step for step in facts.steps if step.waiting > 0 and cause(step) != "hold"]
    return found if len(found) * facts.step_s >= 10 * 60 else []


def _session_too_long(facts: AdviceFacts) -> Iterator[Advice]:
    waiting = _waiting(facts)
    if facts.visit_s is None or facts.sessions < SESSIONS_LEAST or not waiting:
        return
    median_s, p95_s = facts.visit_s
    full = sum(map(_is_full, waiting))
    if full < len(waiting) / 2 or 1.5 * p95_s > facts.session_s:
        return
    taken_s = facts.session_s + median_s if facts.renewed else facts.session_s
    left = facts.session_s if facts.renewed else facts.session_s - median_s
    yield Advice(
        "session_too_long",
        "Sessions are longer than visits",
        f"95 % of visitors leave within {_minutes(p95_s)}; sessions last {_minutes(facts.session_s)}."
        f" About {left / taken_s:.0%} of the time, a place is held by somebody who left, while"
        " others waited for a place.",
        "session_duration",
    )


def _rate_too_low(facts: AdviceFacts) -> Iterator[Advice]:
    waiting = _waiting(facts)
    slow = [step for step in waiting if _is_fast(step) and step.active < 0.7 * step.active_limit]
    if not waiting or len(slow) < len(waiting) / 2:
        return
    most = max(step.active for step in slow)
    limit = max(step.active_limit for step in slow)
    rate = max(step.rate_limit for step in slow)
    yield Advice(
        "rate_too_low",
        "Places stay free while visitors wait",
        f"At most {most:,.0f} of {limit:,.0f} places were taken while visitors waited, because only"
        f" {rate:,.0f} are let in per minute.",
        "new_users_per_minute",
    )


def _rate_overshoots(facts: AdviceFacts) -> Iterator[Advice]:
    waiting = _waiting(facts)
    full = [step for step in waiting if _is_full(step)]
    if not waiting or len(full) < 0.8 * len(waiting):
        return
    freed = sum(step.admitted for step in full) / (len(full) * facts.step_s / 60)
    rate = max(step.rate_limit for step in full)
    if freed < 1 or rate < 3 * freed:
        return
    yield Advice(
        "rate_overshoots",
        "The rate is higher than places free up",
        f"Sessions freed about {freed:,.0f} {plural(round(freed), 'place')} per minute while visitors waited; {rate:,.0f} may"
        " come in per minute. A full room empties and fills in bursts: a rate near"
        f" {1.2 * freed:,.0f} keeps the load even.",
        "new_users_per_minute",
    )


def _prequeue_too_short(facts: AdviceFacts) -> Iterator[Advice]:
    waiting = {step.start_s: step.waiting for step in facts.steps}
    for event in facts.events:
        last_s = event.start_s - (event.start_s - event.opens_s) // 5
        inside = [at for at in waiting if event.opens_s <= at < event.start_s]
        late = [at for at in inside if at >= last_s]
        if len(inside) < 5 or not late:
            continue
        most = waiting[max(late)]
        before = max(waiting[at] for at in inside if at < last_s)
        if most < SESSIONS_LEAST or most - before < most / 2:
            continue
        yield Advice(
            "prequeue_too_short",
            f"The pre-queue of {event.name} was short for its crowd",
            f"{most - before:,.0f} of the {most:,.0f} {plural(most, 'visitor')} at the start came in its last"
            f" {_minutes(event.start_s - last_s)}. More people take part in an earlier one.",
            "events",
        )


def _limits_never_reached(facts: AdviceFacts) -> Iterator[Advice]:
    if len(facts.steps) * facts.step_s < 86_400 or any(step.waiting > 0 for step in facts.steps):
        return
    if sum(step.admitted for step in facts.steps) < 10 * SESSIONS_LEAST:
        return
    busiest = max(facts.steps, key=lambda step: step.active / max(1, step.active_limit))
    fastest = max(step.rate / max(1, step.rate_limit) for step in facts.steps)
    if busiest.active > busiest.active_limit / 2 or fastest > 0.5:
        return
    yield Advice(
        "limits_never_reached",
        "The limits were never reached",
        f"The busiest moment had {busiest.active:,.0f} of {busiest.active_limit:,.0f} active"
        f" visitors, and the busiest minute used {fastest:.0%} of the rate. If your application"
        " cannot serve much more than that, the limits do not protect it.",
        "total_active_users",
    )


def _minutes(seconds: float) -> str:
    return with_unit(max(1, round(seconds / 60)), "minutes")


_RULES = (
    _session_too_long,
    _rate_too_low,
    _rate_overshoots,
    _prequeue_too_short,
    _limits_never_reached,
)
