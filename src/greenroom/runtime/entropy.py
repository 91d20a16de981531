"""Random bits for the request path, fetched in bulk, because a system call costs more than the
rest. A fork discards what was fetched.
"""

import os
import struct
import weakref

FETCHED_BYTES = 4_096
_WORDS = struct.Struct(f"={FETCHED_BYTES // 8}Q")


class Entropy:
    """No bit is given twice. Not thread-safe."""

    def __init__(self) -> None:
        self.forget()
        _all.add(self)

    def forget(self) -> None:
        self._bytes, self._at = b"", 0
        self._words: list[int] = []

    def take(self, count: int) -> bytes:
        at = self._at
        taken = self._bytes[at : at + count]
        if len(taken) < count:
            self._bytes, at = os.urandom(max(count, FETCHED_BYTES)), 0
            taken = self._bytes[:count]
        self._at = at + count
        return taken

    def bits(self, count: int) -> int:
        if not self._words:
            self._words = list(_WORDS.unpack(os.urandom(FETCHED_BYTES)))
        return self._words.pop() >> 64 - count


_all: "weakref.WeakSet[Entropy]" = weakref.WeakSet()


def _after_fork() -> None:
    for entropy in _all:
        entropy.forget()


os.register_at_fork(after_in_child=_after_fork)
