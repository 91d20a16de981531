"""The stores that pages and API calls use: the configuration, and sessions of the dashboard."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from greenroom.errors import Problem
from greenroom.model.change import AuditEntry, Change
from greenroom.model.configuration import Configuration
from greenroom.model.session import SessionRow


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
