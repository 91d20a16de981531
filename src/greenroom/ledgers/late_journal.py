"""A journal created on the first write: a thousand rooms without visitors need no files."""

from collections.abc import Iterable, Iterator
from pathlib import Path

from greenroom.ledgers.journal import Damage, FileJournal


class LateJournal:
    def __init__(self, path: Path) -> None:
        self.path = path
        self.emptied = path.exists() and not path.stat().st_size
        """Only a kill while the file is made leaves it like that."""
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
        # Without a file there is no history to replace.
        if self._file:
            self._file.compact(payloads, since)

    def close(self) -> None:
        if self._file:
            self._file.close()
