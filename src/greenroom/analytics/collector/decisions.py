"""What a decision counts as. Requests that no metric has are not in the table."""

from greenroom.analytics.outcomes import OUTCOMES
from greenroom.analytics.recorder import Recorder
from greenroom.decision.decision_counts import DecisionCounts
from greenroom.decision.observer import Decided, DecisionEvent, Observer

OUTCOMES_OF: dict[Decided, tuple[str, ...]] = {
    decided: columns
    for decided in Decided
    if (columns := tuple(row.column for row in OUTCOMES.values() if decided.name in row.decided))
}


def recording(recorder: Recorder, counts: DecisionCounts) -> Observer:
    """Waiting times are recorded only for visitors admitted with a waiting ticket."""
    count, admitted = counts.observe, Decided.ADMITTED
    counts.added()  # what came before is of no minute
    recorder.takes(
        lambda: [
            (room_id, outcome, more)
            for room_id, decided, more in counts.added()
            for outcome in OUTCOMES_OF.get(decided, ())
        ]
    )

    def observe(event: DecisionEvent) -> None:
        if event.at_ms >= recorder.ends_ms:
            recorder.close(event.at_ms)
        count(event)
        if event.decided is admitted and event.ticket is not None and not event.ticket.accepted_ms:
            recorder.waited(event.room_id, event.waited_ms, event.at_ms)

    return observe
