"""Parts of the process that the pages of rooms, processes and keys use."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, Protocol

from greenroom.dashboard.room_peaks import PeakCache
from greenroom.keys.ticket_keys import TicketKey
from greenroom.web.pages.request import PagePart


class TicketKeys(Protocol):
    """Both methods block, and raise StorageFailed and InvalidConfig."""

    def every(self) -> list[TicketKey]: ...

    def rotate(self) -> TicketKey: ...


class DryRunState(NamedTuple):
    """The share done is 0 to 1."""

    room_id: str
    wanted: Mapping[str, Any]
    share: float = 0.0
    results: list[dict[str, Any]] | None = None
    problem: str = ""


class ExampleWait(NamedTuple):
    """`wait_s` is None while it is simulated, and when unknown (`ended`); `least`: a lower
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
        """None while too many wait. Raises InvalidConfig."""

    def find(self, run_id: str) -> DryRunState | None: ...

    def done(self, room_id: str) -> bool:
        """Whether one of the room has results here."""

    def example(self, settings: Mapping[str, Any]) -> ExampleWait:
        """Starts the simulation at the first call."""


DRY_RUNS = PagePart[DryRuns]("dry runs")
FETCH_LOGO = PagePart[Callable[[str], str]]("fetch logo")
"""The picture as a `data:` URL; blocks. Raises GreenroomError."""
PEAKS = PagePart[PeakCache]("peaks")
TICKET_KEYS = PagePart[TicketKeys]("ticket keys")
