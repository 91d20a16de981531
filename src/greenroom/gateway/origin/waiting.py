"""The queue for connections to an origin: priority requests, and the others."""

from collections import deque
from typing import Generic, TypeVar

IN_ROW = 4
"""Priority requests in a row before one of the others has its turn."""

R = TypeVar("R")


class WaitingRequests(Generic[R]):
    """FIFO within each kind."""

    def __init__(self) -> None:
        self._first: deque[R] = deque()
        self._others: deque[R] = deque()
        self._row = 0

    def __len__(self) -> int:
        return len(self._first) + len(self._others)

    def append(self, request: R, first: bool) -> None:
        (self._first if first else self._others).append(request)

    def popleft(self) -> R:
        if self._first and (not self._others or self._row < IN_ROW):
            self._row = self._row + 1 if self._others else 0
            return self._first.popleft()
        self._row = 0
        return self._others.popleft()

    def pop(self) -> R:
        """Removes the last in turn, so that a full queue keeps the share of the others."""
        others_last = len(self._others) * IN_ROW >= len(self._first)
        return (self._others if others_last else self._first).pop()

    def discard(self, request: R) -> bool:
        for waiting in (self._first, self._others):
            if request in waiting:
                waiting.remove(request)
                return True
        return False
