"""The data directory: made private, tried out, and used by one process at a time."""

import fcntl
import os
from pathlib import Path
from typing import IO

from greenroom.errors import GreenroomError


class CannotStart(GreenroomError):
    """The machine does not let greenroom start (port in use, directory unwritable); one line says why."""


class DataDir:
    """`<data>` with its lock held for the life of the process."""

    def __init__(self, path: Path) -> None:
        """Makes the directory (mode 700) and takes the lock; raises CannotStart, with the reason."""
        self.path = path
        try:
            path.mkdir(mode=0o700, parents=True, exist_ok=True)
            (path / "rooms").mkdir(mode=0o700, exist_ok=True)
            self._lock: IO[str] = (path / "lock").open("a+")
        except OSError as error:
            raise CannotStart(f"cannot write to the data directory {path}: {error.strerror or error}") from None
        self._take_lock()

    def _take_lock(self) -> None:
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            self._lock.seek(0)
            owner = self._lock.read(20).strip()
            self._lock.close()
            by = f"process {owner}" if owner else "another process"
            raise CannotStart(f"the data directory {self.path} is in use by {by}; choose another one with --data") from None
        try:
            self._lock.truncate(0)
            self._lock.write(f"{os.getpid()}\n")
            self._lock.flush()
        except OSError:
            pass  # a full disk: the lock is held all the same, only its note is missing

    def journal(self, room_id: str) -> Path:
        """Where one room's journal is."""
        return self.path / "rooms" / room_id

    def release(self) -> None:
        """Gives the lock back."""
        self._lock.close()
