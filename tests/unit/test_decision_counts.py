"""Decisions are counted once: metrics read the counts since the start, analytics what each minute
added to them.
"""

from collections import Counter

from admission_world import small_room
from hypothesis import given
from hypothesis import strategies as st

from greenroom.admission.schedule import Effective, effective
from greenroom.analytics.collector.decisions import OUTCOMES_OF, recording
from greenroom.analytics.recorder import Recorder
from greenroom.decision.decision_counts import RESULTS, DecisionCounts
from greenroom.decision.observer import Decided, DecisionEvent
from greenroom.model.visit import Ticket, make_key

ROOMS: dict[str, Effective] = {
    room_id: effective(small_room(id=room_id, name=room_id), (), 0) for room_id in ("a", "b", "c")
}
BEGIN_MS = 1_893_456_000_000

decisions = st.tuples(st.sampled_from(sorted(ROOMS)), st.sampled_from(Decided))
steps = st.lists(
    st.one_of(decisions, st.just("added"), st.sets(st.sampled_from(sorted(ROOMS)))), max_size=60
)


@given(steps)
def test_what_was_added_is_told_once_whatever_rooms_are_taken_out(
    story: list[tuple[str, Decided] | str | set[str]],
) -> None:
    counts, told, made = (
        DecisionCounts(),
        Counter[tuple[str, Decided]](),
        Counter[tuple[str, Decided]](),
    )
    counts.added()
    since = Counter[tuple[str, Decided]]()
    for step in [*story, "added"]:
        if isinstance(step, tuple):
            counts.observe(DecisionEvent(BEGIN_MS, step[1], ROOMS[step[0]]))
            made[step] += 1
            since[step] += 1
        elif isinstance(step, set):
            counts.keep(step)
            since = Counter({one: count for one, count in since.items() if one[0] in step})
        else:
            for room_id, decided, more in counts.added():
                assert more > 0
                told[room_id, decided] += more
    assert told == made
    for room_id in ROOMS:
        assert counts.of(room_id) == {
            RESULTS[decided]: count for (of, decided), count in since.items() if of == room_id
        }


def test_nothing_is_kept_of_rooms_that_were_taken_out_where_nothing_is_recorded() -> None:
    counts = DecisionCounts()
    counts.observe(DecisionEvent(BEGIN_MS, Decided.HELD, ROOMS["a"]))
    counts.keep(set())
    assert counts.added() == []


minutes = st.lists(st.tuples(decisions, st.integers(0, 30_000)), max_size=60)


@given(minutes)
def test_each_decision_is_in_the_minute_of_its_own_time_and_in_the_counts_since_the_start(
    story: list[tuple[tuple[str, Decided], int]],
) -> None:
    counts, recorder = DecisionCounts(), Recorder("process-1", "here", BEGIN_MS)
    counts.observe(
        DecisionEvent(BEGIN_MS, Decided.HELD, ROOMS["a"])
    )  # before anything was recorded
    observe = recording(recorder, counts)
    now_ms, expected, waited = BEGIN_MS, Counter[tuple[int, str, str]](), Counter[tuple[int, str]]()
    since = Counter({("a", "held"): 1})
    for (room_id, decided), later_ms in story:
        now_ms += later_ms
        ticket = Ticket(bytes(12), make_key(BEGIN_MS, 1), 0, BEGIN_MS, 2_000)
        observe(DecisionEvent(now_ms, decided, ROOMS[room_id], None, ticket))
        since[room_id, RESULTS[decided]] += 1
        for outcome in OUTCOMES_OF.get(decided, ()):
            expected[now_ms // 60_000, room_id, outcome] += 1
        if decided is Decided.ADMITTED:
            waited[now_ms // 60_000, room_id] += 1
    recorder.finish()
    parts = [part for minute in recorder.fetch() for part in minute.parts()]
    found = {
        (part.minute, part.room, outcome): count
        for part in parts
        for outcome, count in part.rollup.outcomes.items()
    }
    assert found == expected
    assert {
        (part.minute, part.room): sum(part.rollup.waited.values())
        for part in parts
        if part.rollup.waited
    } == waited
    assert {
        (room_id, name): count for room_id in ROOMS for name, count in counts.of(room_id).items()
    } == since


def test_decisions_without_a_room_are_not_counted() -> None:
    counts = DecisionCounts()
    observe = recording(Recorder("process-1", "here", BEGIN_MS), counts)
    observe(DecisionEvent(BEGIN_MS, Decided.UNCOVERED))
    assert counts.added() == []
