"""Sizes in a row, and how much comes before each of them: a Fenwick tree, so a million places in a
thousand stretches take ten steps, not a thousand.

`_tree[i]` (from 1) is the sum of as many sizes up to the i-th as the lowest bit of i says. Where a
size comes or goes everything behind it moves, so the whole tree is made when it is next needed; in
a line that happens once in about a thousand visitors.
"""

from collections.abc import Iterable


class PartialSums:
    """Non-negative sizes, counted from 0."""

    __slots__ = ("_sizes", "_tree")

    def __init__(self, sizes: Iterable[int] = ()) -> None:
        self._sizes = list(sizes)
        self._tree: list[int] = []  # empty: to be made

    def add(self, index: int, change: int) -> None:
        self._sizes[index] += change
        tree = self._tree
        index += 1
        while index < len(tree):
            tree[index] += change
            index += index & -index

    def insert(self, index: int, size: int) -> None:
        """Inserts a size before this index."""
        self._sizes.insert(index, size)
        self._tree = []

    def remove(self, index: int) -> None:
        del self._sizes[index]
        self._tree = []

    def before(self, index: int) -> int:
        tree, total = self._tree or self._made(), 0
        while index:
            total += tree[index]
            index &= index - 1
        return total

    def find(self, place: int) -> tuple[int, int]:
        """The index of the size that contains this place, and the offset in it; IndexError beyond
        the end.
        """
        tree, index = self._tree or self._made(), 0
        step = 1 << (len(tree) - 1).bit_length()
        while step:
            end = index + step
            if end < len(tree) and tree[end] <= place:
                index = end
                place -= tree[end]
            step >>= 1
        if index == len(self._sizes):
            raise IndexError("behind the end")
        return index, place

    def _made(self) -> list[int]:
        tree = [0, *self._sizes]
        for index in range(1, len(tree)):
            parent = index + (index & -index)
            if parent < len(tree):
                tree[parent] += tree[index]
        self._tree = tree
        return tree
