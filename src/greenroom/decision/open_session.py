"""The session of a WebSocket, event stream, download or upload. Every half q the ledger renews it
or reports its end; the stream then ends within q, or just before a known end. A provisional session
becomes a full one just before its end, because its client is still connected.
"""

from typing import Protocol

from greenroom.decision.data_centers import DataCenters
from greenroom.decision.room_schedule import CompiledRoom
from greenroom.decision.room_table import RoomTable
from greenroom.decision.verdict import Forward
from greenroom.model.visit import NO_HOME, Outcome, Standing, Ticket

LOOKED_AHEAD_MS = 600
"""Streams are checked twice a second; the end must not fall between two checks."""

FULFILLED_AHEAD_MS = 1_500
"""Two checks and a slow ledger."""

SPREAD = 16
"""Steps over a quarter of q, so that streams that began together are looked at apart."""


class SessionServices(Protocol):
    @property
    def table(self) -> RoomTable: ...

    @property
    def data_centers(self) -> DataCenters | None: ...

    def now_ms(self) -> int:
        """Unix time, as the ledgers tell it."""


class OpenSession:
    """Call `is_over` about twice a second, and `finish` afterwards."""

    __slots__ = (
        "_asking",
        "_ended",
        "_ends_ms",
        "_forward",
        "_here",
        "_looked",
        "_next_ms",
        "_provisional",
        "_services",
        "_spread",
    )

    def __init__(self, forward: Forward, services: SessionServices, place: int = 0) -> None:
        """`forward` must have a ticket. `place` spreads the looks."""
        self._forward = forward
        self._services = services
        self._spread = place % SPREAD
        self._ends_ms = forward.expires_ms
        self._provisional = forward.provisional
        self._next_ms = 0
        self._asking = self._ended = self._looked = False
        self._here = False  # the ledger here has said that it knows the session

    def is_over(self) -> bool:
        """Never waits for the ledger: its answer counts at the next call."""
        services, forward = self._services, self._forward
        schedule, ticket = services.table.rooms.get(forward.room_id), forward.ticket
        if schedule is None or ticket is None:
            return False
        now_ms = services.now_ms()
        compiled = schedule.at(now_ms)
        room = compiled.room
        if room.suspended:
            return False
        if not self._next_ms:
            self._wait(compiled, now_ms)
        elif now_ms >= self._next_ms and not self._asking:
            self._look(compiled, ticket, now_ms)
        return (
            self._ended or now_ms + LOOKED_AHEAD_MS >= self._ends_ms
        ) and not room.keep_streams_open

    def finish(self) -> None:
        """Ends the checks; the session goes on."""
        services, ticket = self._services, self._forward.ticket
        schedule = services.table.rooms.get(self._forward.room_id)
        if (
            self._looked
            and not self._ended
            and not self._provisional
            and schedule is not None
            and ticket is not None
        ):
            schedule.now.ledger.view(ticket.id, _unheard)

    def _wait(self, compiled: CompiledRoom, now_ms: int) -> None:
        half_ms = compiled.room.renewal_age_ms // 2
        ahead_ms = FULFILLED_AHEAD_MS if self._provisional else 0
        first = not self._next_ms
        self._next_ms = now_ms + half_ms + (self._spread * half_ms // (2 * SPREAD) if first else 0)
        if ahead_ms:
            self._next_ms = min(self._next_ms, max(now_ms, self._ends_ms - ahead_ms))

    def _look(self, compiled: CompiledRoom, ticket: Ticket, now_ms: int) -> None:
        self._asking = self._looked = True
        fulfils = now_ms + FULFILLED_AHEAD_MS >= self._ends_ms

        def answered(outcome: Outcome) -> None:
            data_centers = (
                self._services.data_centers if not self._here and ticket.home != NO_HOME else None
            )
            if (
                outcome.standing is Standing.GONE and data_centers is not None
            ):  # on its way here, perhaps
                home = data_centers.name(ticket.home)
                compiled.ledger.visit(ticket, home, lambda found: self._heard(compiled, found))
                return
            self._here = self._here or outcome.standing is Standing.ACTIVE
            if fulfils and outcome.standing is Standing.ACTIVE:
                self._provisional = False
            self._heard(compiled, outcome)

        if self._provisional and not fulfils:
            compiled.ledger.peek(ticket.id, ticket.key, answered)
        else:
            compiled.ledger.view(ticket.id, answered)

    def _heard(self, compiled: CompiledRoom, outcome: Outcome) -> None:
        self._asking = False
        if outcome.standing in (Standing.ACTIVE, Standing.ADMITTED):
            self._ends_ms = outcome.expires_ms
        elif not outcome.storage_failed:
            self._ended = True
        self._wait(compiled, self._services.now_ms())


def _unheard(_: Outcome) -> None: ...
