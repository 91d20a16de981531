from collections import deque
from typing import NamedTuple

from greenroom.admission.ledger.ledger import Ledger
from greenroom.admission.ledger_time import Expectation, LedgerTime
from greenroom.admission.records import LedgerMemory
from greenroom.admission.sync_schedule import SyncSchedule
from greenroom.model.line_table import LineTable
from greenroom.simulator.visitor import OutcomeHandler, SimulatedVisitor

CONTACTS_TO_FOLLOW = 3
"""Until a changed limit shows: it is announced, permits and freed units are given back, and the
rate behind a cut is in force.
"""


class Behind(NamedTuple):
    """`calls` is for requests that cannot wait."""

    visitor: SimulatedVisitor
    then: OutcomeHandler
    since_ms: int
    calls: int = 0


class Center:
    __slots__ = (
        "answered", "awaits", "batch", "behind", "called_until_ms", "contacts", "disk", "down", "expectation",
        "for_newcomers", "ledger", "listed", "name", "schedule", "skew_ms", "table", "time", "turn",
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
