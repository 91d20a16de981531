"""A two-generation cache, bounded in bytes."""

from collections.abc import Hashable
from typing import Generic, Protocol, TypeVar

ONCE_SEEN_MAX = 8_192


class Costly(Protocol):
    @property
    def cost(self) -> int:
        """Approximate bytes with its key."""


K = TypeVar("K", bound=Hashable)
V = TypeVar("V", bound=Costly)


class BoundedCache(Generic[K, V]):
    """When the younger generation is full, the older one goes with everything unused since."""

    __slots__ = ("_most", "_older", "_once", "_taken", "young")

    def __init__(self, most: int) -> None:
        """`most`: approximate bytes of each generation."""
        self.young: dict[K, V] = {}
        """Look here first, and then with `again`."""
        self._older: dict[K, V] = {}
        self._once: set[int] = set()
        self._most = most
        self._taken = 0

    def again(self, key: K) -> V | None:
        known = self._older.get(key)
        if known is not None:
            self.keep(key, known)
        return known

    def came_before(self, key: K) -> bool:
        """Only what came before is worth caching."""
        mark = hash(key)
        if mark in self._once:
            return True
        if len(self._once) >= ONCE_SEEN_MAX:
            self._once.clear()
        self._once.add(mark)
        return False

    def keep(self, key: K, known: V) -> None:
        self._taken += known.cost
        if self._taken > self._most:
            self._older, self.young, self._taken = self.young, {}, known.cost
        self.young[key] = known
