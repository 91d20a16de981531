"""The dashboard in this process on a real store, with people of every role and zone, and a client
that is a browser's cookie jar.
"""

import asyncio
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx
from api_in_process import StandingClock, health_of
from argon2 import PasswordHasher
from config_material import one_of_each, room, zone

from greenroom.accounts import people
from greenroom.accounts import people as accounts
from greenroom.accounts.dashboard.session import OIDC
from greenroom.accounts.oidc_provider import OidcProvider
from greenroom.accounts.sign_in import BrowserFacts
from greenroom.admission.schedule import Effective
from greenroom.config_file.addresses import origin_problems
from greenroom.configuration.dashboard.parts import ORIGIN_PROBLEMS
from greenroom.configuration.state import (
    ConfigState,
    ProcessState,
    RoomState,
    SyncState,
)
from greenroom.configuration.store import SqlStore, default_url
from greenroom.dashboard import Dashboard
from greenroom.dashboard.parts import DRY_RUNS, TICKET_KEYS, ExampleWait
from greenroom.decision.room_view import RoomView
from greenroom.health.dashboard.parts import HEALTH_VIEW
from greenroom.keys.ticket_keys import KeyRing
from greenroom.model.change import Put
from greenroom.runtime.dashboard import KeyFile
from greenroom.runtime.dry_runs import EXAMPLE, DryRunProcesses
from greenroom.runtime.stored_secrets import seals_of
from greenroom.status_page.dashboard.preview import STATUS_PREVIEW, StatusPreview
from greenroom.status_page.view import NoteFacts, RoomFacts, StatusFacts
from greenroom.web.config_service import ConfigService
from greenroom.web.pages.request import PageParts

ORIGIN = "http://testserver"
PASSWORD = "correct horse battery"
ROLE_NAMES = ("viewer", "operator", "admin")


@dataclass
class ShownState:
    """Stands for the running process."""

    clock: StandingClock
    rooms: tuple[RoomState, ...] = ()
    sync: SyncState | None = None
    given_up: list[str] = field(default_factory=list)

    async def give_up(self, data_center: str) -> None:
        self.given_up.append(data_center)

    def count_instances(self, room_id: str, instances: int) -> None: ...

    async def push_figures(self, room: Any, found: Any) -> None: ...

    def state(self) -> ProcessState:
        return ProcessState(
            "1.2.3",
            "serving",
            self.clock.at_ms,
            0,
            "127.0.0.1:8080",
            "/data",
            ConfigState(),
            self.rooms,
            (),
            sync=self.sync,
        )


class KnownExamples(DryRunProcesses):
    """Examples are known at once: walks over all pages do not start a process for each."""

    def example(self, settings: Mapping[str, Any]) -> ExampleWait:
        return EXAMPLE._replace(wait_s=float(settings["total_active_users"]) * 60, ended=True)


