"""What a held visitor is told of an event and its draw."""

from msgspec.structs import replace

from greenroom.core.schedule import Phase
from greenroom.decision.prequeue_draw import NOT_TOLD
from greenroom.decision.room_schedule import CompiledRoom
from greenroom.model.visit import Held


def with_event(held: Held, compiled: CompiledRoom, ticket_id: bytes) -> Held:
    """The same with what an event and its draw add."""
    effective, event = compiled.effective, compiled.effective.event
    told = compiled.draw.told(ticket_id) if compiled.draw else NOT_TOLD
    return replace(
        held,
        event_active=event is not None,
        event_prequeueing=effective.phase is Phase.PREQUEUE,
        event_start_ms=event.event_start_ms if event else 0,
        event_end_ms=event.event_end_ms if event else 0,
        shuffle_at_event_start=event is not None and event.shuffle_at_event_start,
        receipt=told.receipt,
        draw_commitment=told.commitment,
        draw_seed=told.seed,
        drawn_place=told.place,
        drawn_size=told.size,
    )
