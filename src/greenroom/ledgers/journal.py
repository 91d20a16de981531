"""The journal on disk, which survives `kill -9`: frames appended to one file, replayed at the next
start.

`append` returns when the frame is in the page cache: the death of this process cannot take it away
any more. A power cut can, up to the last `sync`, which the runtime calls once a second. What the
disk refused is cut off again before anything else is written, so no reader ever meets half a frame
with others behind it.

Reading: an incomplete frame at the very end is what a kill during a write leaves; it was never
acknowledged and is cut off. Anything else that does not check is damage. Then the intact frames on
both sides of it are kept, because a lost record costs one visitor a place, while dropping
everything behind it would cost everybody; the damaged file stays beside as `<name>.corrupt-<n>`,
and `damage` says where and how much. A file that is no journal at all is refused, never
overwritten.
"""

import contextlib
import errno
import fcntl
import os
import shutil
import threading
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from greenroom.errors import StorageFailed
from greenroom.ledgers.frames import (
    HEADER_SIZE,
    VERSION,
    Stretch,
    all_zero,
    framed,
    header,
    scan,
    torn,
    version_of,
)

CORRUPT_COPIES_MAX = 8
"""After that the last copy is replaced, so a dying disk is not filled with copies."""

_WRITE_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class Damage:
    """A stretch of the file, in bytes, without intact frame; `copy` is where the damaged file was
    kept, or None.
    """

    offset: int
    length: int
    copy: Path | None = None

    def __str__(self) -> str:
        kept = f"the damaged file is kept as {self.copy}" if self.copy else "no copy could be kept"
        return f"{self.length} bytes at offset {self.offset} are damaged and were left out; {kept}"


