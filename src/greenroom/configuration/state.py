"""The state of a running greenroom: a frozen snapshot, taken on request."""

from collections.abc import Iterable, Mapping
from typing import NamedTuple, Protocol, Self

import msgspec
from msgspec import structs

from greenroom.admission.schedule import Effective, effective
from greenroom.capacity.exported import Exported
from greenroom.capacity.histogram import Histogram
from greenroom.capacity.room_capacity import CapacityState
from greenroom.decision.room_view import Figures
from greenroom.errors import Problem
from greenroom.model.configuration import Configuration
from greenroom.model.room import Room


class DrawState(msgspec.Struct, frozen=True):
    """Times are Unix milliseconds."""

    id: str
    event_id: str
    event: str
    commitment: str
    prequeue_start_ms: int
    event_start_ms: int
    held: bool = False


class TracedAnswer(NamedTuple):
    trace_id: str  # hexadecimal, as in `traceparent`
    span_id: str
    seconds: float
    at_s: float  # since 1970


class DocumentState(msgspec.Struct, frozen=True):
    """Documents of admitted visitors that this process forwarded, since its start."""

    answered: Histogram
    failed: int
    traced: Mapping[int, TracedAnswer] = {}  # the newest by bucket


class RoomState(msgspec.Struct, frozen=True):
    """`now` is the room with its event in effect."""

    room: Room
    figures: Figures
    requests: Mapping[str, int]
    now: Effective | None = None
    draws: tuple[DrawState, ...] = ()
    # healthy, unhealthy or unknown, by the health checks on its origin; empty: there are none
    origin: str = ""
    documents: DocumentState | None = None
    capacity: CapacityState | None = None
    instances: int = 0  # of its origin, as counted by a caller of this process


def room_now(known: Configuration, room_id: str, state: RoomState | None, now_ms: int) -> Effective:
    """The room with its event as a process has it in effect, else as it is configured."""
    if state and state.now:
        return state.now
    return effective(known.room_in_operation(room_id), known.events_of(room_id), now_ms)


class ConfigState(msgspec.Struct, frozen=True):
    """`pending` changes need a restart."""

    file: str = ""
    loaded_ms: int = 0
    reloads: int = 0
    failures: int = 0
    problems: tuple[Problem, ...] = ()
    pending: tuple[str, ...] = ()


class StoreState(msgspec.Struct, frozen=True):
    """`revision` is in use, -1 before the first; `tried` is the newest tried, `problems` why it was
    refused. `from_copy`: started with the copy in the data directory.
    """

    name: str = ""
    reachable: bool = True
    revision: int = -1
    tried: int = -1
    loaded_ms: int = 0
    taken: int = 0
    refusals: int = 0
    from_copy: bool = False
    problems: tuple[Problem, ...] = ()

    def of_revision(self, revision: int, now_ms: int, *, from_copy: bool = False) -> Self:
        problems = self.problems if from_copy else ()
        taken = self.taken + (self.revision >= 0)
        changed = {
            "revision": revision,
            "tried": revision,
            "loaded_ms": now_ms,
            "taken": taken,
            "from_copy": from_copy,
        }
        return structs.replace(self, **changed, problems=problems)

    def refused(self, revision: int, problems: tuple[Problem, ...]) -> Self:
        """Counts a revision once, however often it is tried."""
        again = revision == self.tried and problems == self.problems
        return structs.replace(
            self, tried=revision, problems=problems, refusals=self.refusals + (not again)
        )

    def lost(self) -> Self:
        return structs.replace(self, reachable=False)

    def reached(self) -> Self:
        return structs.replace(self, reachable=True)


class TripState(msgspec.Struct, frozen=True):
    questions: int = 0
    trips: int = 0  # round trips: many questions share one
    failed: int = 0  # trips without an answer in time
    seconds: float = 0.0  # of the trips that were answered, together


class LostState(msgspec.Struct, frozen=True):
    held: int  # units in use for as long as it counts as alive
    returning: int  # units that are free when its last session must have ended
    free_s: float  # in how many seconds that is


class SyncState(msgspec.Struct, frozen=True):
    """`syncing`: this process syncs its data center; `answered_s`: since the newest answer.
    `leader`: it is the coordinator, and `silent_s` has the silence of each data center.
    """

    data_center: str
    syncing: bool
    leader: bool
    holder: str  # of the leader lease, as far as known here
    answered_s: float | None
    cut_off: bool
    batches: int  # sent by this process
    unanswered: int
    answers: int  # given by this process as the coordinator
    silent_s: Mapping[str, float]
    trips: "TripState | None" = None  # None: not to a Redis
    figures_known: bool = True
    data_centers: tuple[str, ...] = ()  # all on the list
    lost: Mapping[str, LostState] = {}  # of the silent ones, where this process is the coordinator


class HealthState(msgspec.Struct, frozen=True):
    """`checks`: (name, zone, status)."""

    checks: tuple[tuple[str, str, str], ...] = ()
    leads: bool = False
    agents: int = 0
    lost: int = 0
    probes: int = 0
    running: int = 0
    skipped: int = 0
    impossible: int = 0
    late_ms: int = 0


class AnalyticsState(msgspec.Struct, frozen=True):
    """Since the start. `problem` is empty while all is well."""

    waiting_minutes: int = 0
    dropped_minutes: int = 0
    written_parts: int = 0
    failures: int = 0
    written_s: float = 0.0
    problem: str = ""
    collector: bool = True  # this process has the store open and answers questions


class NotificationState(msgspec.Struct, frozen=True):
    waiting: int = 0
    oldest_s: float = 0.0  # age of the oldest that is due, 0 when there is none


class ProcessState(msgspec.Struct, frozen=True):
    """`phase` is starting, serving or draining; times are Unix milliseconds."""

    version: str
    phase: str
    now_ms: int
    started_ms: int
    listen: str
    data: str
    config: ConfigState
    rooms: tuple[RoomState, ...]
    gateway: Iterable[tuple[str, float]]
    store: StoreState = StoreState()
    # rooms, zones, lists and the like that cannot be used; the rest of the configuration runs
    faults: tuple[Problem, ...] = ()
    sync: SyncState | None = None
    health: HealthState = HealthState()
    analytics: AnalyticsState | None = None
    notifications: NotificationState = NotificationState()
    compiled: bool = False  # the compiled wheel is installed
    clock_ahead_ms: int = 0  # of the machine's wall clock

    @property
    def ready(self) -> bool:
        return self.phase == "serving"


class Observed(Protocol):
    def state(self) -> ProcessState: ...

    def count_instances(self, room_id: str, instances: int) -> None:
        """How many instances of the room's origin run now."""

    async def push_figures(self, room: Room, found: Mapping[str, Exported]) -> None:
        """About the room's origin, by instance. Raises FiguresRefused or StorageFailed."""

    async def give_up(self, data_center: str) -> None:
        """In the event loop: nothing runs there any more. Raises StorageFailed."""
