"""What the pages of the configuration use besides it: the state of the process, and its answers."""

from collections.abc import Callable, Mapping

from anyio import from_thread

from greenroom.configuration.explain_request import Explains
from greenroom.configuration.state import Observed, ProcessState, RoomState
from greenroom.configuration.zones import OriginProblems
from greenroom.web.pages.request import PagePart, PageRequest

FRESH_MS = 500
"""The state of 1,000 rooms costs milliseconds of the event loop."""


class LiveState:
    """Reads the state at most twice a second. Call it inside the event loop."""

    def __init__(self, observed: Observed, now_ms: Callable[[], int]) -> None:
        self.observed = observed
        self._now_ms = now_ms
        self._taken: tuple[int, ProcessState, Mapping[str, RoomState]] | None = None

    def look(self) -> tuple[ProcessState, Mapping[str, RoomState]]:
        now_ms = self._now_ms()
        if self._taken is None or not 0 <= now_ms - self._taken[0] < FRESH_MS:
            state = self.observed.state()
            self._taken = now_ms, state, {room.room.id: room for room in state.rooms}
        return self._taken[1], self._taken[2]


EXPLAINS = PagePart[Explains]("explains")
LIVE = PagePart[LiveState]("live")
ORIGIN_PROBLEMS = PagePart[OriginProblems]("origin problems")


def process_state(page: PageRequest) -> ProcessState:
    """Only in functions that run in a thread."""
    return from_thread.run_sync(page.parts[LIVE].look)[0]


def room_state(page: PageRequest, room_id: str) -> RoomState | None:
    """None while no process here serves the room. Only in functions that run in a thread."""
    return from_thread.run_sync(page.parts[LIVE].look)[1].get(room_id)
