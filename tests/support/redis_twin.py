"""The same operations on a pure ledger and on one in Redis, side by side; every answer and every
report must be the same.
"""

import weakref
from collections.abc import Sequence
from dataclasses import replace
from random import Random
from typing import Any

import msgspec
import redis
from admission_world import START_MS
from redis_world import TRIAL_LIBRARY

from greenroom.admission.coordinator.coordinator import Coordinator
from greenroom.admission.laws import ledger_problems
from greenroom.admission.ledger.failing import fail, reenter
from greenroom.admission.ledger.failures import WINDOW_MS, parts_of
from greenroom.admission.ledger.ledger import Ledger
from greenroom.admission.ledger.moving_places import move_among
from greenroom.admission.ledger.visiting import visit
from greenroom.admission.messages.line_counts import AGE_CELL_MS
from greenroom.admission.messages.sync import SyncDown, SyncUp
from greenroom.ledgers.redis.answers import (
    ARRIVE,
    EXTEND,
    FAIL,
    KEEP,
    LEAVE,
    MOVE,
    PASS,
    PEEK,
    POLL,
    QUESTION,
    RECLAIM,
    REENTER,
    VIEW,
    VISIT,
    VISIT_MORE,
    Reader,
    settings_of,
)
from greenroom.ledgers.redis.ledger_store import _taken
from greenroom.ledgers.redis.sync_batch import arguments_of, report_of
from greenroom.model.room import Room
from greenroom.model.visit import Outcome, Standing

HERE = "here"
NEVER_MS = 1 << 62
STAY_STEPS_MS = 2 * AGE_CELL_MS + 5_000
"""Two ends of a stay, each in steps of a cell, and a renewal that may be so much older than the
last request.
"""


