"""The stores that pages and API calls use: the configuration, and sessions of the dashboard."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from greenroom.errors import Problem
from greenroom.model.account import SessionRow
from greenroom.model.change import AuditEntry, AuditFilter, Change
from greenroom.model.configuration import Configuration
from greenroom.notifier import ChangeNotifier


class ConfigStore(Protocol):
    """Read as one value at one revision, changed as one. Methods block, and may be called from
    several threads. All raise StorageFailed.
    """

    def revision(self) -> int:
        """Cheap enough for twice a second from every process."""

    def read(self) -> Configuration:
        """Only what changed since the last call."""

    def judge(self, changes: Sequence[Change], *, expected: int, now_ms: int) -> list[Problem]:
        """What processes could newly not use after these changes. Empty when `expected` is
        outdated, which the write will find.
        """

    def write(
        self, changes: Sequence[Change], *, expected: int, author: str, now_ms: int
    ) -> Configuration:
        """Atomic: one new revision with audit entries; returns the configuration after it. Raises
        RevisionConflict when `expected` is outdated, KeyError when a parent or removed entry is
        missing. Puts of equal records make no revision.
        """

    def note(
        self, kind: str, id: str, *, author: str, now_ms: int, after: Mapping[str, Any]
    ) -> None:
        """About something that is not part of the configuration; makes no revision."""

    def audit(
        self,
        limit: int,
        before: int | None = None,
        *,
        removed_from: str = "",
        about: tuple[str, str] | None = None,
        where: AuditFilter | None = None,
    ) -> list[AuditEntry]:
        """Newest first, all with a number below `before`. `removed_from`: only removals of what
        belonged to this object; `about`: only those of this (kind, id).
        """

    @property
    def changes(self) -> ChangeNotifier:
        """Of every write made through this object, in the writer's thread."""

    def close(self) -> None: ...


class SessionStore(Protocol):
    """A row is found by the SHA-256 of a random secret that only the browser has. Methods block.
    All raise StorageFailed.
    """

    def add(self, row: SessionRow, most: int) -> None:
        """Evicts the least recently seen row of this kind beyond `most`."""

    def add_once(self, row: SessionRow, most: int) -> bool:
        """False when a row has this hash. Only one of concurrent callers gets True."""

    def count(self, row: SessionRow, most: int, limit: int) -> bool:
        """Counts in `facts`; a row expired by `row.created_ms` restarts at 1. False, and nothing is
        counted, at `limit`; holds for concurrent callers in all processes.
        """

    def uncount(self, kind: str, secret_sha256: str, since_ms: int) -> None:
        """Unless the count has restarted since `since_ms`."""

    def get(self, kind: str, secret_sha256: str) -> SessionRow | None:
        """The caller checks expiry."""

    def seen(self, secret_sha256: str, now_ms: int) -> None: ...

    def take(self, kind: str, secret_sha256: str) -> SessionRow | None:
        """Of concurrent callers only one gets the row."""

    def rows(self, kind: str) -> list[SessionRow]: ...

    def remove(self, kind: str, id: str) -> None: ...

    def forget(self, now_ms: int, idle_ms: int) -> None: ...
