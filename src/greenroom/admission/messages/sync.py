"""Reports and answers. Counters are absolute since the epoch began, and times are ages, because
clocks differ.
"""

import msgspec

from greenroom.admission.messages.moves import MovesDown, MovesUp
from greenroom.admission.messages.room_summary import RoomSummary
from greenroom.admission.messages.wait_table import WaitTable

NO_RECALL = 1 << 62


class SyncUp(msgspec.Struct, frozen=True, array_like=True, gc=False):
    data_center: str
    epoch: int  # a ledger that starts without its state begins a new one; larger is later
    number: int  # of this message within the epoch
    sent_ms: int  # the sender's clock; comes back in the answer
    granted_seen: int  # of all permits granted, how many arrived
    returned_permits: int
    returned_freed: int  # capacity units of ended sessions given back
    used: int  # permits spent
    over: int  # admissions without a permit (passthrough)
    settled: int  # of those, how many a freed unit or a permit has paid for since
    admitted: int  # all admissions
    # of the newest admissions, oldest first; at least all under 60 s that are not acknowledged
    ages_ms: tuple[int, ...]
    applied: int  # number of the last SyncDown applied
    permits: int  # unused, here
    waiting: int
    # (arrival second, waiters now) of all that changed since an acknowledged message
    seconds: tuple[tuple[int, int], ...]
    arrivals_per_s: float
    want: int = 0  # permits requested because the lease ran dry (0: an ordinary report)
    # (age in steps of 5 s, sessions that ended at it) of all that changed, as in `seconds`
    ended: tuple[tuple[int, int], ...] = ()
    joined: int = 0  # places taken for the first time
    lost: int = 0  # places given up without getting in, less those taken again
    strays: int = 0  # of the lost, those that never tried again after joining
    front_s: int = 0  # arrival second of the visitor admitted from the line last (0: none)
    # `seconds`, `ended` and `ages_ms` are complete
    whole: bool = False
    disconnected_rate: int = 0  # in force: admissions per 60 s while cut off
    moves: MovesUp | None = None  # sessions whose visitors are in another data center
    fence_ms: int = 0  # in force (see `lease`); 0: never
    # the last of this epoch: all units but those of sessions are returned, no session is renewed
    farewell: bool = False
    # in a whole report: age of this ledger's memory; 0: longer than anything lasts, -1: not given
    remembers_ms: int = -1
    # in a whole report: what is left of `SyncDown.unknown_ms`; -1: it had none
    unknown_ms: int = -1

    def repeats(self, other: "SyncUp") -> bool:
        return not (
            self.ages_ms or self.seconds or self.ended or self.moves or self.whole or self.farewell
            or self.used != other.used or self.returned_freed != other.returned_freed or self.granted_seen != other.granted_seen
            or self.returned_permits != other.returned_permits or self.waiting != other.waiting or self.admitted != other.admitted
            or self.over != other.over or self.settled != other.settled or self.joined != other.joined or self.lost != other.lost
            or self.strays != other.strays or self.front_s != other.front_s or self.fence_ms != other.fence_ms
        )  # fmt: skip


class SyncDown(msgspec.Struct, frozen=True, array_like=True, gc=False):
    epoch: int  # of the ledger this is about; a ledger ignores an answer to another one
    number: int  # grows with every answer to this data center
    answers: int  # number of the SyncUp
    sent_ms: int  # of the SyncUp
    time_ms: int  # the coordinator's clock: the time line on which keys are compared
    granted: int
    acknowledged: int  # admissions known to the coordinator
    disconnected_rate: int  # admissions per 60 s allowed while cut off
    queueing: bool  # QUEUE, else FREE
    recall: int  # give back permits above this
    horizon_ms: int | None = None  # permits reach visitors who arrived before; None: everybody
    pool: int = 0  # capacity units that no ledger holds
    alone: bool = True  # the only data center
    # the coordinator may have lost its state: the next report must be whole
    afresh: bool = False
    wait_table: WaitTable | None = None  # the forecast, when it is newer than the last one sent
    moves: MovesDown | None = None  # sessions whose visitors are in another data center
    gap_us: int = 0  # microseconds from one admission to the next (see `pacing`); 0: not paced
    fence_ms: int = 0  # without contact for this long the ledger stops (see `lease`); 0: never
    data_centers: int = 1  # on the list
    summary: RoomSummary | None = None  # of the other data centers, when it is newer
    # how long there may still be sessions and admissions that no ledger can report; -1: unknown
    # until all have reported
    unknown_ms: int = -1
