"""Which message a visitor who wants to be called is sent when, and when the row ends."""

from bisect import bisect_left
from typing import NamedTuple

from greenroom.model.call import CONFIRM, NOW, RETURNED, SOON, VisitorCall
from greenroom.model.record import replace
from greenroom.model.visit import Estimate, Outcome, Standing

CONFIRM_MS = 1_800_000
"""An unconfirmed address is dropped then."""

LOOK_MS = 3_000

LOOK_MAX_MS = 60_000
"""A place that ended far from its turn is noticed by then."""

RETURNED_MS = 600_000
"""Shortest time between two messages that something is available again."""

NOW_S = 20.0
"""At this median wait the turn counts as come: opening the page takes as long."""


class CallStep(NamedTuple):
    """`message` is one of those of `model.call`, or empty. `again_ms`: from now."""

    message: str = ""
    ends: bool = False
    again_ms: int = LOOK_MS


class Absent:
    """Keys of visitors who wait for a message and are not in line: the ledger's estimates do not count
    them, but they come back before those behind them.
    """

    def __init__(self) -> None:
        self._keys: list[int] = []

    def note(self, key: int, absent: bool) -> None:
        at = bisect_left(self._keys, key)
        known = at < len(self._keys) and self._keys[at] == key
        if absent and not known:
            self._keys.insert(at, key)
        elif known and not absent:
            del self._keys[at]

    def rekey(self, old: int, new: int) -> None:
        at = bisect_left(self._keys, old)
        if at < len(self._keys) and self._keys[at] == old:
            del self._keys[at]
            self.note(new, True)

    def ahead(self, key: int) -> int:
        return bisect_left(self._keys, key)


def drawn(call: VisitorCall, key: int, outcome: Outcome, absent_ahead: int) -> VisitorCall:
    """A draw has given the place this key: *soon*, sent before, is sent again where the turn is
    farther off than the visitor's way.
    """
    if key == call.key or outcome.estimate is None:
        return call
    near = _lower_ms(outcome, outcome.estimate, absent_ahead) <= call.travel_ms
    return replace(call, key=key, sent=call.sent if near or call.sent != SOON else "")


def rekeyed(call: VisitorCall, key: int) -> VisitorCall:
    """As `drawn`, for a place that moves before its turn is known: *soon* may be sent twice."""
    sent = "" if key != call.key and call.sent == SOON else call.sent
    return replace(call, key=key, sent=sent)


def stocked(call: VisitorCall, sold_out: bool, now_ms: int) -> VisitorCall:
    """Notes that everything was sold out, so that the visitor is told when something comes back."""
    due = call.confirmed and not call.sold_out and now_ms - call.returned_ms >= RETURNED_MS
    return replace(call, sold_out=True) if sold_out and due else call


def _lower_ms(outcome: Outcome, estimate: Estimate, absent_ahead: int) -> int:
    """The lower quartile, lengthened by the share of those ahead who are not in line."""
    return int(estimate.p25_s * 1000 * (1 + absent_ahead / (outcome.ahead + 1)))


def step(
    call: VisitorCall,
    outcome: Outcome,
    opened: bool,
    now_ms: int,
    absent_ahead: int = 0,
    draws_at_ms: int = 0,
    sold_out: bool = False,
) -> CallStep:
    """`outcome`: of `reclaim`. `opened`: the room admits visitors. `draws_at_ms`: when places will be
    drawn among those present; 0: no draw. `sold_out`: of all offers.
    """
    if outcome.storage_failed:
        return CallStep()
    if outcome.standing is Standing.GONE or call.sent == NOW:
        return CallStep(ends=True)
    if not call.confirmed:
        if outcome.standing is Standing.ACTIVE or now_ms - call.asked_ms > CONFIRM_MS:
            return CallStep(ends=True)
        return CallStep("" if call.sent else CONFIRM)
    if outcome.standing is Standing.ACTIVE:
        return CallStep(NOW, ends=True)
    estimate = outcome.estimate
    near = estimate is not None and estimate.p50_s <= NOW_S
    turn = outcome.called or outcome.ahead == 0 or near
    if turn and opened and not draws_at_ms:
        return CallStep(NOW, ends=True)
    if call.sold_out and not sold_out:
        return CallStep(RETURNED)
    if draws_at_ms:
        return _soon(call, draws_at_ms - now_ms - call.travel_ms, 1)
    if not opened or estimate is None:
        return CallStep()
    left_ms = _lower_ms(outcome, estimate, absent_ahead) - call.travel_ms
    return _soon(call, left_ms, 4, int(estimate.p25_s * 1000))


def _soon(call: VisitorCall, left_ms: int, looks: int, sent_ms: int = 0) -> CallStep:
    """`looks`: checks until then; `sent_ms`: what is left once *soon* was sent."""
    if left_ms <= 0 and call.sent != SOON:
        return CallStep(SOON)
    wait_ms = left_ms if left_ms > 0 else sent_ms
    return CallStep(again_ms=min(max(wait_ms // looks, LOOK_MS), LOOK_MAX_MS))
