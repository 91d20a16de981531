"""A journal that is created on the first write: a room without visitors needs no file, and a
thousand of them no time.
"""

from collections.abc import Iterable, Iterator
from pathlib import Path

from greenroom.ledgers.journal import Damage, FileJournal


class LateJournal:
    """See `FileJournal`: the same, but for the file, which is opened at once only where it exists."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.emptied = path.exists() and not path.stat().st_size
        """Whether the file was there without a byte in it: a journal is never left like that, but
        by a kill while it is being made.
        """
        self._file = FileJournal(path) if path.exists() else None

    @property
    def size(self) -> int:
        return self._file.size if self._file else 0

    @property
    def damage(self) -> tuple[Damage, ...]:
        return self._file.damage if self._file else ()

    def append(self, payload: bytes) -> None:
        if self._file is None:
            self._file = FileJournal(self.path)
        self._file.append(payload)

    def replay(self) -> Iterator[bytes]:
        return self._file.replay() if self._file else iter(())

    def sync(self) -> None:
        if self._file:
            self._file.sync()

    def compact(self, payloads: Iterable[bytes], since: int | None = None) -> None:
        """See `FileJournal`; without a file there is no history to replace."""
        if self._file:
            self._file.compact(payloads, since)

    def close(self) -> None:
        if self._file:
            self._file.close()
