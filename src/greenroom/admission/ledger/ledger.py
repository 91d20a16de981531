"""The ledger of one room in one data center: who is inside, who waits, and whose turn it is.

Theory. Admitting a visitor spends a permit that the ledger holds, in one local step (`lease`), so
delay or loss of messages costs utilisation, never a limit (docs/explanation/admission.md).

- A visitor in line checks in before ghosts are swept, or the poll that proves presence would sweep
  a late one.
- A ticket id has one session in its life. Afterwards it is spent until no waiting ticket of that id
  can be valid.
- The base classes: `held` makes the answers for those who are held, `state` has the parts.

`random_bits` are 64 bits. `log` collects records of what happened (`records`); the owner stores
them before it answers the visitor, and calls `undo` when that fails.
"""

from collections.abc import Mapping

from greenroom.admission.lease import PermitSource
from greenroom.admission.ledger import exchange
from greenroom.admission.ledger.failures import TURN_KEPT_MS
from greenroom.admission.ledger.held import WAITING, HeldVisitors
from greenroom.admission.ledger.keeping import is_rare, kept_ms
from greenroom.admission.ledger.provisional import PROVISIONAL_MS
from greenroom.admission.ledger.refresh import CALLED_REFRESH_MS
from greenroom.admission.ledger.restoring import restore
from greenroom.admission.ledger.sessions import BEGAN_BITS, BEGAN_MASK
from greenroom.admission.ledger.tally import Taken
from greenroom.admission.ledger.turns import KEPT_MS, Turns
from greenroom.admission.messages.sync import SyncDown, SyncUp
from greenroom.admission.queueing.line import GRACE_MS
from greenroom.admission.queueing.methods import PermitAttempt
from greenroom.admission.records import (
    ADMIT,
    END,
    EXTENDED,
    PLACE,
    SESSION,
    LedgerMemory,
    pack,
    pack_turn,
)
from greenroom.admission.timer_wheel import CELL_BITS
from greenroom.model.line_table import LineTable
from greenroom.model.record import replace
from greenroom.model.room import Room
from greenroom.model.visit import PLACE_KEPT_MS, Outcome, Standing, arrival_ms_of, make_key

SWEEP_LIMIT = 20_000
"""Entries of each kind examined in one sweep before a draw, which should miss none: up to 90 ms."""

SWEEP_SLICE = 500
"""The same while visitors wait: about 2 ms. The next tick, which is soon, does the rest."""

GONE, GONE_KEPT = Outcome(Standing.GONE), Outcome(Standing.GONE, kept_ms=1)
ADMITTED, ACTIVE = Standing.ADMITTED, Standing.ACTIVE


