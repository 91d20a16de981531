"""Visitors who keep cookies, in front of the real decision service, on a clock set by hand; no
sockets.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random
from typing import Any

from admission_world import HandClock, small_room

from greenroom.admission.schedule import effective
from greenroom.decision.decision_counts import DecisionCounts
from greenroom.decision.native_pass import MakePasses
from greenroom.decision.observer import DecisionEvent, Observer, observed_by
from greenroom.decision.render import render
from greenroom.decision.room_schedule import Bypass, CompiledRoom, compile_room
from greenroom.decision.room_table import RoomTable
from greenroom.decision.service import DecisionService
from greenroom.decision.tickets import Sealer
from greenroom.decision.verdict import Forward, Hold, Verdict
from greenroom.keys.ticket_keys import KeyRing
from greenroom.ledgers.draws import DrawFiles
from greenroom.ledgers.memory import MemoryLedger
from greenroom.model.answer import Answer
from greenroom.model.event import Event
from greenroom.model.offer import Offer
from greenroom.model.room import Room
from greenroom.model.visit import Arrival

NAVIGATES = (
    (b"accept", b"text/html,application/xhtml+xml,*/*;q=0.8"),
    (b"sec-fetch-dest", b"document"),
    (b"sec-fetch-mode", b"navigate"),
)


Reply = Forward | Answer


class ChangedLedger:
    """A ledger of which one operation does something else; a compiled one cannot be changed itself."""

    def __init__(self, ledger: MemoryLedger, operation: str, does: Callable[..., object]) -> None:
        self._ledger = ledger
        for name in dir(
            ledger
        ):  # real attributes: since Python 3.12, isinstance with a protocol does not ask __getattr__
            if not name.startswith("_") and callable(getattr(ledger, name)):
                setattr(self, name, getattr(ledger, name))
        setattr(self, operation, does)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._ledger, name)


class Site:
    """Rooms with in-memory ledgers behind one decision service. `events` are those of the first
    room; `observe` sees every decision.
    """

    def __init__(
        self,
        folder: Path,
        *rooms: Room,
        seed: int = 1,
        bypass: Bypass | None = None,
        events: Sequence[Event] = (),
        observe: Observer = lambda _: None,
    ) -> None:
        self.clock = HandClock()
        self.draw = Random(seed)
        self.rooms = rooms or (small_room(),)
        self.events = {self.rooms[0].id: tuple(events)}
        self.offers: tuple[Offer, ...] | None = None
        self.draws = DrawFiles(folder, self.draw.randbytes)
        self.ledgers = {
            room.id: MemoryLedger(self.effective(room), self.clock, self.draw.getrandbits)
            for room in self.rooms
        }
        self.counted = DecisionCounts()
        self.events_seen: list[DecisionEvent] = []
        self.errors: list[BaseException] = []
        self.ring = KeyRing(folder / "keys.json", self.clock.now_ms())
        self._bypass = bypass
        self._passes: MakePasses = lambda _: None
        told = observed_by(
            [self.counted.observe, self.events_seen.append, observe], self.errors.append
        )
        self.decisions = DecisionService(
            self._table(),
            Sealer(self.ring),
            self.clock,
            self.draw.randbytes,
            self.errors.append,
            told,
        )

    def effective(self, room: Room) -> Room:
        """What its ledger is told at this moment."""
        return effective(room, self.events.get(room.id, ()), self.clock.ms).ledger_room

    def _table(self) -> RoomTable:
        return RoomTable(
            compile_room(
                room,
                self.events.get(room.id, ()),
                self.clock.ms,
                self.ledgers[room.id],
                always_use_https=False,
                draws=self.draws,
                on_error=self.errors.append,
                bypass=self._bypass,
                passes=self._passes,
                offers=self.offers,
                extensions=room.session_extensions,
            )
            for room in self.rooms
        )

    def configure(self, *rooms: Room, events: Sequence[Event] | None = None) -> None:
        """As after a reload."""
        self.rooms = rooms
        if events is not None:
            self.events = {rooms[0].id: tuple(events)}
        self.settle()

    def says_left(self, *available: str) -> None:
        """Of so many offers, in every room."""
        self.offers = tuple(Offer(name=f"Block {one}", available=one) for one in available)
        self.settle()

    def change_ledger(self, operation: str, does: Callable[..., object]) -> None:
        """From now on this operation of the first room's ledger does something else."""
        room_id = self.rooms[0].id
        self.ledgers[room_id] = ChangedLedger(self.ledgers[room_id], operation, does)  # type: ignore[assignment]
        self.settle()

    def settle(self) -> None:
        """A new table takes over, as after a reload or a restart."""
        table = self._table()
        for room_id, schedule in table.rooms.items():
            self.ledgers[room_id].configure(schedule.now.effective.ledger_room)
        table.turn(self.clock.ms, self.errors.append)
        self.decisions.use(table)

    @property
    def stage(self) -> CompiledRoom:
        """The first room as it is now."""
        return self.decisions.table.rooms[self.rooms[0].id].at(self.clock.ms)

    def advance(self, ms: int) -> None:
        """Time passes, and the background with it."""
        until_ms = self.clock.ms + ms
        while self.clock.ms < until_ms:
            soonest_ms = min(ledger.tick() for ledger in self.ledgers.values())
            soonest_ms = min(
                soonest_ms, self.decisions.table.turn(self.clock.ms, self.errors.append)
            )
            self.clock.ms = min(until_ms, max(self.clock.ms + 1, soonest_ms))

    def ask(self, arrival: Arrival) -> Reply:
        """The one verdict on it, rendered when it holds the visitor."""
        verdicts: list[Verdict] = []
        self.decisions.receive(arrival, verdicts.append)
        (verdict,) = verdicts
        return render(verdict, arrival) if isinstance(verdict, Hold) else verdict