class FileJournal:
    """One journal, used by one process. `append`, `sync` and `compact` may be called from different
    threads.

    Replay first: an append before `replay` was read to its end reads the file itself, because the
    end has to be found.
    """

    def __init__(self, path: Path) -> None:
        """Opens or makes the file (mode 600, directory mode 700). On a read-only disk an existing
        file can still be replayed.

        Raises StorageFailed when another process uses it, when it can be neither opened nor made,
        and when it is not a journal of this version.
        """
        self.path = path
        self.damage: tuple[Damage, ...] = ()
        """What `replay` had to leave out; an operator must be told."""
        self._guard = threading.Lock()  # the file and its end
        self._compacting = threading.Lock()
        self._lock = self._file = -1
        self._writable = False
        self._replayed = False
        self._ragged = False  # bytes behind the end that are no frame
        try:
            self._open()
        except OSError as error:
            self.close()
            raise self._failed("cannot be opened", error) from error
        except StorageFailed:
            self.close()
            raise

    @property
    def size(self) -> int:
        """Bytes up to the end of the last good frame, header included; 0 for a new file. Exact once
        replayed.
        """
        return self._end

    def append(self, payload: bytes) -> None:
        """Adds one frame; once this has returned, killing the process cannot lose it.

        Raises StorageFailed when the disk refuses, having added nothing, and may be called again:
        it works as soon as the disk does. Raises ValueError for an empty payload or one above
        frames.PAYLOAD_MAX.
        """
        frame = framed(payload)
        if not self._replayed:
            self._read_through()
        with self._guard:
            if self._ragged or not self._writable or not self._end:
                self._prepare()
            self._write(frame)

    def replay(self) -> Iterator[bytes]:
        """Payloads in the order they were appended; settles a torn end and damage when read to the
        end.

        Raises StorageFailed when the disk cannot be read.
        """
        damaged: list[Stretch] = []
        with self._guard:
            self._refuse_closed()
            file, end = self._duplicate("cannot be read"), self._end
        try:
            if end and not version_of(os.pread(file, HEADER_SIZE, 0)):
                damaged.append((0, HEADER_SIZE))
            yield from scan(file, HEADER_SIZE, end, damaged)
            if not self._replayed:
                self._settle(file, end, damaged)
        except OSError as error:
            raise self._failed("cannot be read", error) from error
        finally:
            os.close(file)

    def sync(self) -> None:
        """Waits until everything appended is on the disk itself; for a background thread, once a
        second.

        Raises StorageFailed when the disk refuses: frames since the last success may not outlive a
        power cut. Also when the file was removed, so that the caller can report it; it has been
        written again by then, or appends are refused until a `sync` can do so.
        """
        with self._guard:
            if self._file < 0:
                return
            file, end = self._duplicate("cannot be flushed"), self._end
        try:
            os.fdatasync(file)
            with self._guard:
                current = self._file >= 0 and os.path.sameopenfile(file, self._file)
                removed = current and os.fstat(file).st_nlink == 0
                if removed:
                    self._writable = False
            if removed:
                self.compact(scan(file, HEADER_SIZE, end, []), end)
                raise StorageFailed(
                    f"{self.path}: was removed while in use and has been written again"
                )
        except OSError as error:
            raise self._failed("cannot be flushed", error) from error
        finally:
            os.close(file)

    def compact(self, payloads: Iterable[bytes], since: int | None = None) -> None:
        """Replaces everything up to `since` by these payloads; a kill at any instant leaves the old
        file or the new one, whole.

        `since` is what `size` was when the payloads were collected (default: now); frames appended
        later are carried over, so a thread may compact while others append. Raises StorageFailed
        when the disk refuses; the old file then stays in use.
        """
        if not self._replayed:
            self._read_through()
        with self._compacting:
            self._refuse_closed()
            self._replace(payloads, self._end if since is None else since)

    def close(self) -> None:
        """Gives the file and its lock back; call `sync` before if a power cut matters. May be
        called twice.
        """
        with self._compacting, self._guard:
            if self._lock >= 0:
                with contextlib.suppress(
                    OSError
                ):  # closing is not enough where the application has forked a process that lives on
                    fcntl.flock(self._lock, fcntl.LOCK_UN)
            for file in (self._file, self._lock):
                if file >= 0:
                    os.close(file)
            self._lock = self._file = -1
            self._writable = False

    def _open(self) -> None:
        self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._take_lock()
        try:
            self._file = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            self._writable = True
        except OSError as error:
            if error.errno != errno.EROFS or not self.path.exists():
                raise
            self._file = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC)
        if self._writable:
            with contextlib.suppress(FileNotFoundError):
                self._beside.unlink()  # a compaction that was killed
        self._end = os.fstat(self._file).st_size
        self._check_header()
        if self._writable and not self._end:
            self._sync_folder()

    def _take_lock(self) -> None:
        """The lock is a file of its own, because compaction replaces the journal. A read-only disk
        without one needs none.
        """
        path = self.path.with_name(self.path.name + ".lock")
        try:
            self._lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            if error.errno != errno.EROFS:
                raise
            with contextlib.suppress(FileNotFoundError):
                self._lock = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
            if self._lock < 0:
                return
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            owner = os.pread(self._lock, 20, 0).decode("ascii", "replace").strip() or "unknown"
            raise StorageFailed(
                f"{self.path}: is in use by another greenroom (process {owner})"
            ) from None
        with contextlib.suppress(OSError):  # a courtesy for the message above
            os.ftruncate(self._lock, 0)
            os.pwrite(self._lock, b"%d\n" % os.getpid(), 0)

    def _check_header(self) -> None:
        head = os.pread(self._file, HEADER_SIZE, 0)
        version = version_of(head)
        if version == VERSION:
            return
        if version:
            raise StorageFailed(
                f"{self.path}: is a journal of version {version}, but this greenroom reads version"
                f" {VERSION}"
            )
        if header().startswith(head) or all_zero(
            self._file, 0, self._end
        ):  # died while it was being made
            self._ragged = self._end > 0
            self._end = 0
        elif next(scan(self._file, HEADER_SIZE, self._end, []), None) is None:
            raise StorageFailed(
                f"{self.path}: is not a greenroom journal; move it away or choose another data"
                " directory"
            )

    def _read_through(self) -> None:
        for _ in self.replay():
            pass

    def _settle(self, file: int, end: int, damaged: list[Stretch]) -> None:
        with self._guard:
            if damaged and damaged[-1][1] == end and torn(file, damaged[-1][0], end):
                self._end = damaged.pop()[0]
                self._ragged = True
                if self._writable:
                    self._cut()
            self._replayed = True
        if damaged:
            copy = self._put_aside() if self._writable else None
            self.damage = tuple(Damage(begin, stop - begin, copy) for begin, stop in damaged)
            with contextlib.suppress(
                StorageFailed
            ):  # without room for a clean file the damaged one is as good: it is read again
                self.compact(scan(file, HEADER_SIZE, end, []))

    def _put_aside(self) -> Path | None:
        """Keeps the damaged file under another name; None when the disk refuses."""
        names = [
            self.path.with_name(f"{self.path.name}.corrupt-{n}")
            for n in range(1, CORRUPT_COPIES_MAX + 1)
        ]
        copy = next((name for name in names if not name.exists()), names[-1])
        try:
            copy.unlink(missing_ok=True)
            try:
                os.link(self.path, copy)  # the clean file takes the name, this one keeps the bytes
            except OSError:
                shutil.copy2(self.path, copy)
        except OSError:
            return None
        return copy

    def _prepare(self) -> None:
        self._refuse_closed()
        try:
            if not self._writable:
                self._reopen()
            if self._ragged:
                os.ftruncate(self._file, self._end)
                self._ragged = False
        except OSError as error:
            raise self._failed("cannot be written", error) from error
        if not self._end:
            self._write(header())

    def _refuse_closed(self) -> None:
        if self._file < 0:
            raise StorageFailed(f"{self.path}: is closed")

    def _reopen(self) -> None:
        """For a disk that was read-only when the journal was opened, or a removed file."""
        if self._lock < 0:
            self._take_lock()
        file = os.open(self.path, os.O_RDWR | os.O_CLOEXEC)
        if not os.path.sameopenfile(file, self._file):
            os.close(file)
            raise StorageFailed(f"{self.path}: was replaced by another file while in use")
        os.close(self._file)
        self._file = file
        self._writable = True

    def _write(self, data: bytes) -> None:
        try:
            written = os.pwrite(self._file, data, self._end)
        except OSError as error:
            self._cut()
            raise self._failed("cannot be written", error) from error
        if written != len(data):
            self._cut()
            raise StorageFailed(
                f"{self.path}: cannot be written: the disk took {written} of {len(data)} bytes"
            )
        self._end += written

    def _cut(self) -> None:
        """Removes what stands behind the last good frame, now or else before the next write."""
        self._ragged = True
        with contextlib.suppress(OSError):
            os.ftruncate(self._file, self._end)
            self._ragged = False

    def _replace(self, payloads: Iterable[bytes], since: int) -> None:
        try:
            new = os.open(self._beside, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise self._failed("cannot be compacted", error) from error
        try:
            size = _write_frames(new, payloads)
            upto = self._end
            size += _carry_over(self._file, since, upto, new)
            os.fsync(new)
            with self._guard:
                size += _carry_over(self._file, upto, self._end, new)
                os.replace(self._beside, self.path)
                old, self._file, self._end = self._file, new, size
                self._writable, self._ragged = True, False
            os.close(old)
            self._sync_folder()
        except BaseException as error:
            if self._file != new:
                os.close(new)
                with contextlib.suppress(OSError):
                    self._beside.unlink()
            if isinstance(error, OSError):
                raise self._failed("cannot be compacted", error) from error
            raise

    @property
    def _beside(self) -> Path:
        return self.path.with_name(self.path.name + ".new")

    def _sync_folder(self) -> None:
        folder = os.open(self.path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)

    def _duplicate(self, otherwise: str) -> int:
        """For a thread that works on the file while others append: a compaction may close the first
        descriptor.
        """
        try:
            return os.dup(self._file)
        except OSError as error:  # the process has used up its file descriptors
            raise self._failed(otherwise, error) from error

    def _failed(self, what: str, error: OSError) -> StorageFailed:
        return StorageFailed(f"{self.path}: {what}: {error.strerror or error}")


def _write_frames(file: int, payloads: Iterable[bytes]) -> int:
    """Header and frames in writes of about a megabyte; how many bytes."""
    size, batch = 0, bytearray(header())
    for payload in payloads:
        batch += framed(payload)
        if len(batch) >= _WRITE_BYTES:
            size += _write_all(file, batch)
            batch = bytearray()
    return size + _write_all(file, batch)


def _carry_over(old: int, at: int, end: int, new: int) -> int:
    """Copies whole frames as they stand; how many bytes."""
    begin = at
    while at < end:
        block = os.pread(old, min(_WRITE_BYTES, end - at), at)
        if not block:
            raise OSError(errno.EIO, "the journal is shorter than it was")
        at += _write_all(new, block)
    return max(0, end - begin)


def _write_all(file: int, data: bytes | bytearray) -> int:
    view = memoryview(data)
    while view:
        view = view[os.write(file, view) :]
    return len(data)
