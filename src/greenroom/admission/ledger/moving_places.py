"""A ledger's side of moves to another device among several data centers (`messages.places`)."""

from itertools import islice

from greenroom.admission.ledger.barred_places import (
    ASKED_MAX,
    BARRED_MAX,
    FAILED,
    GONE,
    PENDING_MS,
    SEEN_MAX,
    SEEN_MS,
    Barred,
    OpenMove,
    PlaceMove,
    held,
)
from greenroom.admission.ledger.failures import WINDOW_MS
from greenroom.admission.ledger.moving import move, row_moves, take_turn
from greenroom.admission.ledger.state import LedgerState
from greenroom.admission.ledger.transfers import SOURCE_SLACK_MS, give
from greenroom.admission.messages.places import (
    ASK,
    BUSY,
    CANCEL,
    COMMIT,
    DONE,
    FREE,
    PLACE,
    SESSION,
    SPENT,
    PlacesDown,
    PlacesUp,
)
from greenroom.admission.records import END, pack
from greenroom.model.visit import Outcome, Standing


def move_among(
    ledger: LedgerState, old: bytes, new: bytes, absent: bool, nonce: int, now_ms: int
) -> Outcome:
    """As `moving.move`; the same press calls it again while the outcome is `searching`."""
    places = ledger.moving_places
    asked = places.asked.get(old)
    if asked is not None and asked.nonce == nonce:
        _look(ledger, old, asked, now_ms)
        return asked.outcome or held(len(ledger.line), now_ms)
    if asked is not None and not asked.done:
        return FAILED if asked.phase == CANCEL else GONE
    if ledger.lease.answered_ms is not None and ledger.lease.data_centers <= 1:
        moved = move(ledger, old, new, absent, now_ms)
        take_turn(ledger, new, now_ms)
        return Outcome(moved)
    if told := places.told(old, 0, now_ms):
        return FAILED if told.searching else GONE
    full = len(places.asked) >= ASKED_MAX and asked is None
    full = full or len(places.barred) >= BARRED_MAX
    if full or places.arrives(old) or not ledger.lease.connected(now_ms):
        return FAILED
    here = _known(ledger, old, now_ms)
    if here == SPENT and old not in ledger.moves.elsewhere:
        return GONE
    serial = now_ms * 1_000 + nonce % 1_000  # two presses at one moment differ
    asked = places.asked[old] = OpenMove(new, serial, nonce, absent, here, now_ms)
    places.olds[new] = old
    places.spoken = True
    _hold(ledger, PlaceMove(old, new, ledger.data_center, serial), here, now_ms)
    return held(len(ledger.line), now_ms)


def report(ledger: LedgerState, now_ms: int) -> PlacesUp | None:
    """None while there is nothing to report, and never was."""
    places = ledger.moving_places
    if not places.spoken:
        return None
    for old, asked in places.asked.items():
        _look(ledger, old, asked, now_ms)
    places.asked = {
        old: asked
        for old, asked in places.asked.items()
        if not asked.done or now_ms - asked.since_ms < 2 * PENDING_MS
    }
    places.olds = {asked.new: old for old, asked in places.asked.items()}
    places.barred = {one: bar for one, bar in places.barred.items() if bar.until_ms > now_ms}
    _thin(ledger, now_ms)
    places.seen = {one: seen for one, seen in places.seen.items() if seen[2] > now_ms}
    # all of them: whoever learns that a move is over learns what was asked before too (`arrives`)
    asks = [
        (old, asked.new, asked.serial, asked.phase)
        for old, asked in places.asked.items()
        if not asked.done
    ]
    return PlacesUp(tuple(asks), places.said, places.tell, _moved(ledger) if places.tell else ())


