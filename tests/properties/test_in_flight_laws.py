"""The bound of requests in flight to an origin: what it never does, and that it finds the knee."""

from collections.abc import Callable
from typing import Any

import pytest
from broken_builds import Broken, found_by, must_be_found
from hypothesis import given, settings
from hypothesis import strategies as st

from greenroom.capacity import in_flight
from greenroom.capacity.histogram import Histogram
from greenroom.capacity.in_flight import FLOOR, FlightLaw, FlightWindow
from greenroom.capacity.law import CUT_MOST

OBJECTIVE_MS, MOST = 500, 256
SILENCE = FlightWindow(documents=Histogram(), peak=0)
SPREAD = [0.4 + 0.0325 * place for place in range(40)]
"""Times of documents relative to their mean, whose p95 is 1.6 of it."""


@st.composite
def windows(draw: st.DrawFn) -> FlightWindow:
    level = draw(st.sampled_from((0.1, 0.5, 0.9, 1.2, 2, 5, 40))) * OBJECTIVE_MS
    return FlightWindow(
        documents=Histogram.of([level] * draw(st.sampled_from((0, 3, 20, 300)))),
        pending=Histogram.of([level] * draw(st.sampled_from((0, 0, 5, 50)))),
        failed=draw(st.sampled_from((0, 0, 1, 50))),
        peak=draw(st.integers(0, 400)),
    )


@settings(max_examples=100, deadline=None)
@given(st.lists(st.one_of(st.just(SILENCE), windows()), max_size=40), st.integers(1, 400))
def test_it_stays_between_its_floor_and_the_operators_limit(
    seen: list[FlightWindow], most: int
) -> None:
    law, before = FlightLaw(), most
    for window in seen:
        law.step(window, OBJECTIVE_MS, most)
        bound = most if law.bound is None else law.bound
        assert min(FLOOR, most) <= bound <= most
        assert window is not SILENCE or bound <= before, "it does not grow on silence"
        if bound < before:
            used = min(before, max(window.peak, FLOOR))
            assert bound >= min(before, int(used * (1 - CUT_MOST)))
        before = bound


class Origin:
    """Answers in `service_ms` up to `knee` requests at once, beyond it in proportion later."""

    def __init__(self, knee: int, service_ms: float = 100.0, extra_ms: float = 0.0) -> None:
        self.knee, self.service_ms, self.extra_ms = knee, service_ms, extra_ms

    def mean_ms(self, flying: int) -> float:
        return self.service_ms * max(1.0, flying / self.knee) + self.extra_ms

    def window(self, wanted: int, bound: int | None) -> FlightWindow:
        flying = min(wanted, MOST if bound is None else bound)
        mean_ms = self.mean_ms(flying)
        documents = Histogram.of([mean_ms * share for share in SPREAD * 3])
        return FlightWindow(documents=documents, peak=flying)


def follow(origin: Origin, law: FlightLaw, wanted: int, steps: int = 60) -> int | None:
    for _ in range(steps):
        law.step(origin.window(wanted, law.bound), OBJECTIVE_MS, MOST)
    return law.bound


def trial() -> list[str]:
    """What is wrong with the law."""
    found, law, origin = [], FlightLaw(), Origin(24)
    bound = follow(origin, law, MOST) or MOST
    mean_ms = origin.mean_ms(bound)
    if bound < origin.knee:
        found.append(f"the origin is not used: {bound} of {origin.knee}")
    if 1.6 * mean_ms > 1.1 * OBJECTIVE_MS:
        found.append(f"p95 of {1.6 * mean_ms:.0f} ms")
    for _ in range(60):
        law.step(SILENCE, OBJECTIVE_MS, MOST)
    if (law.bound or MOST) > bound:
        found.append("it grew on silence")
    origin.knee = 12  # half of it fails
    halved = follow(origin, law, MOST) or MOST
    if not 12 <= halved <= 0.75 * bound:
        found.append(f"half the origin: {halved} of {bound}")
    origin.knee = 200
    if follow(origin, law, MOST) is not None:
        found.append("it stays bound when all is well")
    slow = Origin(200, extra_ms=600.0)  # a partner of the site
    if (follow(slow, FlightLaw(), 100) or MOST) < 100:
        found.append("it queues what is not slow because of load")
    law = FlightLaw()
    follow(Origin(24), law, MOST)
    few = Histogram.of([50.0] * 5)
    for _ in range(60):
        law.step(FlightWindow(documents=few, peak=law.bound or MOST), OBJECTIVE_MS, MOST)
    if law.bound is not None:
        found.append("what is no document waits behind a bound that nothing measures")
    hangs = FlightWindow(documents=Histogram(), pending=Histogram.of([5_000.0] * 200), peak=200)
    if (FlightLaw().step(hangs, OBJECTIVE_MS, MOST) or MOST) < 150:
        found.append("an origin that hangs is cut by more than a quarter at once")
    dead = Origin(1, service_ms=60_000.0)
    if (follow(dead, FlightLaw(), MOST) or MOST) < FLOOR:
        found.append("less than the floor")
    return found


def test_it_finds_the_concurrency_at_the_objective_and_follows_it() -> None:
    assert trial() == []


BROKEN: Broken = []
breaks = found_by(trial, BROKEN)


def constant(name: str, value: Any) -> Callable[[pytest.MonkeyPatch], None]:
    return lambda patch: patch.setattr(in_flight, name, value)


breaks(constant("FLOOR", 1))
breaks(constant("USELESS", 2.0))
breaks(constant("GROWTH", 1.0 - 1e-9))
breaks(constant("GOOD", 0.0))


@breaks
def grows_on_silence(patch: pytest.MonkeyPatch) -> None:
    step = FlightLaw.step

    def broken(self: FlightLaw, window: Any, objective_ms: int, most: int) -> int | None:
        if window is SILENCE and self.bound is not None:
            self.bound += 1
        return step(self, window, objective_ms, most)

    patch.setattr(FlightLaw, "step", broken)


@pytest.mark.parametrize(("broken_trial", "build"), BROKEN)
def test_a_broken_law_is_found(
    broken_trial: Any, build: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    must_be_found(broken_trial, build, monkeypatch)
