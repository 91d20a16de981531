"""Which process syncs a data center (sync lock), and which is the coordinator (leader lease). Both
expire unless renewed, so nobody cleans up after a dead process.
"""

from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from typing import Protocol

import msgspec

from greenroom.admission.messages.sync import SyncDown, SyncUp

TERM_MS = 2_000
"""Shorter than the 4 s after which a data center counts as cut off."""

LOCK_MS = 2_000

PERMIT_REQUESTS_MAX = 1_000


class LeaseTerm(msgspec.Struct, frozen=True):
    """Every step of a leader names both fields; it is refused once another term has begun."""

    holder: str
    number: int


class Submission(msgspec.Struct, frozen=True):
    term: LeaseTerm | None
    now_ms: int
    holder: str


class SavedState(msgspec.Struct, frozen=True):
    """A new `life`: the server may have lost its last writes."""

    now_ms: int
    life: str
    rows: Mapping[str, bytes]


class PermitRequest(msgspec.Struct, frozen=True, array_like=True):
    process: str
    room_id: str
    want: int


class LeaderLease(Protocol):
    """Every method raises StorageFailed."""

    async def submit(self, data_center: str, report: bytes, candidate: str) -> Submission:
        """Replaces an older report, unless it is empty. An empty candidate does not want to lead."""

    async def next_answer(self, data_center: str, wait_s: float) -> bytes | None:
        """None after `wait_s` (at least 10 ms)."""

    async def load(self, term: LeaseTerm) -> SavedState | None: ...

    async def collect(self, term: LeaseTerm, wait_s: float) -> list[tuple[str, bytes]] | None:
        """Waits for the first report. None: the term is over."""

    async def commit(
        self,
        term: LeaseTerm,
        rows: Mapping[str, bytes],
        forgotten: Sequence[str] = (),
        answers: Iterable[tuple[str, bytes]] = (),
    ) -> bool:
        """Writes rows, sends answers and renews the term, in one step. False: the term is over, and
        nothing was done.
        """

    async def release(self, term: LeaseTerm) -> None: ...


class SyncLock(Protocol):
    """Two holders at once do no harm: counters are absolute. Every method raises StorageFailed."""

    async def acquire(self) -> bool:
        """False while another process holds it."""

    async def leave(self) -> bool:
        """Returns whether this was the last process of the data center; a dead one counts for
        LOCK_MS.
        """

    async def request_permits(self, room_id: str, want: int, wait_s: float) -> None:
        """Returns when the holder's answer has been applied, or after `wait_s`."""

    async def permit_requests(self, wait_s: float) -> list[PermitRequest]:
        """Empty after `wait_s`."""

    async def acknowledge(self, processes: Collection[str]) -> None: ...


class LedgerStore(Protocol):
    """Ledgers of all rooms of one data center; each call is one round trip. Never raises: a room that
    cannot be reached is left out, which costs utilisation only.
    """

    async def sync_up(self, wants: Mapping[str, int]) -> dict[str, SyncUp]:
        """`wants`: by room id, permits needed because the lease ran dry (0: none)."""

    async def farewell(self) -> dict[str, SyncUp]:
        """The ledgers then admit no visitor and renew no session before the next answer. Leaves out
        rooms without a fence.
        """

    async def sync_down(self, downs: Mapping[str, SyncDown]) -> None:
        """Answers may come in any order and repeatedly."""


Borrow = Callable[[str, int], Awaitable[None]]
"""Takes room id and permits wanted. Returns when the answer has been applied or will not come. Never
raises.
"""
