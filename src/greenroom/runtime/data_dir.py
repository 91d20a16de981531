"""The data directory: made private, and used by one process at a time."""

import contextlib
import fcntl
import os
import time
from collections.abc import Container
from pathlib import Path

from greenroom.errors import GreenroomError
from greenroom.ledgers.draws import DrawFiles

PID_FILE = "pid"
CONFIG_STORE = "config.db"

LOOK_S = 0.02


JOURNAL_KEPT_S = 7 * 86_400
"""Longer than any session or place."""

JOURNAL_FILES = (".journal", ".journal.lock", ".journal.new")


class CannotStart(GreenroomError): ...


class DataDir:
    """The lock is on the directory itself: it can be taken on a full or read-only disk."""

    def __init__(self, path: Path, *, shared: bool = False, wait_s: float = 0.0) -> None:
        """Mode 700. Raises CannotStart. `wait_s`: how long the lock's holder may take to end."""
        self.path = path
        self.draws = DrawFiles(path)
        try:
            path.mkdir(mode=0o700, parents=True, exist_ok=True)
            (path / "rooms").mkdir(mode=0o700, exist_ok=True)
            self._lock = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except (OSError, ValueError) as error:  # ValueError: a NUL in the name
            reason = (
                "it is a file"
                if isinstance(error, FileExistsError)
                else getattr(error, "strerror", None) or error
            )
            raise CannotStart(f"cannot use the data directory {path}: {reason}") from None
        self._take_lock(fcntl.LOCK_SH if shared else fcntl.LOCK_EX, time.monotonic() + wait_s)

    def _take_lock(self, kind: int, until_s: float) -> None:
        note = self.path / PID_FILE
        while True:
            with contextlib.suppress(OSError):
                fcntl.flock(self._lock, kind | fcntl.LOCK_NB)
                break
            if time.monotonic() < until_s:
                time.sleep(LOOK_S)
                continue
            os.close(self._lock)
            owner = ""
            with contextlib.suppress(OSError):
                owner = note.read_text()[:20].strip()
            by = f"process {owner}" if owner else "another process"
            raise CannotStart(
                f"the data directory {self.path} is in use by {by}: several processes with the"
                " same limits need redis, an unrelated greenroom a data directory of its own"
            ) from None
        with contextlib.suppress(OSError):  # only a note for people; the lock is what counts
            note.touch(0o600)
            note.chmod(0o600)
            note.write_text(f"{os.getpid()}\n")

    def journal(self, room_id: str) -> Path:
        return self.path / "rooms" / f"{room_id}.journal"

    def drop_old_journals(self, rooms: Container[str]) -> None:
        """Needs the directory for itself. Keeps damaged copies."""
        before_s = time.time() - JOURNAL_KEPT_S
        for path in (self.path / "rooms").glob("*.journal"):
            with contextlib.suppress(OSError):
                if path.stem not in rooms and path.stat().st_mtime < before_s:
                    for suffix in reversed(
                        JOURNAL_FILES
                    ):  # the journal last: what was cut short is finished at the next start
                        path.with_suffix(suffix).unlink(missing_ok=True)

    @property
    def config_store(self) -> Path:
        return self.path / CONFIG_STORE

    @property
    def config_copy(self) -> Path:
        return self.path / "config.last-good"

    def release(self) -> None:
        """Also when a process that the application has forked still has the file open."""
        with contextlib.suppress(OSError):
            (self.path / PID_FILE).unlink()
        with contextlib.suppress(OSError):
            fcntl.flock(self._lock, fcntl.LOCK_UN)
        os.close(self._lock)