class Twin:
    """One room twice, in virtual time. What differs is in `found`."""

    def __init__(
        self,
        server: redis.Redis,
        room: Room,
        seed: int,
        centers: tuple[str, ...] = (HERE,),
        fence_ms: int = 0,
        here: str = HERE,
        now_ms: int = START_MS,
    ) -> None:
        self.here = here
        # One packet for each step: a client's own call costs more than the function it calls.
        self._wire = server.connection_pool.get_connection()
        weakref.finalize(self, server.connection_pool.release, self._wire)
        self.now_ms = self._clock_ms = now_ms
        self.room = room
        self.random_bits = Random(seed)
        self.found: list[str] = []
        self.confirmed = 0
        """Looks at which new visitors had to show their ticket, because few did."""
        self.arrived_there = self._reports_there = self._applied_there = 0
        self.fixed = room.disable_session_renewal
        self.ledgers = Ledger(room, here, now_ms, now_ms)
        self.coordinators = two_coordinators(centers, room, now_ms)
        for coordinator in self.coordinators:
            coordinator.fence_ms = fence_ms
        self.reader = Reader(room)
        self.could_borrow = False  # the newest question, if there were permits to spare elsewhere
        self.place = f"greenroom:{{{seed}{here}}}"
        self.settings = settings_of(room)
        self._together(
            *([["FLUSHALL"]] if here == HERE else []),
            ["SET", f"{self.place}:clock", now_ms],
            self._function("inspect"),
        )

    def advance(self, ms: int) -> None:
        self.now_ms += ms

    # -- visitors --

    def arrive(self, one: bytes) -> Outcome:
        random_bits = self.random_bits.getrandbits(64)
        outcome = self._same(
            "arrive",
            self.ledgers.arrive(one, self.now_ms, random_bits),
            self._ask(ARRIVE, one, 0, random_bits),
        )
        if outcome.standing is Standing.WAITING:
            borrows = self.ledgers.borrows(self.now_ms) > 0
            self.law(borrows == self.could_borrow, f"borrows: {borrows}, {self.could_borrow}")
        return outcome

    def arrive_provisionally(self, one: bytes) -> Outcome:
        outcome = self._same(
            "pass", self.ledgers.arrive_provisionally(one, self.now_ms), self._ask(PASS, one, 0, 0)
        )
        borrows = (
            self.ledgers.borrows_provisionally(self.now_ms)
            if outcome.standing is Standing.WAITING
            else 0
        )
        stored = self.reader.passes_left if self.could_borrow else 0
        self.law(borrows == stored, f"permits that may be asked for: {borrows} and {stored}")
        return outcome

    def arrive_provisionally_together(self, ids: list[bytes]) -> int:
        """So many requests in one call; how many passed."""
        pure = [self.ledgers.arrive_provisionally(one, self.now_ms) for one in ids]
        reply = self._call("handle", b"".join(QUESTION.pack(PASS, one, 0, 0) for one in ids), 0, 0)
        stored = [outcome for outcome, _ in self.reader.read(*reply)]  # type: ignore[misc]
        self.law(pure == stored, f"of {len(ids)} requests others passed, at {self.now_ms}")
        return sum(outcome.standing is Standing.ADMITTED for outcome in stored)

    def poll(self, one: bytes, key: int) -> Outcome:
        random_bits = self.random_bits.getrandbits(64)
        return self._same(
            "poll",
            self.ledgers.poll(one, key, self.now_ms, random_bits),
            self._ask(POLL, one, key, random_bits),
        )

    def peek(self, one: bytes, key: int) -> Outcome:
        random_bits = self.random_bits.getrandbits(64)
        return self._same(
            "peek",
            self.ledgers.peek(one, key, self.now_ms, random_bits),
            self._ask(PEEK, one, key, random_bits),
        )

    def reclaim(self, one: bytes, key: int) -> Outcome:
        random_bits = self.random_bits.getrandbits(64)
        return self._same(
            "reclaim",
            self.ledgers.reclaim(one, key, self.now_ms, random_bits),
            self._ask(RECLAIM, one, key, random_bits),
        )

    def view(self, one: bytes) -> Outcome:
        return self._same("view", self.ledgers.view(one, self.now_ms), self._ask(VIEW, one, 0, 0))

    def visit(
        self, one: bytes, key: int, home: str, renewed_ms: int, served_ms: int | None = None
    ) -> Outcome:
        served_ms = renewed_ms if served_ms is None else served_ms
        random_bits = self.random_bits.getrandbits(64)
        pure = visit(self.ledgers, one, key, home, renewed_ms, served_ms, self.now_ms, random_bits)
        more = VISIT_MORE.pack(renewed_ms, served_ms, home == self.here, len(home)) + home.encode()
        return self._same(
            "visit", pure, self._asked(QUESTION.pack(VISIT, one, key, random_bits) + more)
        )

    def keep(self, one: bytes, gap_ms: int) -> None:
        self.ledgers.keep(one, gap_ms, self.now_ms)
        self._ask(KEEP, one, gap_ms, 0)

    def line_table(self) -> None:
        if self.room.queueing_method == "fifo":
            pure = self.ledgers.line_table(self.now_ms)
            stored = self.reader.line_table(*self._call("line_table", 0, self.reader.summary))  # type: ignore[misc]
            self.law(pure == stored, f"tables of the line differ:\n{pure}\n{stored}")

    def leave(self, one: bytes) -> None:
        pure, stored = self.ledgers.leave(one, self.now_ms), self._ask(LEAVE, one, 0, 0)
        self.law(pure is stored.standing, f"left: {pure!r} and {stored}")

    def move(self, old: bytes, new: bytes, absent: bool) -> Standing:
        """GONE: nothing has moved, or not yet."""
        outcome = self.move_among(old, new, absent, self.random_bits.getrandbits(32))
        stays = outcome.searching or outcome.storage_failed
        return Standing.GONE if stays else outcome.standing

    def move_among(self, old: bytes, new: bytes, absent: bool, nonce: int) -> Outcome:
        pure = move_among(self.ledgers, old, new, absent, nonce, self.now_ms)
        stored = self._asked(QUESTION.pack(MOVE, old, absent, nonce) + new)
        told = [(one.standing, one.searching, one.storage_failed) for one in (pure, stored)]
        self.law(told[0] == told[1], f"moved: {pure!r} and {stored}")
        return pure

    def extend(self, one: bytes, times: int) -> Outcome:
        return self._same(
            "extend",
            self.ledgers.extend(one, times, self.now_ms),
            self._ask(EXTEND, one, times, 0),
        )

    def fail(self, one: bytes) -> Outcome:
        pure = fail(self.ledgers, one, self.now_ms)
        return self._same("fail", pure, self._ask(FAIL, one, 0, 0))

    def reenter(self, one: bytes, key: int) -> Outcome:
        random_bits = self.random_bits.getrandbits(64)
        pure = reenter(self.ledgers, one, key, self.now_ms, random_bits)
        return self._same("reenter", pure, self._ask(REENTER, one, key, random_bits))

    # -- settings, time, messages --

    def configure(self, **changes: object) -> None:
        table = self.room.line_table and changes.get("queueing_method", "fifo") == "fifo"
        self.room = replace(self.room, **{"line_table": table} | changes)  # type: ignore[arg-type]
        self.fixed = self.fixed or self.room.disable_session_renewal
        self.settings = settings_of(self.room)
        self.ledgers.configure(self.room, self.now_ms)
        self._call("configure")
        self.reader.configure(self.room)
        for coordinator in self.coordinators:
            coordinator.configure(self.room)

    def end_all_sessions(self, off_ms: int) -> None:
        """An operator's word, by a clock that is off by so much."""
        self.configure(
            sessions_ended_ms=max(self.room.sessions_ended_ms, self.now_ms + off_ms),
            queueing_method=self.room.queueing_method,
        )

    def rekey(self, keys: dict[bytes, int]) -> None:
        self.ledgers.rekey(keys)
        self._call("rekey", *(part for pair in keys.items() for part in pair))

    def before(self, key: int) -> list[bytes]:
        self.ledgers.sweep(self.now_ms)
        pure = [one for one, theirs in self.ledgers.line.in_order() if theirs < key]
        stored = list(self._call("before", key, "-inf", 1000))[::2]
        self.law(pure == stored, f"before: {pure} and {stored}")
        return pure

    def report(self, want: int = 0) -> tuple[SyncUp, SyncUp]:
        self.ledgers.sweep(self.now_ms)
        pure = self.ledgers.report(self.now_ms, want)
        stored = report_of(self._call("report", self.here, want))  # type: ignore[arg-type]
        ups = tuple(in_order(up) for up in (pure, stored))
        self.law(ups[0] == ups[1], f"reports differ:\n{ups[0]}\n{ups[1]}")
        self._tally()
        return ups  # type: ignore[return-value]

    def farewell(self) -> tuple[SyncUp, SyncUp] | None:
        self.ledgers.sweep(self.now_ms)
        pure, reply = (
            self.ledgers.farewell(self.now_ms),
            self._call("report", self.here, 0, "farewell"),
        )
        self.law((pure is None) == (reply is None), f"farewell: {pure} and {reply}")
        if pure is None or reply is None:
            return None
        stored = msgspec.structs.replace(report_of(reply), farewell=True)  # type: ignore[arg-type]
        ups = in_order(pure), in_order(stored)
        self.law(ups[0] == ups[1], f"farewells differ:\n{ups[0]}\n{ups[1]}")
        return ups

    def _tally(self) -> None:
        """What analytics count, as far as Redis knows it: no stays without renewals, and others in
        steps.
        """
        pure, stored = self.ledgers.tally(self.now_ms), _taken(self._call("tally"))  # type: ignore[arg-type]
        self.law(
            pure.abandoned == stored.abandoned,
            f"abandoned: {pure.abandoned} and {stored.abandoned}",
        )
        if not self.fixed:
            stays = list(zip(sorted(pure.stays_ms), stored.stays_ms, strict=False))
            self.law(
                len(pure.stays_ms) == len(stored.stays_ms),
                f"stays: {pure.stays_ms} and {stored.stays_ms}",
            )
            self.law(
                all(abs(one - other) <= STAY_STEPS_MS for one, other in stays), f"stays: {stays}"
            )

    def answered(self, ups: tuple[SyncUp, SyncUp]) -> SyncDown:
        """The coordinators' answers, which must be the same, without a forecast."""
        random_bits = self.random_bits.getrandbits(64)
        downs = [
            coordinator.sync(up, self.now_ms, random_bits)
            for coordinator, up in zip(self.coordinators, ups, strict=True)
        ]
        self.law(downs[0] == downs[1], f"answers differ:\n{downs[0]}\n{downs[1]}")
        return downs[0]

    def hear_from_there(self, up: SyncUp) -> None:
        """A report of the other data center; what it is answered is taken in there at once."""
        up = msgspec.structs.replace(up, applied=self._applied_there, whole=True)
        downs = [coordinator.sync(up, self.now_ms, 0) for coordinator in self.coordinators]
        self._applied_there = downs[0].number
        self.law(
            downs[0].moves == downs[1].moves,
            f"answers there differ:\n{downs[0].moves}\n{downs[1].moves}",
        )
        if downs[0].moves:
            self.arrived_there = downs[0].moves.arrived

    def lose_the_coordinators(self) -> None:
        centers = tuple(self.coordinators[0].data_centers)
        self.coordinators = two_coordinators(centers, self.room, self.now_ms)

    def hear_from_there_alive(self, alone: bool, seconds: Sequence[tuple[int, int]] = ()) -> None:
        """The other data center says who waits there, or that no one is there, so that permits are
        granted here.
        """
        if not alone:
            self._reports_there += 1
            up = SyncUp(
                "there",
                1,
                self._reports_there,
                self.now_ms,
                0,
                0,
                0,
                0,
                0,
                0,
                0,
                (),
                0,
                0,
                sum(count for _, count in seconds),
                tuple(seconds),
                0.0,
            )
            self.hear_from_there(up)

    def apply(self, down: SyncDown) -> None:
        self.ledgers.apply(down, self.now_ms)
        self._call("apply", *arguments_of(down))

    def sync(self) -> None:
        for _ in range(3):
            self.apply(self.answered(self.report()))
            if not self.ledgers.lease.surplus:
                break

    # -- laws --

    def law(self, holds: bool, problem: str) -> None:
        if not holds:
            self.found.append(problem)

    def compare(self) -> None:
        """The state is the same too, and obeys the laws."""
        self.found += ledger_problems(self.ledgers)
        inspected, rows, unshown = self._together(
            self._function("inspect"),
            ["ZRANGE", f"{self.place}:failures", 0, -1, "WITHSCORES"],
            ["ZRANGE", f"{self.place}:unshown", 0, -1, "WITHSCORES"],
        )
        state = msgspec.msgpack.decode(inspected)
        ledgers, lease = self.ledgers, self.ledgers.lease
        lease.trim(self.now_ms)
        pure = {
            "permits": lease.permits, "freed": lease.freed, "closing": lease.closing, "granted_seen": lease.granted_seen, "used": lease.used, "over": lease.over,
            "settled": lease.settled, "returned_permits": lease.returned_permits, "returned_freed": lease.returned_freed,
            "admitted": lease.admitted, "inside": len(ledgers.sessions.inside), "waiting": len(ledgers.line), "minute_rows": len(lease.window),
            "contact_ms": lease.contact_ms, "fence_ms": lease.fence_ms, "called": ledgers.called, "pace": ledgers.lookahead.pace, "gap_ms": ledgers.lookahead.gap_ms, "lookahead": ledgers.lookahead.permits,
        }  # fmt: skip
        stored = {name: state[name] for name in pure}
        self.law(
            pure == stored,
            f"states differ: {dict(pure.items() - stored.items())} and {dict(stored.items() - pure.items())}",
        )
        self.law(
            (ledgers.line.kept is not None) == state["kept"],
            f"kept is {ledgers.line.kept} and {state['kept']}",
        )
        self._compare_newcomers(state, scores(unshown))
        turns = [
            {one: row for one, row in found if self.now_ms < parts_of(row)[0] * 1000 + WINDOW_MS}
            for found in (
                ledgers.failures.rows.items(),
                ((one, int(row)) for one, row in scores(rows).items()),
            )
        ]
        self.law(turns[0] == turns[1], f"turns: {turns[0]} and {turns[1]}")
        pure["moved"], state["moved"] = ledgers.moves.net, state["arrived"] - state["given"]
        left = state["permits"] + state["freed"] + state["closing"] + state["inside"]
        right = (
            state["granted_seen"]
            - state["returned_permits"]
            - state["returned_freed"]
            + state["over"]
            - state["settled"]
            + state["moved"]
        )
        self.law(left == right, f"{left} units where {right} were granted")

    def _compare_newcomers(self, state: dict[str, Any], stored: dict[bytes, float]) -> None:
        newcomers, ledgers = self.ledgers.newcomers, self.ledgers
        if self.room.confirm_newcomers != "auto" or self.room.queueing_method == "passthrough":
            return
        confirms, unshown = ledgers.confirms_newcomers(self.now_ms), ledgers.sessions.unshown
        self.confirmed += confirms
        self.law(
            confirms == state["confirm"],
            f"newcomers are confirmed: {confirms} and {state['confirm']}",
        )
        self.law(unshown == stored, f"unconfirmed sessions: {unshown} and {stored}")
        slots = state["unshown_slots"]
        self.law(newcomers._slots == slots, f"unconfirmed by slot: {newcomers._slots} and {slots}")

    def _same(self, what: str, pure: Outcome, stored: Outcome) -> Outcome:
        self.law(pure == stored, f"{what} differs:\n{pure}\n{stored}")
        return stored

    def _ask(self, what: int, one: bytes, key: int, random_bits: int) -> Outcome:
        return self._asked(QUESTION.pack(what, one, key, random_bits))

    def _asked(self, question: bytes) -> Outcome:
        reply = self._call("handle", question, 0, self.reader.summary)
        ((outcome, self.could_borrow),) = self.reader.read(*reply)  # type: ignore[misc]
        return outcome

    def _call(self, name: str, *arguments: bytes | str | int) -> object:
        return self._together(self._function(name, *arguments))[0]

    def _function(self, name: str, *arguments: bytes | str | int) -> list[Any]:
        return ["FCALL", TRIAL_LIBRARY.function(name), 1, self.place, self.settings, *arguments]

    def _together(self, *commands: list[Any]) -> list[Any]:
        """All answers of one packet, or the first error in them."""
        sent = list(commands)
        if self._clock_ms != self.now_ms:
            self._clock_ms = self.now_ms
            sent.insert(0, ["SET", f"{self.place}:clock", self.now_ms])
        self._wire.send_packed_command(self._wire.pack_commands(sent))
        found, errors = [], []
        for _ in sent:
            try:
                found.append(self._wire.read_response())
            except redis.ResponseError as error:
                errors.append(error)
        if errors:
            raise errors[0]
        return found[-len(commands) :]


