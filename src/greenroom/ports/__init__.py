"""What the core asks of the world; adapters in `stores` and `runtime` implement it."""

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

from greenroom.admission.draw import Draw
from greenroom.admission.messages.sync import SyncDown, SyncUp
from greenroom.errors import Problem, StorageFailed
from greenroom.model.alert import Alert
from greenroom.model.change import AuditEntry, Change
from greenroom.model.configuration import Configuration
from greenroom.model.line_table import LineTable
from greenroom.model.room import Room
from greenroom.model.session import SessionRow
from greenroom.model.visit import Outcome


class Clock(Protocol):
    """Unix time that never runs backwards within a process, nor across a restart that kept its
    data.
    """

    def now_ms(self) -> int: ...


Then = Callable[[Outcome], None]

TableThen = Callable[[LineTable | None], None]


def nobody(_: Outcome) -> None:
    """Discards an answer."""


class LedgerPort(Protocol):
    """One room's ledger in one data center (docs/explanation/admission.md).

    Every operation answers through `then`, exactly once, at once or later (a distributed ledger
    sends the operations of one event-loop turn as one batch). An answer that cannot be given (store
    unreachable, disk full) is a WAITING outcome without an estimate: never an admission, never an
    exception.
    """

    def arrive(self, ticket_id: bytes, key: int, then: Then) -> None:
        """A newcomer without a ticket: ADMITTED, or WAITING outside the line (position 0) until the
        ticket comes back.
        """

    def arrive_provisionally(self, ticket_id: bytes, key: int, then: Then) -> None:
        """A request that cannot wait: ADMITTED for some seconds while there is room to spare, else
        WAITING, and nothing is remembered.

        Where permits ran out here and may be had elsewhere, the answer comes when the coordinator
        has been asked, within about two seconds. A `view` in that time makes the session a full
        one.
        """

    def poll(self, ticket_id: bytes, key: int, then: Then) -> None:
        """A waiting ticket came back in time: takes its place by `key` if it is unknown here;
        ADMITTED, ACTIVE or WAITING.

        GONE when this ticket id has already had its session (a replayed old cookie).
        """

    def peek(self, ticket_id: bytes, key: int, then: Then) -> None:
        """A waiting ticket came back too early: as `poll`, but no attempt, nothing changes. ACTIVE
        if it was let in meanwhile.
        """

    def view(self, ticket_id: bytes, then: Then) -> None:
        """An accepted ticket: ACTIVE (renewed when the room renews and the last renewal is older
        than q) or GONE.
        """

    def visit(self, ticket_id: bytes, key: int, home: str, renewed_ms: int, then: Then) -> None:
        """An accepted ticket that `view` does not know: its session may be in the data center
        `home` (or here, before the ledger was lost).

        `renewed_ms` is the last renewal that the ticket knows. ACTIVE on trust, until the session
        has followed; ADMITTED when a permit was spent instead; WAITING when held; GONE when there
        is no such session.
        """

    def keep(self, ticket_id: bytes, gap_ms: int) -> None:
        """A visitor in front who tries every `gap_ms` only has tried in vain: the place is kept
        until the next try, and a permit with it.

        Only where permits come rarely, and for one visitor at a time; else nothing happens.
        """

    def line_table(self, then: TableThen) -> None:
        """The line of a fifo room as everybody may see it; None when it cannot be read. Costs about
        as much as a hundred polls.
        """

    def leave(self, ticket_id: bytes, key: int = 0, then: Then = nobody) -> None:
        """The visitor gave up the place (or the session) themselves; unknown ids are ignored. `key`
        is that of a waiting ticket.

        Answers what there was until now: ACTIVE a session, WAITING a place, GONE neither.
        """

    def configure(self, room: Room) -> None:
        """The room's settings changed; they apply from the next operation on, and no visitor is
        expelled.
        """

    def before(self, key: int, then: Callable[[Sequence[bytes]], None]) -> None:
        """The ids of everybody present in line whose key is below this one, first in line first."""

    def rekey(self, keys: Mapping[bytes, int], then: Callable[[bool], None]) -> None:
        """Those of these ids who are in line stand by these keys from now on (a draw). Answers
        whether that is written down.

        Asked again with the same keys, nothing changes. Ids that are not in line are left out;
        nothing is remembered of them.
        """


@runtime_checkable
class PromptLedger(LedgerPort, Protocol):
    """A ledger in this process: it knows every answer at once, so its most frequent questions need
    no `then`.

    `now_ms` is the time of its own clock, read by the caller just before. The answers are those of
    the questions of `LedgerPort`.
    """

    def arrive_now(self, ticket_id: bytes, now_ms: int, told: bool = True) -> Outcome:
        """As `arrive`. Not `told`: what the newcomer is shown does not say how long the wait is, so
        there need not be an estimate.
        """

    def poll_now(self, ticket_id: bytes, key: int, now_ms: int) -> Outcome:
        """As `poll`."""

    def peek_now(self, ticket_id: bytes, key: int, now_ms: int) -> Outcome:
        """As `peek`."""

    def view_now(self, ticket_id: bytes, now_ms: int) -> Outcome:
        """As `view`."""


