"""What pages are made from: the API's use cases, the state of the process, and the sessions."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, Protocol

from anyio import from_thread

from greenroom.configuration.explain_request import Explains
from greenroom.configuration.state import (
    DataCenterView,
    Observed,
    ProcessState,
    RoomState,
)
from greenroom.configuration.zones import OriginProblems
from greenroom.dashboard.room_peaks import PeakCache
from greenroom.model.ticket_key import TicketKey
from greenroom.web.pages.parts import PagePart
from greenroom.web.pages.request import PageRequest

FRESH_MS = 500
"""Shared by several requests: the state of 1,000 rooms costs some milliseconds of the event loop.
"""


class LiveState:
    """Reads the state at most twice a second. Call it inside the event loop."""

    def __init__(self, observed: Observed, now_ms: Callable[[], int]) -> None:
        self._observed = observed
        self._now_ms = now_ms
        self._taken: tuple[int, ProcessState, Mapping[str, RoomState]] | None = None

    def look(self) -> tuple[ProcessState, Mapping[str, RoomState]]:
        now_ms = self._now_ms()
        if self._taken is None or not 0 <= now_ms - self._taken[0] < FRESH_MS:
            state = self._observed.state()
            self._taken = now_ms, state, {room.room.id: room for room in state.rooms}
        return self._taken[1], self._taken[2]


class TicketKeys(Protocol):
    """Both methods block, and raise StorageFailed and InvalidConfig."""

    def every(self) -> list[TicketKey]:
        """Newest first."""

    def rotate(self) -> TicketKey:
        """Returns the new key."""


class DryRunState(NamedTuple):
    """The request, the share done (0 to 1), and one result for each of the settings, or why there
    are none.
    """

    room_id: str
    wanted: Mapping[str, Any]
    share: float = 0.0
    results: list[dict[str, Any]] | None = None
    problem: str = ""


class ExampleWait(NamedTuple):
    """The longest wait of an example crowd: visitors within so many minutes, and the mean visit in
    seconds.

    `wait_s` is None while it is being simulated, and when unknown (`ended`); `least`: it is a lower
    bound.
    """

    visitors: int
    minutes: int
    visit_s: float
    wait_s: float | None = None
    least: bool = False
    ended: bool = False


class DryRuns(Protocol):
    def start(self, room_id: str, wanted: Mapping[str, Any]) -> str | None:
        """Returns the id of the new run; None while too many wait. Raises InvalidConfig."""

    def find(self, run_id: str) -> DryRunState | None:
        """None when there is no such run any more."""

    def example(self, settings: Mapping[str, Any]) -> ExampleWait:
        """Starts the simulation at the first call."""


DATA_CENTERS = PagePart[DataCenterView]("data centers")
DRY_RUNS = PagePart[DryRuns]("dry runs")
EXPLAINS = PagePart[Explains]("explains")
FETCH_LOGO = PagePart[Callable[[str], str]]("fetch logo")
"""(address) -> the picture as a `data:` URL; blocks. Raises GreenroomError with the reason."""
LIVE = PagePart[LiveState]("live")
ORIGIN_PROBLEMS = PagePart[OriginProblems]("origin problems")
PEAKS = PagePart[PeakCache]("peaks")
TICKET_KEYS = PagePart[TicketKeys]("ticket keys")


def process_state(page: PageRequest) -> ProcessState:
    """At most half a second old. Only in functions that run in a thread."""
    return from_thread.run_sync(page.parts[LIVE].look)[0]


def room_state(page: PageRequest, room_id: str) -> RoomState | None:
    """None while no process here serves the room. Only in functions that run in a thread."""
    return from_thread.run_sync(page.parts[LIVE].look)[1].get(room_id)
