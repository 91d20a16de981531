"""Parts of the process that the pages of rooms, processes and keys use."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, Protocol

from greenroom.dashboard.room_peaks import PeakCache
from greenroom.keys.ticket_keys import TicketKey
from greenroom.web.pages.request import PagePart


class TicketKeys(Protocol):
    """Methods block, and raise StorageFailed and InvalidConfig."""

    def every(self) -> list[TicketKey]: ...

    def rotate(self) -> TicketKey: ...


class DryRunState(NamedTuple):
    """`share`: 0 to 1."""

    room_id: str
    wanted: Mapping[str, Any]
    share: float = 0.0
    results: list[dict[str, Any]] | None = None
    problem: str = ""


class ExampleWait(NamedTuple):
    """`wait_s` is None during the simulation, and when unknown (`ended`). `least`: it is a lower
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
        """Returns None when too many wait. Raises InvalidConfig."""

    def find(self, run_id: str) -> DryRunState | None: ...

    def done(self, room_id: str) -> bool:
        """Whether a run of the room has results here."""

    def example(self, settings: Mapping[str, Any]) -> ExampleWait:
        """Starts the simulation when called first."""


DRY_RUNS = PagePart[DryRuns]("dry runs")
FETCH_LOGO = PagePart[Callable[[str], str]]("fetch logo")
"""Returns the picture as a `data:` URL. Blocks. Raises GreenroomError."""
PEAKS = PagePart[PeakCache]("peaks")
TICKET_KEYS = PagePart[TicketKeys]("ticket keys")