def hear(ledger: LedgerState, down: PlacesDown, now_ms: int) -> None:
    places = ledger.moving_places
    places.tell, places.learners = down.tell, down.learners
    for old, new, source, serial in down.moved:
        known, own = places.barred.get(old), places.asked.get(old)
        if (known is None or not known.moved) and (own is None or own.serial != serial):
            places.spoken = True
            if own is not None and own.phase == ASK:
                _cancel(ledger, old, own, FAILED, now_ms)
            _commit(ledger, PlaceMove(old, new, source or ledger.data_center, serial), now_ms)
    said = []
    for old, new, source, serial, phase in down.asks:
        places.spoken = True
        newest, answer, _ = places.seen.pop((old, source), ((0, ASK), FREE, 0))
        if (serial, phase) > newest:
            newest = serial, phase
            answer = _answer(ledger, PlaceMove(old, new, source, serial), phase, now_ms)
        places.seen[old, source] = newest, answer, now_ms + SEEN_MS
        if phase != ASK:  # also where a source that lost its state cancels what it had committed
            said.append((old, source, serial, phase, DONE))
        elif (serial, phase) == newest:
            said.append((old, source, serial, phase, answer))
    places.said = tuple(said)
    surplus = len(places.seen) - len(down.asks) - SEEN_MAX
    for one in list(islice(places.seen, max(0, surplus))):  # the oldest
        del places.seen[one]
    for old, serial, phase, answer in down.said:
        asked = places.asked.get(old)
        if asked is None or (asked.serial, asked.phase) != (serial, phase):
            continue
        if phase == ASK:
            asked.doubled = asked.here == SESSION and answer >= SPENT
            _decide(ledger, old, asked, max(answer, asked.here), now_ms)
        else:
            asked.done = True


def arrived(ledger: LedgerState, ticket_id: bytes, now_ms: int) -> None:
    """A session or failure row came, whose visitor may have moved on."""
    barred = ledger.moving_places.barred.get(ticket_id)
    if barred is not None and barred.moved:
        _session_moves(ledger, ticket_id, barred.new, barred.source, now_ms)


# -- inside ----------------------------------------------------------------------------------------


def _thin(ledger: LedgerState, now_ms: int) -> None:
    """Drops bars that are so old that the spent id alone refuses all that may still come."""
    barred = ledger.moving_places.barred
    if len(barred) < BARRED_MAX - ASKED_MAX:
        return
    old_ms = now_ms - max(WINDOW_MS, ledger.life_ms) - SOURCE_SLACK_MS
    for one, bar in list(islice(barred.items(), ASKED_MAX)):
        if bar.moved and bar.at_ms <= old_ms:
            del barred[one]


def _moved(ledger: LedgerState) -> tuple[tuple[bytes, bytes, str, int], ...]:
    places, here = ledger.moving_places, ledger.data_center
    found = [
        (-bar.until_ms, old, bar.new, "" if bar.source == here else bar.source, bar.serial)
        for old, bar in places.barred.items()
        if bar.moved or bar.source in places.learners
    ]
    return tuple([row[1:] for row in sorted(found)[:ASKED_MAX]])


def _look(ledger: LedgerState, old: bytes, asked: OpenMove, now_ms: int) -> None:
    """Settles the move if its session has come or the time is up."""
    if asked.outcome is not None:
        return
    late = now_ms - asked.since_ms >= PENDING_MS
    if asked.phase == ASK:
        if late:
            _cancel(ledger, old, asked, FAILED, now_ms)
    elif ledger.living(asked.new, now_ms) is not None:
        if asked.done or late or not asked.doubled:
            asked.outcome = Outcome(Standing.ACTIVE)
    elif take_turn(ledger, asked.new, now_ms):
        asked.outcome = Outcome(Standing.WAITING)
    elif late:
        asked.outcome = GONE


def _known(ledger: LedgerState, old: bytes, now_ms: int) -> int:
    if ledger.living(old, now_ms) is not None:
        return SPENT if ledger.provisional.holds(old) else SESSION
    if ledger.failures.is_kept(old, now_ms):
        return SESSION
    if ledger.sessions.spent.get(old, 0) > now_ms:
        return SPENT
    return PLACE if old in ledger.line.slots else FREE


def _hold(ledger: LedgerState, begun: PlaceMove, known: int, now_ms: int) -> None:
    """Bars the id until it is known whether it moves; a session stays."""
    _drop(ledger, begun.old)
    if known in (FREE, PLACE):
        _bar(ledger, begun, now_ms, moved=False)
        return
    until_ms = now_ms + ledger.life_ms
    barred = Barred(begun.source, begun.serial, begun.new, now_ms, until_ms, False, spent=False)
    ledger.moving_places.barred[begun.old] = barred


