"""Constants that the functions in Redis share with Python."""

import re
from collections.abc import Mapping

from greenroom.admission import estimate, lease, ledger_time, pacing
from greenroom.admission.ledger import (
    absent,
    admission_rate,
    barred_places,
    exchange,
    failures,
    keeping,
    lookahead,
    moving_turns,
    provisional,
    refresh,
    sessions,
    transfers,
    turns,
    visiting,
)
from greenroom.admission.messages import line_counts, moves, places
from greenroom.admission.queueing import line, line_table, methods
from greenroom.model import line_table as public_table
from greenroom.model import visit
from greenroom.model.visit import Standing

CONSTANTS: Mapping[str, float] = {
    **{standing.name: int(standing) for standing in Standing},
    "ABSENT_MAX": absent.ABSENT_MAX,
    "AWAY_MAX_MS": visit.AWAY_MAX_MS,
    "BELIEVED": admission_rate.BELIEVED,
    "BELIEVED_MS": admission_rate.BELIEVED_MS,
    "CALLED_REFRESH_MS": refresh.CALLED_REFRESH_MS,
    "CLAIMS_MAX": moves.CLAIMS_MAX,
    "CLOSING_MS": lease.CLOSING_MS,
    "CUT_OFF_MS": lease.CUT_OFF_MS,
    "RENEWAL_SLACK_MS": visiting.RENEWAL_SLACK_MS,
    "ENOUGH": admission_rate.ENOUGH,
    "FAILURE_GAP_MS": failures.GAP_MS,
    "FAILURE_STILL_MS": failures.STILL_MS,
    "FAILURE_WINDOW_MS": failures.WINDOW_MS,
    "FIRST_REFRESH_MS": refresh.FIRST_REFRESH_MS,
    "GAP_MAX_MS": keeping.GAP_MAX_MS,
    "GAP_WEIGHT": lookahead.GAP_WEIGHT,
    "GRACE_MS": line.GRACE_MS,
    "HELD_MS": keeping.HELD_MS,
    "ID_BUSY": places.BUSY,
    "ID_FREE": places.FREE,
    "ID_PLACE": places.PLACE,
    "ID_SESSION": places.SESSION,
    "ID_SPENT": places.SPENT,
    "HORIZON_SLACK_MS": lease.HORIZON_SLACK_MS,
    "KEPT_MAX": moves.KEPT_MAX,
    "LONGEST_S": estimate.LONGEST_S,
    "MOVE_ASK": places.ASK,
    "MOVE_ASKED_MAX": barred_places.ASKED_MAX,
    "MOVE_BARRED_MAX": barred_places.BARRED_MAX,
    "MOVE_CANCEL": places.CANCEL,
    "MOVE_COMMIT": places.COMMIT,
    "MOVE_DONE": places.DONE,
    "MOVE_PENDING_MS": barred_places.PENDING_MS,
    "MOVE_SEEN_MAX": barred_places.SEEN_MAX,
    "MOVE_SEEN_MS": barred_places.SEEN_MS,
    "MOVE_TOLD_MS": barred_places.TOLD_MS,
    "OFFSET_MOST_S": failures.OFFSET_MOST_S,
    "OVERTAKING_MS": methods.OVERTAKING_MS,
    "PACE_FACTOR": pacing.PACE_FACTOR,
    "PACE_MS": lookahead.PACE_MS,
    "PLACE_CLAIMED_MS": turns.KEPT_MS,
    "PLACE_KEPT_MS": visit.PLACE_KEPT_MS,
    "PROVISIONAL_MS": provisional.PROVISIONAL_MS,
    "REMEMBERS_MS": exchange.REMEMBERS_MS,
    "SAVED_US": pacing.SAVED_US,
    "SAVED_VISITORS": pacing.SAVED_VISITORS,
    "SHARE": provisional.SHARE,
    "SHOW_REFRESH_MS": refresh.SHOW_REFRESH_MS,
    "SLOTS_MAX": admission_rate.SLOTS_MAX,
    "SOON_MS": line_counts.SOON_MS,
    "SOURCE_SLACK_MS": transfers.SOURCE_SLACK_MS,
    "SPENT_SLACK_MS": sessions.SPENT_SLACK_MS,
    "STEP_MS": ledger_time.STEP_MS,
    "TABLE_GROWTH": line_table.GROWTH,
    "TABLE_LOOK_S": public_table.LOOK_S,
    "RATE_SLOT_MS": admission_rate.SLOT_MS,
    "TRANSFER_HELD_MS": barred_places.HELD_MS,
    "TURN_ASKED_MS": moving_turns.ASKED_MS,
    "TURN_ENTRIES": turns.ENTRIES,
    "TURN_FAILING": failures.FAILING,
    "TURN_KEPT": failures.KEPT,
    "TURN_KEPT_MS": failures.TURN_KEPT_MS,
    "TURN_SEEK_MS": moving_turns.SEEK_MS,
    "TURN_STEP_MS": turns.STEP_MS,
    "TURN_USED": failures.USED,
    "WINDOW_MS": estimate.WINDOW_MS,
}

_NAMES = re.compile(rf"\b(?:{'|'.join(CONSTANTS)})\b")


def with_constants(text: str) -> str:
    """Replaces names by numbers: a Lua function may have no more than 200 locals."""
    return _NAMES.sub(lambda name: str(CONSTANTS[name[0]]), text)
