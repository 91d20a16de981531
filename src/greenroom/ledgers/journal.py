"""The journal on disk (docs/explanation/journal-format.md). `append` returns when the frame is in the
page cache, which survives the death of this process; a power cut may lose what follows the last
`sync`. What the disk refused is cut off before anything else is written. An incomplete frame at the
end was never acknowledged and is cut off; anything else that fails its check is damage, and the
intact frames on both sides are kept.
"""

import contextlib
import errno
import fcntl
import os
import re
import shutil
import struct
import threading
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from greenroom.errors import StorageFailed

# Header: magic (8 bytes), version (u32), CRC-32 of both. Frame: length (u32), CRC-32 of the
# payload begun at the length (u32), payload. Big-endian. A length of zero is no frame, so a
# stretch of zeros, which a power cut may leave, is never read as one.

MAGIC = b"GREENJNL"
VERSION = 1

PAYLOAD_MAX = 4 * 1024 * 1024
"""A reader's window is a little larger."""

RESYNC_BYTES_MAX = 1 << 30
"""Searched for intact frames, about a second; the rest counts as damaged."""

FRAME_HEAD = struct.Struct(">II")
HEADER_SIZE = 16
_WINDOW = PAYLOAD_MAX + FRAME_HEAD.size
_NOT_ZERO = re.compile(rb"[^\0]")

Stretch = tuple[int, int]


def header(version: int = VERSION) -> bytes:
    begin = MAGIC + struct.pack(">I", version)
    return begin + struct.pack(">I", zlib.crc32(begin))


def version_of(head: bytes) -> int:
    if len(head) != HEADER_SIZE or not head.startswith(MAGIC):
        return 0
    version: int = struct.unpack_from(">I", head, len(MAGIC))[0]
    return version if head == header(version) else 0


def framed(payload: bytes) -> bytes:
    """Raises ValueError for an empty payload or one above PAYLOAD_MAX."""
    size = len(payload)
    if not 0 < size <= PAYLOAD_MAX:
        raise ValueError(f"a frame holds 1 to {PAYLOAD_MAX} bytes, not {size}")
    return FRAME_HEAD.pack(size, zlib.crc32(payload, size)) + payload


def scan(file: int, at: int, end: int, damaged: list[Stretch]) -> Iterator[bytes]:
    """Yields intact payloads; adds every stretch between them to `damaged`."""
    unpack, head_size, crc32 = FRAME_HEAD.unpack_from, FRAME_HEAD.size, zlib.crc32
    while at < end:
        window = os.pread(file, min(_WINDOW, end - at), at)
        filled, used = len(window), 0
        while used + head_size < filled:
            length, crc = unpack(window, used)
            begin = used + head_size
            payload = window[begin : begin + length]
            if len(payload) != length or not length or crc32(payload, length) != crc:
                break
            yield payload
            used = begin + length
        at += used
        if not used:  # a window holds at least one whole frame, so what begins here is damaged
            following = _next_intact(file, at, end)
            damaged.append((at, following))
            at = following


def torn(file: int, at: int, end: int) -> bool:
    """Whether this is what a kill or power cut leaves of a write."""
    head = os.pread(file, FRAME_HEAD.size, at)
    if len(head) < FRAME_HEAD.size:
        return True
    length = FRAME_HEAD.unpack(head)[0]
    return (0 < length <= PAYLOAD_MAX and at + FRAME_HEAD.size + length > end) or all_zero(
        file, at, end
    )


def all_zero(file: int, at: int, end: int) -> bool:
    while at < end:
        window = os.pread(file, min(_WINDOW, end - at), at)
        if not window or _NOT_ZERO.search(window):
            return not window
        at += len(window)
    return True


def _next_intact(file: int, at: int, end: int) -> int:
    head = os.pread(file, FRAME_HEAD.size, at)
    if len(head) == FRAME_HEAD.size:
        behind: int = at + FRAME_HEAD.size + FRAME_HEAD.unpack(head)[0]
        if behind < end and _intact(file, behind, end):
            return behind  # only the payload was hit
    left = RESYNC_BYTES_MAX
    at += 1
    while at + FRAME_HEAD.size < end and left > 0:
        window = os.pread(file, min(_WINDOW, end - at), at)
        for place, length in _candidates(window):
            if at + place + FRAME_HEAD.size + length > end:
                continue
            left -= length
            if _intact(file, at + place, end):
                return at + place
            if left <= 0:
                return end
        at += max(1, len(window) - FRAME_HEAD.size)
    return end


