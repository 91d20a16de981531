"""Records a run for analytics: the report's figures come from the same `Question` as those of the
dashboard and GraphQL. Minutes are true time. Recording changes nothing in a run.
"""

from math import ceil, isfinite

from greenroom.analytics.metrics import METRICS
from greenroom.analytics.question import FOREVER_S, AnalyticsAnswer, Question, Wanted
from greenroom.analytics.recorder import NOT_WAITED, Recorder
from greenroom.analytics.rollup import SLOT_MS, Part, RoomLimits
from greenroom.model.visit import Outcome, Standing
from greenroom.simulator.visitor import SimulatedVisitor
from greenroom.simulator.world import World

ROOM = "simulated"

OUTCOME_OF = {Standing.ADMITTED: "admitted", Standing.ACTIVE: "passed", Standing.WAITING: "held"}
"""GONE is not counted: its visitor comes again as a new one."""

WHOLE_RUN = Question(
    0,
    FOREVER_S,
    metrics=tuple(
        Wanted(aggregate, metric.name)
        for metric in METRICS.values()
        for aggregate in metric.aggregates
    ),
)

OF_TALLIES = frozenset(
    {
        "usersAbandoned",
        "sessionsEnded",
        *(name for name in METRICS if name.startswith("timeOnOrigin")),
    }
)
"""The published methods keep no window counts."""

RecordedFigures = dict[str, dict[str, float]]


class RunRecording:
    def __init__(self, world: World) -> None:
        self._world = world
        now_ms = world.agenda.now_ms
        self._recorders = [
            Recorder(name, name, now_ms)
            for name in (f"dc{number:03}" for number in range(world.scenario.centers))
        ]
        self._told_s: dict[int, int] = {}
        self._parts: list[Part] = []
        self._unknown: frozenset[str] = frozenset()
        world.crowd.listener = self
        world.agenda.at(-(-now_ms // SLOT_MS) * SLOT_MS, self._look)

    def answered(self, visitor: SimulatedVisitor, outcome: Outcome, now_ms: int) -> None:
        if counted := OUTCOME_OF.get(outcome.standing):
            if visitor.guess is None and outcome.estimate and isfinite(outcome.estimate.p50_s):
                self._told_s[visitor.center] = ceil(outcome.estimate.p50_s)
            waited = (
                outcome.standing is Standing.ADMITTED and visitor.tries and not visitor.entered_ms
            )
            self._recorders[visitor.center].decided(
                ROOM, counted, now_ms, now_ms - visitor.first_ms if waited else NOT_WAITED
            )

    def left(self, visitor: SimulatedVisitor, now_ms: int) -> None:
        for outcome in ("gave_up", "ended"):  # they leave when they are done, from inside
            self._recorders[visitor.center].decided(ROOM, outcome, now_ms)

    def parts(self) -> list[Part]:
        self._look_at_all()
        for recorder in self._recorders:
            recorder.finish()
        self._fetch()
        return self._parts

    def figures(self, answer: AnalyticsAnswer) -> RecordedFigures:
        row = answer.rows[0] if answer.rows else {}
        found: RecordedFigures = {}
        for wanted in WHOLE_RUN.metrics:
            value = row.get(wanted, 0)
            if wanted.metric not in self._unknown:
                found.setdefault(wanted.aggregate, {})[wanted.metric] = (
                    value if isinstance(value, int | float) else 0
                )
        return found

    def _look(self) -> None:
        self._look_at_all()
        self._fetch()
        self._world.agenda.after(SLOT_MS, self._look)

    def _look_at_all(self) -> None:
        world, room, now_ms = self._world, self._world.room, self._world.agenda.now_ms
        limits = RoomLimits(
            now_ms, room.total_active_users, room.new_users_per_minute, room.session_duration
        )
        for number, recorder in enumerate(self._recorders):
            recorder.close(now_ms)
            if not world.system.open(number):
                continue
            look = world.system.look(number)
            recorder.looked(
                ROOM,
                look.active,
                look.queued,
                self._told_s.get(number) if look.queued else 0,
                now_ms,
            )
            recorder.limited(ROOM, limits)
            if look.tally is None:
                self._unknown = OF_TALLIES
            else:
                recorder.stayed(ROOM, look.tally.stays_ms, now_ms)
                recorder.counted(ROOM, "abandoned", look.tally.abandoned, now_ms)
        self._told_s.clear()

    def _fetch(self) -> None:
        for recorder in self._recorders:
            self._parts += [part for minute in recorder.fetch() for part in minute.parts()]
