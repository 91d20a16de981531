"""One room's mode around the law: what is applied, proposed and noted."""

from dataclasses import dataclass
from typing import NamedTuple

from greenroom.capacity.law import CUT_LEAST, START_SHARE, CapacityLaw
from greenroom.capacity.window import WINDOW_MS, CapacityTarget, OperatorLimits, Window
from greenroom.model.room import LIMIT_MAX, Room

PROPOSAL_MS = 5 * 60_000
CHANGE_LEAST = 0.05
"""Smallest change that is proposed, and that is noted soon when the target grows."""
NOTED_MS, SMALL_NOTED_MS = 10_000, 60_000
"""Between two notes about growth; after the second any change is noted."""
SUGGESTED_MOST = 2
"""A suggestion may be that many times the configured limit; the law grows only while the limit
binds, so in fact little more than what was inside."""
UNMEASURED_MS = 6 * WINDOW_MS


@dataclass(frozen=True, slots=True)
class Proposal:
    sessions: int
    reason: str
    until_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CapacityState:
    """After a step of the law. Only a room that follows applies `limit` and `stopped`."""

    mode: str
    sessions: int
    """Active visitors that the origin can take."""
    limit: int
    """Until the next step: as many as are inside, and those whom the law admits."""
    stopped: bool
    reason: str
    measured_ms: int
    """When the last window was measured."""
    proposal: Proposal | None = None

    def unmeasured(self, now_ms: int) -> bool:
        return now_ms - self.measured_ms >= UNMEASURED_MS


@dataclass(frozen=True, slots=True)
class CapacityNote:
    """A change of a room that follows its origin, for the audit log."""

    sessions: int
    reason: str


def first_capacity(room: Room) -> int:
    start = int(START_SHARE * room.total_active_users)
    return min(room.total_active_users, max(1, room.floor, start))


class LimitInForce(NamedTuple):
    sessions: int | None
    """None: the operator's."""
    stopped: bool = False


def limit_in_force(room: Room, state: CapacityState | None) -> LimitInForce:
    """`state` is of the room's own mode, or fixed; None: not known yet."""
    if room.capacity != "follow" or (state is not None and state.mode == "fixed"):
        return LimitInForce(None)
    if state is None:
        return LimitInForce(first_capacity(room))
    return LimitInForce(max(1, state.limit), state.stopped)


class RoomCapacity:
    """`room` is the room with its event in effect."""

    def __init__(self, room: Room, last: CapacityState | None, active: int, now_ms: int) -> None:
        """`last`: of another process that led before, in the same mode."""
        self._room = room
        if room.capacity == "suggest":
            start = room.total_active_users
        else:
            start = last.sessions if last else max(first_capacity(room), active)
        self._law = CapacityLaw(_limits(room), start, now_ms if last and last.stopped else 0)
        self._held_limit = last.limit if last else LIMIT_MAX
        self._measured_ms = now_ms
        self._measured = False
        self._proposal: Proposal | None = None
        self._noted = last.sessions if last else 0
        self._noted_ms = 0
        self._noted_stop = bool(last and last.stopped)

    @property
    def mode(self) -> str:
        return self._room.capacity

    def configure(self, room: Room) -> None:
        if room != self._room:
            self._room = room
            self._law.configure(_limits(room))

    def step(
        self, window: Window | None, now_ms: int, missing: str = "no measurements"
    ) -> CapacityState:
        target = self._law.step(window, now_ms, missing)
        if window is not None:
            self._measured, self._measured_ms = True, now_ms
        elif not self._measured:  # the law does not know yet how many are inside
            limit = min(self._held_limit, target.sessions)
            target = CapacityTarget(
                target.sessions, min(1, target.per_minute), limit, target.reason
            )
        if self.mode == "suggest":
            self._propose(target, window, now_ms)
        return CapacityState(
            mode=self.mode,
            sessions=target.sessions,
            limit=target.limit,
            stopped=target.per_minute == 0,
            reason=self._reason(target.reason),
            measured_ms=self._measured_ms,
            proposal=self._proposal,
        )

    def _reason(self, reason: str) -> str:
        """Only a room that follows its origin does what the law says."""
        if self.mode == "follow" or not self._law.stopped:
            return reason
        return f"{reason.rpartition(': ')[0] or reason}: admissions would be stopped"

    def note(self, state: CapacityState, now_ms: int) -> CapacityNote | None:
        """What the audit log should say about this step; growth and steering are summed up."""
        if self.mode != "follow":
            return None
        before, since_ms = self._noted, now_ms - self._noted_ms
        grown = state.sessions - before
        large = grown >= max(1, CHANGE_LEAST * before) and since_ms >= NOTED_MS
        cut = grown <= -max(1, CUT_LEAST * before)
        if not (
            cut
            or state.stopped is not self._noted_stop
            or large
            or (grown and since_ms >= SMALL_NOTED_MS)
        ):
            return None
        resumed = self._noted_stop and not state.stopped
        self._noted, self._noted_ms, self._noted_stop = state.sessions, now_ms, state.stopped
        reason = state.reason
        seen = reason.rpartition(": ")[0] or reason
        if resumed:
            reason = f"{seen}: admissions go on with a limit of {state.sessions}"
        elif grown and not cut and not state.stopped:
            reason = (
                f"{seen}: {before} → {state.sessions}" if before else "begins to follow the origin"
            )
        return CapacityNote(state.sessions, reason[:500])

    def _propose(self, target: CapacityTarget, window: Window | None, now_ms: int) -> None:
        configured, known = self._room.total_active_users, self._proposal
        if known and now_ms >= known.until_ms:
            known = None
        if abs(target.sessions - configured) < CHANGE_LEAST * configured:
            known = None
        elif (
            window is not None
            and window.documents.total + window.failed
            and (
                known is None
                or abs(target.sessions - known.sessions) >= CHANGE_LEAST * known.sessions
            )
        ):
            known = Proposal(target.sessions, self._reason(target.reason), now_ms + PROPOSAL_MS)
        self._proposal = known


def _limits(room: Room) -> OperatorLimits:
    beyond = SUGGESTED_MOST if room.capacity == "suggest" else 1
    return OperatorLimits(
        objective_ms=room.objective_ms,
        floor=min(room.floor, room.total_active_users),
        total_active_users=min(LIMIT_MAX, beyond * room.total_active_users),
        new_users_per_minute=min(LIMIT_MAX, beyond * room.new_users_per_minute),
    )
