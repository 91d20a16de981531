"""Rooms whose limit follows their origin: what is measured, proposed, noted and applied."""

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from admission_world import small_room
from broken_builds import Break, Broken, Trial, around, found_by, must_be_found
from hypothesis import given
from hypothesis import strategies as st
from visitors import Browser, Site

from greenroom.admission.schedule import Effective
from greenroom.capacity import WINDOW_MS, CapacityLaw, Histogram, Window
from greenroom.capacity.measurement import (
    Measurement,
    ProcessReport,
    WindowMeter,
)
from greenroom.capacity.room_capacity import (
    PROPOSAL_MS,
    UNMEASURED_MS,
    CapacityState,
    RoomCapacity,
)
from greenroom.capacity.sources import ANSWERS, FORGOTTEN_MS
from greenroom.decision.room_schedule import RoomSchedule
from greenroom.decision.verdict import Forward
from greenroom.model.answer import Answer
from greenroom.model.operation import TAKE_OVER, Operation, RoomOperations, operated
from greenroom.model.room import Room

START_MS = 1_750_000_000_000
JSON = ((b"accept", b"application/json"),)


# -- measured ----------------------------------------------------------------------------------------


def report(at_ms: int, fast: int, failed: int = 0, **more: object) -> ProcessReport:
    measured = Measurement(documents=Histogram.of([100] * fast), failed=failed, **more)  # type: ignore[arg-type]
    return ProcessReport(at_ms=at_ms, rooms={"r": measured})


def windows(meter: WindowMeter, at_ms: int, **reports: ProcessReport) -> Window | None:
    return meter.windows(reports, at_ms).get("r")


def test_windows_are_what_all_processes_measured_since_the_last_one() -> None:
    meter = WindowMeter()
    first = windows(meter, 1_000, a=report(1_000, 50, active=3), b=report(900, 10))
    assert first is not None
    assert (first.documents.total, first.active) == (0, 3), "nothing is known of the time before"
    second = windows(meter, 6_000, a=report(6_000, 70, 2, active=4), b=report(5_500, 15, waiting=1))
    assert second is not None
    assert (second.documents.total, second.failed, second.active, second.waiting) == (25, 2, 4, 1)
    again = windows(meter, 11_000, a=report(11_000, 5), b=report(11_000, 15))
    assert again is not None
    assert again.documents.total == 0, "a process that begins again has fewer, not negative ones"


def test_a_silent_process_leaves_no_window_until_it_stops_or_is_forgotten() -> None:
    meter = WindowMeter()
    silent = report(0, 5)
    assert windows(meter, 1_000, a=report(1_000, 1), b=silent) is not None
    assert windows(meter, ANSWERS.silent_ms, a=report(ANSWERS.silent_ms, 1), b=silent) is None
    assert windows(meter, ANSWERS.silent_ms, a=report(ANSWERS.silent_ms, 1)) is not None, (
        "it has withdrawn"
    )
    assert windows(meter, FORGOTTEN_MS, a=report(FORGOTTEN_MS, 1), b=silent) is not None
    assert meter.windows({}, FORGOTTEN_MS) == {}


# -- proposed and noted ------------------------------------------------------------------------------


def room(mode: str, **more: object) -> Room:
    return small_room(capacity=mode, total_active_users=400, new_users_per_minute=4_000, **more)


def state_of(sessions: int, **more: Any) -> CapacityState:
    fields = {"mode": "follow", "limit": sessions, "stopped": False, "reason": "", "measured_ms": 0}
    return CapacityState(**{**fields, "sessions": sessions, **more})


def answers(ms: int, active: int, count: int = 200) -> Window:
    return Window(documents=Histogram.of([ms] * count), active=active)


def run(capacity: RoomCapacity, window: Window | None, steps: int, since: int = 0) -> CapacityState:
    for step in range(since, since + steps):
        state = capacity.step(window, START_MS + step * WINDOW_MS)
    return state


def test_a_slow_origin_stops_admissions_in_one_window_and_says_why() -> None:
    capacity = RoomCapacity(room("follow"), None, 300, START_MS)
    well = run(capacity, answers(100, 300), 2)
    assert not well.stopped
    state = run(capacity, answers(4_000, 300), 1, since=2)
    assert state.stopped
    note = capacity.note(state, START_MS)
    assert note is not None
    assert "over the objective of 1 s: admissions stop" in note.reason
    state = run(capacity, answers(4_000, 300), 1, since=3)
    assert state.sessions < well.sessions
    note = capacity.note(state, START_MS)
    assert note is not None
    assert f"in two windows: {well.sessions} → {state.sessions}" in note.reason
    state = run(capacity, answers(100, 300), 6, since=4)
    assert not state.stopped
    note = capacity.note(state, START_MS)
    assert note is not None
    assert note.reason.endswith(f": admissions go on with a limit of {state.sessions}")