def _drop(ledger: LedgerState, old: bytes) -> None:
    ledger.moves.claims.pop(old, None)  # or it takes an orphan that is another visitor's
    if old in ledger.line.slots:  # it is taken again by its key
        ledger.drop_place(old)


def _bar(ledger: LedgerState, begun: PlaceMove, now_ms: int, moved: bool) -> None:
    old, new, source, serial = begun
    until_ms = ledger.sessions.spend_place(old, now_ms)
    ledger.log.append(pack(END, old, until_ms))
    until_ms = max(until_ms, now_ms + ledger.life_ms + SOURCE_SLACK_MS)
    ledger.moving_places.barred[old] = Barred(source, serial, new, now_ms, until_ms, moved)


def _lift(ledger: LedgerState, old: bytes, source: str, serial: int, now_ms: int) -> None:
    barred = ledger.moving_places.barred.get(old)
    if barred is None or barred.moved:
        return
    if (barred.source, barred.serial) == (source, serial):
        del ledger.moving_places.barred[old]
        if barred.spent:
            row_moves(ledger, barred.new, old, now_ms)
            ledger.sessions.revive(old)
            ledger.log.append(pack(END, old, 0))


def _answer(ledger: LedgerState, begun: PlaceMove, phase: int, now_ms: int) -> int:
    places, (old, new, source, serial) = ledger.moving_places, begun
    if phase == CANCEL:
        _lift(ledger, old, source, serial, now_ms)
        return DONE
    if phase == ASK and places.arrives(old):
        return BUSY
    own = places.asked.get(old)
    if own is not None and own.phase == ASK and phase == ASK:
        if serial >= own.serial:
            return BUSY
        _cancel(ledger, old, own, FAILED, now_ms)  # the earlier of two presses wins
    told = places.told(old, 0, now_ms)
    known = _known(ledger, old, now_ms)
    if phase == ASK:
        if told is not None:
            return BUSY if told.searching else SPENT
        if known in (FREE, PLACE):
            row_moves(ledger, old, new, now_ms)
        _hold(ledger, begun, known, now_ms)
        return known
    _commit(ledger, begun, now_ms)
    return DONE


def _commit(ledger: LedgerState, begun: PlaceMove, now_ms: int) -> None:
    _drop(ledger, begun.old)  # a ledger that lost its state, or is new, was not asked
    if _known(ledger, begun.old, now_ms) == SESSION:
        _session_moves(ledger, begun.old, begun.new, begun.source, now_ms)
    _bar(ledger, begun, now_ms, moved=True)


def _session_moves(ledger: LedgerState, old: bytes, new: bytes, source: str, now_ms: int) -> None:
    moved = move(ledger, old, new, False, now_ms)
    late = row_moves(ledger, old, new, now_ms)
    if source == ledger.data_center:
        return
    if moved is Standing.ACTIVE:
        give(ledger, new, source, now_ms)
    elif late or moved is Standing.WAITING:
        ledger.log += ledger.moving_turns.leave(new, source, now_ms)


def _decide(ledger: LedgerState, old: bytes, asked: OpenMove, known: int, now_ms: int) -> None:
    if known == BUSY:
        _cancel(ledger, old, asked, FAILED, now_ms)
        return
    if known == SPENT or (known == FREE and not asked.absent):
        _cancel(ledger, old, asked, GONE, now_ms)
        return
    asked.phase, asked.since_ms = COMMIT, now_ms
    if known != SESSION:
        asked.outcome = Outcome(Standing.WAITING)
        row_moves(ledger, old, asked.new, now_ms)
    _commit(ledger, PlaceMove(old, asked.new, ledger.data_center, asked.serial), now_ms)


def _cancel(
    ledger: LedgerState, old: bytes, asked: OpenMove, outcome: Outcome, now_ms: int
) -> None:
    asked.phase, asked.outcome = CANCEL, outcome
    _lift(ledger, old, ledger.data_center, asked.serial, now_ms)