class Browser:
    """One visitor: keeps the cookie, remembers when the next try is due."""

    def __init__(self, site: Site, host: str = "shop.example", client: str = "192.0.2.1") -> None:
        self.site = site
        self.host = host
        self.client = client
        self.jar: dict[bytes, bytes] = {}
        self.retry_s = 0

    def arrival(
        self,
        path: str = "/",
        method: str = "GET",
        query: str = "",
        headers: tuple[tuple[bytes, bytes], ...] = NAVIGATES,
    ) -> Arrival:
        """A request with what is in the jar."""
        jar = b"; ".join(b"%b=%b" % pair for pair in self.jar.items())
        return Arrival(
            method,
            "http",
            self.host,
            path,
            query,
            (*headers, (b"cookie", jar)) if jar else headers,
            self.client,
        )

    def visit(
        self,
        path: str = "/",
        method: str = "GET",
        query: str = "",
        headers: tuple[tuple[bytes, bytes], ...] = NAVIGATES,
    ) -> Reply:
        """Sends a request and keeps what comes back."""
        reply = self.site.ask(self.arrival(path, method, query, headers))
        self.keep(reply)
        return reply

    def keep(self, reply: Reply) -> None:
        """Puts the reply's cookie into the jar, or takes it out; notes the Refresh header."""
        self.retry_s = 0
        cookie = reply.set_cookie
        if isinstance(reply, Answer):
            self.retry_s = int(header(reply, b"Refresh") or b"0")
        if cookie:
            name, _, value = cookie.partition(b";")[0].partition(b"=")
            if b"Max-Age=0" in cookie or not value:
                self.jar.pop(name, None)
            else:
                self.jar[name] = value

    def wait(self) -> None:
        """Until the next try is due."""
        self.site.advance(self.retry_s * 1000)


def header(answer: Answer, name: bytes) -> bytes:
    """The value of a header line, or empty."""
    return answer.headers.get(name) or b""