class Ledger(HeldVisitors):
    def __init__(self, room: Room, data_center: str, epoch: int, now_ms: int) -> None:
        super().__init__(room, data_center, epoch, now_ms)
        self._swept = 0
        self._unseen = 0  # about how many newcomers' tickets have not come back
        # the last admission: who, with what, the place, and whether paced
        self._last: tuple[bytes, PermitSource, tuple[int, int] | None, bool] | None = None
        self._opened_ms = 0
        self._told_ended_ms = self._ended_to_ms = room.sessions_ended_ms
        self.configure(room, now_ms)

    # -- what visitors ask -------------------------------------------------------------------------

    def arrive(self, ticket_id: bytes, now_ms: int, random_bits: int, told: bool = True) -> Outcome:
        """Admits a newcomer without a ticket, or holds it outside the line with nothing stored. Not
        `told`: without an estimate.
        """
        if now_ms >> CELL_BITS != self._swept:
            self.sweep(now_ms, SWEEP_SLICE)
        source = self._newcomer_source(now_ms) if self._open and not self.halted else None
        if source and not self._must_show_ticket(now_ms):
            if self.newcomers.watches:
                self.newcomers.admit(now_ms)
                self.sessions.unshown[ticket_id] = now_ms
            return self._admit(ticket_id, source, now_ms, None)
        full = source is None or (
            not self._queueing.overdraws
            and self.newcomers.crowded(self.lease.at_hand(now_ms) - len(self.line.slots), now_ms)
        )
        unknown = full and not self.line.slots and not self.waits.wait_reader.current(now_ms)
        refresh_ms = self._join_refresh(random_bits, source is not None)
        if unknown or not told:  # no ticket has come back: how many came before is unknown
            return self._untold(now_ms, refresh_ms)
        waiting = len(self.line.slots)
        return self._outside(now_ms, refresh_ms, waiting, self.line_ms(now_ms), self._unseen)

    def arrive_provisionally(self, ticket_id: bytes, now_ms: int) -> Outcome:
        """Admits a request that cannot wait for PROVISIONAL_MS while there is room to spare; else
        WAITING, with nothing stored.
        """
        if now_ms >> CELL_BITS != self._swept:
            self.sweep(now_ms, SWEEP_SLICE)
        renewed_ms = self._provisional_renewal(now_ms)
        overdraws = self._queueing.overdraws
        if (
            not self._lets_pass(now_ms)
            or (source := self.lease.source(now_ms, overdraws, paced=False)) is None
        ):
            return Outcome(
                WAITING,
                attempted_ms=now_ms,
                waiting=len(self.line.slots),
                storage_failed=self.halted,
            )
        self.lease.spend(source, now_ms, paced=False)
        self.sessions.resume(ticket_id, renewed_ms)
        self.provisional.begin(ticket_id, now_ms)
        self.log += (pack(ADMIT, ticket_id, now_ms), pack(SESSION, ticket_id, renewed_ms))
        self._last = (ticket_id, source, None, False)
        return Outcome(ADMITTED, renewed_ms + self.life_ms, renewed_ms)

    def poll(self, ticket_id: bytes, key: int, now_ms: int, random_bits: int) -> Outcome:
        sessions, line = self.sessions, self.line
        if (ticket_id in sessions.inside or ticket_id in sessions.spent) and self._settled(
            ticket_id, now_ms
        ):
            return self.view(ticket_id, now_ms)
        slot = line.slots.get(ticket_id, -1)
        before: tuple[int, int] | None = None
        if slot >= 0:
            key = line.keys[slot]
            before = (key, line.attempted[slot])
            line.attempted[slot] = now_ms
        if now_ms >> CELL_BITS != self._swept:
            self.sweep(now_ms, SWEEP_SLICE)
        if slot < 0:
            if self._rejecting:
                return self._outside(now_ms, 0, line.rank(key), arrival_ms_of(key))
            slot = self._join(ticket_id, key, now_ms)
        rank = line.rank(key)
        lease = self.lease
        if self._open and not self.halted:
            queueing, lookahead = self._queueing, self.lookahead.permits
            # an upper bound of `spendable`: most visitors are too far behind even for it
            spare = lease.permits if lease.permits > 0 else lease.freed
            waiting = len(line.slots)
            if queueing.overdraws or (
                spare > 0 and (queueing.lots or queueing.called(waiting, rank, spare, lookahead))
            ):
                attempt = PermitAttempt(
                    waiting,
                    rank,
                    key,
                    lease.spendable(now_ms),
                    lookahead,
                    lease.horizon_at(now_ms, int(self.lookahead.gap_ms)),
                    line.first_ms,
                    before is None and self._is_new(key, now_ms),
                )
                if queueing.admits(attempt):
                    source = lease.source(now_ms, queueing.overdraws)
                    if source:
                        return self._admit(ticket_id, source, now_ms, before or (key, now_ms))
        if before is None:
            self.log.append(pack(PLACE, ticket_id, key))
        return self._hold(slot, rank, now_ms, random_bits, before is None)

    def _join(self, ticket_id: bytes, key: int, now_ms: int) -> int:
        slot = self.line.join(ticket_id, key, now_ms, CALLED_REFRESH_MS)
        self.line_counts.place_taken(key, now_ms)
        self.sessions.spent.pop(ticket_id, None)
        self.reporting.newcomers += 1
        if ticket_id in self.absent.rows:
            self.absent.rows[ticket_id] = 0
        return slot

    def peek(self, ticket_id: bytes, key: int, now_ms: int, random_bits: int) -> Outcome:
        sessions, line = self.sessions, self.line
        if (ticket_id in sessions.inside or ticket_id in sessions.spent) and (
            known := self._settled(ticket_id, now_ms)
        ):
            return known
        slot = line.slots.get(ticket_id, -1)
        if slot < 0:
            if self.failures.rows and self.failures.is_kept(ticket_id, now_ms):
                return self._over(ticket_id, now_ms)
            refresh_ms = self._join_refresh(random_bits)
            return self._outside(now_ms, refresh_ms, line.rank(key), arrival_ms_of(key))
        return self._early(slot, now_ms)

    def reclaim(self, ticket_id: bytes, key: int, now_ms: int, random_bits: int) -> Outcome:
        """Whether a visitor who was away, with a ticket too old for `poll`, can still take the
        place: as `peek`, `called` when its turn has come, GONE when that was too long ago.
        """
        if ticket_id in self.line.slots:
            if self._claim_ms:
                self.absent.mark(ticket_id)
        elif ticket_id not in self.sessions.inside:
            turns = self.turns
            if not (turns and self._claim_ms and turns.holds(key, self._claim_ms, now_ms)):
                return GONE
            if key <= turns.passed and ticket_id not in self.sessions.spent:
                return replace(self.peek(ticket_id, key, now_ms, random_bits), called=True)
        return self.peek(ticket_id, key, now_ms, random_bits)

    def view(self, ticket_id: bytes, now_ms: int) -> Outcome:
        sessions = self.sessions
        session = sessions.inside.get(ticket_id)
        if session is None or now_ms >= (renewed_ms := session >> BEGAN_BITS) + self.life_ms:
            return self._over(ticket_id, now_ms)
        sessions.seen[ticket_id] = now_ms
        if sessions.unshown:
            self.see(ticket_id, now_ms)
        if now_ms - renewed_ms > self._renewal_age_ms and not self.lease.fenced(now_ms):
            begun_ms = self.provisional.fulfil(ticket_id)
            if self.renews or begun_ms is not None:
                renewed_ms = begun_ms if begun_ms is not None and not self.renews else now_ms
                sessions.renew(ticket_id, renewed_ms)
                self.log.append(pack(SESSION, ticket_id, renewed_ms))
        return Outcome(ACTIVE, renewed_ms + self.life_ms, renewed_ms)

    def extend(self, ticket_id: bytes, times: int, now_ms: int) -> Outcome:
        """Gives more time to a session that requests do not renew (WCAG 2.2.1): ACTIVE with its end,
        or GONE.

        A visitor may ask again and again; one press in q counts. The session lasts a session
        duration from then, and at most `times` session durations beyond the last renewal before the
        first extension. That renewal is stored, so neither haste nor another device adds to it.
        """
        outcome, sessions = self.view(ticket_id, now_ms), self.sessions
        late = now_ms - outcome.renewed_ms > self._renewal_age_ms
        if (
            outcome.standing is Standing.GONE
            or not late
            or self.renews
            or self.lease.fenced(now_ms)
        ):
            return outcome
        since_ms = sessions.extended.get(ticket_id, outcome.renewed_ms)
        renewed_ms = min(now_ms, since_ms + times * sessions.life_ms)
        if renewed_ms <= outcome.renewed_ms:
            return outcome
        if ticket_id not in sessions.extended:
            sessions.extended[ticket_id] = since_ms
            self.log.append(pack(EXTENDED, ticket_id, since_ms))
        sessions.renew(ticket_id, renewed_ms)
        self.log.append(pack(SESSION, ticket_id, renewed_ms))
        return Outcome(ACTIVE, renewed_ms + sessions.life_ms, renewed_ms)

    def line_table(self, now_ms: int) -> LineTable:
        """For rooms in order of arrival."""
        if now_ms >> CELL_BITS != self._swept:
            self.sweep(now_ms, SWEEP_SLICE)
        return self._table(now_ms)

    def leave(self, ticket_id: bytes, now_ms: int) -> Standing:
        was = Standing.GONE
        sessions = self.sessions
        renewed_ms = sessions.renewed(ticket_id)
        if renewed_ms is not None:
            sessions.end(ticket_id, now_ms)
            was, until_ms = Standing.ACTIVE, self.spend_of_copy(ticket_id, renewed_ms, now_ms)
            self.failures.rows.pop(ticket_id, None)
            self.lease.free()
        elif self.leave_line(ticket_id):
            self.line_counts.lost += 1
            was, until_ms = Standing.WAITING, sessions.spend_place(ticket_id, now_ms)
        else:
            return was
        self.log.append(pack(END, ticket_id, until_ms))
        return was

    def admit_mover(self, ticket_id: bytes, now_ms: int) -> Outcome | None:
        able = (
            self._open
            and not self.halted
            and self.lease.permits > 0
            and not self.lease.fenced(now_ms)
            and ticket_id not in self.sessions.inside  # over, but its unit is not free yet
        )
        return (
            self._admit(ticket_id, PermitSource.PERMIT, now_ms, None, paced=False) if able else None
        )

    def keep(self, ticket_id: bytes, gap_ms: int, now_ms: int) -> None:
        slot = self.line.slots.get(ticket_id, -1)
        if (
            slot >= 0
            and is_rare(self.lookahead.pace)
            and self._called(self.line.rank(self.line.keys[slot]))
        ):
            self.line.keep(slot, now_ms + kept_ms(gap_ms), now_ms)

    # -- what operators and time change ------------------------------------------------------------

    def configure(self, room: Room, now_ms: int) -> None:
        """Sessions end at their last renewal plus the new duration."""
        self.sweep(now_ms, SWEEP_SLICE)  # the next ticks remove the other ghosts
        was_rejecting = self._rejecting
        self._configure_line(room)
        self._provisional = room.confirm_newcomers is not True
        self.strong = room.strong_sessions
        self.renews = not room.disable_session_renewal
        self._renewal_age_ms = room.renewal_age_ms
        # sessions whose renewal is older than this are over, also when the new duration is longer
        if self.life_ms:
            self._ended_to_ms = max(self._ended_to_ms, now_ms - self.life_ms)
        # A renewal may be q old when the visitor is last seen: q on top keeps the promised
        # duration. Without renewals there is no gap.
        before_ms = self.life_ms
        self.life_ms = room.session_ms + (room.renewal_age_ms if self.renews else 0)
        self.lease.lengthen(max(0, self.life_ms - before_ms), now_ms)
        self.newcomers.configure(room)
        if not self.newcomers.watches:
            self.sessions.unshown.clear()
        self._limits = (room.total_active_users, room.new_users_per_minute)
        self._claim_ms = room.claim_ms
        if self._claim_ms and self.turns is None:
            self._watch_turns(Turns())
        self.sessions.change_life(self.life_ms, now_ms, self.expired)
        if room.sessions_ended_ms > self._told_ended_ms:
            self._told_ended_ms, self.all_ended_ms = room.sessions_ended_ms, now_ms
            self._ended_to_ms = max(self._ended_to_ms, now_ms - 1)
            self._end_all_sessions(now_ms)
        if was_rejecting and not self._rejecting:
            self._opened_ms = now_ms
            self.line.pardon(now_ms + self.longest_refresh_ms + GRACE_MS)

    def _end_all_sessions(self, now_ms: int) -> None:
        # units stay in use for CLOSING_MS: some requests reach the origin without asking a ledger
        ended = self.sessions.end_all(now_ms)
        self.log.extend(pack(END, ticket_id, until_ms) for ticket_id, until_ms in ended)
        self.log += self.failures.clear()
        self.moves.claims.clear()
        self.lease.close(len(ended), now_ms)

    def rekey(self, keys: Mapping[bytes, int]) -> None:
        self.log.extend(
            pack(PLACE, ticket_id, keys[ticket_id]) for ticket_id in self.line.rekey(keys)
        )

    def sweep(self, now_ms: int, limit: int = SWEEP_LIMIT) -> bool:
        """Ends sessions whose time is over, removes ghosts, measures the pace. Returns whether more
        than `limit` were due.
        """
        self._swept = now_ms >> CELL_BITS
        self.sessions.expire(now_ms, limit, self.expired)
        self.lease.free_closed(now_ms)
        if self.failures.rows:
            self.failures.forget(now_ms, limit)
        patience_ms = PLACE_KEPT_MS if self._rejecting else 0
        for ticket_id, slot in self.line.sweep(now_ms, patience_ms, limit):
            key = self.line.keys[slot]
            if not self.absent.lose(ticket_id, key):
                self.sessions.tally.abandoned()
            self.line_counts.place_lost(key, self.line.attempted[slot])
            self.log.append(pack(END, ticket_id, 0))
        self.lease.trim(now_ms)
        self.waits.lookahead(now_ms, len(self.line) > 0)
        self.lookahead.look(now_ms)
        self._unseen = self.line.unseen(self.line_ms(now_ms) // 1000)
        if self.turns is not None and self.turns.due(now_ms) and self._would_admit_anybody():
            self._turn_came(self.turns, make_key(self.line_ms(now_ms), 0), now_ms)
        return self.sessions.overdue(now_ms) or self.line.overdue(now_ms)

    def undo(self, now_ms: int, random_bits: int) -> Outcome:
        """Undoes the last admission, which could not be stored. Returns the answer instead."""
        if self._last is None:
            raise ValueError("the last operation admitted no visitor")
        ticket_id, source, place, paced = self._last
        self._last = None
        self.halted = True
        self.see(ticket_id, now_ms)
        self.sessions.forget(ticket_id)
        self.provisional.undo(ticket_id)
        self.lease.unspend(source, paced)
        if place is None:
            refresh_ms, waiting = self._join_refresh(random_bits), len(self.line)
            return self._outside(now_ms, refresh_ms, waiting, self.line_ms(now_ms), self._unseen)
        slot = self.line.join(ticket_id, place[0], now_ms, self.longest_refresh_ms)
        if place[1] != now_ms:
            self.waits.admission_rate.count(-1)
            self.lookahead.undo()
        return self._hold(slot, self.line.rank(place[0]), now_ms, random_bits)

    def restore(self, memory: LedgerMemory, now_ms: int, older: bool = False) -> None:
        if memory.turns:
            self._watch_turns(Turns(memory.turns))
        restore(self, memory, now_ms, self.life_ms, self._told_ended_ms, older)
        self.empty_ms = now_ms if older else 0
        # which tickets came back is not stored: assume not those of sessions that were never renewed
        if self.newcomers.watches:
            self.newcomers.turn(now_ms)
            for ticket_id, session in self.sessions.inside.items():
                if session >> BEGAN_BITS == session & BEGAN_MASK:
                    self.sessions.unshown[ticket_id] = session >> BEGAN_BITS
                    self.newcomers.admit(session >> BEGAN_BITS)

    def memory(self, now_ms: int) -> LedgerMemory:
        """What `restore` needs, with overdue sessions, which it finds again."""
        self.lease.trim(now_ms)
        sessions, places = self.sessions, dict(self.line.in_order())
        return LedgerMemory(
            sessions.renewals(),
            places,
            sessions.spent,
            list(self.lease.window),
            now_ms,
            sessions.begun(),
            dict(sessions.extended),
            self.turns.noted() if self.turns else {},
            dict(self.failures.rows),
        )

    def tally(self, now_ms: int) -> Taken:
        if self.turns is not None and self.absent.rows:
            over = self.turns.over(self._claim_ms, now_ms)
            self.sessions.tally.abandoned(self.absent.end(over))
        return self.sessions.tally.take()

    # -- sync --------------------------------------------------------------------------------------

    def report(self, now_ms: int, want: int = 0) -> SyncUp:
        return exchange.report(self, now_ms, want)

    def farewell(self, now_ms: int) -> SyncUp | None:
        return exchange.farewell(self, now_ms)

    def apply(self, down: SyncDown, now_ms: int) -> None:
        exchange.apply(self, down, now_ms)

    def borrows(self, now_ms: int) -> int:
        """Permits to request for a newcomer because the lease ran dry; 0: a request would not help.
        A newcomer who must show the ticket waits too: the permits are there on return, and a flood
        cannot spend them.
        """
        lease = self.lease
        if lease.permits > 0 or lease.queueing or self.line.slots or not self._open or self.halted:
            return 0
        return (
            self.reporting.borrowing.amount(self.arrivals_per_s, now_ms)
            if lease.connected(now_ms)
            else 0
        )

    def borrows_provisionally(self, now_ms: int) -> int:
        """The same for all requests that cannot wait together."""
        lease = self.lease
        if (
            lease.permits > 0
            or not lease.connected(now_ms)
            or not self.reporting.borrowing.rested(now_ms)
            or not self._lets_pass(now_ms)
        ):
            return 0
        return self.provisional.left(now_ms, lease.data_centers, *self._limits)

    def wants_permits(self) -> bool:
        """Whether a further permit would admit a visitor now."""
        lease = self.lease
        return (
            self._open
            and not self.halted
            and (lease.permits <= 0 or (lease.queueing and not self.line.slots))
        )

    @property
    def arrivals_per_s(self) -> float:
        return self.reporting.arrivals_per_s

    def confirms_newcomers(self, now_ms: int) -> bool:
        return self.newcomers.confirms(len(self.sessions.unshown), self.lease.data_centers, now_ms)

    # -- inside ------------------------------------------------------------------------------------

    def _must_show_ticket(self, now_ms: int) -> bool:
        return self.confirms_newcomers(now_ms) or self.newcomers.takes_the_last(
            self.lease, len(self.line.slots), now_ms
        )

    def _over(self, ticket_id: bytes, now_ms: int) -> Outcome:
        """GONE, with `kept_ms` where `failing.reenter` has a turn; or that the id moves or has
        moved.
        """
        if told := self.moving_places.told(ticket_id, len(self.line), now_ms):
            return told
        failures, renewed_ms = self.failures, self.sessions.renewed(ticket_id)
        if renewed_ms is None:
            waits = ticket_id in self.line.slots and failures.is_taken(ticket_id, now_ms)
            return GONE_KEPT if waits or failures.is_kept(ticket_id, now_ms) else GONE
        ends_ms = renewed_ms + self.life_ms
        kept = failures.keeps(ticket_id, ends_ms)
        return GONE_KEPT if kept and now_ms // 1000 < (ends_ms + TURN_KEPT_MS) // 1000 else GONE

    def _settled(self, ticket_id: bytes, now_ms: int) -> Outcome | None:
        renewed_ms = self.sessions.renewed(ticket_id)
        if renewed_ms is not None:
            ends_ms = renewed_ms + self.life_ms
            lives = now_ms < ends_ms
            return Outcome(ACTIVE, ends_ms, renewed_ms) if lives else self._over(ticket_id, now_ms)
        spent = self.sessions.spent.get(ticket_id, 0) > now_ms
        return self._over(ticket_id, now_ms) if spent else None

    def _provisional_renewal(self, now_ms: int) -> int:
        """The nominal last renewal of a provisional session that begins now, so that it ends
        PROVISIONAL_MS from now.
        """
        return now_ms + min(PROVISIONAL_MS, self.life_ms) - self.life_ms

    def _lets_pass(self, now_ms: int) -> bool:
        """Whether a request that cannot wait is admitted now if there is a permit."""
        free = (
            self._open
            and self._provisional
            and not self.halted
            and not self.line.slots
            and not self.lease.queueing
        )
        if not free or self._provisional_renewal(now_ms) <= self._ended_to_ms:
            return False
        return self.provisional.has_room(now_ms, self.lease.data_centers, *self._limits)

    def _newcomer_source(self, now_ms: int) -> PermitSource | None:
        """What a newcomer may be admitted with: those in line here come first, and while the
        coordinator is queueing those anywhere.
        """
        lease, waiting = self.lease, len(self.line.slots)
        if self._queueing.overdraws:
            return lease.source(now_ms, True)
        if lease.permits > waiting and not lease.queueing and lease.at_hand(now_ms) > waiting:
            return PermitSource.PERMIT
        return None if waiting or lease.connected(now_ms) else lease.source(now_ms, False)

    def _admit(
        self,
        ticket_id: bytes,
        source: PermitSource,
        now_ms: int,
        place: tuple[int, int] | None,
        paced: bool = True,
    ) -> Outcome:
        """`place`: (key, previous check-in) of a visitor in line. An admission that is not `paced`
        uses none of the pace up.
        """
        paced = paced and not self._queueing.overdraws
        if place is None:
            self.reporting.newcomers += 1
        else:
            self.leave_line(ticket_id)
            if self.turns is not None:
                self._turn_came(self.turns, place[0], now_ms)
            self.line_counts.front_s = arrival_ms_of(place[0]) // 1000
            if place[1] != now_ms:
                self.waits.admission_rate.count()
                self.lookahead.count(
                    min(now_ms - max(place[1], self._opened_ms), self.longest_refresh_ms + GRACE_MS)
                )
        self.lease.spend(source, now_ms, paced)
        self.sessions.begin(ticket_id, now_ms)
        self.log.append(pack(ADMIT, ticket_id, now_ms))
        self._last = (ticket_id, source, place, paced)
        kept_ms = int(bool(self.failures.rows) and self.failures.is_taken(ticket_id, now_ms))
        if ticket_id in self.moves.claims:
            self.log += self.moving_turns.replaced(ticket_id, now_ms)
        return Outcome(ADMITTED, now_ms + self.life_ms, now_ms, kept_ms=kept_ms)

    def _watch_turns(self, turns: Turns) -> None:
        """From now on, even if the room stops keeping places of visitors who are away."""
        self.turns, self.sessions.kept_ms = turns, KEPT_MS

    def _would_admit_anybody(self) -> bool:
        lease = self.lease
        return self._open and lease.permits > 0 and not (self.line.slots or lease.queueing)

    def _turn_came(self, turns: Turns, key: int, now_ms: int) -> None:
        if key > turns.passed:
            self.log.append(pack_turn(turns.admitted(key, now_ms), key))
