"""How the ledgers of a data center are synced: by which process, and by which coordinator.

The leader lease elects the coordinator of the whole installation, the sync lock the process that
syncs one data center.

Both are held for a limited time and given up by not being renewed, so a process that dies needs no
one to clean up after it.
"""

from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from typing import Protocol

import msgspec

from greenroom.admission.messages.sync import SyncDown, SyncUp

TERM_MS = 2_000
"""Without renewal: shorter than the 4 s after which a data center counts as cut off."""

LOCK_MS = 2_000
"""Without renewal: another process can take over within the 4 s of a cut-off link."""

PERMIT_REQUESTS_MAX = 1_000
"""Kept while no process syncs: more rooms than a process has."""


class LeaseTerm(msgspec.Struct, frozen=True):
    """One holder's time as the leader. Every step of a leader names both fields, and is refused
    once another term has begun.
    """

    holder: str
    number: int


class Submission(msgspec.Struct, frozen=True):
    """The term that has just begun for this candidate, or None; and who is the leader."""

    term: LeaseTerm | None
    now_ms: int
    holder: str


class SavedState(msgspec.Struct, frozen=True):
    """What earlier leaders wrote down. Another `life` than before: the server may have forgotten
    its last writes.
    """

    now_ms: int
    life: str
    rows: Mapping[str, bytes]


class PermitRequest(msgspec.Struct, frozen=True, array_like=True):
    """A process's lease for a room ran dry while a visitor waits."""

    process: str
    room_id: str
    want: int


class LeaderLease(Protocol):
    """Leader election among all processes of all data centers, and what the leader exchanges with
    them.

    Every method raises StorageFailed when the store cannot be reached or refuses.
    """

    async def submit(self, data_center: str, report: bytes, candidate: str) -> Submission:
        """Leaves a report in the place of an older one (an empty one: nothing), and makes
        `candidate` the leader when there is none.

        An empty candidate does not want to lead.
        """

    async def next_answer(self, data_center: str, wait_s: float) -> bytes | None:
        """None after `wait_s` (at least 10 ms)."""

    async def load(self, term: LeaseTerm) -> SavedState | None:
        """None when the term is over."""

    async def collect(self, term: LeaseTerm, wait_s: float) -> list[tuple[str, bytes]] | None:
        """All submitted reports, by data center; waits for the first one. None when the term is
        over.
        """

    async def commit(
        self,
        term: LeaseTerm,
        rows: Mapping[str, bytes],
        forgotten: Sequence[str] = (),
        answers: Iterable[tuple[str, bytes]] = (),
    ) -> bool:
        """Writes rows, then hands out answers, in one step, and renews the term. False: the term is
        over, nothing was done.
        """

    async def release(self, term: LeaseTerm) -> None:
        """Ends the term, so that the next leader need not wait."""


class SyncLock(Protocol):
    """Which process syncs its data center, and how the others tell it that a lease ran dry.

    Two holders at once would do no harm, because reports and answers are absolute counters: one is
    only cheaper. So there are no fencing tokens here. Every method raises StorageFailed when the
    store cannot be reached.
    """

    async def acquire(self) -> bool:
        """Acquires or renews the lock for LOCK_MS; False while another process holds it."""

    async def leave(self) -> bool:
        """Frees the lock if this process, which stops, holds it. Whether it was the last process of
        the data center.

        A process that died counts as present for LOCK_MS.
        """

    async def request_permits(self, room_id: str, want: int, wait_s: float) -> None:
        """Returns when the holder's answer has been applied, or after `wait_s`."""

    async def permit_requests(self, wait_s: float) -> list[PermitRequest]:
        """Returns the others' requests as soon as there are any, or none after `wait_s`."""

    async def acknowledge(self, processes: Collection[str]) -> None: ...


class LedgerStore(Protocol):
    """The ledgers of all rooms of one data center, for the process that keeps them in step with the
    coordinator.

    Any process that reaches the ledgers may call this; each call is one round trip for all rooms
    together. None of these raises: a room whose ledger cannot be reached, or is not open, is left
    out. That is a lost message, and costs utilisation only.
    """

    async def sync_up(self, wants: Mapping[str, int]) -> dict[str, SyncUp]:
        """Room id -> report, for every room id in `wants`; the number is permits needed because the
        lease ran dry (0: none).
        """

    async def farewell(self) -> dict[str, SyncUp]:
        """Room id -> last report, as the last process stops: the ledgers admit no visitor and renew
        no session before the next answer.

        Rooms without a fence are left out, and go on as they are.
        """

    async def sync_down(self, downs: Mapping[str, SyncDown]) -> None:
        """Applies the coordinator's answers, in any order and any number of times."""


Borrow = Callable[[str, int], Awaitable[None]]
"""Asked by a ledger when a room's lease ran dry: (room id, permits wanted). Syncs that room at
once, one flight per data center, and returns when the answer has been applied, or when there will
be none. Never raises."""