def test_growth_is_noted_in_sum_and_cuts_at_once() -> None:
    capacity = RoomCapacity(room("follow"), state_of(100), 100, START_MS)
    noted = []
    for step in range(36):
        now_ms = START_MS + step * WINDOW_MS
        state = capacity.step(answers(100, 400), now_ms)
        if note := capacity.note(state, now_ms):
            noted.append((step, note))
    sessions = [note.sessions for _, note in noted]
    assert sessions == sorted(sessions)
    assert all(later - earlier >= 2 for (earlier, _), (later, _) in pairwise(noted))
    assert noted[-1][1].reason.endswith(f"{sessions[-2]} → {sessions[-1]}")


def test_steps_of_one_visitor_down_are_noted_once_a_minute() -> None:
    capacity = RoomCapacity(room("follow"), None, 400, START_MS)
    capacity.note(state_of(400), START_MS)
    noted = []
    for step in range(1, 37):
        now_ms = START_MS + step * WINDOW_MS
        if note := capacity.note(state_of(400 - step // 4), now_ms):
            noted.append((step, note.sessions))
    assert noted == [(12, 397), (24, 394), (36, 391)]
    cut = capacity.note(state_of(350), START_MS + 37 * WINDOW_MS)
    assert cut is not None, "a cut is noted at once"


def test_a_suggestion_has_evidence_expires_and_is_made_again() -> None:
    capacity = RoomCapacity(room("suggest"), None, 0, START_MS)
    assert run(capacity, answers(100, 100), 3).proposal is None, (
        "the limit is right as far as known"
    )
    state = run(capacity, answers(1_300, 400), 6, since=3)
    proposal = state.proposal
    assert proposal is not None
    assert proposal.sessions == state.sessions < 400
    assert "over the objective" in proposal.reason
    assert capacity.note(state, START_MS) is None
    silent = capacity.step(None, proposal.until_ms - 1)
    assert silent.proposal == proposal
    assert capacity.step(None, proposal.until_ms).proposal is None, "nothing is measured"
    again = capacity.step(answers(900, 400), proposal.until_ms + WINDOW_MS).proposal
    assert again is not None
    assert again.until_ms == proposal.until_ms + WINDOW_MS + PROPOSAL_MS


def test_a_suggestion_may_exceed_the_limit_by_what_has_been_seen() -> None:
    capacity = RoomCapacity(room("suggest"), None, 0, START_MS)
    proposal = run(capacity, answers(100, 400), 60).proposal
    assert proposal is not None
    assert 400 < proposal.sessions <= 460


@pytest.mark.parametrize("mode", ["observe", "follow"])
def test_no_target_exceeds_what_the_operator_set(mode: str) -> None:
    capacity = RoomCapacity(room(mode, floor=500), None, 5_000, START_MS)
    assert run(capacity, answers(100, 5_000), 60).sessions <= 400
    assert (capacity.note(run(capacity, None, 1), START_MS) is None) is (mode == "observe")


@pytest.mark.parametrize(
    ("mode", "says"),
    [("observe", "would be stopped"), ("suggest", "would be stopped"), ("follow", "stopped")],
)
def test_only_a_room_that_follows_says_that_admissions_are_stopped(mode: str, says: str) -> None:
    state = run(RoomCapacity(room(mode), None, 0, START_MS), answers(60_000, 400), 4)
    assert state.stopped
    assert state.reason.endswith(says)
    assert ("would" in state.reason) is (mode != "follow")


def silent_after(before: list[tuple[int, int]], silent: int, takeovers: set[int]) -> list[str]:
    """What grew while nothing was measured; in the steps `takeovers` another process begins to lead."""
    capacity = RoomCapacity(room("follow"), None, 0, START_MS)
    last = capacity.step(None, START_MS)
    found = [] if last.sessions == last.limit == 100 else [f"begins with {last}"]
    for step, (ms, active) in enumerate(before):
        last = capacity.step(answers(ms, active), START_MS + step * WINDOW_MS)
    for step in range(len(before), len(before) + silent):
        now_ms = START_MS + step * WINDOW_MS
        if step - len(before) in takeovers:
            capacity = RoomCapacity(room("follow"), last, 0, now_ms)
        state = capacity.step(None, now_ms)
        if state.sessions > last.sessions or state.limit > last.limit:
            found.append(f"{last} grew to {state}")
        if state.stopped is not last.stopped:
            found.append(f"{last} stopped, or went on: {state}")
        last = state
    if not takeovers:
        since_ms = START_MS + max(0, len(before) - 1) * WINDOW_MS
        if not last.unmeasured(since_ms + UNMEASURED_MS):
            found.append("is not reported as unmeasured")
    return found


@given(
    st.lists(
        st.tuples(st.sampled_from((100, 900, 1_300, 5_000)), st.integers(0, 500)), max_size=30
    ),
    st.integers(1, 60),
    st.sets(st.integers(0, 20), max_size=3),
)
def test_silence_never_grows_also_when_another_process_takes_over(
    before: list[tuple[int, int]], silent: int, takeovers: set[int]
) -> None:
    assert silent_after(before, silent, takeovers) == []


BROKEN: Broken = []
silence = found_by(lambda: silent_after([(100, 20), (100, 400), (5_000, 400)], 9, {4}), BROKEN)


@silence
def grows_without_measurements(patch: pytest.MonkeyPatch) -> None:
    def grows(original: Any, self: CapacityLaw, window: Window | None, *rest: Any) -> Any:
        return original(self, window or answers(100, 500), *rest)

    around(patch, CapacityLaw, "step", grows)


@silence
def admits_again_when_another_process_leads(patch: pytest.MonkeyPatch) -> None:
    def forgets(original: Any, self: CapacityLaw, limits: Any, start: int, _: int) -> None:
        original(self, limits, start)

    around(patch, CapacityLaw, "__init__", forgets)


@found_by(lambda: silent_after([(100, 20)], 9, {4}), BROKEN)
def fills_up_to_the_target_when_another_process_leads(patch: pytest.MonkeyPatch) -> None:
    def forgets(original: Any, self: RoomCapacity, *arguments: Any) -> None:
        original(self, *arguments)
        self._held_limit = 1_000

    around(patch, RoomCapacity, "__init__", forgets)


@pytest.mark.parametrize(("trial", "build"), BROKEN)
def test_the_law_of_silence_finds(trial: Trial, build: Break, monkeypatch) -> None:
    must_be_found(trial, build, monkeypatch)


# -- applied -----------------------------------------------------------------------------------------


def schedule(site: Site) -> RoomSchedule:
    (found,) = site.decisions.table.rooms.values()
    return found


def shop(folder: Path, **settings: object) -> Site:
    changes = {"capacity": "follow", "json_response_enabled": True, "new_users_per_minute": 100}
    return Site(folder, small_room(**{**changes, **settings}))


def told(browser: Browser) -> dict:
    reply = browser.visit("/", headers=JSON)
    assert isinstance(reply, Answer)
    return json.loads(reply.body)["greenroom"]


def test_as_many_are_admitted_as_the_origin_takes(tmp_path: Path) -> None:
    site = shop(tmp_path)
    assert schedule(site).follow_origin(2, slow=False)
    assert schedule(site).follow_origin(2, slow=False) is False
    came = [Browser(site).visit("/") for _ in range(4)]
    assert [isinstance(reply, Forward) for reply in came] == [True, True, False, False]
    schedule(site).follow_origin(9, slow=False)
    came = [Browser(site).visit("/") for _ in range(4)]
    assert sum(isinstance(reply, Forward) for reply in came) <= 3, "never beyond the room's limit"


def test_visitors_are_told_that_the_site_recovers_and_those_inside_stay(tmp_path: Path) -> None:
    site = shop(tmp_path)
    inside = Browser(site)
    assert isinstance(inside.visit("/"), Forward)
    schedule(site).follow_origin(5, slow=True)
    waiting = Browser(site)
    found = told(waiting)
    assert (found["originSlow"], found["originUnhealthy"]) == (True, False)
    assert isinstance(inside.visit("/"), Forward)
    assert site.events_seen[-2].reason == "origin_slow"
    schedule(site).follow_origin(5, slow=False)
    site.advance(60_000)
    assert isinstance(waiting.visit("/"), Forward)


def test_visitors_whom_an_operator_lets_in_come_beyond_what_the_origin_takes() -> None:
    raised = room("follow", let_in=7)
    assert Effective(raised, capacity=100, let_in=7).active_limit == 107
    assert Effective(raised, capacity=None).active_limit == 400
    assert Effective(raised, capacity=1_000).active_limit == 400


def test_a_limit_that_was_taken_over_stands_and_never_exceeds_the_rooms() -> None:
    def taken(count: int, record: Room) -> Room:
        found = Operation(kind=TAKE_OVER, author="Ann", start_ms=0, count=count)
        return operated(record, RoomOperations(id="r", operations=(found,)))

    over = taken(120, room("follow"))
    assert (over.capacity, over.total_active_users) == ("fixed", 120)
    assert over.operated == ("capacity", "total_active_users")
    assert taken(9_999, room("follow")).total_active_users == 400
    assert taken(120, room("observe")) == room("observe"), "its limit was the operator's all along"
