"""One simulated visitor: the state of the browser, and the true state of the person."""

from typing import NamedTuple, Protocol

from greenroom.admission.ledger.tally import Taken
from greenroom.model.line_table import LineTable
from greenroom.model.room import Room
from greenroom.model.visit import Outcome


class SimulatedVisitor:
    """`id`, `key`, `home` and `checked_ms` are what the ticket carries; only the simulation knows
    the rest.
    """

    __slots__ = (
        "active", "ahead", "attempted_ms", "came_ms", "center", "checked_ms", "done_ms", "drops_ms", "entered_ms", "first_guess",
        "first_ms", "gap_ms", "gives_up_ms", "guess", "home", "id", "inside_until_ms", "key", "latency_ms", "number", "on_trust", "once",
        "overtaken_ms", "pauses", "plan", "promised_ms", "refresh_ms", "reloads", "renewed_ms", "tries", "trusted", "uses", "waits",
    )  # fmt: skip

    def __init__(self, number: int, center: int, came_ms: int) -> None:
        self.number = number
        self.id = number.to_bytes(12, "big")
        self.key = 0
        self.home = center
        self.center = center
        self.checked_ms = 0
        self.attempted_ms = 0
        self.refresh_ms = 0
        self.came_ms = came_ms
        self.first_ms = came_ms  # when a data center was reached first
        self.entered_ms = 0  # 0: not yet
        self.done_ms = 0  # the last page is before this
        self.gives_up_ms = 0  # 0: never
        self.once = self.pauses = self.reloads = self.waits = False
        self.gap_ms = self.drops_ms = (
            0  # between two tries at least; when the connection of this try breaks, 0: it does not
        )
        self.tries = 0
        self.plan = 0  # number of the next try that is planned; earlier plans are void
        self.active = self.uses = self.trusted = self.on_trust = False
        """`trusted`: the last page was served without a unit here; `on_trust`: active, and counted
        as such.
        """
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
        """From coming to entering."""
        return (self.entered_ms - self.came_ms) / 1000


class OutcomeHandler(Protocol):
    """Hears the answer to one request: now, or after a call across the world."""

    def __call__(self, visitor: SimulatedVisitor, outcome: Outcome) -> None:
        """Times of the outcome are those of the data center that was asked."""


class CrowdListener(Protocol):
    """Hears what the crowd is told, and changes nothing. Times are true milliseconds."""

    def answered(self, visitor: SimulatedVisitor, outcome: Outcome, now_ms: int) -> None:
        """One request of a visitor was answered; the visitor does not know of it yet."""

    def left(self, visitor: SimulatedVisitor, now_ms: int) -> None:
        """A visitor has ended the session."""


class CenterLook(NamedTuple):
    """One data center at this moment: sessions, and places in line; `tally` None: it keeps none."""

    active: int
    queued: int
    tally: Taken | None = None


class SystemUnderTest(Protocol):
    """The system that decides: greenroom's protocol, or one of the published methods of dividing
    slots. Centers are numbers from 0.
    """

    global_calls: int
    """Calls across the world that a visitor waited for."""
    messages: int
    """Sent in the background by data centers."""

    def skew_ms(self, center: int) -> int:
        """By how much this data center's clock is ahead."""

    def open(self, center: int) -> bool:
        """Whether visitors can reach this data center."""

    def arrive(self, visitor: SimulatedVisitor, then: OutcomeHandler) -> None:
        """A newcomer at `visitor.center`; gives the visitor a key."""

    def arrive_provisionally(self, visitor: SimulatedVisitor, then: OutcomeHandler) -> None:
        """A request without a ticket at `visitor.center` that cannot wait."""

    def poll(self, visitor: SimulatedVisitor, then: OutcomeHandler) -> None:
        """A waiting visitor refreshes in time."""

    def peek(self, visitor: SimulatedVisitor, then: OutcomeHandler) -> None:
        """A waiting visitor refreshes too early."""

    def line_table(self, center: int) -> LineTable | None:
        """What this data center tells everybody, at most a second old; None: there is no table."""

    def view(self, visitor: SimulatedVisitor, then: OutcomeHandler) -> None:
        """An admitted visitor requests a page."""

    def leave(self, visitor: SimulatedVisitor) -> None:
        """The session ends."""

    def look(self, center: int) -> CenterLook:
        """A data center as its processes see it; the tally has what came since the last look."""

    def shut(self, center: int, change: int) -> None:
        """The data center goes away (+1) or is back (-1)."""

    def part(self, center: int) -> None:
        """The last process of this data center is told to stop."""

    def lose_ledger(self, center: int) -> None:
        """Everything that this data center remembers is gone."""

    def restore_old(self, center: int) -> None:
        """The data center begins again with what its disk had some time ago."""

    def silence(self, change: int) -> None:
        """The coordinator stops answering (+1), or answers again (-1)."""

    def lose_coordinator(self) -> None:
        """The coordinator loses its state."""

    def worker_dies(self, center: int) -> None:
        """One process of this data center ends, another one begins."""

    def step_clock(self, center: int, step_ms: int) -> None:
        """The clock of this data center's server is stepped by so much."""

    def configure(self, room: Room) -> None:
        """The operator writes down other settings."""

    def enlist(self, center: int, listed: bool) -> None:
        """The operator takes the data center off the list, or puts it on the list again."""

    def draw(self) -> tuple[dict[bytes, int], int]:
        """The places of all who wait are drawn. Their new keys, and the key below which all others
        come after them.
        """
