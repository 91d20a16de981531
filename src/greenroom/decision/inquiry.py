"""One arrival's question to a room, passed through the steps of a decision."""

from collections.abc import Callable

import msgspec

from greenroom.admission.decide import Found
from greenroom.decision.late_try import Done, LateTry
from greenroom.decision.room_schedule import CompiledRoom
from greenroom.model.visit import Arrival

Late = Callable[[LateTry], bool]
"""Receives a possible long poll; returns whether it takes it."""


class Inquiry(msgspec.Struct, frozen=True):
    """About `found[0]`, the visitor's best ticket. `later` receives a verdict that is not known at
    once.
    """

    room: CompiledRoom
    arrival: Arrival
    now_ms: int
    found: Found
    later: Done
    late: Late | None = None