def _candidates(window: bytes) -> Iterator[tuple[int, int]]:
    """A length's first byte is always zero."""
    place = window.find(b"\0")
    last = len(window) - FRAME_HEAD.size
    while 0 <= place < last:
        length = FRAME_HEAD.unpack_from(window, place)[0]
        if length:
            if length <= PAYLOAD_MAX:
                yield place, length
            place += 1
        else:
            other = _NOT_ZERO.search(window, place)
            place = other.start() - 3 if other else last
        place = window.find(b"\0", place)


def _intact(file: int, at: int, end: int) -> bool:
    head = os.pread(file, FRAME_HEAD.size, at)
    if len(head) < FRAME_HEAD.size:
        return False
    length: int
    crc: int
    length, crc = FRAME_HEAD.unpack(head)
    if not 0 < length <= PAYLOAD_MAX or at + FRAME_HEAD.size + length > end:
        return False
    payload = os.pread(file, length, at + FRAME_HEAD.size)
    return len(payload) == length and zlib.crc32(payload, length) == crc


CORRUPT_COPIES_MAX = 8

_WRITE_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class Damage:
    """`copy`: where the damaged file was kept, or None."""

    offset: int
    length: int
    copy: Path | None = None

    def __str__(self) -> str:
        kept = f"the damaged file is kept as {self.copy}" if self.copy else "no copy could be kept"
        return f"{self.length} bytes at offset {self.offset} are damaged and were left out; {kept}"


class FileJournal:
    """For one process; `append`, `sync` and `compact` may be called from different threads."""

    def __init__(self, path: Path) -> None:
        """Mode 600, directory mode 700. Raises StorageFailed: another process uses it, it can be
        neither opened nor made, or it is no journal of this version.
        """
        self.path = path
        self.damage: tuple[Damage, ...] = ()
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
        """With the header; 0 for a new file. Exact once replayed."""
        return self._end

    def append(self, payload: bytes) -> None:
        """Raises StorageFailed when the disk refuses, having added nothing; ValueError as `framed`."""
        frame = framed(payload)
        if not self._replayed:
            self._read_through()
        with self._guard:
            if self._ragged or not self._writable or not self._end:
                self._prepare()
            self._write(frame)

    def replay(self) -> Iterator[bytes]:
        """Repairs a torn end and damage once read to the end. Raises StorageFailed."""
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
        """For a background thread. Raises StorageFailed when the disk refuses, or when the file was
        removed, after writing it again.
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
        """Replaces all frames up to `since` (the `size` when the payloads were collected; default:
        all). A kill leaves the old file or the new one, whole. Raises StorageFailed; the old file
        then stays in use.
        """
        if not self._replayed:
            self._read_through()
        with self._compacting:
            self._refuse_closed()
            self._replace(payloads, self._end if since is None else since)

    def close(self) -> None:
        """Call `sync` before if a power cut matters. May be called twice."""
        with self._compacting, self._guard:
            if self._lock >= 0:
                # closing is not enough if a forked process of the application lives on
                with contextlib.suppress(OSError):
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
        """In a file of its own, because compaction replaces the journal. A read-only disk without one
        needs none.
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
        with contextlib.suppress(OSError):  # for the message above
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
        ):  # killed while creating it
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
            # without room for a clean file the damaged one stays, and is repaired the next time
            with contextlib.suppress(StorageFailed):
                self.compact(scan(file, HEADER_SIZE, end, []))

    def _put_aside(self) -> Path | None:
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
        """A compaction may close the original descriptor."""
        try:
            return os.dup(self._file)
        except OSError as error:  # the process has used up its file descriptors
            raise self._failed(otherwise, error) from error

    def _failed(self, what: str, error: OSError) -> StorageFailed:
        return StorageFailed(f"{self.path}: {what}: {error.strerror or error}")


def _write_frames(file: int, payloads: Iterable[bytes]) -> int:
    size, batch = 0, bytearray(header())
    for payload in payloads:
        batch += framed(payload)
        if len(batch) >= _WRITE_BYTES:
            size += _write_all(file, batch)
            batch = bytearray()
    return size + _write_all(file, batch)


def _carry_over(old: int, at: int, end: int, new: int) -> int:
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


class LateJournal:
    """Created on the first write: a thousand rooms without visitors need no files."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.emptied = path.exists() and not path.stat().st_size
        """A kill while the file was created left it empty."""
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
        if self._file:
            self._file.compact(payloads, since)

    def close(self) -> None:
        if self._file:
            self._file.close()
