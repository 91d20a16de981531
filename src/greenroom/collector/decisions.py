"""What a decision counts as. Requests that no metric has (uncovered, suspended, bypassed, refused a place) are not in the table."""

from greenroom.analytics.recorder import NOT_WAITED, Recorder
from greenroom.decision.observer import Decided, DecisionEvent, Observer

OUTCOME_OF: dict[Decided, str] = {
    Decided.ADMITTED: "admitted",
    Decided.ACTIVE: "passed",
    Decided.HELD: "held",
    Decided.LEFT: "gave_up",
    Decided.REVOKED: "revoked",
}


def recording(recorder: Recorder) -> Observer:
    """An observer that counts every decision; time waited only of a visitor who came with a waiting ticket and was let in."""
    names = [OUTCOME_OF.get(decided, "") for decided in Decided]
    decided = recorder.decided
    admitted = Decided.ADMITTED

    def observe(event: DecisionEvent) -> None:
        name = names[event.decided]
        if not name or event.effective is None:
            return
        waited_ms = NOT_WAITED
        if event.decided is admitted and event.ticket is not None and not event.ticket.accepted_ms:
            waited_ms = event.waited_ms
        decided(event.effective.room.id, name, event.at_ms, waited_ms)

    return observe
