"""One room through its events: the current settings and the compiled next stages. The first request
or clock tick after a stage ends switches. Until its draw is stored, the old stage holds everybody:
a full disk delays a sale but never corrupts it.
"""

import dataclasses
from collections.abc import Callable, Sequence
from typing import NamedTuple

import msgspec

from greenroom.admission.draw import scheduled_draw_of
from greenroom.admission.schedule import Effective, Phase, course
from greenroom.decision.cookies import TicketCookies
from greenroom.decision.native_pass import MakePasses, PassWriter
from greenroom.decision.prequeue_draw import PrequeueDraw
from greenroom.decision.shared_table import SharedTable
from greenroom.errors import StorageFailed
from greenroom.ledgers.port import DrawStore, LedgerPort, PromptLedger
from greenroom.model.event import Event
from greenroom.model.offer import Offer
from greenroom.model.record import replace
from greenroom.model.room import Room
from greenroom.model.rule import Rule
from greenroom.model.visit import Arrival
from greenroom.pages import Page, compile_page

NEVER_MS = 1 << 62
RETRY_MS = 1_000

Bypass = Callable[[Arrival, int], Rule | None]
"""A rule that cannot be evaluated does not match."""


class CompiledRoom(msgspec.Struct, frozen=True):
    """`prompt`: the ledger where it answers at once; `obeys_origin`: some origin command is
    enabled; `tells_newcomers`: the page shows a wait before a visitor has a place.
    """

    room: Room
    id: bytes
    effective: Effective
    ledger: LedgerPort
    page: Page
    cookies: TicketCookies
    cookie_name: bytes
    holds_nobody: bool
    turns_away: bool
    bypass: Bypass | None = None
    passes_well_known: bool = True
    draw: PrequeueDraw | None = None
    passes: PassWriter | None = None
    prompt: PromptLedger | None = None
    session_ms: int = 0
    renews: bool = True
    obeys_origin: bool = False
    line_table: SharedTable | None = None
    tells_newcomers: bool = True
    offers: tuple[Offer, ...] | None = None
    moves: bool = False
    extensions: int = 0
    calls: bool = False

    @property
    def keeps_absent(self) -> bool:
        """Whether visitors may close the page; until a draw, which gives places to those in line
        alone, they are not told so.
        """
        return self.room.claim_ms > 0 and self.room.queueing_method == "fifo"

    @property
    def draws_at_ms(self) -> int:
        """The start of the event whose pre-queue this is, if that draws the places; else 0."""
        effective = self.effective
        draws = self.draw is not None and effective.phase is Phase.PREQUEUE
        return effective.phase_ends_ms or 0 if draws else 0

    def ticket_crosses_sites(self, scheme: str) -> bool:
        return self.cookies.of(scheme).crosses_sites


class OriginOverlay(NamedTuple):
    """What the room's origin imposes on every stage: fields of Effective."""

    origin_down: bool = False
    capacity: int | None = None
    origin_slow: bool = False