def scores(reply: list[Any]) -> dict[bytes, float]:
    """Of members, in whichever version of the protocol."""
    pairs = reply if reply and isinstance(reply[0], list) else zip(*[iter(reply)] * 2, strict=True)
    return {member: float(score) for member, score in pairs}


def two_coordinators(centers: tuple[str, ...], room: Room, now_ms: int) -> list[Coordinator]:
    """Without forecasts, which both ledgers would be sent alike."""
    found = [Coordinator(centers, room, now_ms) for _ in range(2)]
    for coordinator in found:
        coordinator.forecaster.due_ms = NEVER_MS
    return found


def in_order(up: SyncUp) -> SyncUp:
    """A report whose unordered parts are sorted."""
    moves = up.moves
    if moves:
        moves = msgspec.structs.replace(
            moves,
            claims=tuple(sorted(moves.claims)),
            unknown=tuple(sorted(moves.unknown)),
            left=tuple(sorted(moves.left)),
        )
        if moves.places:
            asks = tuple(sorted(moves.places.asks))
            moved = tuple(sorted(moves.places.moved))
            places = msgspec.structs.replace(moves.places, asks=asks, moved=moved)
            moves = msgspec.structs.replace(moves, places=places)
        if moves.turns:
            rows, seeks = tuple(sorted(moves.turns.rows)), tuple(sorted(moves.turns.seeks))
            turns = msgspec.structs.replace(moves.turns, rows=rows, seeks=seeks)
            moves = msgspec.structs.replace(moves, turns=turns)
    return msgspec.structs.replace(
        up, seconds=tuple(sorted(up.seconds)), ended=tuple(sorted(up.ended)), moves=moves
    )
