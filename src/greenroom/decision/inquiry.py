"""What a room is asked about one arrival, as one value that the steps of a decision hand on."""

from collections.abc import Callable

import msgspec

from greenroom.admission.decide import Found
from greenroom.decision.late_try import Done, LateTry
from greenroom.decision.room_schedule import CompiledRoom
from greenroom.model.visit import Arrival

Late = Callable[[LateTry], bool]
"""Offered the try of a visitor whose answer may be held; says whether it takes it."""


class Inquiry(msgspec.Struct, frozen=True):
    """`found` are the visitor's tickets, best first: the question is about the first one. `now_ms`
    is when it is asked, or answered.

    `later` is told the verdict where it is not known at once; `late` is offered the try of a
    visitor who tries rarely.
    """

    room: CompiledRoom
    arrival: Arrival
    now_ms: int
    found: Found
    later: Done
    late: Late | None = None