class RoomSchedule:
    __slots__ = ("_drawing_now", "_later", "_on_error", "_origin", "now", "until_ms")

    def __init__(
        self, course: Sequence[tuple[int, CompiledRoom]], on_error: Callable[[BaseException], None]
    ) -> None:
        """`course`: ascending, not empty; the ledger must be set to the first one."""
        self.now = course[0][1]
        self._later = list(course[1:])
        self._on_error = on_error
        self._drawing_now = False
        self._origin = OriginOverlay()
        self.until_ms = self._later[0][0] if self._later else NEVER_MS

    @property
    def capacity(self) -> int | None:
        return self._origin.capacity

    def hold_for_origin(self, down: bool) -> bool:
        """Returns whether that is a change."""
        return self._overlay(self._origin._replace(origin_down=down))

    def follow_origin(self, capacity: int | None, slow: bool) -> bool:
        """Admits at most as many as the origin can take, or nobody while it is `slow`; None: the
        room does not follow its origin. Returns whether that is a change.
        """
        return self._overlay(self._origin._replace(capacity=capacity, origin_slow=slow))

    def _overlay(self, origin: OriginOverlay) -> bool:
        if origin == self._origin:
            return False
        self._origin = origin
        self.now = self._overlaid(self.now)
        self.now.ledger.configure(self.now.effective.ledger_room)
        return True

    def _overlaid(self, stage: CompiledRoom) -> CompiledRoom:
        origin = self._origin
        stops = "unhealthy" if origin.origin_down else "slow" if origin.origin_slow else ""
        effective = replace(stage.effective, **origin._asdict(), origin_stops=stops)
        if effective == stage.effective:
            return stage
        return replace(
            stage,
            effective=effective,
            holds_nobody=effective.holds_nobody,
            turns_away=effective.turns_away,
        )

    @property
    def draws(self) -> list[PrequeueDraw]:
        found = {
            stage.draw.draw_id: stage.draw
            for stage in (self.now, *(stage for _, stage in self._later))
            if stage.draw
        }
        return list(found.values())

    def at(self, now_ms: int) -> CompiledRoom:
        return self.now if now_ms < self.until_ms else self._turn(now_ms)

    def _turn(self, now_ms: int) -> CompiledRoom:
        due = sum(1 for from_ms, _ in self._later if from_ms <= now_ms)
        if due:
            stage = self._later[due - 1][1]
            if not self._drawn(stage, now_ms):
                return self.now
            del self._later[:due]
            self.now = stage = self._overlaid(stage)
            stage.ledger.configure(stage.effective.ledger_room)
        self.until_ms = self._later[0][0] if self._later else NEVER_MS
        return self.now

    def _drawn(self, stage: CompiledRoom, now_ms: int) -> bool:
        draw = stage.draw
        if draw is None or draw.drawn or stage.effective.phase is not Phase.RUNNING:
            return True
        if not self._drawing_now:  # a distributed ledger answers later
            self._drawing_now = True
            try:
                draw.hold(stage.ledger, self._answered)
            except Exception as error:
                self._drawing_now = False
                self._on_error(error)
        if draw.drawn is None:
            self.until_ms = now_ms + RETRY_MS
        return draw.drawn is not None

    def _answered(self, failed: StorageFailed | None) -> None:
        self._drawing_now = False
        if failed:
            self._on_error(failed)
        else:
            self.until_ms = 0


def compile_room(
    room: Room,
    events: Sequence[Event],
    now_ms: int,
    ledger: LedgerPort,
    *,
    always_use_https: bool,
    draws: DrawStore,
    on_error: Callable[[BaseException], None],
    bypass: Bypass | None = None,
    passes: MakePasses = lambda _: None,
    passes_well_known: bool = True,
    offers: tuple[Offer, ...] | None = None,
    extensions: int = 0,
) -> RoomSchedule:
    """Templates must have been checked before. Raises StorageFailed when the seed of a draw cannot
    be had.
    """
    moves = room.move_places
    calls = room.call_after_minutes > 0 and moves
    pages: dict[tuple[str, bool], Page] = {}
    cookies, draw, stages = TicketCookies(room, always_use_https), None, []
    for from_ms, effective in course(room, events, now_ms):
        shown = effective.room
        if shown.queue_all and shown.queueing_method == "reject":
            # everyone waits with a place: the event's page would tell them that it is closed
            shown = dataclasses.replace(shown, custom_page_html=room.custom_page_html)
        html = shown.custom_page_html
        called = calls and shown.claim_ms > 0 and shown.queueing_method == "fifo"
        if (html, called) not in pages:
            pages[html, called] = compile_page(shown, offers is not None, moves, called)
        page = pages[html, called]
        scheduled = scheduled_draw_of(room, effective.event) if effective.event else None
        if scheduled and (draw is None or draw.draw_id != scheduled.draw_id):
            draw = PrequeueDraw(
                scheduled, draws, room.name, effective.event.name if effective.event else ""
            )
        compiled = CompiledRoom(
            room=effective.room,
            id=room.id.encode(),
            effective=effective,
            ledger=ledger,
            page=page,
            cookies=cookies,
            cookie_name=room.cookie_name.encode(),
            holds_nobody=effective.holds_nobody,
            turns_away=effective.turns_away,
            bypass=bypass,
            passes_well_known=passes_well_known,
            draw=draw,
            passes=passes(effective.room),
            prompt=ledger if isinstance(ledger, PromptLedger) else None,
            session_ms=effective.room.session_ms,
            renews=not effective.room.disable_session_renewal,
            obeys_origin=bool(effective.room.enabled_origin_commands),
            line_table=SharedTable(ledger, offers) if effective.room.line_table else None,
            tells_newcomers=page.custom or draw is not None or effective.event is not None,
            offers=offers,
            moves=moves,
            extensions=extensions,
            calls=called,
        )
        stages.append((from_ms, compiled))
    return RoomSchedule(stages, on_error)
