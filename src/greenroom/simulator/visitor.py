from collections import deque
from typing import NamedTuple, Protocol

from greenroom.admission.ledger.ledger import Ledger
from greenroom.admission.ledger.tally import Taken
from greenroom.admission.ledger_time import Expectation, LedgerTime
from greenroom.admission.records import LedgerMemory
from greenroom.admission.sync_schedule import SyncSchedule
from greenroom.model.line_table import LineTable
from greenroom.model.room import Room
from greenroom.model.visit import Outcome


class SimulatedVisitor:
    """`id`, `key`, `home`, `checked_ms` and `served_ms` are in the ticket; the rest is ground truth."""

    __slots__ = (
        "absent", "active", "ahead", "asked", "attempted_ms", "came_ms", "center", "checked_ms", "done_ms", "drops_ms",
        "entered_ms", "failed_ms", "first_guess", "first_ms", "gap_ms", "gives_up_ms", "guess", "had_room", "home", "id",
        "inside_until_ms", "key", "latency_ms", "number", "on_trust", "once", "overtaken_ms",
        "pauses", "plan", "promised_ms", "reenters", "refresh_ms", "reloads", "renewed_ms", "returns", "safe_until_ms",
        "served_ms", "taken_ms", "tries", "trusted", "uses", "waits",
    )  # fmt: skip

    def __init__(self, number: int, center: int, came_ms: int) -> None:
        self.number = number
        self.id = number.to_bytes(12, "big")
        self.key = 0
        self.home = center
        self.center = center
        self.checked_ms = self.served_ms = 0
        self.attempted_ms = 0
        self.refresh_ms = 0
        self.came_ms = came_ms
        self.first_ms = came_ms  # when a data center was reached first
        self.entered_ms = 0  # 0: not yet
        self.done_ms = 0  # the last page is before this
        self.gives_up_ms = 0  # 0: never
        self.once = self.pauses = self.reloads = self.waits = False
        self.asked = self.had_room = (
            False  # only to show the ticket, as far as the visitor can see; on arrival, for all alike
        )
        self.absent = self.returns = False  # will close the page; brings a ticket of long ago
        self.gap_ms = self.drops_ms = (
            0  # between two tries at least; when the connection of this try breaks, 0: it does not
        )
        self.tries = 0
        self.plan = 0  # number of the next try that is planned; earlier plans are void
        self.active = self.uses = self.trusted = self.on_trust = False
        """`trusted`: the last page was served without a unit here; `on_trust`: counted so."""
        self.failed_ms = self.safe_until_ms = self.taken_ms = 0
        """When a document last failed; until when that page called the turn safe; when the kept turn
        was taken.
        """
        self.reenters = False
        self.ahead = -1
        self.first_guess: tuple[int, float, float, float] | None = (
            None  # on the first page, before the place is real
        )
        self.guess: tuple[int, float, float, float] | None = (
            None  # when joining: moment, quartiles in seconds
        )
        self.inside_until_ms = 0  # last page plus session duration: active until then
        self.renewed_ms = 0  # the last renewal of the session, as the last page said it
        self.promised_ms = 0  # the unit is held at least until then
        self.latency_ms = 0
        self.overtaken_ms = -1

    @property
    def wait_s(self) -> float:
        return (self.entered_ms - self.came_ms) / 1000


class OutcomeHandler(Protocol):
    """Called now, or after a call to the coordinator."""

    def __call__(self, visitor: SimulatedVisitor, outcome: Outcome) -> None: ...


class CrowdListener(Protocol):
    """Must change nothing. Times are true milliseconds."""

    def answered(self, visitor: SimulatedVisitor, outcome: Outcome, now_ms: int) -> None: ...

    def left(self, visitor: SimulatedVisitor, now_ms: int) -> None: ...


class CenterLook(NamedTuple):
    """One data center's sessions and places in line; `tally` is None where it keeps none."""

    active: int
    queued: int
    tally: Taken | None = None


class SystemUnderTest(Protocol):
    """Centers are numbers from 0."""

    global_calls: int
    messages: int

    def skew_ms(self, center: int) -> int: ...

    def open(self, center: int) -> bool: ...

    def arrive(self, visitor: SimulatedVisitor, then: OutcomeHandler) -> None: ...

    def arrive_provisionally(self, visitor: SimulatedVisitor, then: OutcomeHandler) -> None: ...

    def poll(self, visitor: SimulatedVisitor, then: OutcomeHandler) -> None: ...

    def peek(self, visitor: SimulatedVisitor, then: OutcomeHandler) -> None: ...

    def line_table(self, center: int) -> LineTable | None: ...

    def view(self, visitor: SimulatedVisitor, then: OutcomeHandler) -> None: ...

    def leave(self, visitor: SimulatedVisitor) -> None: ...

    def fail(self, visitor: SimulatedVisitor) -> Outcome: ...

    def look(self, center: int) -> CenterLook: ...

    def shut(self, center: int, change: int) -> None: ...

    def part(self, center: int) -> None: ...

    def lose_ledger(self, center: int) -> None: ...

    def restore_old(self, center: int) -> None: ...

    def silence(self, change: int) -> None: ...

    def lose_coordinator(self) -> None: ...

    def worker_dies(self, center: int) -> None: ...

    def step_clock(self, center: int, step_ms: int) -> None: ...

    def configure(self, room: Room) -> None: ...

    def enlist(self, center: int, listed: bool) -> None: ...

    def draw(self) -> tuple[dict[bytes, int], int]:
        """Returns the new keys, and the key below which all others come after them."""


CONTACTS_TO_FOLLOW = 3
"""Syncs until a changed limit is in force: it is announced, permits and freed units are returned, the
disconnected rate applies.
"""


NEVER_READ = (0, 0, 0)


class Behind(NamedTuple):
    """`calls` is for requests that cannot wait."""

    visitor: SimulatedVisitor
    then: OutcomeHandler
    since_ms: int
    calls: int = 0


class Center:
    __slots__ = (
        "answered", "awaits", "batch", "behind", "called_until_ms", "contacts", "disk", "down", "expectation",
        "for_newcomers", "ledger", "listed", "name", "read_at", "schedule", "skew_ms", "table", "time", "turn",
    )  # fmt: skip

    def __init__(self, name: str, ledger: Ledger, skew_ms: int, schedule: SyncSchedule) -> None:
        self.name = name
        self.ledger = ledger
        self.schedule = schedule
        self.turn = 0
        """An older turn is skipped."""
        self.batch = 0
        self.awaits = False
        self.skew_ms = skew_ms
        self.time = LedgerTime()
        self.expectation = Expectation()
        self.read_at = NEVER_READ
        """True time, skew and shift of the newest reading, valid for its millisecond."""
        self.down = 0
        self.listed = True
        self.contacts: deque[int] = deque([0] * CONTACTS_TO_FOLLOW, CONTACTS_TO_FOLLOW)
        """True times of the newest applied answers to new reports."""
        self.answered = (0, 0)
        """Epoch and number of the newest report that was answered."""
        self.table: tuple[int, LineTable] | None = None
        self.disk: LedgerMemory | None = None
        self.called_until_ms = 0
        self.behind: list[Behind] = []
        self.for_newcomers = True

    def hear(self, applied: int, answered: tuple[int, int], now_ms: int) -> None:
        if self.ledger.lease.applied > applied and answered > self.answered:
            self.answered = answered
            self.contacts.append(now_ms)
