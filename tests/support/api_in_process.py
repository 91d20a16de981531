"""The whole management API in this process, on a real store in a folder, for tests that ask very
often.
"""

import asyncio
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx
from starlette.applications import Starlette

from greenroom.analytics.graphql import endpoint
from greenroom.api.app import PREFIX, under_prefix
from greenroom.api.management import management_api
from greenroom.config_file.addresses import origin_problems
from greenroom.config_file.load import read_config
from greenroom.configuration.explain_request import ExplainRequest
from greenroom.configuration.state import LostState, RoomState, SyncState
from greenroom.configuration.store import SqlStore, default_url
from greenroom.decision.explain import Explanation
from greenroom.health.service import HealthService
from greenroom.health.store import HealthStore
from greenroom.model.change import Put
from greenroom.model.health_check import HealthCheck
from greenroom.model.probe import ProbeResult
from greenroom.rules import NOTHING_KNOWN
from greenroom.runtime.explain import explained
from greenroom.web.authenticator import make_token

RUNNING = read_config(
    'origin = "http://127.0.0.1:3000"\ndata = "."\n'
    '[[rooms]]\nname = "a"\nhost = "*"\ntotal_active_users = 1\nnew_users_per_minute = 1\n[[rooms.rules]]\nexpression = "ssl"\n'
)


endpoint.ANSWER_S = 60.0
"""A machine that stands still for two seconds says nothing about a query; the limit itself has a
test of its own.
"""


SYNC = SyncState(
    "fra",
    syncing=True,
    leader=True,
    holder="x",
    answered_s=0.1,
    cut_off=False,
    batches=7,
    unanswered=0,
    answers=7,
    silent_s={"fra": 0.1, "nyc": 75.0},
    data_centers=("fra", "nyc"),
    lost={"nyc": LostState(420, 0, 0.0)},
)
"""One data center is silent."""


@dataclass
class StandingClock:
    """A clock that only a test moves."""

    at_ms: int = 1_700_000_000_000

    def now_ms(self) -> int:
        return self.at_ms


@dataclass
class Watched:
    """Plays the running process: the rooms that it serves."""

    clock: StandingClock
    rooms: tuple[RoomState, ...] = ()
    sync: SyncState = SYNC
    figures: dict[str, Any] = field(default_factory=dict)

    async def give_up(self, data_center: str) -> None:
        """Takes the word."""

    def count_instances(self, room_id: str, instances: int) -> None: ...

    async def push_figures(self, room: Any, found: Any) -> None:
        self.figures[room.name] = found

    def state(self) -> Any:
        return SimpleNamespace(rooms=self.rooms, now_ms=self.clock.at_ms, sync=self.sync)

    def explain(self, asked: ExplainRequest) -> Explanation:
        return explained(RUNNING, asked, NOTHING_KNOWN, self.clock.at_ms, {})


async def finds_all_well(_check: HealthCheck) -> ProbeResult:
    return ProbeResult(code=200)


def health_of(store: SqlStore, clock: StandingClock) -> HealthService:
    """Health checks that nothing probes: their loops do not run, but agents may report."""
    url = f"sqlite:///{Path(store.name.removeprefix('sqlite:///')).with_name('health.db')}"
    health = HealthService(HealthStore(url), lambda _alerts: None, clock.now_ms, finds_all_well)
    health.leads = True
    return health


@dataclass
class ApiInProcess:
    """The API, its store, and a client that asks with a token for everything unless told otherwise."""

    store: SqlStore
    clock: StandingClock = field(default_factory=StandingClock)

    def __post_init__(self) -> None:
        self.watched = Watched(self.clock)
        self.health = health_of(self.store, self.clock)
        api = management_api(
            self.store,
            self.store.sessions,
            self.clock,
            self.watched,
            origin_problems,
            self.watched,
            self.health,
        )
        self.app = Starlette(routes=[under_prefix(api)])
        self.routes = api.app.routes
        self.token = self.make_token("everything", "edit", "analytics", "probe")
        self._runner = asyncio.Runner()
        self._client = httpx.AsyncClient(
            transport=httpx.ASGITransport(self.app), base_url=f"http://testserver{PREFIX}"
        )

    def close(self) -> None:
        self._runner.run(self._client.aclose())
        self._runner.close()
        self.store.close()

    def make_token(
        self, name: str, *scopes: str, zones: tuple[str, ...] = (), expires_ms: int | None = None
    ) -> str:
        secret, token = make_token(
            name.replace(" ", "-"), name, scopes, zones, expires_ms=expires_ms
        )
        self.store.write(
            [Put(token)],
            expected=self.store.read().revision,
            author="test",
            now_ms=self.clock.at_ms,
        )
        return secret

    def ask(self, method: str, path: str, document: Any = None, *, token: str | None = None) -> Any:
        """The response; an empty `token` sends none."""
        content = None if document is None else json.dumps(document).encode()
        return self.send(method, path, content, {}, token=token)

    def send(
        self,
        method: str,
        path: str,
        content: bytes | None,
        headers: dict[str, str],
        *,
        token: str | None = None,
    ) -> Any:
        """As `ask`, with a body that need not be JSON."""
        sent = self.token if token is None else token
        signed = {"Authorization": f"Bearer {sent}"} if sent else {}
        return self._runner.run(
            self._client.request(method, path, content=content, headers={**signed, **headers})
        )

    def make(self, path: str, document: Any) -> Any:
        """What was made; fails when it was refused."""
        body = self.ask("POST", path, document).json()
        assert body["success"], body
        return body["result"]


@contextmanager
def api_in(folder: Path) -> Iterator[ApiInProcess]:
    """An API with an empty store in this folder."""
    api = ApiInProcess(SqlStore(default_url(folder)))
    try:
        yield api
    finally:
        api.close()
