"""Parts of the process that the pages of rooms, processes and keys use."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, Protocol

from greenroom.configuration.state import (
    DataCenterView,
)
from greenroom.dashboard.room_peaks import PeakCache
from greenroom.model.ticket_key import TicketKey
from greenroom.web.pages.parts import PagePart


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
FETCH_LOGO = PagePart[Callable[[str], str]]("fetch logo")
"""(address) -> the picture as a `data:` URL; blocks. Raises GreenroomError with the reason."""
PEAKS = PagePart[PeakCache]("peaks")
TICKET_KEYS = PagePart[TicketKeys]("ticket keys")
