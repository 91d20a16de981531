"""What the pages of the dashboard are made from: the use-cases of the API, the state of the
process, and the sessions.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

from greenroom.accounts.oidc_provider import OidcProvider
from greenroom.alerts.view import NotificationView
from greenroom.analytics.question import AnalyticsStore
from greenroom.configuration.explain_request import Explains
from greenroom.configuration.service import ConfigService
from greenroom.configuration.state import (
    DataCenterView,
    Observed,
    ProcessState,
    RoomState,
)
from greenroom.configuration.zones import OriginProblems
from greenroom.dashboard.person import Person
from greenroom.dashboard.room_peaks import PeakCache
from greenroom.health.view import HealthView
from greenroom.model.oidc import OidcSettings
from greenroom.model.status_page import PageSettings
from greenroom.model.ticket_key import TicketKey
from greenroom.ports import SessionStore

FRESH_MS = 500
"""How old the state may be that several requests share: a picture of 1,000 rooms costs some
milliseconds of the event loop.
"""


class LiveState:
    """The newest state of the process, taken at most twice a second. Call it inside the event loop."""

    def __init__(self, observed: Observed, now_ms: Callable[[], int]) -> None:
        self._observed = observed
        self._now_ms = now_ms
        self._taken: tuple[int, ProcessState, Mapping[str, RoomState]] | None = None

    def look(self) -> tuple[ProcessState, Mapping[str, RoomState]]:
        """The state, and its rooms by id."""
        now_ms = self._now_ms()
        if self._taken is None or not 0 <= now_ms - self._taken[0] < FRESH_MS:
            state = self._observed.state()
            self._taken = now_ms, state, {room.room.id: room for room in state.rooms}
        return self._taken[1], self._taken[2]


class AsksAnalytics(Protocol):
    """Answers GraphQL queries in the name of people."""

    def ask(self, person: Person, query: str, variables: str, operation: str) -> tuple[int, bytes]:
        """Status and JSON; `variables` is JSON, or empty. Blocks."""


class TicketKeys(Protocol):
    """The keys that seal tickets; see `keys.ticket_keys`. Both block, and raise StorageFailed and
    InvalidConfig.
    """

    def every(self) -> list[TicketKey]:
        """Those that open tickets, newest first."""

    def rotate(self) -> TicketKey:
        """Makes another one; the newest now."""


class DryRunState(NamedTuple):
    """A dry run: what was asked, how much is done (0 to 1), and its results, one for each of the
    settings, or why there are none.
    """

    room_id: str
    wanted: Mapping[str, Any]
    share: float = 0.0
    results: list[dict[str, Any]] | None = None
    problem: str = ""


class ExampleWait(NamedTuple):
    """The longest wait of an example: so many visitors within so many minutes, each with a visit of
    so many seconds on average.

    `wait_s` is None while it is being simulated, and when it is not known (`ended`); `least`: the
    wait is at least so long.
    """

    visitors: int
    minutes: int
    visit_s: float
    wait_s: float | None = None
    least: bool = False
    ended: bool = False


class DryRuns(Protocol):
    """Simulates expected crowds beside the process; see `runtime.dry_runs`."""

    def start(self, room_id: str, wanted: Mapping[str, Any]) -> str | None:
        """The id of a new run; None while too many wait. Raises InvalidConfig."""

    def find(self, run_id: str) -> DryRunState | None:
        """How far it is; None when there is no such run any more."""

    def example(self, settings: Mapping[str, Any]) -> ExampleWait:
        """What an example crowd meets under these settings of a room. Begins to simulate it when no
        one has asked before.
        """


class StatusDraft(NamedTuple):
    """A message for the status page that is not published yet, or not in this form; fields of an
    IncidentNote.
    """

    id: str
    incident: str
    title: str
    text: str
    at_ms: int


class ServedStatusPage(NamedTuple):
    """One status page: its heading, and where it is served (empty: nowhere)."""

    title: str
    where: str


class StatusPreview(Protocol):
    """The public status pages as everyone would see them; see `runtime.status_page`."""

    @property
    def has_address(self) -> bool:
        """Whether the settings say where pages are served."""

    @property
    def is_served(self) -> bool:
        """Whether anyone can see them: there is an address, and there are pages."""

    def pages(self) -> Sequence[ServedStatusPage]:
        """Those of the file, then those of the store; where there are none, one with everything on
        it.
        """

    async def html(self, page: int | PageSettings, draft: StatusDraft | None) -> tuple[str, str]:
        """Content security policy and HTML of one of `pages`, or of one that is not saved, in the
        event loop. Raises StorageFailed.
        """


@dataclass(frozen=True, kw_only=True)
class Services:
    """Everything a page may use. What a process does not have is None or empty, and the page says
    so.
    """

    config: ConfigService
    sessions: SessionStore
    observed: Observed
    origin_problems: OriginProblems
    explains: Explains | None = None
    health: HealthView | None = None
    notifications: NotificationView | None = None
    analytics: AnalyticsStore | None = None
    queries: AsksAnalytics | None = None
    dry_runs: DryRuns | None = None
    status: StatusPreview | None = None
    fetch_logo: Callable[[str], str] | None = None
    """(address) -> the picture as a `data:` URL, once; blocks. Raises GreenroomError with the
    reason.
    """
    ticket_keys: TicketKeys | None = None
    data_centers: DataCenterView | None = None
    oidc: Callable[[], OidcProvider | None] = lambda: None
    """The OpenID Connect provider as configured now; None: there is none."""
    peaks: PeakCache = field(default_factory=PeakCache)

    def oidc_settings(self) -> OidcSettings | None:
        """The provider's settings as they are now."""
        provider = self.oidc()
        return provider.settings if provider else None
