"""The state of a running greenroom: one frozen snapshot, taken on request."""

from collections.abc import Iterable, Mapping
from typing import Protocol, Self

import msgspec
from msgspec import structs

from greenroom.admission.schedule import Effective
from greenroom.errors import Problem
from greenroom.model.room import Room
from greenroom.model.visit import Estimate


class Figures(msgspec.Struct, frozen=True):
    """One room's figures at this moment. All go up and down.

    `last_minute` is how many were admitted within the last 60 seconds. `estimate` is for a visitor
    who joins the line now; None means unknown. `storage_failed`: admissions are stopped because the
    ledger cannot be written. `confirms`: new visitors have to show their ticket before they are let
    in.
    """

    active: int = 0
    waiting: int = 0
    last_minute: int = 0
    permits_unused: int = 0
    estimate: Estimate | None = None
    journal_bytes: int = 0
    storage_failed: bool = False
    confirms: bool = False


class DrawState(msgspec.Struct, frozen=True):
    """A draw to be held, or held: what is public of it. Times are Unix milliseconds."""

    id: str
    event_id: str
    event: str
    commitment: str
    prequeue_start_ms: int
    event_start_ms: int
    held: bool = False


class RoomState(msgspec.Struct, frozen=True):
    """One room: what was asked for, what is, and how its requests were answered so far, by result.

    `now` is what its events make of it at this moment; `draws` are those announced, the next one
    first.
    """

    room: Room
    figures: Figures
    requests: Mapping[str, int]
    now: Effective | None = None
    draws: tuple[DrawState, ...] = ()
    # healthy, unhealthy or unknown, by the health checks on its origin; empty: there are none
    origin: str = ""


class ConfigState(msgspec.Struct, frozen=True):
    """Whether the file on disk is what runs. `problems` say why not; `pending` are changes that
    need a restart.
    """

    file: str = ""
    loaded_ms: int = 0
    reloads: int = 0
    failures: int = 0
    problems: tuple[Problem, ...] = ()
    pending: tuple[str, ...] = ()


class StoreState(msgspec.Struct, frozen=True):
    """Whether the newest revision of the configuration store is what runs.

    `revision` is the one that runs, -1 before the first; `tried` the newest one that was tried.
    `problems` say why it is not taken over; `from_copy`: begun with the copy in the data directory.
    Times are Unix milliseconds.
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
        """The state once this revision runs."""
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
        """The state once this revision could not be used: counted once, however often it is tried."""
        again = revision == self.tried and problems == self.problems
        return structs.replace(
            self, tried=revision, problems=problems, refusals=self.refusals + (not again)
        )

    def lost(self) -> Self:
        """The state while the store does not answer."""
        return structs.replace(self, reachable=False)

    def reached(self) -> Self:
        """The state once it answers again."""
        return structs.replace(self, reachable=True)


class TripState(msgspec.Struct, frozen=True):
    """What this process asked of Redis for its visitors, since its start."""

    questions: int = 0
    trips: int = 0  # round trips: many questions share one
    failed: int = 0  # trips without an answer in time
    seconds: float = 0.0  # of the trips that were answered, together


class LostState(msgspec.Struct, frozen=True):
    """What a data center holds, in all rooms, that the coordinator has not heard for some seconds."""

    held: int  # units in use for as long as it counts as alive
    returning: int  # units that are free when its last session must have ended
    free_s: float  # in how many seconds that is


class SyncState(msgspec.Struct, frozen=True):
    """How this process stands with the coordinator of all data centers.

    `syncing`: this process syncs its data center, so `answered_s` (seconds since the newest answer,
    None: there was none yet) speaks for all of it; `leader`: this process is the coordinator, and
    `silent_s` says how long each data center has been silent. `figures_known`: this process has
    read its rooms in the last seconds.
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
    """The health checks as this process knows them. `checks`: (name, zone, status) of each; the
    rest is about this process alone.
    """

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
    """How recording is doing, since the start. `problem` is empty while all is well."""

    waiting_minutes: int = 0
    dropped_minutes: int = 0
    written_parts: int = 0
    failures: int = 0
    written_s: float = 0.0
    problem: str = ""
    collector: bool = True  # this process has the store open and answers questions


class NotificationState(msgspec.Struct, frozen=True):
    """Messages that are not delivered yet, as this process counted them a moment ago."""

    waiting: int = 0
    oldest_s: float = 0.0  # age of the oldest that is due, 0 when there is none


class ProcessState(msgspec.Struct, frozen=True):
    """The whole picture. `phase` is starting, serving or draining; times are Unix milliseconds."""

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
    faults: tuple[
        Problem, ...
    ] = ()  # rooms, zones, lists and the like that cannot be used; the rest of the configuration runs
    sync: SyncState | None = None
    health: HealthState = HealthState()
    analytics: AnalyticsState | None = None
    notifications: NotificationState = NotificationState()
    compiled: bool = False  # the compiled wheel is installed
    clock_ahead_ms: int = 0  # of the machine's wall clock

    @property
    def ready(self) -> bool:
        """Whether visitors may be sent here."""
        return self.phase == "serving"


class Observed(Protocol):
    """Provides the current state."""

    def state(self) -> ProcessState:
        """Cheap enough to be asked every second."""


class DataCenterView(Protocol):
    """What operators may say about the data centers. Belongs to the event loop."""

    async def give_up(self, data_center: str) -> None:
        """Nothing runs there any more. Raises StorageFailed."""