class DrawStore(Protocol):
    """Seeds and results of draws (`admission.draw`), shared by all processes that serve a room."""

    def seed(self, draw_id: str) -> bytes:
        """The 32 secret bytes of this draw: always the same, and secret until the draw has been
        held. Raises StorageFailed.
        """

    def settle(
        self,
        draw_id: str,
        here: Sequence[str],
        hold: Callable[[Collection[str]], Draw],
        then: Callable[[Draw | StorageFailed], None],
    ) -> None:
        """The draw of this id: the one that was held, or else what `hold` makes of everybody, kept
        for good and published first.

        `here` are the entries of those in line in this data center; those of the others are added.
        Of several draws at once the first that is kept counts for all. Calls `then` exactly once,
        now or later.
        """


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


class Journal(Protocol):
    """An append-only record on disk. `append` returns only when the record would survive kill -9 of
    this process.
    """

    def append(self, records: bytes) -> None:
        """Raises StorageFailed, having written nothing that a reader would see, when the disk
        refuses.
        """


class ConfigStore(Protocol):
    """What operators wrote down, shared by every process: read as one value at one revision,
    changed as one.

    Methods block on a disk or a database: call them in a thread. All raise StorageFailed when the
    store cannot be reached or refuses; they may be called from several threads.
    """

    def revision(self) -> int:
        """One small query, cheap enough for twice a second from every process."""

    def read(self) -> Configuration:
        """Reads only what changed since the last call."""

    def judge(self, changes: Sequence[Change], *, expected: int, now_ms: int) -> list[Problem]:
        """What processes could not use after these changes of the newest configuration, and can use
        now. Writes nothing.

        Empty when `expected` is not the newest revision any more: the write will find that out.
        """

    def write(
        self, changes: Sequence[Change], *, expected: int, author: str, now_ms: int
    ) -> Configuration:
        """Applies all changes or none, as one new revision with its entries in the audit log; the
        configuration after it.

        `expected` is the revision of the Configuration on which the changes were decided: raises
        RevisionConflict when it is not the newest any more, having changed nothing. So a name that
        was free when it was looked for is free when it is taken. A Put that says what is there
        already is no change; a write of nothing but such makes no revision. Raises KeyError when a
        parent or what is to be removed is not there. `author` is for the audit log: who, as an
        operator would say it.
        """

    def note(
        self, kind: str, id: str, *, author: str, now_ms: int, after: Mapping[str, Any]
    ) -> None:
        """Adds an audit entry about something that is not part of the configuration; makes no
        revision.
        """

    def audit(
        self, limit: int, before: int | None = None, *, removed_from: str = ""
    ) -> list[AuditEntry]:
        """The newest entries first, at most `limit`, all with a number below `before`.

        `removed_from`: only removals of what belonged to this object, such as the events of a room.
        """

    def watch(self, changed: Callable[[], None]) -> None:
        """Calls `changed` after every write made through this object, in the writer's thread; it
        must be quick and not raise.
        """

    def close(self) -> None:
        """Gives connections back; nothing may be called after it."""


class AlertSink(Protocol):
    def put(self, alerts: Sequence[Alert]) -> None:
        """Keeps all of them or none; when it returns, they survive kill -9 and will be delivered at
        least once.

        An alert that was put before (`Alert.identity`) is ignored. Blocks on the configuration
        store: call it in a thread. Raises StorageFailed, having kept nothing.
        """


class SecretBox(Protocol):
    """Seals what the configuration store keeps and greenroom has to read again. Methods block on a
    disk.
    """

    def seal(self, secret: str, of: str) -> str:
        """The secret as it may be stored, bound to the id of its owner. Raises StorageFailed or
        InvalidConfig.
        """

    def open(self, sealed: str, of: str) -> str:
        """Returns unsealed secrets as they are.

        Raises StorageFailed, with the reason, when the key is not here or is not the owner's;
        InvalidConfig when the keys are unusable.
        """


class SessionStore(Protocol):
    """Sessions of the dashboard, one-time sign-in links and known devices, shared by every process.

    A row is found by the SHA-256 of a random secret that only the browser has. Methods block: call
    them in a thread. All raise StorageFailed.
    """

    def add(self, row: SessionRow, most: int) -> None:
        """Keeps one more; beyond `most` rows of this kind the least recently seen one is forgotten."""

    def add_once(self, row: SessionRow, most: int) -> bool:
        """As `add`; False, and nothing is changed, when there is a row with this hash. Of several
        callers at once one gets True.
        """

    def count(self, row: SessionRow, most: int, limit: int) -> bool:
        """Counts one more under the row's hash, in its `facts`; a row expired by `row.created_ms`
        restarts at 1.

        False, and nothing is counted, at `limit`; holds for concurrent callers in all processes.
        """

    def uncount(self, kind: str, secret_sha256: str, since_ms: int) -> None:
        """Takes back one counted at `since_ms`, unless the count has restarted since."""

    def get(self, kind: str, secret_sha256: str) -> SessionRow | None:
        """The caller checks expiry."""

    def seen(self, secret_sha256: str, now_ms: int) -> None: ...

    def take(self, kind: str, secret_sha256: str) -> SessionRow | None:
        """Removes and returns the row: of concurrent callers only one gets it."""

    def rows(self, kind: str) -> list[SessionRow]: ...

    def remove(self, kind: str, *, owner: str = "", id: str = "") -> int:
        """Ends those of this owner, or the one of this id; returns how many."""

    def forget(self, now_ms: int, idle_ms: int) -> None:
        """Removes expired rows, and sessions unused for `idle_ms`."""
