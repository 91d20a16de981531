"""What was worked out once and comes again and again, in bounded memory: two generations and a
limit in bytes.
"""

from collections.abc import Hashable
from typing import Generic, Protocol, TypeVar

ONCE_SEEN_MAX = 8_192
"""Keys of which it is only remembered that they came once; what never comes again is not worth
keeping.
"""


class Costly(Protocol):
    """What is remembered."""

    @property
    def cost(self) -> int:
        """Bytes that it takes with its key, about."""


K = TypeVar("K", bound=Hashable)
V = TypeVar("V", bound=Costly)


class Remembered(Generic[K, V]):
    """Two generations. When the younger one is full the older one goes, and with it what was not
    used since.
    """

    __slots__ = ("_most", "_older", "_once", "_taken", "young")

    def __init__(self, most: int) -> None:
        """`most`: bytes that each generation may take, about."""
        self.young: dict[K, V] = {}
        """Look here first, and then with `again`."""
        self._older: dict[K, V] = {}
        self._once: set[int] = set()
        self._most = most
        self._taken = 0

    def again(self, key: K) -> V | None:
        """What is known of a key that is not among the younger ones; now it is."""
        known = self._older.get(key)
        if known is not None:
            self.keep(key, known)
        return known

    def came_before(self, key: K) -> bool:
        """Whether this key, of which nothing is known, came before: only then it is worth
        keeping.
        """
        mark = hash(key)
        if mark in self._once:
            return True
        if len(self._once) >= ONCE_SEEN_MAX:
            self._once.clear()
        self._once.add(mark)
        return False

    def keep(self, key: K, known: V) -> None:
        """Remembers it."""
        self._taken += known.cost
        if self._taken > self._most:
            self._older, self.young, self._taken = self.young, {}, known.cost
        self.young[key] = known