@dataclass
class Visitor:
    """One browser: its cookies, and what it sends."""

    rig: "DashboardRig"
    cookies: dict[str, str] = field(default_factory=dict)
    address: str = "127.0.0.1"
    base: str = ORIGIN
    _csrf: dict[str, str] = field(default_factory=dict)

    def ask(
        self,
        method: str,
        path: str,
        form: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> httpx.Response:
        return self.rig.run(self._ask(method, path, form, headers))

    async def _ask(self, method: str, path: str, form: Any, headers: Any) -> httpx.Response:
        transport = httpx.ASGITransport(
            self.rig.app, raise_app_exceptions=False, client=(self.address, 1234)
        )
        async with httpx.AsyncClient(
            transport=transport, base_url=self.base, cookies=self.cookies
        ) as client:
            said = {"Origin": self.base} if method == "POST" else {}
            answer = await client.request(
                method, path, data=form, headers={"Accept": "text/html", **said, **(headers or {})}
            )
        self.cookies |= dict(answer.cookies)
        return answer

    def get(self, path: str, **headers: str) -> httpx.Response:
        return self.ask("GET", path, headers=headers)

    def csrf(self) -> str:
        """The token that this browser's pages carry; empty when no one is signed in."""
        session = self.cookies.get("greenroom_session", "")
        if session not in self._csrf:
            found = re.search(
                r'<meta name="csrf-token" content="([^"]*)"', self.get("/settings").text
            )
            if not found:
                return ""
            self._csrf[session] = found[1]
        return self._csrf[session]

    def post(self, path: str, /, **form: Any) -> httpx.Response:
        return self.ask("POST", path, {"_csrf": self.csrf(), **form})

    def sign_in(self, name: str, password: str = PASSWORD) -> httpx.Response:
        return self.ask("POST", "/sign-in", {"name": name, "password": password})


@dataclass
class DashboardRig:
    """The dashboard and its parts."""

    store: SqlStore
    folder: Path
    oidc: OidcProvider | None = None
    ticket_keys: KeyFile | None = None
    clock: StandingClock = field(default_factory=StandingClock)
    dry_runs: DryRunProcesses = field(default_factory=lambda: KnownExamples())
    settings: SimpleNamespace = field(
        default_factory=lambda: SimpleNamespace(status_listen=None, status_pages=())
    )

    def __post_init__(self) -> None:
        self.config = ConfigService(self.store, self.clock)
        self.shown = ShownState(self.clock)
        parts = PageParts()
        parts.put(OIDC, lambda: self.oidc).put(TICKET_KEYS, self.ticket_keys)
        parts.put(ORIGIN_PROBLEMS, origin_problems)
        parts.put(HEALTH_VIEW, health_of(self.store, self.clock)).put(DRY_RUNS, self.dry_runs)
        status = StatusPreview(
            lambda: self.settings.status_pages,
            lambda: bool(self.settings.status_listen),
            self._status_facts,
        )
        parts.put(STATUS_PREVIEW, status)
        self.app = Dashboard(self.config, self.store.sessions, self.shown, parts)
        self._runner = asyncio.Runner()

    async def _status_facts(self) -> StatusFacts:
        notes = [
            NoteFacts(one.id, one.incident, one.title, one.text, one.at_ms)
            for one in self.store.read().incident_notes.records()
        ]
        return StatusFacts(
            self.clock.at_ms,
            (RoomFacts("r1", "r1", RoomView(Effective(room("r1"))), "z1"),),
            (),
            (),
            notes,
        )

    def run(self, work: Any) -> Any:
        return self._runner.run(work)

    def close(self) -> None:
        self._runner.close()
        self.store.close()

    def put(self, *records: tuple[Any, str]) -> None:
        self.store.write(
            [Put(*one) for one in records],
            expected=self.store.read().revision,
            author="test",
            now_ms=self.clock.at_ms,
        )

    def fill(self) -> None:
        """Zones z1 and z2, each with a room; one of everything in z1."""
        self.put(*[one for one in one_of_each() if type(one[0]).__name__ != "Account"])
        self.put((zone("z2", limit_floor=1), ""), (room("r2", host="z2.example"), "z2"))

    def add_account(self, name: str, role: str = "viewer", *zones: str) -> None:
        self.config.change("test", accounts.add(name, role, zones, PASSWORD))

    def person(self, role: str, *zones: str) -> Visitor:
        """A signed-in browser. The session is made directly: computing a hash for each test would
        take most of its time.
        """
        name = f"{role}-{'-'.join(zones) or 'all'}"
        if accounts.find(self.store.read(), name) is None:
            self.add_account(name, role, *zones)
        account = accounts.find(self.store.read(), name)
        assert account is not None
        visitor = Visitor(self)
        visitor.cookies["greenroom_session"] = self.app.sign_in.as_account(
            account, BrowserFacts("127.0.0.1", "test")
        ).secret
        return visitor


@contextmanager
def quick_passwords() -> Iterator[None]:
    """Hashes that cost next to nothing, for tests that are about what happens around them."""
    usual = people._hasher
    people._hasher = PasswordHasher(time_cost=1, memory_cost=8, parallelism=1)
    people._nothing.cache_clear()
    try:
        yield
    finally:
        people._hasher = usual
        people._nothing.cache_clear()


@contextmanager
def dashboard_in(folder: Path, url: str = "") -> Iterator[DashboardRig]:
    """A dashboard with an empty store in this folder, or at this URL. Hashes of passwords cost next
    to nothing.
    """
    clock = StandingClock()
    KeyRing(folder, clock.at_ms)
    rig = DashboardRig(
        SqlStore(url or default_url(folder), seals_of(folder)),
        folder,
        clock=clock,
        ticket_keys=KeyFile(folder, clock),
    )
    with quick_passwords():
        try:
            yield rig
        finally:
            rig.close()
